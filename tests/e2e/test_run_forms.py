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
from pathlib import Path

import pytest

import fleet
from fleet.adapters.processes.background import born
from tests.e2e.scratch import FLEET, Scratch
from tests.wait import LIMIT, until

LONG = "say begun\nsleep 60"


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    made.env["FLEET_RUN_GRACE"] = "2"
    yield made
    (made.home / "config.yaml").unlink(missing_ok=True)
    done = made.type("run", "stop", "--agents")
    assert done.returncode == 0, done.stderr


def log(scratch) -> str:
    return (scratch.home / "logs" / "supervisor.log").read_text()


def standing(scratch) -> dict:
    return json.loads((scratch.home / "supervisor.json").read_text())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start(scratch, *words: str, **given) -> int:
    return scratch.data("run", "start", *words, **given)["pid"]


def test_a_detached_supervisor_has_nothing_of_the_terminal_it_was_started_in(scratch):
    said = scratch("run", "--detach", "--max", "2")
    pid = standing(scratch)["pid"]
    assert (
        said
        == f"The supervisor runs (pid {pid}); it writes to {scratch.home}/logs/supervisor.log.\n"
    )
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    assert Path(f"/proc/{pid}/fd/2").readlink() == Path(f"{scratch.home}/logs/supervisor.log")
    assert f"Supervising {scratch.home} as " in log(scratch)
    task = scratch.add()
    scratch.wait_for(task, "done")
    modes = {(scratch.home / name).stat().st_mode & 0o777 for name in ("supervisor.json", "logs")}
    assert modes == {0o600, 0o700}
    assert (scratch.home / "logs" / "supervisor.log").stat().st_mode & 0o777 == 0o600


def test_starting_again_is_fine_and_says_which_one_runs(scratch):
    pid = start(scratch)
    assert scratch("run", "start") == f"A supervisor is already running here (pid {pid}).\n"
    assert scratch("run", "--detach") == f"A supervisor is already running here (pid {pid}).\n"
    assert scratch.data("run", "--detach")["pid"] == pid
    assert "--detach --json" in scratch.fails("run", "--json", status=2)
    assert f"(pid {pid})" in scratch.fails("run", status=1)
    assert f"(pid {pid})" in scratch.fails("run", "foreground", status=1)


def test_two_starts_at_once_make_one_supervisor(scratch):
    both = [scratch.start("run", "start", "--json") for _ in range(2)]
    pids = {json.loads(each.communicate(timeout=LIMIT)[0])["data"]["pid"] for each in both}
    assert pids == {standing(scratch)["pid"]}


def test_what_keeps_a_supervisor_from_starting_is_said_with_its_own_words(scratch):
    scratch("tasks")
    good = (scratch.home / "fleet.db").read_bytes()
    for beside in ("fleet.db-wal", "fleet.db-shm"):
        (scratch.home / beside).unlink(missing_ok=True)
    (scratch.home / "fleet.db").write_bytes(b"not a database at all" * 100)
    said = scratch.fails("run", "start", status=3)
    assert "The supervisor ended with status 3:\nfleet: " in said
    assert "fleet.db" in said
    assert f"Its log is {scratch.home}/logs/supervisor.log." in said
    assert "There is no coder" in scratch.fails("run", "start", "--coder", "claud", status=2)
    (scratch.home / "fleet.db").write_bytes(good)


def test_a_log_that_has_grown_big_is_put_aside_at_the_start(scratch):
    logs = scratch.home / "logs"
    logs.mkdir(parents=True)
    (logs / "supervisor.log").write_text("old line\n" * 700_000)
    start(scratch)
    assert (logs / "supervisor.log.1").read_text().startswith("old line\n")
    assert log(scratch).startswith("Supervising ")


