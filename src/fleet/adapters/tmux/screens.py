"""The state of a program's screen, by rules that are data (`screen_rules`)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from fleet.adapters.coders import BUILT_IN, built_in, part
from fleet.domain.data import NamedTuple
from fleet.ports import ScreenState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.adapters.tmux.screen_rules import Permit, ScreenProgram, SeenScreen

DRAWN = re.compile("[\u2500-\u257f]+")  # lines of boxes
TIP = re.compile("Tip: ")
QUESTION_CHARACTERS = 500
STAND_IN = "fleet.testing.full_screen"


class ScreenRule(NamedTuple):
    """Matches when each pattern occurs in its region, and the cursor is right behind `at`."""

    name: str
    state: ScreenState
    region: int  # lines, counted up from the last one that is not empty
    patterns: tuple[re.Pattern[str], ...]
    at: re.Pattern[str] | None = None  # what the line of the cursor begins with


class Editor(NamedTuple):
    """The key that opens a program's editor, and the text that a paste would lose."""

    key: str
    loses: re.Pattern[str]


class Leave(NamedTuple):
    """A dialog that asks for a person's leave, and the keys that give or refuse it.

    `always` finds its answer for good, in the groups `words` and `key`.
    """

    dialog: re.Pattern[str]
    yes: str
    no: str
    always: re.Pattern[str] | None = None


class Always(NamedTuple):
    """An answer of a dialog that allows this from now on: its words, and the key that chooses it."""

    words: str = ""
    key: str = ""


class Sheet(NamedTuple):
    """One program's rules; the first that matches wins."""

    rules: tuple[ScreenRule, ...]
    pasted: re.Pattern[str] | None = None  # what the program shows instead of a long paste
    editor: Editor | None = None
    permit: Leave | None = None


def read_screen(
    program: str, text: str, cursor: tuple[int, int] = (0, 0)
) -> tuple[ScreenState, str]:
    """The state of this program's screen, and the rule that matched."""
    sheet = sheet_of(program)
    lines = text.rstrip().split("\n")
    for rule in sheet.rules if sheet else ():
        region = "\n".join(lines[-rule.region :])
        if all(p.search(region) for p in rule.patterns) and _is_at(rule.at, lines, cursor):
            return rule.state, rule.name
    return ScreenState.UNKNOWN, ""


def _is_at(at: re.Pattern[str] | None, lines: list[str], cursor: tuple[int, int]) -> bool:
    if at is None:
        return True
    column, number = cursor
    line = lines[number] if number < len(lines) else ""
    match = at.match(line.ljust(column))
    return match is not None and match.end() == column


def program_of(argv: Iterable[str]) -> str:
    """The program that this command starts, also through a wrapper; empty when unknown."""
    known = {row.executable: name for name, row in BUILT_IN.items() if row.screens}
    known[STAND_IN] = "full_screen"
    programs = (known.get(word.rpartition("/")[2]) for word in argv)
    return next((program for program in programs if program), "")


def rules_of(program: str) -> ScreenProgram | None:
    """The rules of a program, as they are written in its folder."""
    if program == "full_screen":
        from fleet.adapters.tmux.screen_rules import FULL_SCREEN  # noqa: PLC0415  # only in tests

        return FULL_SCREEN
    path = built_in(program).screens
    return part(path) if path else None


@cache
def sheet_of(program: str) -> Sheet | None:
    """The rules of a program, compiled on first use: most commands need those of one program."""
    rules = rules_of(program)
    if rules is None:
        return None
    return Sheet(
        tuple(_rule(program, seen) for seen in rules.rules),
        re.compile(rules.pasted) if rules.pasted else None,
        Editor(rules.editor[0], re.compile(rules.editor[1])) if rules.editor else None,
        _leave(rules.permit) if rules.permit else None,
    )


def _leave(permit: Permit) -> Leave:
    always = re.compile(permit.always, re.MULTILINE) if permit.always else None
    return Leave(re.compile(permit.dialog, re.MULTILINE), permit.yes, permit.no, always)


def permission_on(program: str, text: str) -> str:
    """What this screen asks permission for; empty when it asks for none."""
    sheet = sheet_of(program)
    dialogs = list(sheet.permit.dialog.finditer(text)) if sheet and sheet.permit else []
    if not dialogs:
        return ""
    lines = (DRAWN.sub(" ", line).strip() for line in dialogs[-1][1].split("\n"))
    text = " ".join(line for line in lines if line and not TIP.match(line))
    return " ".join(text.split())[:QUESTION_CHARACTERS]


def always_on(program: str, text: str) -> Always:
    """The answer of this screen's dialog that allows it from now on; empty if there is none."""
    sheet = sheet_of(program)
    leave = sheet.permit if sheet else None
    dialogs = list(leave.dialog.finditer(text)) if leave else []
    if not dialogs or leave is None or leave.always is None:
        return Always()
    match = leave.always.search(text, dialogs[-1].start())
    return Always(" ".join(match["words"].split()), match["key"]) if match else Always()


def _rule(program: str, seen: SeenScreen) -> ScreenRule:
    return ScreenRule(
        f"{program}.{seen.name}",
        ScreenState(seen.state),
        seen.region,
        tuple(re.compile(pattern, re.MULTILINE) for pattern in seen.patterns),
        re.compile(seen.at) if seen.at else None,
    )
