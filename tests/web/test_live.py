from __future__ import annotations

import signal
import time

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.free_ports import free_ports
from tests.wait import until
from tests.web.crowd import Crowd
from tests.web.figures import judge
from tests.web.tab import rows_shown

TASKS = 200
STATES = ("open", "running", "review", "failed", "done")


@pytest.fixture
def served(tmp_path):
    made = Served(Scratch(tmp_path / "x"), "--no-run", "--port", str(free_ports()))
    yield made
    made.close()


def test_a_task_that_somebody_adds_appears_by_itself(served, tab):
    page = tab(served, served.token()).open("/tasks")
    page.get_by_text("No tasks yet").wait_for()
    served.scratch.add("Paint the fence")
    page.get_by_text("Paint the fence").wait_for()


@pytest.fixture
def crowded(tmp_path):
    scratch = Scratch(tmp_path / "x")
    crowd = Crowd(scratch)
    for n in range(TASKS):
        crowd.add(f"Task {n}", STATES[n % len(STATES)])
    crowd.write()
    made = Served(scratch, "--no-run", "--port", str(free_ports()))
    yield made
    made.end()  # nothing of it runs


def test_after_kill_9_of_the_server_the_rows_are_those_of_the_store(crowded, tab):
    scratch = crowded.scratch
    shown = tab(crowded, crowded.token())
    page = shown.open("/tasks?view=all")
    until(lambda: len(rows_shown(shown)) == TASKS, "all rows to come")
    shown.run("document.querySelector('.virtual').scrollTop = 0")
    crowded.end(signal.SIGKILL)
    page.get_by_text("Reconnecting").wait_for()
    added = scratch.add("Meanwhile")
    changed = [f"t-{n + 1}" for n in range(0, TASKS, len(STATES))][:5]  # open ones
    scratch("pause", *changed)
    crowded.start()
    begun = time.monotonic()
    page.get_by_text("Meanwhile").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    judge("back after kill -9", time.monotonic() - begun, 2, "s")
    stored = {row["id"]: row["status"] for row in scratch.data("tasks", "--all", "-n", "500")}
    assert stored[added] == "ready"
    assert {stored[task] for task in changed} == {"paused"}
    until(lambda: rows_shown(shown) == stored, "the rows to be those of the store")
    shown.wrong = [
        text for text in shown.wrong if "ERR_CONNECTION_RE" not in text
    ]  # refused, reset
