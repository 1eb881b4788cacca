"""What `fleet run` prints: sentences, a line that moves, and a summary."""

from __future__ import annotations

import os
import pty
import re

import pytest

from tests.e2e.scratch import FLEET, Scratch

HOSTILE = "Red \x1b[31m and\nnew \u202e line"


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def queue(scratch) -> None:
    """One that is done, one that asks, one after it, one that fails once, and one that fails."""
    scratch.add("List prices", script="write prices.py {}\nsleep 1.2\ncommit Prices")
    scratch.add("Choose", script="ask Which licence?\nwrite LICENSE {answer}\ncommit A licence")
    scratch.add("Write", "--after", "t-1", "--after", "t-2")
    scratch.add(HOSTILE, script="fail 1 the server went away\nwrite a b\ncommit A")
    scratch.add("Tidy up", "--attempts", "1", script="exit 3")


def on_terminal(scratch, *words: str, **env: str) -> str:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(scratch.repo)
        os.execve(FLEET, [FLEET, *words], scratch.env | {"TERM": "xterm", "COLUMNS": "120"} | env)
    text = b""
    while True:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, text
    return text.decode()


def test_into_a_pipe_each_fact_is_one_line_with_its_time_and_what_to_type(scratch):
    queue(scratch)
    lines = scratch.work().splitlines()
    facts = [line[9:] for line in lines if re.match(r"\d\d:\d\d:\d\d ", line)]
    for expected in (
        r"t-1 starts: List prices \(scripted\)",
        r"t-1 is done: List prices \(\d+s\)  → fleet diff t-1, fleet land t-1",
        r"t-2 asks: Which licence\?  → fleet answer t-2 TEXT",
        r"t-4 starts: Red \\x1b\[31m and new \\u202e line \(scripted\)",
        r"t-4 failed and is tried again: Exit status 1\. the server went away",
        r"t-4 starts again \(run 2\): Red .*",
        r"t-5 failed: Tidy up: Exit status 3\.  → fleet logs t-5, fleet retry t-5",
    ):
        assert [fact for fact in facts if re.fullmatch(expected, fact)], (expected, facts)
    assert not any("\x1b" in line for line in lines)
    assert not any("run.claimed" in line for line in lines)


def test_the_summary_says_what_became_of_each_task_and_what_to_type(scratch):
    queue(scratch)
    summary = scratch.work().partition("\nAfter ")[2].splitlines()
    assert re.fullmatch(r"\d+s, in 5 runs: 2 done, 1 failed, 1 asks, 1 left\.", summary[0])
    rows = {line.split()[0]: re.split(r"  +", line) for line in summary[2:]}
    assert rows["t-1"] == ["t-1", "done", "List prices", "fleet diff t-1, fleet land t-1"]
    assert rows["t-2"] == ["t-2", "asks", "Which licence?", "fleet answer t-2 TEXT"]
    assert rows["t-3"] == ["t-3", "left", "It waits for t-2, which is open.", "fleet show t-3"]
    why = "Tidy up: Exit status 3."
    assert rows["t-5"] == ["t-5", "failed", why, "fleet logs t-5, fleet retry t-5"]


def test_settings_that_are_not_trusted_are_named_before_anything_starts(scratch):
    (scratch.repo / "fleet.yaml").write_text("workspace: {setup: [make deps]}\n")
    note = "fleet.yaml: not trusted, so without effect: workspace.setup."
    for words in (("run", "--once"), ("run", "start", "--once")):
        assert scratch.type(*words).stderr.startswith(note)
    scratch("trust")
    assert note not in scratch.work()


def test_with_nothing_to_do_it_says_so(scratch):
    assert re.search(r"\nAfter \d+s, nothing was left to do\.\n$", scratch.work())


def test_what_a_summary_tells_to_type_works(scratch):
    queue(scratch)
    scratch.work()
    for words in (["diff", "t-1"], ["logs", "t-5"], ["answer", "t-2", "MIT"], ["land", "t-1"]):
        scratch(*words)
    assert "t-5 is open again" in scratch("retry", "t-5")


def test_the_cost_is_in_the_line_and_in_the_summary(scratch):
    scratch.add("Dear", script="usage 1000 100 0.25\nwrite a b\ncommit A")
    text = scratch.work()
    assert re.search(r"t-1 is done: Dear \(\w+, \$0\.25\)", text), text
    assert re.search(r"After \d+s, in 1 run for \$0\.25: 1 done\.", text), text


def test_work_without_a_branch_names_no_merge(scratch):
    scratch.add("Here", "--in-place", script="write a b")
    assert re.search(r"t-1 is done: Here \(\w+\)  → fleet show t-1\n", scratch.work())


def test_on_a_terminal_there_are_colours_and_a_line_that_moves(scratch):
    queue(scratch)
    text = on_terminal(scratch, "run", "--once")
    assert re.search(r"\r\x1b\[K(\S) \d running: .*t-1 .*\(\ds\)", text), text
    assert "\x1b[32mt-1 is done\x1b[0m: List prices" in text
    assert "\x1b[31mt-5 failed\x1b[0m: Tidy up" in text
    assert "\x1b[33mt-2 asks\x1b[0m: Which licence?" in text
    assert "\x1b[31m and" not in text
    last = text.rpartition("After ")[2]
    assert "running:" not in last


def test_on_a_narrow_terminal_what_to_type_is_on_a_line_of_its_own(scratch):
    scratch.add("A title of thirty characters", script="write a b\ncommit A")
    text = on_terminal(scratch, "run", "--once", NO_COLOR="1", COLUMNS="60")
    assert re.search(
        r"t-1 is done: A title of thirty characters \(\w+\)\r\n {9}→ fleet diff t-1, fleet land t-1",
        text,
    ), text


def test_without_colours_the_line_still_moves_and_on_a_dumb_terminal_it_does_not(scratch):
    scratch.add("Slow", script="sleep 1.2")
    text = on_terminal(scratch, "run", "--once", NO_COLOR="1")
    assert "1 running: t-1" in text
    assert "\x1b[3" not in text
    scratch.add("Slow again", script="sleep 1.2")
    text = on_terminal(scratch, "run", "--once", TERM="dumb")
    assert "\x1b" not in text
    assert "running:" not in text
    assert "t-2 is done: Slow again" in text


def test_a_task_that_changed_nothing_is_not_advised_to_land(scratch):
    looked = scratch.add("Look", script="say hi")
    wrote = scratch.add("Write", script="write a.txt x\ncommit A\nask Which way?\nsay Done.")
    later = scratch.add("Later", "--after", f"{looked}:landed", script="say hi")
    scratch.work()
    scratch("answer", wrote, "That way")
    lines = [" ".join(line.split()) for line in scratch.work().splitlines()]
    assert f"{wrote} done Write fleet diff {wrote}, fleet land {wrote}" in lines
    assert (
        scratch("land", looked, "--now") == f"{looked} changed nothing, so main stays as it is.\n"
    )
    lines = [" ".join(line.split()) for line in scratch.work().splitlines()]
    assert f"{later} done Later (changed nothing) fleet show {later}" in lines
    (line,) = [line for line in lines if f"{later} is done" in line]
    assert line.endswith(f", changed nothing) → fleet show {later}")
    assert scratch("land", wrote, "--now").startswith(f"{wrote} landed on main (")
