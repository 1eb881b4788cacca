"""What is old is removed, and whoever looks for it hears why."""

from __future__ import annotations

import gzip
import json
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
    scratch("add", "Reviewed", "--prompt", "say hello", "--review")
    scratch("run", "--once")
    old, new = aged(scratch, "t-1.1", 91), aged(scratch, "t-2.1", 89)
    asking, reviewed = aged(scratch, "t-3.1", 400), aged(scratch, "t-4.1", 400)
    assert "Would remove the transcripts of 1 run" in scratch("gc", "--all", "--dry-run")
    assert (old / "transcript").exists()
    assert scratch.data("gc", "--all")["transcripts"] == ["t-1.1"]
    assert not (old / "transcript").exists()
    assert (new / "transcript").exists()
    assert (asking / "transcript").exists()  # its task goes on
    assert (reviewed / "transcript").exists()  # somebody is going to look at it
    refused = scratch.fails("logs", "t-1", status=2)
    assert "was removed: it was older than 90 days (`retention.transcripts`)" in refused
    assert "hello" in scratch("logs", "t-2")
    assert "a.txt" in scratch("diff", "t-1", "--name-only")
    scratch("retry", "t-1")
    scratch("run", "--once")  # the number of the run that was removed is not given again
    assert [run["id"] for run in scratch.data("show", "t-1")["runs"]] == ["t-1.1", "t-1.2"]


