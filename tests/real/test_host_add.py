"""A machine joins over a real sshd. Here it is this machine, with another home and user folder."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fleet.app import open_store
from tests.free_ports import free_ports
from tests.real.several_hosts import RealHost
from tests.real.sshd import SSHD, Sshd
from tests.wait import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="needs openssh-server"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd for another user needs root"),
]


@pytest.fixture
def box(tmp_path):
    made = Sshd(tmp_path / "box", os.environ["PATH"])
    yield made
    made.run("$HOME/.local/bin/fleet run stop --agents")
    made.end()


@pytest.fixture
def here(tmp_path, postgres_url, box):
    made = RealHost(tmp_path / "here", postgres_url)
    made.env["FLEET_SSH"] = box.ssh
    yield made
    made.type("serve", "--stop")


def test_a_machine_joins_with_one_command_and_is_put_back_as_it_was(here, box, postgres_url):
    dry = here.data("host", "add", "box", "--dry-run")
    assert [step["done"] for step in dry["steps"]] == [True, False, False, False, False, False]
    assert list(box.home.iterdir()) == []
    port = free_ports()
    here("serve", "--background", "--port", str(port), "--no-run")
    also = ("--label", "gpu", "--server", f"http://127.0.0.1:{port}")
    began = time.monotonic()
    added = here.data("host", "add", "box", *also)
    print(f"joined in {time.monotonic() - began:.1f} s")
    assert [step["name"] for step in added["steps"]] == [
        "look", "install", "settings", "service", "wait", "task",
    ]  # fmt: skip
    (row,) = here.data("host", "list")
    assert (row["id"], row["state"]) == (added["host"], "awake")
    assert "gpu" in row["labels"]
    config = box.home / ".fleet" / "config.yaml"
    assert config.stat().st_mode & 0o077 == 0
    assert "fleet_box_" in config.read_text()
    task = here.add("There", "--needs", "gpu", "--cwd", "/", "--in-place", script="say Hello.")
    here.wait_for(task, "done")
    until(lambda: here.type("logs", task).returncode == 0)
    assert "Hello." in here("logs", task)
    token = (box.home / ".fleet" / "server.token").read_text()
    again = here.data("host", "add", "box", *also[2:])
    assert again["host"] == here.data("host", "show", "box")["host"]["id"] == added["host"]
    (row,) = here.data("host", "list")
    assert {"box", "gpu"} <= set(row["labels"])
    assert (box.home / ".fleet" / "server.token").read_text() == token
    (row,) = [row for row in here.data("token", "list") if row["name"] == added["host"]]
    assert row["role"] == "monitor"
    store = open_store(postgres_url)
    try:
        assert {run.host for run in store.runs(task)} == {added["host"]}
        wrong = here.type("host", "add", "box", "--store", "nowhere.invalid:1")
        assert (wrong.returncode, "nowhere.invalid:1" in wrong.stderr) == (3, True), wrong.stderr
        here("host", "forget", "box")
        assert added["host"] not in {row["name"] for row in here.data("token", "list")}
        assert here.data("host", "list") == []
        until(lambda: not store.hosts()[added["host"]].holder)
    finally:
        store.close()
    assert not (box.home / ".local/bin/fleet").exists()
    assert not list((box.home / ".local/share/fleet").iterdir())
    assert "fleet_box_" not in config.read_text()


def test_a_machine_that_lacks_a_program_is_refused_with_its_name(here, box, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for program in ("sh", "date", "df", "awk", "grep", "head"):
        (bare / program).symlink_to(box.run(f"command -v {program}").stdout.strip())
    (bare / "python3").symlink_to(sys._base_executable)
    box.end()
    second = Sshd(tmp_path / "second", str(bare))
    try:
        here.env["FLEET_SSH"] = second.ssh
        refused = here.type("host", "add", "box")
        assert refused.returncode == 1
        assert "box lacks git 2.38 or newer, tmux 3.2 or newer." in refused.stderr
    finally:
        second.end()


def test_a_name_that_ssh_does_not_reach_is_said_with_the_next_step(here):
    here.env["FLEET_SSH"] = "ssh -o StrictHostKeyChecking=no"
    refused = here.type("host", "add", "nowhere.invalid")
    assert refused.returncode == 3
    assert "ssh nowhere.invalid true" in refused.stderr
