"""How Claude Code's screen is read; see `fleet.adapters.tmux.screen_rules`."""

# ruff: noqa: RUF001  # the program draws with what looks like other characters

from __future__ import annotations

from fleet.adapters.tmux.screen_rules import Permit, Program, Seen

SCREENS = Program(
    pasted=r"\[Pasted text #\d+( \+\d+ lines)?\]$",
    editor=("C-g", r"\t"),
    permit=Permit(
        r"^─{20,}\n((?:(?!─{20,}).*\n)+?) [❯ ] 1\. Yes$(?:\n   \d\. .*)+\n+ Esc to cancel",
        "1",
        "Escape",
    ),
    rules=(
        Seen("theme", "first-start", 30, (r"^ To change this later, run /theme$",)),
        Seen("login", "first-start", 30, (r"^ *Select login method:",)),
        Seen("notes", "first-start", 20, (r"^ Security notes:", r"^ Press Enter to continue")),
        Seen("trust", "first-start", 8, (r"^.*Yes, I trust this folder", r"\bEsc to cancel\b")),
        Seen("panel", "panel", 2, (r"^   (.* · )?Esc to (cancel|exit|close|go back|clear)\b",)),
        Seen("dialog", "wants", 2, (r"\bEsc to (cancel|exit|close|go back)\b",)),
        Seen("footer", "working", 2, (r"^  .*\besc to interrupt\b",)),
        Seen("empty-box", "ready", 6, (r"^─{20,}.*\n❯.*\n─{20,}\n  \S",), "❯."),
        Seen("box", "typing", 20, (r"^─{20,}.*\n❯(.*\n)+?─{20,}\n  \S",)),
    ),
)
