"""The rules for Codex's screen; see `fleet.adapters.tmux.screen_rules`."""

# ruff: noqa: RUF001  # the program draws with what looks like other characters

from __future__ import annotations

from fleet.adapters.tmux.screen_rules import Permit, ScreenProgram, SeenScreen

SCREENS = ScreenProgram(
    pasted=r"\[Pasted Content \d+ chars\]( #\d+)?$",
    permit=Permit(
        r"^(  Would you like to .*\n(?:.*\n)+?)[› ] 1\. Yes, proceed \(y\)$",
        "y",
        "Escape",
        r"^[› ] \d\. (?P<words>Yes, and .*(?:\n {5}\S.*)*?) \((?P<key>[a-z])\)$",
    ),
    rules=(
        SeenScreen(
            "login", "first-start", 14, (r"1\. Sign in with ChatGPT", r"^  Press enter to continue")
        ),
        SeenScreen("trust", "first-start", 10, (r"^  Trust this folder\?", r"^  enter continue\b")),
        SeenScreen(
            "dialog",
            "wants",
            2,
            (r"(?i)^  (press )?enter (to )?(confirm|continue|select|submit)\b.*\besc\b",),
        ),
        SeenScreen("status", "working", 14, (r"^• .*\besc to interrupt\)",)),
        SeenScreen(
            "empty-box",
            "ready",
            6,
            (r"^› (?!\d\. )", r"^  .*(\? for shortcuts| · [/~]|esc again to edit)"),
            "› ",
        ),
        SeenScreen("box", "typing", 20, (r"^› (?!\d\. )", r"^  .*(\? for shortcuts| · [/~])")),
    ),
)
