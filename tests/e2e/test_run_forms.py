"""The supervisor as a service: started, asked about, stopped, restarted, upgraded beneath."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from desk import FLEET, Desk, until

import fleet
from fleet.adapters.processes.supervisor_process import born

LONG = "say begun\nsleep 60"


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    made.env["FLEET_RUN_GRACE"] = "2"
    yield made
    (made.home / "config.yaml").unlink(missing_ok=True)
    done = made.type("run", "stop", "--agents")
    assert done.returncode == 0, done.stderr


def log(desk) -> str:
    return (desk.home / "logs" / "supervisor.log").read_text()


def standing(desk) -> dict:
    return json.loads((desk.home / "supervisor.json").read_text())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start(desk, *words: str, **given) -> int:
    return desk.data("run", "start", *words, **given)["pid"]


def test_a_detached_supervisor_has_nothing_of_the_terminal_it_was_started_in(desk):
    said = desk("run", "--detach", "--max", "2")
    pid = standing(desk)["pid"]
    assert (
        said == f"The supervisor runs (pid {pid}); it writes to {desk.home}/logs/supervisor.log.\n"
    )
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    assert Path(f"/proc/{pid}/fd/2").readlink() == Path(f"{desk.home}/logs/supervisor.log")
    assert f"Supervising {desk.home} as " in log(desk)
    task = desk.add()
    desk.wait_for(task, "done")
    modes = {(desk.home / name).stat().st_mode & 0o777 for name in ("supervisor.json", "logs")}
    assert modes == {0o600, 0o700}
    assert (desk.home / "logs" / "supervisor.log").stat().st_mode & 0o777 == 0o600


def test_starting_again_is_fine_and_says_which_one_runs(desk):
    pid = start(desk)
    assert desk("run", "start") == f"A supervisor runs here already (pid {pid}).\n"
    assert desk("run", "--detach") == f"A supervisor runs here already (pid {pid}).\n"
    assert desk.data("run", "--detach")["pid"] == pid
    assert "--detach --json" in desk.fails("run", "--json", status=2)
    assert f"(pid {pid})" in desk.fails("run", status=1)
    assert f"(pid {pid})" in desk.fails("run", "foreground", status=1)


def test_two_starts_at_once_make_one_supervisor(desk):
    both = [desk.start("run", "start", "--json") for _ in range(2)]
    pids = {json.loads(each.communicate(timeout=30)[0])["data"]["pid"] for each in both}
    assert pids == {standing(desk)["pid"]}


def test_what_keeps_a_supervisor_from_starting_is_said_with_its_own_words(desk):
    desk("tasks")
    good = (desk.home / "fleet.db").read_bytes()
    for beside in ("fleet.db-wal", "fleet.db-shm"):
        (desk.home / beside).unlink(missing_ok=True)
    (desk.home / "fleet.db").write_bytes(b"not a database at all" * 100)
    said = desk.fails("run", "start", status=3)
    assert "The supervisor ended with status 3:\nfleet: " in said
    assert "fleet.db" in said
    assert f"Its log is {desk.home}/logs/supervisor.log." in said
    assert "There is no coder" in desk.fails("run", "start", "--coder", "claud", status=2)
    (desk.home / "fleet.db").write_bytes(good)


def test_a_log_that_has_grown_big_is_put_aside_at_the_start(desk):
    logs = desk.home / "logs"
    logs.mkdir(parents=True)
    (logs / "supervisor.log").write_text("old line\n" * 700_000)
    start(desk)
    assert (logs / "supervisor.log.1").read_text().startswith("old line\n")
    assert log(desk).startswith("Supervising ")


def test_status_says_what_runs_and_what_waits(desk):
    stopped = desk.type("run", "status")
    assert stopped.returncode == 1
    assert stopped.stdout.startswith("supervisor  stopped\n")
    running = desk.add("First", script=LONG)
    ready = desk.add("Second")
    desk("pause", desk.add("Third"))
    pid = start(desk, "--max", "1")
    desk.wait_for(running, "running")
    found = desk.data("run", "status")
    assert (found["running"], found["pid"], found["detached"]) == (True, pid, True)
    assert (found["version"], found["outdated"]) == (fleet.__version__, False)
    assert found["runs"] == [f"{running}.1"]
    assert found["tasks"] == {"paused": 1, "ready": 1, "running": 1}
    assert (found["home"], found["complaints"]) == (str(desk.home), {})
    shown = desk("run", "status")
    assert f"pid         {pid}, detached\n" in shown
    assert "tasks       1 paused, 1 ready, 1 running\n" in shown
    assert desk.status(ready) == "ready"


def test_a_stop_leaves_the_agents_and_a_restart_takes_them_up_with_the_same_options(desk):
    task = desk.add("First", script=LONG)
    pid = start(desk, "--max", "1", "--coder", "scripted")
    desk.wait_for(task, "running")
    said = desk("run", "stop")
    assert said.startswith(f"Stopped the supervisor (pid {pid}). 1 agent goes on:")
    assert not is_alive(pid)
    assert desk("run", "stop").startswith("No supervisor runs here. 1 agent goes on:")
    assert desk.data("show", task)["runs"][0]["ended_at"] is None
    again = desk("run", "restart")
    second = standing(desk)["pid"]
    assert again.startswith(f"None ran before. The supervisor runs (pid {second});")
    assert again.endswith(" It has taken up 1 agent.\n")
    third = desk.data("run", "restart")
    assert (third["before"], third["adopted"]) == (second, 1)
    assert (standing(desk)["most"], standing(desk)["coder"]) == (1, "scripted")
    assert [r["id"] for r in desk.data("show", task)["runs"]] == [f"{task}.1"]


def test_ending_the_agents_too_costs_no_attempt_and_they_go_on_later(desk):
    go = desk.root / "go"
    waits = f"run sh -c 'while [ ! -e {go} ]; do sleep 0.1; done'"
    going = desk.add("First", "--attempts", "1", script=f"say one\n{waits}\nsay then")
    held = desk.add("Second", "--attempts", "1", script=LONG)
    start(desk)
    for task in (going, held):
        desk.wait_for(task, "running")
        until(lambda task=task: "one" in desk("logs", task) or "begun" in desk("logs", task), task)
    desk("pause", held)
    said = desk("run", "stop", "--agents")
    assert f"Ended 2 agents; to go on with the next `fleet run`: {going}, {held}." in said
    assert (desk.status(going), desk.status(held)) == ("ready", "paused")
    assert [r["ending"] for r in desk.data("show", going)["runs"]] == ["yielded"]
    assert desk.data("run", "stop", "--agents") == {"pid": None, "ended": [], "going": []}
    go.touch()
    desk.work()
    assert desk.status(going) == "done"
    assert "then" in desk("logs", going)
    assert "one\n" not in desk("logs", going)  # the same conversation went on


def test_agents_are_ended_also_when_no_supervisor_runs(desk):
    task = desk.add("First", script=LONG)
    start(desk)
    desk.wait_for(task, "running")
    desk("run", "stop")
    assert desk.data("run", "stop", "--agents")["ended"] == [task]
    assert desk.status(task) == "ready"


def test_only_the_process_that_holds_the_lock_is_ever_signalled(desk):
    start(desk)
    desk("run", "stop")
    innocent = subprocess.Popen(["sleep", "60"])
    try:
        note = standing(desk) | {"pid": innocent.pid, "born": born(innocent.pid)}
        (desk.home / "supervisor.json").write_text(json.dumps(note))
        assert desk.data("run", "stop")["pid"] is None
        with (desk.home / "supervisor.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f"{innocent.pid}\n")  # its number, but of a process before it
            lock.flush()
            (desk.home / "supervisor.json").write_text(json.dumps(note | {"born": "1"}))
            assert desk.data("run", "stop")["pid"] is None
            assert desk.type("run", "status").returncode == 1
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_broken_settings_file_keeps_the_last_good_ones_and_says_so_once(desk):
    settings = desk.home / "config.yaml"
    first, second, third = (desk.add(name, script=LONG) for name in ("First", "Second", "Third"))
    settings.write_text("max_concurrent: 1\n")
    start(desk)
    desk.wait_for(first, "running")
    settings.write_text("max_concurrent: [\n")
    until(lambda: "Still with the settings from before" in log(desk), "a complaint")
    until(lambda: list(standing(desk)["complaints"]) == [""], "a note of it")
    found = desk.data("run", "status")
    assert "config.yaml:2: is not valid YAML" in found["complaints"][""]
    assert (found["running"], found["tasks"]) == (True, None)
    assert "config.yaml:2: is not valid YAML" in desk("run", "status")
    settings.write_text("max_concurrent: 2\n")
    desk.wait_for(second, "running")
    assert "The settings of the home are read again." in log(desk)
    assert log(desk).count("Still with the settings from before") == 1
    assert desk.status(third) == "ready"
    found = desk.data("run", "status")
    assert (found["complaints"], found["error"]) == ({}, None)


def test_a_complaint_about_a_project_ends_when_its_file_is_mended_though_nothing_runs_there(desk):
    settings = desk.repo / "fleet.yaml"
    settings.write_text("run: {attempts: 3}\n")
    task = desk.add("Long", script=LONG)
    start(desk)
    desk.wait_for(task, "running")
    settings.write_text("run: [\n")
    until(lambda: standing(desk)["complaints"], "a note of it")
    desk("cancel", task, cwd=desk.root)
    until(lambda: not desk.data("run", "status", cwd=desk.root)["runs"], "it to end")
    settings.write_text("run: {attempts: 2}\n")
    until(lambda: not standing(desk)["complaints"], "the note to be gone")
    assert desk.data("run", "status")["error"] is None


def test_it_is_stopped_also_while_the_settings_are_broken(desk):
    pid = start(desk)
    (desk.home / "config.yaml").write_text("max_concurrent: [\n")
    assert desk("run", "stop") == f"Stopped the supervisor (pid {pid}).\n"
    assert not is_alive(pid)


def test_a_hang_up_ends_one_in_a_terminal_and_not_one_without(desk):
    pid = start(desk)
    os.kill(pid, signal.SIGHUP)
    desk.wait_for(desk.add(), "done")
    assert is_alive(pid)
    desk("run", "stop")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(desk.repo)
        os.execve(FLEET, [FLEET, "run"], desk.env)
    until(lambda: b"Supervising" in os.read(terminal, 4096), "a supervisor in a terminal")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_closing_the_terminal_in_which_it_was_started_ends_no_detached_one(desk):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(desk.repo)
        os.execve("/bin/sh", ["sh", "-c", f"{FLEET} run --detach; sleep 60"], desk.env)
    until(lambda: b"The supervisor runs" in os.read(terminal, 4096), "a supervisor")
    os.close(terminal)
    os.waitpid(child, 0)
    time.sleep(0.2)
    assert is_alive(standing(desk)["pid"])
    desk.wait_for(desk.add(), "done")


def test_a_file_of_settings_means_the_same_file_wherever_it_goes_on(desk):
    elsewhere = desk.root / "elsewhere.db"
    (desk.repo / "other.yaml").write_text(f"store: {{url: 'sqlite:///{elsewhere}'}}\n")
    desk("trust", "--config", "other.yaml")
    start(desk, "--config", "other.yaml")
    assert standing(desk)["config"] == str(desk.repo / "other.yaml")
    assert standing(desk)["cwd"] == str(desk.repo)
    task = desk.data("add", "There", "--prompt", "say hi", "--config", "other.yaml")["id"]
    until(
        lambda: desk.data("show", task, "--config", "other.yaml")["task"]["status"] == "done", "it"
    )
    desk("run", "stop")
    assert desk.data("run", "restart", "--config", "other.yaml")["before"] is None
    assert standing(desk)["config"] == str(desk.repo / "other.yaml")


def test_an_upgrade_beneath_it_changes_nothing_until_it_is_restarted(desk):
    copy = desk.root / "copy"
    shutil.copytree(Path(fleet.__file__).parent, copy / "fleet")
    words = [sys.executable, "-P", "-m", "fleet", "run", "start"]
    env = desk.env | {"PYTHONPATH": str(copy)}
    subprocess.run(words, cwd=desk.repo, env=env, check=True, capture_output=True, timeout=60)
    assert desk.data("run", "status")["outdated"] is False
    for file in (copy / "fleet").rglob("*.py"):
        file.write_text("raise RuntimeError('half an upgrade')\n")
    for cached in (copy / "fleet").rglob("__pycache__"):
        shutil.rmtree(cached)
    told = '["sh", "-c", "cat > heard; echo well"]'
    agent = f"{{coder: command, model: none, description: any, command: {told}}}"
    (desk.home / "config.yaml").write_text(f"agents:\n  any: {agent}\n")
    task = desk.add("Another coder", "--agent", "any")
    desk.wait_for(task, "done", "failed")
    assert desk.status(task) == "done", desk("show", task)
    assert "well" in desk("logs", task)
    assert standing(desk)["code"] != ""


def test_status_says_when_what_is_installed_is_not_what_runs(desk):
    start(desk)
    note = standing(desk) | {"code": "0" * 16}
    (desk.home / "supervisor.json").write_text(json.dumps(note))
    assert desk.data("run", "status")["outdated"] is True
    assert "is not what it runs: fleet run restart" in desk("run", "status")


def test_options_before_a_subcommand_are_refused_rather_than_lost(desk):
    assert "Write fleet run status …" in desk.fails("run", "--max", "2", "status", status=2)


def test_an_agent_may_not_stop_its_supervisor(desk):
    script = f"say begun\nrun {FLEET} run stop\nsleep 60"
    task = desk.add("First", script=script)
    pid = start(desk)
    desk.wait_for(task, "running", "done", "failed")
    until(lambda: "may not admin" in desk("logs", task, "--raw"), "its refusal")
    assert is_alive(pid)


def test_a_supervisor_whose_home_is_removed_ends(desk):
    process = desk.start("run")
    until(lambda: desk.type("run", "status").returncode == 0, "a supervisor")
    shutil.rmtree(desk.home)
    assert process.wait(10) == 3
    assert f"{desk.home} is gone" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()
