"""`fleet doctor`: for each check the world is broken, seen to be, mended as printed, and seen whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.testing.fake_node.node import FakeModel
from tests.e2e.machines import FLEET, Machines, typed
from tests.wait import LIMIT, until


class Patient(Machines):
    def findings(self, *words: str, **given) -> tuple[int, list[dict]]:
        """The exit status, and what was found."""
        done = self.scratch.type("doctor", "--json", *words, **given)
        held = json_of(done)["data"]
        assert held["ok"] == (done.returncode == 0), done.stdout
        return done.returncode, held["findings"]

    def bad(self, check: str, *words: str, **given) -> dict:
        """The one thing that is wrong, and the exit status says so."""
        status, found = self.findings(*words, **given)
        wrong = [each for each in found if each["state"] == "bad"]
        assert (status, [each["check"] for each in wrong]) == (1, [check]), found
        assert wrong[0]["fix"]
        return wrong[0]

    def whole(self, check: str, **given) -> list[dict]:
        """Nothing is wrong, and this was looked at; what was found of it."""
        status, found = self.findings(**given)
        looked = [each for each in found if each["check"] == check]
        assert status == 0, found
        assert {each["state"] for each in looked} <= {"ok", "warning"}, found
        return looked


def json_of(done):
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def patient(tmp_path):
    made = Patient(tmp_path)
    yield made
    made.close()


@pytest.fixture
def running(patient):
    patient.scratch("gateway", "start")
    return patient


def test_a_healthy_fleet_that_is_not_up_is_not_ill(patient):
    done = patient.scratch.type("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("Nothing is wrong.\n")
    assert "round trip: The models were not tested: the gateway is not running.\n    fleet up" in (
        done.stdout
    )
    assert not (patient.scratch.home / "fleet.db").exists()


def test_outside_a_project_the_machine_is_still_looked_at(patient):
    patient.file.unlink()
    status, found = patient.findings()
    states = {each["check"]: each["state"] for each in found}
    assert status == 0
    assert (states["programs"], states["fleet"]) == ("ok", "skipped")


def test_settings(patient):
    patient.write(FLEET.replace("node: laptop", "node: labtop"))
    found = patient.bad("settings")
    assert "'labtop' is not a node" in found["said"]
    assert "Did you mean 'laptop'?" in found["said"] + found["fix"]
    patient.write()
    patient.whole("settings")


@pytest.mark.parametrize(("name", "says"), [("git", "git version 2.5.0"), ("tmux", "tmux 1.8")])
def test_programs(patient, name, says):
    older = patient.root / "older"
    older.mkdir()
    (older / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (older / name).chmod(0o755)
    path = {"PATH": f"{older}:{patient.scratch.env['PATH']}"}
    found = patient.bad("programs", env=path)
    assert f"{says.split()[-1]} is too old" in found["said"]
    assert found["fix"].startswith(f"Install {name} ")
    (older / name).unlink()
    patient.whole("programs", env=path)


OLDER = """
import sys
from fleet.cli.main import main
if len(sys.argv) > 3:
    sys.version_info = (3, 10, 1, "final", 0)
    del sys.argv[3]
