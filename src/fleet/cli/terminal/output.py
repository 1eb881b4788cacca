"""Writing to stdout and stderr: pipes that close, terminals that are narrow, and colours."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` itself costs more than all of `fleet --help`
if TYPE_CHECKING:
    from typing import TextIO


def open_missing() -> None:
    """Open stdin, stdout and stderr on nothing where we were started with them closed.

    Else the next file we open becomes one of them, and a warning is printed into a database.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


class ReaderGone(Exception):
    """The reader of our output has closed it: `| head` has seen enough."""


def write(text: str, stream: TextIO | None = None) -> None:
    """Raise `ReaderGone` when nobody reads stdout any more; trouble with stderr is let go."""
    out = stream or sys.stdout
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:  # a terminal that is not UTF-8, or half a character in the text
            coding = out.encoding or "utf-8"
            out.write(text.encode(coding, "replace").decode(coding))
        out.flush()
    except OSError as error:
        if out is sys.stderr:
            _let_go(out)
            return
        abandon()
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from error
        raise OSError(error.errno, error.strerror, "the output") from error  # a full disk, likely


def write_json(text: str, stream: TextIO) -> None:
    """JSON is UTF-8, whatever the terminal's encoding."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")
    write(text, stream)


def end_line(stream: TextIO) -> None:
    """Leave the line on which the terminal has echoed `^C`."""
    if stream.isatty():
        write("\n", stream)


def _let_go(stream: TextIO) -> None:
    """Discard the stream's buffer: else the interpreter fails when it flushes it at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
    except (OSError, ValueError):
        pass


def abandon() -> None:
    """Point stdout at nothing, so that the interpreter can flush it in peace when it ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def colours(stream: TextIO) -> bool:
    """NO_COLOR wins, then FORCE_COLOR and CLICOLOR_FORCE, then whether it is a terminal."""
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return env.get("CLICOLOR") != "0" and is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that understands more than plain lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int | None:
    """The width of the terminal, or None: what goes into a pipe is never cut."""
    return size(stream)[0] if stream.isatty() else None


def size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines; COLUMNS and LINES win."""
    try:
        measured = tuple(os.get_terminal_size(stream.fileno()))
    except (OSError, ValueError):
        measured = (0, 0)
    wanted = (os.environ.get("COLUMNS", ""), os.environ.get("LINES", ""))
    wide, high = (int(a) if a.isdecimal() else f for a, f in zip(wanted, measured, strict=True))
    return wide or 80, high or 24
