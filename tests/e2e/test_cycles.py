"""Agents created and killed, again and again: nothing is left that is not listed.

CYCLES=1000 pytest -n 0 -m slow tests/e2e/test_cycles.py
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.crashes import CrashDesk
from tests.wait import until

CYCLES = int(os.environ.get("CYCLES", "1000"))
SHORT = 10
POOL = 4  # as `workspace.pool` is by default


@pytest.fixture
def scratch(tmp_path):
    made = CrashDesk(tmp_path)
    yield made
    made.close()


def cycle(scratch, number: int) -> bool:
    """Whether there was something to keep."""
    works = number % 5 == 0
    script = f"write note-{number}.txt {number}" if works else "say Hi"
    scratch("create", f"new-{number}", "--prompt", script)
    if number % 2:
        assert "has read the message" in scratch("prompt", f"new-{number}", "say More", "--queue")
    said = scratch("kill", f"new-{number}", "--delete-branch", "--force")
    assert ("Kept what was not merged" in said) == works, said
    return works


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def server(scratch) -> int:
    return int(scratch.tmux("display-message", "-p", "#{pid}")[0])


def check(scratch, kept: int) -> None:
    assert [a["branch"] for a in scratch.check()] == ["old"]
    refs = scratch.git("for-each-ref", "--format=%(refname)", "refs/fleet").split()
    listed = scratch.data("kept")
    assert sorted(refs) == sorted(k["ref"] for k in listed)
    assert len(listed) == kept
    all_refs = scratch.git("for-each-ref", "--format=%(refname)").split()
    assert set(all_refs) - set(refs) == {f"refs/heads/{b}" for b in ("main", "theirs", "old")}
    assert len(list(scratch.home.glob("worktrees/pool/*/*.parked"))) <= POOL
    leftover = [
        p for p in scratch.home.glob("worktrees/**/*") if p.suffix in {".making", ".removing"}
    ]
    assert leftover == []
    assert scratch.git("fsck", "--connectivity-only", "--no-dangling") == ""
    assert "belongs to no task" not in scratch("gc", "--dry-run")


def zombies(scratch) -> list[str]:
    argv = ["ps", "-e", "-o", "ppid=,stat=,comm="]
    told = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.splitlines()
    mine = {str(server(scratch)), str(os.getpid())}
    return [line for line in told if line.split()[0] in mine and line.split()[1].startswith("Z")]


def go_round(scratch, times: int, report=lambda _: None) -> None:
    kept = sum(cycle(scratch, number) for number in range(3))  # what is made once is there by now
    files = open_files(server(scratch))
    for number in range(3, times):
        kept += cycle(scratch, number)
        if number % 100 == 0:
            report(number)
            check(scratch, kept)
    check(scratch, kept)
    until(lambda: open_files(server(scratch)) <= files, "what its clients opened to be closed")
    assert zombies(scratch) == []


def test_some_agents_created_and_killed_leave_nothing_that_is_not_listed(scratch):
    go_round(scratch, SHORT)


def test_nor_do_they_under_a_supervisor_which_keeps_no_file_open(scratch):
    with scratch.supervisor() as supervisor:
        until((scratch.home / "supervisor.json").exists, "the supervisor")
        cycle(scratch, 1)
        before = open_files(supervisor.pid)
        for number in range(2, 5):
            cycle(scratch, number)
        until(lambda: open_files(supervisor.pid) <= before, "what it opened to be closed")
        check(scratch, kept=0)
        scratch("kill", "old", "--force")


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_leave_nothing_that_is_not_listed(scratch, capsys):
    begun = time.monotonic()

    def report(number: int) -> None:
        with capsys.disabled():
            print(f"{number} cycles, {time.monotonic() - begun:.0f} s", flush=True)

    go_round(scratch, CYCLES, report)
    report(CYCLES)