main()
"""


def test_programs_python_itself(patient):
    """A Python that says that it is older; a real one could not even be given Fleet by pip."""

    def asked(*more: str) -> list[dict]:
        ran = subprocess.run(
            [sys.executable, "-c", OLDER, "doctor", "--json", *more], cwd=patient.scratch.repo,
            env=patient.scratch.env, capture_output=True, check=False, timeout=LIMIT,
        )  # fmt: skip
        return [f for f in json.loads(ran.stdout)["data"]["findings"] if f["check"] == "programs"]

    [bad] = [each for each in asked("--older") if each["state"] == "bad"]
    assert bad["said"] == "Python 3.10.1 is too old."
    assert bad["fix"] == "Install Python 3.11 or newer, and Fleet with it."
    assert {each["state"] for each in asked()} == {"ok"}


def test_programs_that_are_not_there(patient):
    bare = patient.root / "bare"
    bare.mkdir()
    (bare / "tmux").symlink_to(shutil.which("tmux"))
    found = patient.bad("programs", env={"PATH": str(bare)})
    assert found["said"].startswith("git is not on PATH")


def test_coders(patient):
    patient.scratch("config", "set", "coder=codex")
    env = {"FLEET_CODER": ""}
    found = patient.bad("coders", env=env)
    assert "There is no codex on PATH." in found["said"]
    codex = patient.root / "own" / "bin" / "codex"
    codex.write_text("#!/bin/sh\necho codex-cli 0.166.0\n")
    codex.chmod(0o755)
    installed = {"PATH": f"{codex.parent}:{patient.scratch.env['PATH']}"}
    assert patient.whole("coders", env=env | installed)[0]["said"] == "codex 0.166.0"
    patient.scratch(*typed(found["fix"].partition(": ")[2].replace("NAME", "scripted")))
    patient.whole("coders", env=env)


def test_a_coder_of_your_own_needs_no_version(patient):
    own = patient.root / "own" / "bin" / "my-agent"
    own.write_text("#!/bin/sh\necho Hello\n")
    own.chmod(0o755)
    patient.scratch("config", "set", "coder=scripted")
    config = patient.scratch.home / "config.yaml"
    config.write_text("coder: mine\ncoders:\n  mine: {command: [my-agent, '{prompt}']}\n")
    env = {"FLEET_CODER": "", "PATH": f"{own.parent}:{patient.scratch.env['PATH']}"}
    assert patient.whole("coders", env=env)[0]["said"] == "mine"
    known = patient.scratch("coders", "mine", env=env)
    assert f"{own}: It did not say its version." in known
    own.unlink()
    assert "There is no my-agent on PATH." in patient.bad("coders", env=env)["said"]


def test_files(patient):
    home = patient.scratch.home
    patient.scratch("add", "Fix the login")
    (home / "gateway.key").write_text("sk-x\n")
    for path in (home, home / "gateway.key", home / "fleet.db"):
        (home / "gateway.key").chmod(0o600)
        path.chmod(0o755)
        found = patient.bad("files")
        assert found["said"] == f"Other users may read {path}."
        patient.shell(found["fix"])
    patient.whole("files")


def test_keys(patient):
    patient.write(FLEET.replace('{{endpoint: "{mini}"}}', "{{endpoint: '{mini}', api_key: KEY}}"))
    text = patient.file.read_text()
    patient.file.write_text(text.replace("KEY", "os.environ/MINI_KEY"))
    patient.scratch("trust")
    bad = [each for each in patient.findings()[1] if each["state"] == "bad"]
    assert [each["check"] for each in bad] == ["keys", "nodes"]
    assert "the variable MINI_KEY, which holds its key, is not set" in bad[0]["said"]
    assert bad[0]["fix"] == "export MINI_KEY=THE-KEY"
    patient.scratch.env["MINI_KEY"] = "sk-mini"
    assert patient.whole("keys")[0]["said"] == "The key of mini is there."


def test_exposure(patient):
    patient.scratch("config", "set", "project.gateway.host=0.0.0.0")
    patient.scratch.env["LITELLM_MASTER_KEY"] = "sk-local-dev"
    found = patient.bad("exposure")
    assert "listens on everywhere" in found["said"]
    assert found["fix"] == "unset LITELLM_MASTER_KEY"
    del patient.scratch.env["LITELLM_MASTER_KEY"]
    patient.whole("exposure")


@pytest.mark.parametrize("way", ["its address there", "api_key"])
def test_exposure_of_a_node(patient, way):
    """An address that is nobody's own, and to which there is no way."""

    def exposure() -> list[dict]:
        found = patient.findings("--timeout", "5", env={"NAME": "sesame"})[1]
        return [each for each in found if each["check"] == "exposure" and each["state"] == "bad"]

    own = patient.file.read_text()
    patient.file.write_text(own.replace(patient.mini.url, "http://[::127.0.0.1]:11434"))
    patient.scratch("trust")
    [bad] = exposure()
    assert "The node mini (http://[::127.0.0.1]:11434) is on the Internet" in bad["said"]
    assert way in bad["fix"]
    if way == "api_key":
        setting = bad["fix"].rpartition(": ")[2].rstrip(".")
        assert setting == "nodes.mini.api_key=os.environ/NAME"
        patient.scratch("config", "set", "--project", setting)
        patient.scratch("trust")
    else:
        patient.file.write_text(own)
    assert exposure() == []


