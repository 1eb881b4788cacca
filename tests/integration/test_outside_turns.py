"""One member has the server wait for as many programs as it can; nobody else notices."""

from __future__ import annotations

import threading

import pytest

from fleet.server.make import MOST_WAITING, OUTSIDE_EACH
from tests.integration.listeners import Inside
from tests.wait import LIMIT


@pytest.fixture
def server(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    made = Inside(tmp_path)
    yield made
    made.end()


def test_a_monitor_whose_slow_reads_wait_is_refused_more_and_others_are_answered(server):
    gate, outside = threading.Event(), server.serving._server.hosts_do._outside
    mon, ann = server.token("mon", "monitor", "red"), server.token("ann", "worker", "red")
    jobs = []
    try:
        while len(outside) < MOST_WAITING:
            jobs.append(outside.submit("red/mon", lambda: gate.wait(LIMIT)))
        assert len(jobs) == MOST_WAITING + OUTSIDE_EACH
        status, problem = server.ask("POST", "/v1/land/forecast", {}, token=mon)
        assert (status, problem["code"]) == (429, "too_many_at_once")
        assert server.ok(ann, "land.forecast") == []
        assert server.ok(mon, "task.list") == []
    finally:
        gate.set()
    assert all(job.result(LIMIT) for job in jobs)
    assert server.ok(mon, "land.forecast") == []
