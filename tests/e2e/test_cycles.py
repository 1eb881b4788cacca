"""Agents created and killed, again and again: nothing is left that is not listed.

CYCLES=1000 pytest -n 0 -m slow tests/e2e/test_cycles.py
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from crashes import CrashDesk
from desk import until

CYCLES = int(os.environ.get("CYCLES", "1000"))
SHORT = 10
POOL = 4  # as `workspace.pool` is by default


@pytest.fixture
def desk(tmp_path):
    made = CrashDesk(tmp_path)
    yield made
    made.close()


def cycle(desk, number: int) -> bool:
    """Whether there was something to keep."""
    works = number % 5 == 0
    script = f"write note-{number}.txt {number}" if works else "say Hi"
    desk("create", f"new-{number}", "--prompt", script)
    if number % 2:
        assert "has heard it" in desk("prompt", f"new-{number}", "say More", "--queue")
    said = desk("kill", f"new-{number}", "--delete-branch", "--force")
    assert ("Kept what was not merged" in said) == works, said
    return works


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def server(desk) -> int:
    return int(desk.tmux("display-message", "-p", "#{pid}")[0])


def check(desk, kept: int) -> None:
    assert [a["branch"] for a in desk.check()] == ["old"]
    refs = desk.git("for-each-ref", "--format=%(refname)", "refs/fleet").split()
    listed = desk.data("kept")
    assert sorted(refs) == sorted(k["ref"] for k in listed)
    assert len(listed) == kept
    all_refs = desk.git("for-each-ref", "--format=%(refname)").split()
    assert set(all_refs) - set(refs) == {f"refs/heads/{b}" for b in ("main", "theirs", "old")}
    assert len(list(desk.home.glob("worktrees/pool/*/*.parked"))) <= POOL
    leftover = [p for p in desk.home.glob("worktrees/**/*") if p.suffix in {".making", ".removing"}]
    assert leftover == []
    assert desk.git("fsck", "--connectivity-only", "--no-dangling") == ""
    assert "No task has" not in desk("gc", "--dry-run")


def zombies(desk) -> list[str]:
    argv = ["ps", "-e", "-o", "ppid=,stat=,comm="]
    told = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.splitlines()
    mine = {str(server(desk)), str(os.getpid())}
    return [line for line in told if line.split()[0] in mine and line.split()[1].startswith("Z")]


def go_round(desk, times: int, report=lambda _: None) -> None:
    kept = sum(cycle(desk, number) for number in range(3))  # what is made once is there by now
    files = open_files(server(desk))
    for number in range(3, times):
        kept += cycle(desk, number)
        if number % 100 == 0:
            report(number)
            check(desk, kept)
    check(desk, kept)
    until(lambda: open_files(server(desk)) <= files, "what its clients opened to be closed")
    assert zombies(desk) == []


def test_some_agents_created_and_killed_leave_nothing_that_is_not_listed(desk):
    go_round(desk, SHORT)


def test_nor_do_they_under_a_supervisor_which_keeps_no_file_open(desk):
    with desk.supervisor() as supervisor:
        until((desk.home / "supervisor.json").exists, "the supervisor")
        cycle(desk, 1)
        before = open_files(supervisor.pid)
        for number in range(2, 5):
            cycle(desk, number)
        until(lambda: open_files(supervisor.pid) <= before, "what it opened to be closed")
        check(desk, kept=0)
        desk("kill", "old", "--force")


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_leave_nothing_that_is_not_listed(desk, capsys):
    begun = time.monotonic()

    def report(number: int) -> None:
        with capsys.disabled():
            print(f"{number} cycles, {time.monotonic() - begun:.0f} s", flush=True)

    go_round(desk, CYCLES, report)
    report(CYCLES)
