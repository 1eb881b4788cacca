"""`/metrics` needs no token, so a flood of it must cost little."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.integration.listeners import Inside
from tests.wait import LIMIT, until

ASKING = 20
FLEET = "nodes:\n  mac: {endpoint: http://127.0.0.1:9}\n"


def test_however_many_ask_at_once_the_relay_is_not_asked_for_each(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "fleet.yaml").write_text(FLEET)
    server = Inside(tmp_path)
    gate, looks = threading.Event(), []

    def stalled():
        looks.append(1)
        gate.wait(LIMIT)
        return {}

    server.serving._server.relay = stalled
    try:
        with ThreadPoolExecutor(ASKING) as crowd:
            token = server.token("mon", "monitor")
            asked = [
                crowd.submit(server.ask, "GET", "/metrics/json", token=token) for _ in range(ASKING)
            ]
            until(lambda: len(server.connections()) >= ASKING)
            assert server.ask("GET", "/health")[0] == 200
            assert len(looks) == 1
            gate.set()
            assert {each.result(LIMIT)[0] for each in asked} == {200}
    finally:
        gate.set()
        server.end()
