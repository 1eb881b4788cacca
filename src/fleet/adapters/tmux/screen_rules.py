"""What the screens of programs say.

A program has rules, of which the first that matches wins; a coder's are `screens.py` in its folder.
A rule looks at `region` lines, counted from the last that is not empty, and matches when all of its
patterns are found there; with `at`, only when the cursor is right behind that on its line, so that a
prompt box is empty, whatever hint it shows. `pasted` is what a program shows in the place of a long
paste. `permit`: how a person's leave is given or refused, where the screen asks for one and nothing
else; `always` finds its answer for this and what is like it, with the `words` and the `key` of that. `editor`: the key that has an editor write the prompt, and what a paste of it would lose; it is
used where the program's editor is ours. A screen that no rule knows asserts nothing.
Recorded screens: tests/transcripts/screens.
"""

# ruff: noqa: RUF001  # the programs draw with what looks like other characters

from __future__ import annotations

from fleet.domain.data import NamedTuple


class SeenScreen(NamedTuple):
    name: str
    state: str
    region: int
    patterns: tuple[str, ...]
    at: str = ""


class Permit(NamedTuple):
    """A rule for a permission dialog. `dialog` matches it, and its group is what it asks about."""

    dialog: str
    yes: str  # keys
    no: str
    always: str = ""


class ScreenProgram(NamedTuple):
    rules: tuple[SeenScreen, ...]
    pasted: str = ""
    editor: tuple[str, str] | None = None
    permit: Permit | None = None


# Our own stand-in, which is no coder but is started as one.
FULL_SCREEN = ScreenProgram(
    pasted=r"\[Pasted text, \d+ characters\]$",
    permit=Permit(
        r"^│ Permission +│\n((?:│ .*\n)+?)│ ❯ 1\. Yes +│$",
        "Enter",
        "Escape",
        r"^│   (?P<key>2)\. (?P<words>Yes, always\b.*?) +│$",
    ),
    rules=(
        SeenScreen("panel", "panel", 1, ("^   Esc to cancel$",)),
        SeenScreen("dialog", "wants", 7, ("^│ Do you want to run .*│$", r"^│ ❯ 1\. Yes +│$")),
        SeenScreen("spinner", "working", 4, (r"^[✶✸✹✺✷] Working… \(esc to interrupt", "^│ > ")),
        SeenScreen("empty-box", "ready", 4, ("^│ > ", "^  Type a prompt; /exit to leave$"), "│ > "),
        SeenScreen("box", "typing", 4, ("^│ > ", "^  Type a prompt; /exit to leave$")),
    ),
)
