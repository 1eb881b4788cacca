"""What one hears of an agent at work, over a WebSocket."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Ws


@pytest.fixture
def served(tmp_path):
    made = Served(Scratch(tmp_path))
    yield made
    made.close()


def test_a_socket_hears_an_agent_come_speak_and_go(served):
    socket, other = Ws(served.port), Ws(served.port)
    token = served.token()
    socket.auth(token)
    other.auth(token)
    task = served.scratch.add("Talk", script="hear 60\nsay Here I am.")
    socket.until("worker_spawned")
    socket.send({"type": "subscribe", "chatId": task})
    assert socket.until("subscribed")[-1]["chatId"] == task
    served.scratch("send", task, "Go on")
    said = socket.until("worker_dismissed")
    while not any("Here I am." in line for s in said for line in s.get("lines", ())):
        said += socket.until("worker_output")  # what it said last may come after its end
    output = [s for s in said if s["type"] == "worker_output"]
    assert {(s["handle"], s["run"]) for s in output} == {(task, f"{task}.1")}
    for one, two in pairwise(output):
        assert one["offset"] == two["from"]
    ended = next(s for s in said if s["type"] == "worker_dismissed")
    assert (ended["event"]["type"], ended["event"]["task"]) == ("run.ended", task)
    heard = other.until("worker_dismissed")
    assert "worker_output" not in {s["type"] for s in heard}
    assert "new_message" not in {s["type"] for s in heard}
    socket.close()
    other.close()