def test_status_says_what_runs_and_what_waits(scratch):
    stopped = scratch.type("run", "status")
    assert stopped.returncode == 1
    assert stopped.stdout.startswith("supervisor  stopped\n")
    running = scratch.add("First", script=LONG)
    ready = scratch.add("Second")
    scratch("pause", scratch.add("Third"))
    pid = start(scratch, "--max", "1")
    scratch.wait_for(running, "running")
    found = scratch.data("run", "status")
    assert (found["running"], found["pid"], found["detached"]) == (True, pid, True)
    assert (found["version"], found["outdated"]) == (fleet.__version__, False)
    assert found["runs"] == [f"{running}.1"]
    assert found["tasks"] == {"paused": 1, "ready": 1, "running": 1}
    assert (found["home"], found["complaints"]) == (str(scratch.home), {})
    shown = scratch("run", "status")
    assert f"pid         {pid}, detached\n" in shown
    assert "tasks       1 paused, 1 ready, 1 running\n" in shown
    assert scratch.status(ready) == "ready"


def test_a_stop_leaves_the_agents_and_a_restart_takes_them_up_with_the_same_options(scratch):
    task = scratch.add("First", script=LONG)
    pid = start(scratch, "--max", "1", "--coder", "scripted")
    scratch.wait_for(task, "running")
    said = scratch("run", "stop")
    assert said.startswith(f"Stopped the supervisor (pid {pid}). 1 agent keeps running:")
    assert not is_alive(pid)
    assert scratch("run", "stop").startswith(
        "No supervisor is running here. 1 agent keeps running:"
    )
    assert scratch.data("show", task)["runs"][0]["ended_at"] is None
    again = scratch("run", "restart")
    second = standing(scratch)["pid"]
    assert again.startswith(f"No supervisor was running. The supervisor runs (pid {second});")
    assert again.endswith(" It took over 1 agent.\n")
    third = scratch.data("run", "restart")
    assert (third["before"], third["adopted"]) == (second, 1)
    assert (standing(scratch)["most"], standing(scratch)["coder"]) == (1, "scripted")
    assert [r["id"] for r in scratch.data("show", task)["runs"]] == [f"{task}.1"]


def test_ending_the_agents_too_costs_no_attempt_and_they_go_on_later(scratch):
    go = scratch.root / "go"
    waits = f"run sh -c 'while [ ! -e {go} ]; do sleep 0.1; done'"
    going = scratch.add("First", "--attempts", "1", script=f"say one\n{waits}\nsay then")
    held = scratch.add("Second", "--attempts", "1", script=LONG)
    start(scratch)
    for task in (going, held):
        scratch.wait_for(task, "running")
        until(
            lambda task=task: "one" in scratch("logs", task) or "begun" in scratch("logs", task),
            task,
        )
    scratch("pause", held)
    said = scratch("run", "stop", "--agents")
    assert f"Ended 2 agents; the next `fleet run` continues: {going}, {held}." in said
    assert (scratch.status(going), scratch.status(held)) == ("ready", "paused")
    assert [r["ending"] for r in scratch.data("show", going)["runs"]] == ["yielded"]
    assert scratch.data("run", "stop", "--agents") == {"pid": None, "ended": [], "going": []}
    go.touch()
    scratch.work()
    assert scratch.status(going) == "done"
    assert "then" in scratch("logs", going)
    assert "one\n" not in scratch("logs", going)  # the same conversation went on


def test_agents_are_ended_also_when_no_supervisor_runs(scratch):
    task = scratch.add("First", script=LONG)
    start(scratch)
    scratch.wait_for(task, "running")
    scratch("run", "stop")
    assert scratch.data("run", "stop", "--agents")["ended"] == [task]
    assert scratch.status(task) == "ready"


