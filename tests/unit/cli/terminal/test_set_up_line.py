import os
import pty
import subprocess
import sys

import pytest

from fleet.cli.terminal.set_up_line import Readying
from tests.wait import LIMIT

SCRIPT = """
import sys, time
from pathlib import Path
from fleet.cli.terminal.set_up_line import Readying
with Readying(Path(sys.argv[1]), ["t-1"]):
    time.sleep(1)
print("Created", flush=True)
"""


@pytest.fixture
def logs(tmp_path):
    for task in ("t-1", "t-2", "t-3"):
        (tmp_path / task).mkdir()
    return tmp_path


def test_the_line_says_how_many_are_set_up_and_since_when(logs):
    line = Readying(logs, ["t-1", "t-2", "t-3"]).line
    assert line(100.0) == ""
    for task in ("t-1", "t-2"):
        (logs / task / "setup.now").write_text("make\nmore")
    assert line(101.0) == "Setting up 2 of 3: make (0 s)"
    assert line(104.2) == "Setting up 2 of 3: make (3 s)"


def test_on_a_terminal_the_line_is_shown_and_gone_at_the_end(logs):
    (logs / "t-1" / "setup.now").write_text("make\nmore")
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", SCRIPT, str(logs)]
    child = subprocess.Popen(argv, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = ""
    while True:
        try:
            text += os.read(ours, 4096).decode()
        except OSError:
            break
    assert child.wait(LIMIT) == 0
    os.close(ours)
    assert "Setting up: make (0 s)" in text
    assert text.endswith("\r\x1b[KCreated\r\n")


def test_into_a_pipe_nothing_is_written(logs):
    (logs / "t-1" / "setup.now").write_text("make\nmore")
    argv = [sys.executable, "-c", SCRIPT, str(logs)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Created\n", "")
