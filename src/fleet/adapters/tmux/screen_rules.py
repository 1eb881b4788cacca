"""What the screens of programs say.

For each program: `argv`, words that it is started by, and rules, of which the first that matches wins.
A rule looks at `region` lines, counted from the last that is not empty, and matches when all of its
patterns are found there; with `at`, only when the cursor is right behind that on its line, so that a
prompt box is empty, whatever hint it shows. `pasted` is what a program shows in the place of a long
paste. `editor`: the key that has an editor write the prompt, and what a paste of it would lose; it is
used where the program's editor is ours. A screen that no rule knows asserts nothing.
Recorded screens: tests/transcripts/screens.
"""

# ruff: noqa: RUF001  # the programs draw with what looks like other characters

from __future__ import annotations

from fleet.domain.data import NamedTuple


class Seen(NamedTuple):
    name: str
    state: str
    region: int
    patterns: tuple[str, ...]
    at: str = ""


class Program(NamedTuple):
    argv: tuple[str, ...]
    rules: tuple[Seen, ...]
    pasted: str = ""
    editor: tuple[str, str] | None = None


PROGRAMS = {
    "claude": Program(
        argv=("claude",),
        pasted=r"\[Pasted text #\d+( \+\d+ lines)?\]$",
        editor=("C-g", r"\t"),
        rules=(
            Seen("dialog", "wants", 2, (r"\bEsc to (cancel|exit|close|go back)\b",)),
            Seen("footer", "working", 2, (r"^  .*\besc to interrupt\b",)),
            Seen("empty-box", "ready", 6, (r"^─{20,}.*\n❯.*\n─{20,}\n  \S",), "❯."),
            Seen("box", "typing", 20, (r"^─{20,}.*\n❯(.*\n)+?─{20,}\n  \S",)),
        ),
    ),
    "codex": Program(
        argv=("codex",),
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
    ),
    "opencode": Program(
        argv=("opencode",),
        pasted=r"\[Pasted ~\d+ lines\]$",
        rules=(
            Seen("permission", "wants", 3, (r"^ *┃ +Allow once +Allow always +Reject\b",)),
            Seen("question", "wants", 4, (r"^ *┃.*\benter (confirm|submit|toggle)\b",)),
            Seen("status", "working", 2, (r"\besc (again to )?interrupt\b",)),
            Seen("empty-box", "ready", 24, ("^ *╹▀{20,}", r"\bctrl\+p commands\b"), " *┃  "),
            Seen("box", "typing", 24, ("^ *╹▀{20,}", r"\bctrl\+p commands\b")),
        ),
    ),
    "full_screen": Program(
        argv=("fleet.testing.full_screen",),
        pasted=r"\[Pasted text, \d+ characters\]$",
        rules=(
            Seen("dialog", "wants", 6, ("^│ Do you want to run .*│$", r"^│ ❯ 1\. Yes +│$")),
            Seen("spinner", "working", 4, (r"^[✶✸✹✺✷] Working… \(esc to interrupt", "^│ > ")),
            Seen("empty-box", "ready", 4, ("^│ > ", "^  Type a prompt; /exit to leave$"), "│ > "),
            Seen("box", "typing", 4, ("^│ > ", "^  Type a prompt; /exit to leave$")),
        ),
    ),
}
