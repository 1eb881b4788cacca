import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from fleet.cli.terminal.live import Live, clip, rows
from fleet.cli.terminal.view import Table, Text
from tests.wait import LIMIT

SCRIPT = """
import sys, time
from fleet.cli.terminal.live import Live
from fleet.cli.terminal.view import Table
with Live() as live:
    live.update(Table(["task", "state"], [("t-1", "open"), ("t-2", "open"), ("t-3", "open")]))
    live.update(Table(["task", "state"], [("t-1", "running"), ("t-2", "open"), ("t-3", "open")]))
    live.above("t-1 began")
    live.update(Table(["task", "state"], [("t-1", "done"), ("t-2", "open")]))
    while sys.argv[1:]:
        time.sleep(0.05)  # a signal that comes just before a sleep is seen only after it
"""


def screen(text):
    """What a terminal shows after these characters: a very small terminal."""
    grid, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r\n|[^\x1b\r\n]+", text):
        if token == "\r\n":
            row, column = row + 1, 0
            grid += [""] * (row + 1 - len(grid))
        elif token.endswith("F") and token.startswith("\x1b"):
            row, column = row - int(token[2:-1]), 0
            assert row >= 0
        elif token == "\x1b[K":
            grid[row] = grid[row][:column]
        elif token == "\x1b[J":
            grid[row:] = [grid[row][:column]]
        elif not token.startswith("\x1b"):
            grid[row] = grid[row][:column] + token + grid[row][column + len(token) :]
            column += len(token)
    return grid


def read_all(fd, until=None, limit=LIMIT):
    text, end = "", time.monotonic() + limit
    while time.monotonic() < end and (until is None or until not in text):
        if not select.select([fd], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece.decode()
    return text


def on_a_terminal(*words):
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "40", "LINES": "20"}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words], stdout=theirs, stderr=theirs, stdin=theirs, env=env
    )
    os.close(theirs)
    return child, ours


def test_a_terminal_is_redrawn_in_place_and_keeps_the_last_picture():
    child, ours = on_a_terminal()
    text = read_all(ours)
    assert child.wait(LIMIT) == 0
    assert screen(text) == ["t-1 began", "TASK  STATE", "t-1   done", "t-2   open", ""]
    assert text.index("\x1b[?25l") < text.index("TASK")
    assert text.endswith("\x1b[?25h")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_cursor_comes_back_when_the_command_is_stopped(number):
    child, ours = on_a_terminal("wait")
    read_all(ours, until="done")
    child.send_signal(number)
    assert "\x1b[?25h" in read_all(ours, until="\x1b[?25h")
    assert child.wait(LIMIT) != 0


def test_a_pipe_gets_only_the_lines_that_changed(capsys):
    with Live() as live:
        live.update(Table(["task", "state"], [("t-1", "open"), ("t-2", "open")]))
        live.update(Table(["task", "state"], [("t-1", "running"), ("t-2", "open")]))
        live.above("t-1 began")
        live.update(Text("t-1 done"))
    assert capsys.readouterr().out.splitlines() == [
        *("TASK  STATE", "t-1   open", "t-2   open"),
        "t-1   running",
        "t-1 began",
        "t-1 done",
    ]


def test_a_picture_never_wraps_or_scrolls():
    assert clip(["12345678", "short"], 6, 24) == ["12345…", "short"]
    assert clip(["\x1b[1m123456\x1b[0m"], 6, 24) == ["\x1b[1m123456\x1b[0m"]
    assert clip([str(n) for n in range(10)], 80, 5) == ["0", "1", "2", "… 7 more"]


def test_a_terminal_that_became_narrower_is_cleared_whole():
    assert rows(["123456", "12"], 6) == 2
    assert rows(["123456", "", "12"], 4) == 4
