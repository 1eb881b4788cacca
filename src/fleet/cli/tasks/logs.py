"""`fleet logs`: show the output of runs."""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import ItemStream, Result, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.tasks.transcript import Spoken

    Reader: TypeAlias = Callable[[str], dict[str, Any]]

LAST_BYTES = 1 << 21  # of a transcript, in which its last lines are looked for first
LONGEST_LINE = 1 << 23  # bytes; a longer one has no end
END = 1 << 16  # bytes of such a line that are shown
MOST_CHARACTERS = 4000  # characters of a line on the screen


@command(config=True)
@click.argument("name", metavar="TASK", shell_complete=complete_tasks)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=1),
    default=50,
    help="Show this many of the last lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Follow until the run ends.")
@click.option("--raw", is_flag=True, help="Print the coder's output unchanged.")
def logs(
    name: str,
    lines: int,
    follow: bool,  # noqa: FBT001  # click passes by name
    raw: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """Show the output of a task's newest run, or of run TASK.N."""
    client = connect(config=config)
    spoken, read, last = so_far(client, name, lines, raw=raw)
    if follow:
        heard = chain(last, _and_on(client, spoken, read))
        return Result("line", heard, ItemStream(lambda line: line["text"]))
    texts = [line["text"] for line in last if line["text"] is not None]
    if not last:
        task = spoken.run.rpartition(".")[0]
        texts = _set_up(client, task, lines) or _set_up_now(client, task)
    screen = client.last_screen(spoken.run)
    notes = (f"Its last screen: {screen}",) if screen else ()
    return Result("lines", last, Text("\n".join(texts)), notes)


def _set_up(client: Client, task: str, most: int) -> list[str]:
    """The last lines of its set-up, for a run whose coder has not said anything."""
    log = client.home / "tasks" / task / "setup.log"
    if client.is_remote or not log.is_file():
        return []
    return log.read_text("utf-8", "replace").splitlines()[-most:]


def _set_up_now(client: Client, task: str) -> list[str]:
    """The set-up command that runs now, while it has printed nothing; another set-up may block it."""
    from fleet.cli.tasks.views import task_status
    from fleet.operations.tasks.show import ShowTask

    row = client.call(ShowTask(task, brief=True)).task
    is_set_up = row.run is not None and row.run.setup
    return [task_status(row, client.now(), whole=True).text] if is_set_up else []


def so_far(
    client: Client, name: str, most: int, *, raw: bool
) -> tuple[Spoken, Reader, list[dict[str, Any]]]:
    """The last lines of what was said, and how and from where to read on.

    A short conversation is followed from its beginning, of a long one only the end is read.
    """
    from fleet.operations.tasks.transcript import ReadTranscript

    window = LAST_BYTES
    while True:
        spoken = client.call(ReadTranscript(name, -window))
        read = _reader(client, spoken, raw=raw)
        spoken, last = _to_the_end(client, spoken, read, most)
        if len(last) == most or spoken.offset <= window:
            return spoken, read, last
        if not last and window > LONGEST_LINE:
            spoken = client.call(ReadTranscript(spoken.run, spoken.offset - END))
            spoken, last = _to_the_end(client, spoken, read, most)
            return spoken, read, last
        window *= 8


def _to_the_end(
    client: Client, spoken: Spoken, read: Reader, most: int
) -> tuple[Spoken, list[dict[str, Any]]]:
    from fleet.operations.tasks.transcript import ReadTranscript

    last: deque[dict[str, Any]] = deque(maxlen=most)
    while spoken.lines:
        last.extend(map(read, spoken.lines))
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
    return spoken, list(last)


def _and_on(client: Client, spoken: Spoken, read: Reader) -> Iterator[dict[str, Any]]:
    """Yield new lines until the run has ended and all of them were read."""
    from fleet.operations.tasks.transcript import ReadTranscript

    while spoken.live or spoken.lines:
        client.wait(0.2)
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
        yield from map(read, spoken.lines)


def _reader(client: Client, spoken: Spoken, *, raw: bool) -> Reader:
    """Each line as it was written (`line`) and as a person reads it (`text`, or None)."""
    from fleet.domain.task import Mode
    from fleet.domain.transcript import SaidKind
    from fleet.operations.tasks.show import ShowTask
    from fleet.ports import InTerminal

    if raw:
        return lambda line: {"line": line, "text": line}
    detail = client.call(ShowTask(spoken.run.rpartition(".")[0]))
    coder, opening = client.coder(spoken.coder, detail.task.project), client.opening(spoken.run)
    if detail.spec.mode == Mode.TERMINAL and isinstance(coder, InTerminal):
        listener = coder.watch(opening)
    else:
        listener = coder.listen(opening)
    quiet = {SaidKind.USAGE, SaidKind.SESSION, SaidKind.TURN, SaidKind.REPLY}

    def read(line: str) -> dict[str, Any]:
        texts = []
        for part in listener.hear(line):
            named = "" if part.kind is SaidKind.HEARD else part.name  # an id of its protocol
            text = " ".join(p for p in (named, part.text) if p)
            if text and part.kind not in quiet:
                texts.append(text if part.kind is SaidKind.TEXT else f"[{part.kind}] {text}")
        return {"line": line, "text": _cut("\n".join(texts)) or None}

    return read


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(text) - MOST_CHARACTERS:,} more characters: fleet logs --raw)"
