"""What is written into a task's folder: whole lines, once each, without secrets."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from contextlib import suppress
from multiprocessing import get_context

import pytest

from fleet.domain.event import Event
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind
from fleet.testing.fakes import NoFiles
from tests.contract.folders import ENV, TASK, Scratch, numbered, text
from tests.wait import LIMIT

DAY = 24 * 3600


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path / "home")


@pytest.mark.parametrize("made", ["folder", "nothing"])
def test_whoever_keeps_the_files_takes_all_that_the_supervisor_tells(scratch, made):
    files = scratch.files if made == "folder" else NoFiles()
    run = scratch.run()
    files.begin(scratch.task(), run)
    files.add_to_transcript(run, numbered("Hello."))
    files.add_to_transcript(run, [])
    files.note(scratch.store.events()[0])
    files.ended(scratch.end(run))
    assert files.edited(scratch.task()) == scratch.task().spec


def test_what_was_said_is_a_line_with_its_run_and_its_place(scratch):
    run = scratch.run()
    usage = Usage(10, 2, 3, 15, 0.25)
    scratch.files.add_to_transcript(
        run,
        [
            (1, Said(SaidKind.SESSION, "abc")),
            (2, Said(SaidKind.TOOL, "ls", name="Bash")),
            (2, Said(SaidKind.USAGE, usage=usage)),
            (3, Said(SaidKind.USAGE, usage=usage)),
            (4, Said(SaidKind.TOOL_RESULT, "no such file", failed=True)),
        ],
    )
    found = scratch.lines("events.jsonl")
    at = {"ts": "2027-01-15T08:00:00.000000Z", "run": "t-1.1"}
    counts = {"input": 10, "output": 2, "cached": 3, "context": 15, "usd": 0.25}
    assert found == [
        at | {"line": 1, "kind": "session", "text": "abc"},
        at | {"line": 2, "kind": "tool", "name": "Bash", "text": "ls"},
        at | {"line": 2, "index": 1, "kind": "usage", "usage": counts},
        at | {"line": 4, "kind": "tool_result", "text": "no such file", "failed": True},
    ]


def test_a_long_text_is_cut_and_a_secret_at_the_cut_is_not_seen(scratch):
    words = "x" * 3990 + " ghp_" + "a1" * 18
    scratch.files.add_to_transcript(
        scratch.run(), numbered(words, 'a "quote"\n\x1b[31m \ud800 half')
    )
    first, second = scratch.texts()
    assert first.startswith("x" * 3990)
    assert "ghp_" not in first
    assert second == 'a "quote"\n\x1b[31m ? half'


def test_a_run_that_is_adopted_and_replayed_is_written_once(scratch):
    run = scratch.run()
    scratch.files.add_to_transcript(run, [*numbered("a", "b"), (2, text("b, more"))])
    for _ in range(3):
        successor = scratch.another()
        successor.add_to_transcript(run, [*numbered("a", "b"), (2, text("b, more"))])
        successor.add_to_transcript(run, numbered("c", first=3))
    assert scratch.texts() == ["a", "b", "b, more", "c"]
    over = scratch.end(run)
    for _ in range(2):
        scratch.another().ended(over)
    scratch.another().add_to_transcript(run, numbered("a", "b", "x", "c"))
    assert scratch.texts() == ["a", "b", "b, more", "c", "run_ended"]
    last = scratch.lines("events.jsonl")[-1]
    assert (last["ending"], last["detail"], last["exit_code"]) == ("failed", "Exit status 1.", 1)


def test_half_a_line_of_one_who_died_is_taken_away_and_written_again(scratch):
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("a", "b"))
    for name in ("events.jsonl", "log.jsonl"):
        scratch.files.note(scratch.store.events()[-1])
        whole = scratch.path(name).read_bytes()
        for cut in (1, 7, len(whole.splitlines()[-1])):
            scratch.path(name).write_bytes(whole[:-cut])
            again = scratch.another()
            again.add_to_transcript(run, numbered("a", "b"))
            again.note(scratch.store.events()[-1])
            assert scratch.path(name).read_bytes().count(b"\n") == whole.count(b"\n")
            scratch.lines(name)
    assert scratch.texts() == ["a", "b"]


def test_a_line_that_somebody_wrote_there_by_hand_stops_nothing(scratch):
    run = scratch.run()
    scratch.path("x").parent.mkdir(parents=True)
    scratch.path("events.jsonl").write_text('{"run":"t-1.1"\nnot json\n')
    scratch.path("log.jsonl").write_text("hello\n")
    scratch.files.add_to_transcript(run, numbered("a"))
    scratch.files.note(scratch.store.events()[-1])
    assert scratch.files.trouble == ""
    assert '"text":"a"' in scratch.path("events.jsonl").read_text()


def _write(home):
    scratch = Scratch(home)
    run = scratch.run()
    for n in range(1, 301):
        scratch.files.add_to_transcript(run, numbered(f"{n} " * 50, first=n))
    assert scratch.files.trouble == ""


def test_two_writers_at_once_write_every_line_once_and_whole(tmp_path):
    context = get_context("spawn")
    both = [context.Process(target=_write, args=(tmp_path / "home",)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(LIMIT)
        assert process.exitcode == 0
    found = [line["line"] for line in Scratch(tmp_path / "home").lines("events.jsonl")]
    assert found == list(range(1, 301))


def test_a_writer_that_was_stopped_holds_up_nobody_for_long(scratch):
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("a"))
    fd = os.open(scratch.path("events.jsonl"), os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    scratch.files.add_to_transcript(run, numbered("b", first=2))
    assert "another process writes there" in scratch.files.trouble
    os.close(fd)
    scratch.files.add_to_transcript(run, numbered("c", first=3))
    assert scratch.texts() == ["a", "b", "c"]
    assert scratch.files.trouble == ""


def test_a_full_file_is_kept_as_the_older_one_and_nothing_is_written_twice(scratch):
    scratch.files = scratch.another(file=1000)
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered(*(f"{n:0200}" for n in range(4))))
    scratch.files.add_to_transcript(run, numbered("over", "it", first=5))
    successor = scratch.another(file=1000)
    successor.add_to_transcript(
        run, numbered(*(f"{n:0200}" for n in range(4)), "over", "it", "all")
    )
    assert scratch.texts()[-3:] == ["over", "it", "all"]
    every = scratch.lines("events.jsonl.1") + scratch.lines("events.jsonl")
    places = [line["line"] for line in every]
    assert places == sorted(set(places))
    for _ in range(20):
        scratch.files.note(scratch.commit(event="task.poked", words="x" * 100))
    scratch.another(file=1000).refresh(TASK)
    numbers = [e["number"] for e in scratch.lines("log.jsonl.1") + scratch.lines("log.jsonl")]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 22


def test_the_log_has_every_event_of_the_task_also_those_that_nobody_saw(scratch):
    scratch.commit(event="task.poked", headers=[{"authorization": "Bearer abcdefgh12345"}])
    scratch.files.note(scratch.commit(event="task.prodded", token_count=5))
    scratch.another().note(scratch.store.events()[-1])
    found = scratch.lines("log.jsonl")
    assert [(e["number"], e["type"]) for e in found] == [
        (1, "task.added"), (2, "task.poked"), (3, "task.prodded"),
    ]  # fmt: skip
    assert found[1]["data"] == {"headers": [{"authorization": "[redacted]"}]}
    assert found[2] == {
        "number": 3,
        "at": "2027-01-15T08:00:00.000000Z",
        "type": "task.prodded",
        "run": "",
        "actor": "ada",
        "data": {"token_count": 5},
    }


def test_the_stderr_of_every_run_is_there_once_in_order_and_without_secrets(scratch):
    for number, words in ((1, "oops\n"), (2, f"token is {ENV['DEPLOY_TOKEN']}"), (3, "")):
        run = scratch.run(number)
        folder = scratch.home / "runs" / run.id
        folder.mkdir(parents=True)
        if words:
            (folder / "stderr").write_text(words)
        over = scratch.end(run)
        scratch.files.ended(over)
        scratch.another().ended(over)
    said = scratch.path("log.stderr").read_text().splitlines()
    heads = [line for line in said if line.startswith("===")]
    assert [head.split()[1] for head in heads] == ["t-1.1", "t-1.2", "t-1.3"]
    assert all(head.endswith("failed ===") for head in heads)
    assert [line for line in said if line not in heads] == ["oops", "token is [redacted]"]


def test_of_a_very_long_stderr_the_end_is_kept(scratch):
    run = scratch.run()
    folder = scratch.home / "runs" / run.id
    folder.mkdir(parents=True)
    (folder / "stderr").write_text("".join(f"line {n}\n" for n in range(200_000)))
    scratch.files.ended(scratch.end(run))
    said = scratch.path("log.stderr").read_text()
    assert len(said) < 1_100_000
    assert said.endswith("line 199999\n")
    assert "bytes are left out" in said.splitlines()[1]


def test_an_ending_that_was_not_written_down_is_by_whoever_begins_the_next_run(scratch):
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("a"))
    scratch.end(run)
    scratch.another().begin(scratch.task(), scratch.run(2))
    assert scratch.texts() == ["a", "run_ended"]
    assert "t-1.1" in scratch.path("log.stderr").read_text()


def test_only_the_owner_can_read_what_is_written(scratch):
    before = os.umask(0)
    try:
        scratch.files.refresh(TASK)
        run = scratch.run()
        scratch.files.add_to_transcript(run, numbered("a"))
        scratch.files.ended(scratch.end(run))
        scratch.files.note(scratch.store.events()[0])
        scratch.files.warn("Something is odd.")
    finally:
        os.umask(before)
    found = [p for top in ("tasks", "logs") for p in (scratch.home / top).rglob("*") if p.is_file()]
    assert len(found) == 8
    assert {stat.S_IMODE(p.stat().st_mode) for p in found} == {0o600}


def test_the_log_of_a_day_has_every_event_and_every_warning(scratch):
    scratch.files.note(scratch.store.events()[0])
    scratch.commit(event="task.poked")  # while no supervisor ran
    later = scratch.another()
    later.warn("api_key: 0123456789abcdef")
    later.note(Event("supervisor.warned", "", "supervisor", 5, data={"text": "Odd."}))
    later.note(scratch.commit(event="task.prodded"))
    scratch.clock.advance(DAY)
    later.note(scratch.commit(event="task.nudged"))
    logs = sorted((scratch.home / "logs").iterdir())
    assert [p.name for p in logs] == ["fleet-2027-01-15.jsonl", "fleet-2027-01-16.jsonl"]
    first = logs[0].read_text()
    assert [word in first for word in ("added", "poked", "prodded")] == [True] * 3
    assert first.count('"number"') == 3
    assert '"type":"warning","text":"api_key: [redacted]"' in first
    assert '"type":"supervisor.warned","task":"","run":"","actor":"supervisor"' in first
    assert f'"task":"{TASK}"' in first


def test_old_logs_are_removed_and_nothing_else(scratch):
    logs = scratch.home / "logs"
    logs.mkdir()
    ours = [f"fleet-2026-12-{n:02}.jsonl" for n in range(1, 32)] + ["fleet-2027-01-02.jsonl.1"]
    theirs = ["fleet-notes.jsonl", "fleet-2020-01-01.jsonl.gz", "daemon.log"]
    for name in (*ours, *theirs):
        (logs / name).write_text("{}\n")
    scratch.files.warn("Hello.")
    left = {p.name for p in logs.iterdir()}
    assert left == {*theirs, "fleet-2027-01-02.jsonl.1", "fleet-2027-01-15.jsonl"}


def test_a_day_with_too_much_to_say_keeps_the_older_half(scratch):
    scratch.files = scratch.another(day=500)
    for n in range(20):
        scratch.files.warn(f"{n} " + "x" * 50)
    names = sorted(p.name for p in (scratch.home / "logs").iterdir())
    assert names == ["fleet-2027-01-15.jsonl", "fleet-2027-01-15.jsonl.1"]
    assert "19 x" in (scratch.home / "logs" / names[0]).read_text()
    assert all(p.stat().st_size <= 500 for p in (scratch.home / "logs").iterdir())


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    done = (
        subprocess.run(mount, capture_output=True, check=False) if sys.platform == "linux" else None
    )
    if done is None or done.returncode:
        pytest.skip("no small filesystem can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk):
    hog = disk / "hog"
    with hog.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return hog


def test_on_a_full_disk_nothing_ends_nothing_is_half_and_what_was_said_is_written_later(small_disk):
    scratch = Scratch(small_disk)
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("first"))
    hog = fill(small_disk)
    said = [f"{n} " + "words " * 300 for n in range(2, 12)]
    for n, words in enumerate(said, 2):
        scratch.files.add_to_transcript(run, numbered(words, first=n))
    scratch.files.note(scratch.commit(event="task.poked"))
    scratch.files.warn("Something is odd.")
    scratch.files.begin(scratch.task(), run)
    scratch.files.edited(scratch.task())
    scratch.ask("Which way?")
    assert "No space left" in scratch.files.trouble
    for path in (small_disk / "tasks").rglob("*.jsonl"):
        data = path.read_bytes()
        assert not data or data.endswith(b"\n")
    left = {p.name for p in (small_disk / "tasks").rglob("*") if p.is_file()}
    assert not [name for name in left if name.startswith(".")]

    hog.unlink()
    scratch.files.add_to_transcript(run, numbered("last", first=12))
    scratch.files.note(scratch.commit(event="task.prodded"))
    scratch.files.begin(scratch.task(), run)
    assert scratch.texts() == ["first", *(w[:4000] for w in said), "last"]
    assert [e["number"] for e in scratch.lines("log.jsonl")] == [1, 2, 3, 4, 5]
    assert "Which way?" in scratch.path("artifacts/Q&A.md").read_text()
    scratch.files.warn("All is well.")
    scratch.files.ended(scratch.end(run))
    assert scratch.files.trouble == ""


def test_more_than_can_wait_for_the_disk_is_told_as_a_gap(small_disk):
    scratch = Scratch(small_disk)
    scratch.files = scratch.another(waiting=9000)
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("a"))
    hog = fill(small_disk)
    for n in range(2, 10):
        scratch.files.add_to_transcript(run, numbered("x" * 3000, first=n))
    hog.unlink()
    scratch.files.add_to_transcript(run, numbered("z", first=10))
    found = scratch.texts()
    assert (found[0], found[-1]) == ("a", "z")
    assert any("could not be written here" in words for words in found)
    scratch.another().add_to_transcript(run, numbered("a", *("x" * 8), "z"))
    assert scratch.texts() == found


def test_a_folder_that_was_removed_while_a_run_goes_on_is_made_again(scratch):
    run = scratch.run()
    scratch.files.add_to_transcript(run, numbered("a"))
    scratch.path("events.jsonl").unlink()
    scratch.path("events.jsonl").parent.rmdir()
    scratch.files.add_to_transcript(run, numbered("b", first=2))
    assert scratch.texts() == ["b"]
