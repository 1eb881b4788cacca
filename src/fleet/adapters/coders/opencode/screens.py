"""The rules for OpenCode's screen; see `fleet.adapters.tmux.screen_rules`."""

# the program draws with what looks like other characters

from __future__ import annotations

from fleet.adapters.tmux.screen_rules import Permit, ScreenProgram, SeenScreen

SCREENS = ScreenProgram(
    pasted=r"\[Pasted ~\d+ lines\]$",
    permit=Permit(
        r"^ *┃ +△ Permission required\n((?:.*\n)+?)(?: *┃ {60,}\S+\n)? *┃ +Allow once +Allow always +Reject\b",
        "Enter",
        "Escape",
    ),
    rules=(
        SeenScreen("permission", "wants", 3, (r"^ *┃ +Allow once +Allow always +Reject\b",)),
        SeenScreen("question", "wants", 4, (r"^ *┃.*\benter (confirm|submit|toggle)\b",)),
        SeenScreen("status", "working", 2, (r"\besc (again to )?interrupt\b",)),
        SeenScreen("empty-box", "ready", 24, ("^ *╹▀{20,}", r"\bctrl\+p commands\b"), " *┃  "),
        SeenScreen("box", "typing", 24, ("^ *╹▀{20,}", r"\bctrl\+p commands\b")),
    ),
)
