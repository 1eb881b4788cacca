"""`/health` says that the server is alive, `/ready` that it can do its work."""

from __future__ import annotations

import subprocess

import pytest

from tests.chaos.named_steps import fill
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

COUNTS = {"agents", "chats", "messages", "workers", "streams"}


@pytest.fixture
def served(tmp_path):
    made = Served(Scratch(tmp_path))
    yield made
    made.close()


def test_health_has_the_fields_of_claude_fleets_and_they_move(served):
    token = served.token("ann")
    served.ask("POST", "/v1/task/add", {"title": "x", "spec": {"assignee": "ann"}}, token=token)
    served.ask("POST", "/v1/mail/send", {"to": "bob", "text": "Hello"}, token=token)
    served.ask("POST", "/v1/chat/open", {"members": []}, token=token)
    health = served.ask("GET", "/health")[1]
    assert (health["status"], health["persistence"]) == ("ok", "sqlite")
    assert health.keys() >= COUNTS

    def counted() -> bool:
        now = served.ask("GET", "/health")[1]
        people = 2  # who runs the server is one
        return (now["agents"], now["chats"], now["messages"]) == (people, 1, 1)

    until(counted, "the counts to follow")


def test_a_server_with_its_supervisor_is_ready(served):
    until(lambda: served.ask("GET", "/ready")[0] == 200, "the supervisor to beat")
    assert served.ask("GET", "/ready")[1] == {"status": "ready"}
    assert served.scratch.data("health")["workers"] == 0


@pytest.fixture
def small(tmp_path):
    """A server whose home is on a disk of 64 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small filesystem can only be mounted by root")
    made = Served(Scratch(disk), "--no-run")
    made.disk = disk
    try:
        yield made
    finally:
        made.close()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_makes_it_unready_and_its_health_truthful(small):
    token = small.token("ann")
    assert small.ask("GET", "/ready")[0] == 200
    fill(str(small.disk / "a.filler"))

    def refused() -> bool:
        body = {"title": "x", "prompt": "y" * 50_000}
        return small.ask("POST", "/v1/task/add", body, token=token)[0] == 503

    until(refused, "a write to be refused")
    status, health = small.ask("GET", "/health")
    assert (status, health["status"]) == (200, "degraded")
    assert health["problems"]["store"] == "The disk of the store is full."
    until(lambda: small.ask("GET", "/ready")[0] == 503, "it to be unready")
    body = small.ask("GET", "/ready")[1]
    assert body["code"] == "not_ready"
    assert "disk" in body["problems"]
    assert str(small.disk) not in str(body)
    for filler in small.disk.glob("*.filler"):
        filler.unlink()
    until(lambda: small.ask("GET", "/ready")[0] == 200, "it to be ready again")
    assert small.ask("GET", "/health")[1]["status"] == "ok"
