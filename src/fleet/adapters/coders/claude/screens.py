"""The rules for Claude Code's screen; see `fleet.adapters.tmux.screen_rules`."""

# ruff: noqa: RUF001  # the program draws with what looks like other characters

from __future__ import annotations

from fleet.adapters.tmux.screen_rules import Permit, ScreenProgram, SeenScreen

SCREENS = ScreenProgram(
    pasted=r"\[Pasted text #\d+( \+\d+ lines)?\]$",
    editor=("C-g", r"\t"),
    permit=Permit(
        r"^─{20,}\n((?:(?!─{20,}).*\n)+?) [❯ ] 1\. Yes$(?:\n   \d\. .*)+\n+ Esc to cancel",
        "1",
        "Escape",
        # Not the one that switches to auto mode: that is about everything.
        r"^[❯ ]  ?(?P<key>\d)\. (?P<words>Yes, (?!and switch to auto mode).*(?:\n {5,}\S.*)*)$",
    ),
    rules=(
        SeenScreen("sign-in", "first-start", 4, (r"^ Paste code here if prompted >",)),
        SeenScreen(
            "api-key",
            "first-start",
            12,
            (r"^ *Do you want to use this API key\?", r"\bEsc to cancel\b"),
        ),
        SeenScreen("theme", "first-start", 30, (r"^ To change this later, run /theme$",)),
        SeenScreen("login", "first-start", 30, (r"^ *Select login method:",)),
        SeenScreen(
            "notes", "first-start", 20, (r"^ Security notes:", r"^ Press Enter to continue")
        ),
        SeenScreen(
            "trust", "first-start", 8, (r"^.*Yes, I trust this folder", r"\bEsc to cancel\b")
        ),
        # Whatever else it asks below its greeting, which goes once a session begins.
        SeenScreen(
            "welcome",
            "first-start",
            200,
            (r"\AWelcome to Claude Code v\S+ *\n[.…]{20,}(?![\s\S]*^─{20,}.*\n❯)",),
        ),
        SeenScreen(
            "panel", "panel", 2, (r"^   (.* · )?Esc to (cancel|exit|close|go back|clear)\b",)
        ),
        SeenScreen("dialog", "wants", 2, (r"\bEsc to (cancel|exit|close|go back)\b",)),
        SeenScreen("footer", "working", 2, (r"^  .*\besc to interrupt\b",)),
        SeenScreen("empty-box", "ready", 6, (r"^─{20,}.*\n❯.*\n─{20,}\n  \S",), "❯."),
        SeenScreen("box", "typing", 20, (r"^─{20,}.*\n❯(.*\n)+?─{20,}\n  \S",)),
    ),
)