@pytest.mark.parametrize("version", ["1.82.8", "1.101.0"])
def test_litellm(patient, version):
    patient.litellm(version)
    found = patient.bad("litellm")
    assert version in found["said"]
    patient.litellm("1.106.2")
    assert patient.whole("litellm")[0]["said"] == "LiteLLM 1.106.2"


def test_ports(patient):
    with socket.create_server(("127.0.0.1", patient.port + 1)):
        found = patient.bad("ports")
        assert f"Another program listens on port {patient.port + 1}" in found["said"]
        patient.scratch(*typed(found["fix"]))
        patient.whole("ports")


def test_gateway(running):
    os.kill(running.services()["gateway"]["pid"], signal.SIGKILL)
    until(lambda: not running.services()["gateway"]["running"], "the gateway to be gone")
    found = running.bad("gateway")
    assert found["said"].startswith("Not answering: gateway")
    running.scratch(*typed(found["fix"]))
    running.whole("gateway")


def test_gateway_without_its_relay(running):
    os.kill(running.services()["relay"]["pid"], signal.SIGKILL)
    until(lambda: not running.services()["relay"]["running"], "the relay to be gone")
    found = running.bad("gateway")  # and not each model besides
    assert found["said"].startswith("Not answering: relay")
    running.scratch(*typed(found["fix"]))
    running.whole("gateway")


def test_gateway_that_was_told_of_another_fleet(running):
    running.write(FLEET.replace("claude-haiku-local", "tiny"))
    status, found = running.findings()
    [said] = [each for each in found if each["check"] == "gateway"]
    assert (status, said["state"]) == (1, "bad")
    running.scratch(*typed(said["fix"]))
    running.whole("gateway")


def test_nodes(patient):
    patient.mini.set(refuse=True)
    found = patient.bad("nodes")
    assert f"mini ({patient.mini.url}) does not answer: connection refused." in found["said"]
    patient.mini.heal()
    patient.whole("nodes")


def test_nodes_that_lack_a_model(patient):
    patient.write(FLEET.replace("qwen2.5-coder:32b", "mistral:7b"))
    assert patient.bad("nodes")["fix"] == "On mini: ollama pull mistral:7b"
    patient.mini.models["mistral:7b"] = FakeModel("mistral:7b")
    patient.whole("nodes")


def test_context(patient):
    patient.mini.load("qwen2.5-coder:32b", 4096)
    found = patient.bad("context")
    assert "resident with a context of 4096" in found["said"]
    patient.scratch(*typed(found["fix"]))
    assert patient.mini.resident == {"qwen2.5-coder:32b": 32_768}
    patient.whole("context")


def test_round_trips_name_the_node_that_answered_a_long_prompt_and_a_tool(running):
    found = running.whole("round trip")
    assert [each["state"] for each in found] == ["ok", "ok"]
    assert found[0]["said"].startswith("claude-haiku-local was answered by laptop in ")
    assert found[1]["said"].startswith("claude-sonnet-local was answered by mini in ")
    first, second = (seen.body for seen in running.mini.asked("/api/chat"))
    assert len(first["messages"][0]["content"]) > 16_000
    assert first["tools"][0]["function"]["name"] == "note_word"
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "tool"]


def test_round_trips_through_a_model_that_fails(running):
    running.mini.set(status=500, message="out of memory", only="/api/chat")
    found = running.bad("round trip")
    assert found["said"].startswith("claude-sonnet-local failed at mini: ")
    assert "out of memory" in found["said"]
    assert "fleet trace --agent doctor --explain" in found["fix"]
    traced = running.scratch("trace", "--agent", "doctor", "--explain")
    assert "out of memory" in traced
    running.mini.heal()
    until(lambda: running.scratch.type("doctor").returncode == 0, "the node to be used again")


