"""How Codex's screen is read; see `fleet.adapters.tmux.screen_rules`."""

# ruff: noqa: RUF001  # the program draws with what looks like other characters

from __future__ import annotations

from fleet.adapters.tmux.screen_rules import Program, Seen

SCREENS = Program(
    pasted=r"\[Pasted Content \d+ chars\]( #\d+)?$",
    rules=(
        Seen(
            "dialog",
            "wants",
            2,
            (r"(?i)^  (press )?enter (to )?(confirm|continue|select|submit)\b.*\besc\b",),
        ),
        Seen("status", "working", 14, (r"^• .*\besc to interrupt\)",)),
        Seen(
            "empty-box",
            "ready",
            6,
            (r"^› (?!\d\. )", r"^  .*(\? for shortcuts| · [/~]|esc again to edit)"),
            "› ",
        ),
        Seen("box", "typing", 20, (r"^› (?!\d\. )", r"^  .*(\? for shortcuts| · [/~])")),
    ),
)