def test_only_the_process_that_holds_the_lock_is_ever_signalled(scratch):
    start(scratch)
    scratch("run", "stop")
    innocent = subprocess.Popen(["sleep", "60"])
    try:
        note = standing(scratch) | {"pid": innocent.pid, "born": born(innocent.pid)}
        (scratch.home / "supervisor.json").write_text(json.dumps(note))
        assert scratch.data("run", "stop")["pid"] is None
        with (scratch.home / "supervisor.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f"{innocent.pid}\n")  # its number, but of a process before it
            lock.flush()
            (scratch.home / "supervisor.json").write_text(json.dumps(note | {"born": "1"}))
            assert scratch.data("run", "stop")["pid"] is None
            assert scratch.type("run", "status").returncode == 1
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_broken_settings_file_keeps_the_last_good_ones_and_says_so_once(scratch):
    settings = scratch.home / "config.yaml"
    first, second, third = (scratch.add(name, script=LONG) for name in ("First", "Second", "Third"))
    settings.write_text("max_concurrent: 1\n")
    start(scratch)
    scratch.wait_for(first, "running")
    settings.write_text("max_concurrent: [\n")
    until(lambda: "Still with the settings from before" in log(scratch), "a complaint")
    until(lambda: list(standing(scratch)["complaints"]) == [""], "a note of it")
    found = scratch.data("run", "status")
    assert "config.yaml:2: is not valid YAML" in found["complaints"][""]
    assert (found["running"], found["tasks"]) == (True, None)
    assert "config.yaml:2: is not valid YAML" in scratch("run", "status")
    settings.write_text("max_concurrent: 2\n")
    scratch.wait_for(second, "running")
    assert "The settings of the home are read again." in log(scratch)
    assert log(scratch).count("Still with the settings from before") == 1
    assert scratch.status(third) == "ready"
    found = scratch.data("run", "status")
    assert (found["complaints"], found["error"]) == ({}, None)


def test_a_complaint_about_a_project_ends_when_its_file_is_mended_though_nothing_runs_there(
    scratch,
):
    settings = scratch.repo / "fleet.yaml"
    settings.write_text("run: {attempts: 3}\n")
    task = scratch.add("Long", script=LONG)
    start(scratch)
    scratch.wait_for(task, "running")
    settings.write_text("run: [\n")
    until(lambda: standing(scratch)["complaints"], "a note of it")
    scratch("cancel", task, cwd=scratch.root)
    until(lambda: not scratch.data("run", "status", cwd=scratch.root)["runs"], "it to end")
    settings.write_text("run: {attempts: 2}\n")
    until(lambda: not standing(scratch)["complaints"], "the note to be gone")
    assert scratch.data("run", "status")["error"] is None


def test_it_is_stopped_also_while_the_settings_are_broken(scratch):
    pid = start(scratch)
    (scratch.home / "config.yaml").write_text("max_concurrent: [\n")
    assert scratch("run", "stop") == f"Stopped the supervisor (pid {pid}).\n"
    assert not is_alive(pid)


def test_a_hang_up_ends_one_in_a_terminal_and_not_one_without(scratch):
    pid = start(scratch)
    os.kill(pid, signal.SIGHUP)
    scratch.wait_for(scratch.add(), "done")
    assert is_alive(pid)
    scratch("run", "stop")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(scratch.repo)
        os.execve(FLEET, [FLEET, "run"], scratch.env)
    until(lambda: b"Supervising" in os.read(terminal, 4096), "a supervisor in a terminal")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_interrupt_that_the_parent_ignores_stops_no_supervisor(scratch):
    """As in a script: `fleet run &`. Ctrl-C is then the script's alone."""
    argv = ["/bin/sh", "-c", f"trap '' INT; exec {FLEET} run"]
    given = {"cwd": scratch.repo, "env": scratch.env, "encoding": "utf-8"}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, **given) as supervisor:
        assert "Supervising" in supervisor.stderr.readline()
        supervisor.send_signal(signal.SIGINT)
        scratch.wait_for(scratch.add(), "done")
        supervisor.terminate()
        assert supervisor.wait(LIMIT) == 0


