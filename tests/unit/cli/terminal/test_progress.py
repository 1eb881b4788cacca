import os
import pty
import re
import subprocess
import sys

import pytest

from fleet.cli.terminal.progress import ProgressLine, SetUpProgress
from tests.wait import LIMIT

SCRIPT = """
import sys, time
from fleet.cli.terminal.progress import ProgressLine
with ProgressLine("Loading \\x1b[31mmodels", of=4, announced="announced" in sys.argv) as progress:
    progress.at("qwen\\nmini", done=1)
    time.sleep(0.9)
    progress.say("One is loaded.")
    time.sleep(0.3)
print("Ready", flush=True)
"""


def on_terminal(*words: str, **env: str) -> str:
    """What the script writes to a terminal."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", SCRIPT, *words]
    env = {**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", "COLUMNS": "80", **env}
    child = subprocess.Popen(argv, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 4096)
        except OSError:
            break
    assert child.wait(LIMIT) == 0
    os.close(ours)
    return text.decode()


def in_pipe(*words: str) -> tuple[str, str]:
    argv = [sys.executable, "-c", SCRIPT, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_on_a_terminal_the_line_moves_and_is_gone_at_the_end():
    text = on_terminal()
    drawings = re.findall(
        r"\r\x1b\[K(.) Loading \\x1b\[31mmodels \[█████ +\] 1 of 4 \(0s\) qwen mini", text
    )
    assert len(set(drawings)) > 1
    assert "\r\x1b[KOne is loaded.\r\n" in text
    assert text.endswith("\r\x1b[KReady\r\n")


def test_a_terminal_that_only_knows_plain_lines_gets_those():
    assert on_terminal(TERM="dumb") == "One is loaded.\r\nReady\r\n"


def test_into_a_pipe_it_writes_only_when_it_starts_and_ends():
    assert in_pipe() == ("Ready\n", "One is loaded.\n")
    out, err = in_pipe("announced")
    first, middle, last = err.splitlines()
    assert (out, middle) == ("Ready\n", "One is loaded.")
    assert first == "Loading \\x1b[31mmodels …"
    assert re.fullmatch(r"Loading \\x1b\[31mmodels: done in \d+s\.", last)


def test_what_failed_is_not_done(capsys):
    with pytest.raises(ZeroDivisionError), ProgressLine("Dividing", announced=True):
        _ = 1 / 0
    assert capsys.readouterr().err == "Dividing …\n"


def test_what_turns_out_to_have_steps_is_counted():
    progress = ProgressLine("Looking for worktrees")
    assert progress.line() == "Looking for worktrees (0s)"
    progress.of("Removing worktrees", 3, 12)
    assert re.fullmatch(r"Removing worktrees .{20,} 3 of 12 \(0s\)", progress.line())


def test_the_line_says_which_set_up_command_runs_for_how_many(tmp_path):
    for task in ("t-1", "t-2", "t-3"):
        (tmp_path / task).mkdir()
    progress = SetUpProgress("Starting a, b, c", tmp_path, ["t-1", "t-2", "t-3"])
    assert progress.line() == "Starting a, b, c (0s)"
    for task in ("t-1", "t-2"):
        (tmp_path / task / "setup.now").write_text("make\nmore")
    assert progress.line() == "Starting a, b, c (0s) setting up 2 of 3: make"