def test_round_trips_with_another_key(running):
    other = {"LITELLM_MASTER_KEY": "sk-another-that-is-long-enough"}
    found = [each for each in running.findings(env=other)[1] if each["check"] == "round trip"]
    assert {each["state"] for each in found} == {"bad"}
    fix = found[0]["fix"]
    assert fix.startswith("The gateway was started with another key: ")
    for line in fix.partition(": ")[2].split("; "):
        running.scratch(*typed(line), env=other)
    running.whole("round trip", env=other)


def test_round_trips_of_a_model_that_calls_no_tool_are_a_warning(running):
    running.mini.set(calls=False)
    found = running.whole("round trip")
    assert [each["state"] for each in found] == ["ok", "warning"]
    assert "called no tool" in found[1]["said"]


def test_round_trips_end_with_the_time_that_was_given(running):
    running.mini.set(hang=True, only="/api/chat")
    found = running.bad("round trip", "--timeout", "2")
    assert found["said"] == "claude-sonnet-local failed: no answer in time"
    assert found["fix"] == "fleet warmup, then fleet doctor --timeout 300"
    running.mini.set(refuse=True)  # the request that hangs is over, too
    running.mini.heal()
    until(lambda: running.scratch.type("doctor").returncode == 0, "the node to be used again")


def test_orphans(patient):
    patient.scratch("add", "Fix the login")
    lost = patient.scratch.home / "worktrees" / "shop-1" / "t-99"
    patient.scratch.git("worktree", "add", "-q", "--detach", str(lost))
    found = patient.bad("orphans")
    assert found["said"] == f"The directory {lost} belongs to no task."
    patient.shell(found["fix"].partition("then: ")[2])
    patient.whole("orphans")


def test_orphans_that_count_as_running(patient):
    patient.scratch("create", "lost", "--headless", "--prompt", "sleep 600")
    (task,) = patient.scratch.data("tasks")
    run = patient.scratch.data("show", task["id"])["runs"][-1]["id"]
    folder = patient.scratch.home / "runs" / run
    until(lambda: (folder / "keeper.json").exists() or any(folder.iterdir()), "its keeper")
    for pid in family(patient.scratch.home, run):
        os.kill(pid, signal.SIGKILL)
    until(lambda: patient.scratch.type("doctor").returncode == 1, "the doctor to see it")
    found = patient.bad("orphans")
    assert found["said"] == f"{run} counts as running, but is gone."
    patient.scratch(*typed(found["fix"]))
    patient.whole("orphans")


def family(home, run: str) -> list[int]:
    """The processes of this run, by its id in their environment or words."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = each.joinpath("cmdline").read_bytes() + each.joinpath("environ").read_bytes()
        except OSError:
            continue
        if str(home).encode() in words and run.encode() in words:
            found.append(int(each.name))
    return found


def test_people_see_each_check_and_below_it_what_to_do(patient):
    patient.mini.set(refuse=True)
    done = patient.scratch.type("doctor")
    assert done.returncode == 1
    assert ["nodes", "bad"] in [line.split()[:2] for line in done.stdout.splitlines()]
    todo = done.stdout.split("What to do:\n")[1]
    assert "\n    Start it there" in todo
    assert done.stdout.endswith("1 thing is wrong.\n")


def test_files_a_home_that_cannot_be_written(patient):
    """In /proc not even root can make a directory."""
    away = {"FLEET_HOME": "/proc/fleet-home"}
    wrong = patient.bad("files", env=away)
    assert wrong["said"].startswith("Fleet cannot write to its home: /proc: ")
    assert "FLEET_HOME" in wrong["fix"]
    refused = patient.scratch.fails("tasks", env=away, status=3)
    assert "fleet doctor" in refused
    assert "FLEET_HOME" in refused
    assert "FLEET_HOME" in patient.scratch.fails("init", env=away, status=3)
