"""What is old is removed, and whoever looks for it hears why."""

from __future__ import annotations

import os
import time

from tests.e2e.scratch import Scratch
from tests.wait import until

DAY = 86_400


def aged(scratch, run: str, days: float):
    """The folder of this run, as if it had printed its last line so many days ago."""
    folder = scratch.home / "runs" / run
    at = time.time() - days * DAY
    os.utime(folder / "transcript", (at, at))
    return folder


def test_old_transcripts_of_ended_tasks_are_removed_and_logs_says_so(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello\nwrite a.txt a\ncommit a")
    scratch("add", "New", "--prompt", "say hello")
    scratch("add", "Asks", "--prompt", "ask Which?")
    scratch("run", "--once")
    old, new = aged(scratch, "t-1.1", 91), aged(scratch, "t-2.1", 89)
    asking = aged(scratch, "t-3.1", 400)
    assert "Would remove the transcripts of 1 run" in scratch("gc", "--all", "--dry-run")
    assert (old / "transcript").exists()
    assert scratch.data("gc", "--all")["transcripts"] == ["t-1.1"]
    assert not (old / "transcript").exists()
    assert (new / "transcript").exists()
    assert (asking / "transcript").exists()  # its task goes on
    refused = scratch.fails("logs", "t-1", status=2)
    assert "was removed: it was older than 90 days (`retention.transcripts`)" in refused
    assert "hello" in scratch("logs", "t-2")
    assert "a.txt" in scratch("diff", "t-1", "--name-only")
    scratch("retry", "t-1")
    scratch("run", "--once")  # the number of the run that was removed is not given again
    assert [run["id"] for run in scratch.data("show", "t-1")["runs"]] == ["t-1.1", "t-1.2"]


def test_a_supervisor_removes_them_by_itself_unless_the_setting_is_0(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello")
    scratch("run", "--once")
    old = aged(scratch, "t-1.1", 10)
    scratch("run", "--once", env={"FLEET_RETENTION_TRANSCRIPTS": "0"})
    scratch("run", "--once")
    assert (old / "transcript").exists()
    scratch("run", "--detach", env={"FLEET_RETENTION_TRANSCRIPTS": "9"})
    try:
        until(lambda: not (old / "transcript").exists())
    finally:
        scratch("run", "stop")
