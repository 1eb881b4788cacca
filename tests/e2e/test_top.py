"""`fleet top` in a real terminal: tmux draws it, and keys are typed into it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess

import pytest

from tests.e2e.scratch import BIN, Scratch
from tests.e2e.served import Served
from tests.wait import until


class Screen:
    """`fleet top` in a tmux of its own."""

    def __init__(self, scratch: Scratch, columns: int, lines: int) -> None:
        self.socket = str(scratch.home.parent / "tmux.sock")
        env = {k: v for k, v in scratch.env.items() if not k.startswith("TMUX")}
        words = f"exec {shlex.quote(str(BIN / 'fleet'))} top"
        size = ("-x", str(columns), "-y", str(lines))
        self._tmux("new-session", "-d", *size, words, cwd=scratch.repo, env=env | {"TERM": "xterm"})
        self._tmux("set-option", "-g", "remain-on-exit", "on")

    def _tmux(self, *words: str, **given) -> str:
        argv = ["tmux", "-S", self.socket, "-f", os.devnull, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True, **given).stdout

    def shown(self) -> str:
        return self._tmux("capture-pane", "-p")

    def see(self, *words: str) -> str:
        return until(
            lambda: shown if all(w in (shown := self.shown()) for w in words) else "",
            lambda: f"{words} on\n{self.shown()}",
        )

    def see_end(self) -> None:
        """The program has ended. tmux 3.3 knows it, but does not always write it into the pane."""
        until(
            lambda: self._tmux("list-panes", "-F", "#{pane_dead}").strip() == "1",
            lambda: f"the end of\n{self.shown()}",
        )

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def look(scratch):
    screens = []

    def opened(columns: int, lines: int, of: Scratch = scratch) -> Screen:
        screens.append(Screen(of, columns, lines))
        return screens[-1]

    yield opened
    for screen in screens:
        screen.close()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40), (45, 25)])
def test_a_question_is_seen_and_answered_at_every_size(scratch, look, columns, lines):
    task = scratch.add("Choose", script="ask Which way?\nsay Thank you.")
    scratch.add("Broken", "--attempts", "1", script="exit 3")
    scratch.work()
    screen = look(columns, lines)
    shown = screen.see("Needs you (2)", "asks", "Which way?", "failed", "2 need you")
    assert max(map(len, shown.splitlines())) <= columns
    screen.press("a")
    screen.see(f"Answer {task}:")
    screen.press("-l", "left")
    screen.press("Enter")
    screen.see(f"Answered {task}.", "Needs you (1)")
    assert [m["text"] for m in scratch.data("show", task)["messages"]][-1] == "left"
    screen.press("q")
    screen.see_end()


def test_a_diff_is_read_and_the_work_lands(scratch, look):
    task = scratch.add("Notes", script="write notes.txt hello\ncommit Notes")
    scratch.work()
    screen = look(100, 30)
    screen.see("not landed", "+hello")
    screen.press("l")
    screen.see(f"Land {task}? (y/n)")
    screen.press("y")
    screen.see(f"Landed {task}.")
    assert (scratch.repo / "notes.txt").read_text() == "hello\n"


def test_a_server_elsewhere_is_watched_and_may_go_away(tmp_path, look):
    served = Served(Scratch(tmp_path / "there"))
    try:
        away = Scratch(tmp_path / "here")
        away.env |= {"FLEET_URL": served.url, "FLEET_TOKEN": served.token("bob", "coordinator")}
        away.add("Choose", script="ask Which way?")
        screen = look(100, 30, away)
        screen.see("asks", "Which way?", served.url)
        os.kill(served.process.pid, signal.SIGKILL)
        screen.see("Not connected, trying again", "asks", "Which way?")
    finally:
        served.close()


def test_into_a_pipe_it_says_what_to_type_instead(scratch):
    assert "fleet status --watch" in scratch.fails("top", status=2)