def test_what_tmux_recorded_of_a_terminal_counts_and_goes_with_the_transcript(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello")
    scratch("run", "--once")
    folder = scratch.home / "runs" / "t-1.1"
    recorded = [folder.with_name("t-1.1.screen"), folder.with_name("t-1.1.screen.1")]
    for path in (*recorded, folder / "screen.txt"):
        path.write_bytes(b"x" * 1_000_000)
    most = {"FLEET_RETENTION_TRANSCRIPTS_MB": "3"}
    assert scratch.data("gc", "--all", env=most)["transcripts"] == ["t-1.1"]
    assert not any(path.exists() for path in (*recorded, folder / "screen.txt"))


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


def test_the_oldest_transcripts_of_ended_tasks_go_while_all_are_too_large(tmp_path):
    scratch = Scratch(tmp_path)
    for title in ("Asks", "Oldest", "Old", "New"):
        scratch("add", title, "--prompt", "ask Which?" if title == "Asks" else "say hello")
    scratch("run", "--once")
    runs = [aged(scratch, f"t-{n}.1", 5 - n) for n in (1, 2, 3, 4)]
    for run in runs:
        at = (run / "transcript").stat().st_mtime
        os.truncate(run / "transcript", 800_000)
        os.utime(run / "transcript", (at, at))
    most = {"FLEET_RETENTION_TRANSCRIPTS_MB": "2"}
    assert scratch.data("gc", "--all", env=most)["transcripts"] == ["t-2.1", "t-3.1"]
    assert [(run / "transcript").exists() for run in runs] == [True, False, False, True]
    refused = scratch.fails("logs", "t-2", status=2)
    assert (
        "was removed: all transcripts together took more than 2 MB (`retention.transcripts_mb`)"
        in refused
    )
    assert scratch.data("gc", "--all", env=most)["transcripts"] == []


def test_old_tasks_and_events_go_and_what_is_needed_stays(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello")
    scratch("add", "Unlanded", "--prompt", "write a.txt a\ncommit a")
    scratch("add", "Asks", "--prompt", "ask Which?")
    scratch("add", "First", "--prompt", "say one")
    scratch("add", "Second", "--prompt", "say two", "--after", "t-4")
    scratch("run", "--once")
    now = {"FLEET_RETENTION_TASKS": "0.0000001", "FLEET_RETENTION_EVENTS": "0.0000001"}
    assert "Would remove 2 tasks" in scratch("gc", "--all", "--dry-run", env=now)
    gone = scratch.data("gc", "--all", env=now)
    assert sorted(gone["forgotten"]) == ["t-1", "t-4", "t-5"]
    assert gone["events"] > 1
    assert [row["id"] for row in scratch.data("tasks", "--all")] == ["t-3", "t-2"]
    assert "There is no task 't-1'" in scratch.fails("show", "t-1", status=2)
    scratch("answer", "t-3", "This one")  # its events and its run are still there
    scratch("run", "--once")
    assert scratch.data("show", "t-3")["task"]["state"] == "done"
    assert "t-6" in scratch("add", "New", "--prompt", "say x")
    assert scratch.data("gc", "--all")["forgotten"] == []  # by the defaults


def test_kept_work_of_an_ended_task_is_dropped_once_it_is_old(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Dirty", "--prompt", "write b.txt b")
    scratch("run", "--once")
    scratch("gc", "--days", "0")
    assert [row["id"] for row in scratch.data("kept")] == ["t-1/1"]
    assert scratch.data("gc", "--all")["kept"] == []
    now = {"FLEET_RETENTION_KEPT": "0.0000001"}
    until(lambda: scratch.data("gc", "--all", env=now)["kept"] == ["t-1/1"])  # git counts seconds
    assert scratch.data("kept") == []


def test_work_that_another_home_kept_in_the_repository_stays(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Dirty", "--prompt", "write b.txt b")
    scratch("run", "--once")
    scratch("gc", "--days", "0")
    other = {"FLEET_HOME": str(tmp_path / "other"), "FLEET_RETENTION_KEPT": "0.0000001"}
    scratch("add", "Of the other home", "--prompt", "say x", env=other)
    scratch("cancel", "t-1", env=other)  # an ended t-1 of its own
    began = time.time()
    until(lambda: time.time() > began + 1)  # git counts seconds
    assert scratch.data("gc", "--all", env=other)["kept"] == []
    assert [row["id"] for row in scratch.data("kept")] == ["t-1/1"]


def test_a_supervisor_forgets_old_tasks_by_itself(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello")
    scratch("run", "--once")
    scratch("run", "--detach", env={"FLEET_RETENTION_TASKS": "0.0000001"})
    try:
        until(lambda: scratch.data("tasks", "--all") == [])
    finally:
        scratch("run", "stop")


def test_an_archive_has_what_goes_and_prunes_only_that(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Old", "--prompt", "say hello")
    scratch("add", "Asks", "--prompt", "ask Which?")
    scratch("run", "--once")
    file = tmp_path / "old.jsonl.gz"
    assert scratch.data("archive", str(file), "--days", "0")["tasks"] == ["t-1"]
    assert len(scratch.data("tasks", "--all")) == 2  # without --prune nothing goes
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert [r["id"] for r in rows if r["kind"] in {"task", "run"}] == ["t-1", "t-1.1"]
    assert {r["kind"] for r in rows} >= {"task", "run", "event"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "exists" in scratch.fails("archive", str(file), "--days", "0", "--prune", status=1)
    assert len(scratch.data("tasks", "--all")) == 2
    more = tmp_path / "more.jsonl"
    assert scratch.data("archive", str(more), "--days", "0", "--prune")["forgotten"] == ["t-1"]
    assert '"id":"t-1"' in more.read_text()
    assert [row["id"] for row in scratch.data("tasks", "--all")] == ["t-2"]
    nowhere = tmp_path / "no" / "x.gz"
    assert "cannot be written" in scratch.fails("archive", str(nowhere), "--days", "0", status=3)


def test_what_old_gates_printed_is_removed_too(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Work", "--prompt", "write a.txt a\ncommit a")
    scratch("run", "--once")
    scratch("land", "t-1", "--now", env={"FLEET_LAND_GATE": "echo tested"})
    (gate,) = (path.name for path in (scratch.home / "runs").glob("land-*"))
    assert "tested" in scratch("land", "show", "t-1", "--follow")
    folder = aged(scratch, gate, 91)
    assert scratch.data("gc", "--all")["transcripts"] == [gate]
    assert not (folder / "transcript").exists()
    shown = scratch("land", "show", "t-1", "--follow")
    assert shown.startswith("t-1 landed on main")


def test_a_supervisor_says_how_much_of_the_disk_its_home_takes(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Work", "--prompt", "write a.txt a\ncommit a")
    scratch("run", "--once")
    fill = scratch.home / "runs" / "t-1.1" / "large"
    fill.write_bytes(b"x" * 5_000_000)
    scratch("run", "--detach")
    try:
        until(lambda: (scratch.data("host", "list")[0]["disk"] or {}).get("runs", 0) > 5_000_000)
        (row,) = scratch.data("host", "list")
        assert row["disk"]["worktrees"] > 0
        assert " runs 5 MB; " in scratch("host", "show", row["id"])
        assert "DISK" in scratch("host", "list")
    finally:
        scratch("run", "stop")
