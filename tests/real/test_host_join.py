"""A machine joins by its own command, without ssh. Here it is another home on this machine."""

from __future__ import annotations

import json
import os
import re
import time

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.real.several_hosts import RealHost
from tests.wait import until

pytestmark = pytest.mark.real


@pytest.fixture
def served(tmp_path, postgres_url):
    made = Served(RealHost(tmp_path / "here", postgres_url), "--no-run")
    yield made
    made.end()


@pytest.fixture
def box(tmp_path):
    """It knows nothing of the store."""
    made = Scratch(tmp_path / "box")
    made.env = {name: value for name, value in made.env.items() if "STORE" not in name}
    yield made
    made.type("run", "stop", "--agents")


def test_a_machine_joins_with_an_invitation_and_leaves(served, box, postgres_url):
    here = served.scratch
    invited = here.data("host", "invite")
    twice = box.fails(*invited["line"].split()[1:], "--label", "gpu,macos", status=2)
    assert "--label gpu --label macos" in twice
    line = invited["line"].split()[1:]
    assert line[:3] == ["host", "join", served.url]
    dry = box.data(*line, "--dry-run")
    assert [step["done"] for step in dry["steps"]] == [True, False, False, False, False]
    assert not (box.home / "joined.json").exists()
    began = time.monotonic()
    joined = box.data(*line, "--label", "gpu")
    print(f"joined in {time.monotonic() - began:.1f} s, load {os.getloadavg()[0]:.0f}")
    assert [step["name"] for step in joined["steps"]] == [
        "look",
        "enrol",
        "service",
        "wait",
        "task",
    ]
    (row,) = here.data("host", "list")
    assert (row["id"], row["state"]) == (joined["host"], "awake")
    config = box.home / "config.yaml"
    assert config.stat().st_mode & 0o077 == 0
    login = re.search(r"postgresql://(fleet_\w+):", config.read_text())[1]
    assert has_login(postgres_url, login)
    task = here.add("There", "--needs", "gpu", "--cwd", "/", "--in-place", script="say Hello.")
    here.wait_for(task, "done")
    until(lambda: here.type("logs", task).returncode == 0)
    assert "Hello." in here("logs", task)
    repeated(box, joined, line)
    refused_elsewhere(here, line)
    box("host", "leave")
    assert login not in config.read_text()
    here("host", "forget", joined["host"])
    assert joined["host"] not in {row["name"] for row in here.data("token", "list")}
    assert not has_login(postgres_url, login)


def has_login(url: str, role: str) -> bool:
    import psycopg

    with psycopg.connect(url) as link:
        wanted = "SELECT 1 FROM pg_roles WHERE rolname = %s"
        return link.execute(wanted, [role]).fetchone() is not None


def repeated(box: Scratch, joined: dict, line: list[str]) -> None:
    token = (box.home / "server.token").read_text()
    again = box.data(*line[:3])  # without the invitation: it has joined
    assert again["host"] == joined["host"]
    assert "joined already" in json.dumps(again["steps"])
    assert (box.home / "server.token").read_text() == token


def refused_elsewhere(here: Scratch, line: list[str]) -> None:
    """Another machine cannot use the same invitation."""
    second = Scratch(here.root.parent / "second")
    second.env = {name: value for name, value in second.env.items() if "STORE" not in name}
    refused = second.type(*line)
    assert refused.returncode == 1
    assert "invitation" in refused.stderr


def test_a_machine_that_does_not_start_its_supervisor_is_told_the_line(served, box):
    line = served.scratch.data("host", "invite")["line"].split()[1:]
    joined = box.data(*line, "--no-start")
    assert joined["start"].endswith("fleet run start")
    assert served.scratch.data("host", "list") == []


def test_an_address_without_a_server_and_a_wrong_secret_are_refused(served, box):
    nowhere = box.type("host", "join", "http://127.0.0.1:9", "--token", "enrol-x")
    assert nowhere.returncode == 3
    beside = box.fails("host", "join", f"{served.url}/x", "--token", "enrol-x", status=2)
    assert "no Fleet server at" in beside
    assert "is not the address" in box.fails("host", "join", "not a url", status=2)
    wrong = box.type("host", "join", served.url, "--token", "enrol-x")
    assert (wrong.returncode, "unknown, expired or revoked" in wrong.stderr) == (1, True)


def test_a_store_in_a_file_cannot_be_joined(tmp_path):
    alone = Scratch(tmp_path / "alone")
    refused = alone.type("host", "invite")
    assert refused.returncode == 1
    assert "PostgreSQL" in refused.stderr