def test_closing_the_terminal_in_which_it_was_started_ends_no_detached_one(scratch):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(scratch.repo)
        os.execve("/bin/sh", ["sh", "-c", f"{FLEET} run --detach; sleep 60"], scratch.env)
    until(lambda: b"The supervisor runs" in os.read(terminal, 4096), "a supervisor")
    os.close(terminal)
    os.waitpid(child, 0)
    scratch.wait_for(scratch.add(), "done")
    assert is_alive(standing(scratch)["pid"])


def test_a_file_of_settings_means_the_same_file_wherever_it_goes_on(scratch):
    elsewhere = scratch.root / "elsewhere.db"
    (scratch.repo / "other.yaml").write_text(f"store: {{url: 'sqlite:///{elsewhere}'}}\n")
    scratch("trust", "--config", "other.yaml")
    start(scratch, "--config", "other.yaml")
    assert standing(scratch)["config"] == str(scratch.repo / "other.yaml")
    assert standing(scratch)["cwd"] == str(scratch.repo)
    task = scratch.data("add", "There", "--prompt", "say hi", "--config", "other.yaml")["id"]
    until(
        lambda: scratch.data("show", task, "--config", "other.yaml")["task"]["status"] == "done",
        "it",
    )
    scratch("run", "stop")
    assert scratch.data("run", "restart", "--config", "other.yaml")["before"] is None
    assert standing(scratch)["config"] == str(scratch.repo / "other.yaml")


def test_an_upgrade_beneath_it_changes_nothing_until_it_is_restarted(scratch):
    copy = scratch.root / "copy"
    shutil.copytree(Path(fleet.__file__).parent, copy / "fleet")
    words = [sys.executable, "-P", "-m", "fleet", "run", "start"]
    env = scratch.env | {"PYTHONPATH": str(copy)}
    subprocess.run(words, cwd=scratch.repo, env=env, check=True, capture_output=True, timeout=LIMIT)
    assert scratch.data("run", "status")["outdated"] is False
    for file in (copy / "fleet").rglob("*.py"):
        file.write_text("raise RuntimeError('half an upgrade')\n")
    for cached in (copy / "fleet").rglob("__pycache__"):
        shutil.rmtree(cached)
    told = '["sh", "-c", "cat > heard; echo well"]'
    agent = f"{{coder: command, model: none, description: any, command: {told}}}"
    (scratch.home / "config.yaml").write_text(f"agents:\n  any: {agent}\n")
    task = scratch.add("Another coder", "--agent", "any")
    scratch.wait_for(task, "done", "failed")
    assert scratch.status(task) == "done", scratch("show", task)
    assert "well" in scratch("logs", task)
    assert standing(scratch)["code"] != ""


def test_status_says_when_what_is_installed_is_not_what_runs(scratch):
    start(scratch)
    note = standing(scratch) | {"code": "0" * 16}
    (scratch.home / "supervisor.json").write_text(json.dumps(note))
    assert scratch.data("run", "status")["outdated"] is True
    assert "is installed: fleet run restart" in scratch("run", "status")


def test_options_before_a_subcommand_are_refused_rather_than_lost(scratch):
    assert "Write fleet run status …" in scratch.fails("run", "--max", "2", "status", status=2)


def test_an_agent_may_not_stop_its_supervisor(scratch):
    script = f"say begun\nrun {FLEET} run stop\nsleep 60"
    task = scratch.add("First", script=script)
    pid = start(scratch)
    scratch.wait_for(task, "running", "done", "failed")
    until(lambda: "may not admin" in scratch("logs", task, "--raw"), "its refusal")
    assert is_alive(pid)


def test_a_supervisor_whose_home_is_removed_ends(scratch):
    process = scratch.start("run")
    until(lambda: scratch.type("run", "status").returncode == 0, "a supervisor")
    shutil.rmtree(scratch.home)
    assert process.wait(LIMIT) == 3
    assert f"{scratch.home} was removed or replaced" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()
