"""The only module that prints.

`show` prints a `Result` as text or as one JSON document, `fail` an error, `say` an aside on stderr.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from fleet.cli.terminal.layout import lines, paint
from fleet.cli.terminal.measure import harmless
from fleet.cli.terminal.output import ReaderGone, colours, columns, write, write_json
from fleet.cli.terminal.view import (
    Cell,
    Column,
    ItemStream,
    Pairs,
    Raw,
    Result,
    Stack,
    Style,
    Table,
    Text,
)

if TYPE_CHECKING:
    from fleet.cli.terminal.view import View
    from fleet.domain.errors import FleetError

__all__ = [
    "Cell",
    "Column",
    "ItemStream",
    "Pairs",
    "Raw",
    "ReaderGone",
    "Result",
    "Stack",
    "Style",
    "Table",
    "Text",
    "confirm",
    "fail",
    "say",
    "show",
]

JSON_VERSION = 1


def show(result: Result, *, as_json: bool = False) -> int:
    """Print the result on stdout and return its exit status."""
    view = result.view
    if isinstance(view, ItemStream):
        _feed(result, view, as_json=as_json)
    elif as_json:
        write_json(document(result), sys.stdout)
    elif isinstance(view, Raw):
        write(view.text)
    else:
        colour = colours(sys.stdout)
        drawn = lines(view, room=columns(sys.stdout), colour=colour)
        write("".join(f"{line}\n" for line in drawn))
    if not as_json:
        for note in result.notes:
            say(note, "dim")
    return result.exit_status


def _feed(result: Result, feed: ItemStream, *, as_json: bool) -> None:
    colour = colours(sys.stdout)
    for item in result.data:
        if as_json:
            write_json(document(Result(result.kind, item, Text(""))), sys.stdout)
            continue
        line = feed.line(item)
        if line is not None:
            cell = line if isinstance(line, Cell) else Cell(line)
            write(paint(harmless(cell.text, lines=True), cell.style, colour=colour) + "\n")


def document(result: Result) -> str:
    """The result's envelope as one JSON document; a list has one element per line."""
    from fleet.domain.record_json import dumps

    head = f'{{"fleet": {JSON_VERSION}, "kind": {dumps(result.kind)}'
    if result.notes:
        head += f', "notes": {dumps(list(result.notes))}'
    if isinstance(result.data, (list, tuple)) and result.data:
        body = "[\n" + ",\n".join(map(dumps, result.data)) + "\n]"
    else:
        body = dumps(result.data)
    return f'{head}, "data": {body}}}\n'


def fail(error: FleetError, *, as_json: bool = False, detail: str = "") -> int:
    """Print the error on stderr and return its exit status; `detail` is a traceback."""
    if as_json:
        from fleet.domain.record_json import dumps

        body = {"code": error.code, "message": error.message, "fix": error.fix}
        if detail:
            body["detail"] = detail
        write_json(dumps({"fleet": JSON_VERSION, "error": body}) + "\n", sys.stderr)
        return error.exit_status
    colour = colours(sys.stderr)
    text = harmless(detail, lines=True)
    text += paint("fleet:", "red", colour=colour) + " " + harmless(error.message, lines=True) + "\n"
    text += "".join(f"  {line}\n" for line in harmless(error.fix, lines=True).splitlines())
    write(text, sys.stderr)
    return error.exit_status


def say(text: str, style: Style = "") -> None:
    """One line on stderr: what a long command is doing, or an aside."""
    painted = paint(harmless(text, lines=True), style, colour=colours(sys.stderr))
    write(painted + "\n", sys.stderr)


def plain(text: str) -> str:
    """`text` as it may be written to a terminal."""
    return harmless(text, lines=True)


def room() -> int | None:
    """The width of the terminal that is written to, if it is one."""
    return columns(sys.stdout)


def can_ask() -> bool:
    return sys.stdin.isatty()


def confirm(question: str, *, otherwise: str) -> bool:
    """Ask on the terminal; without one raise `BadInput` with the fix `otherwise` (use --yes)."""
    from fleet.domain.errors import BadInput

    if not sys.stdin.isatty():
        raise BadInput(f"There is no terminal to ask: {harmless(question)}", fix=otherwise)
    write(f"{harmless(question, lines=True)} [y/N] ", sys.stderr)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def shown_lines(view: View, stream: TextIO) -> list[str]:
    """The view as lines that fit the stream."""
    return lines(view, room=columns(stream), colour=colours(stream))
