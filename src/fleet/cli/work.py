"""The supervisor and what its runs say: run, logs."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fleet.cli.completion import complete_tasks
from fleet.cli.frame import command
from fleet.cli.render import Feed, Result, Text, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.bootstrap import App
    from fleet.client import Client
    from fleet.domain.event import Event
    from fleet.operations.runs import Spoken

    Reader: TypeAlias = Callable[[str], dict[str, Any]]

GLANCES = 20  # whoever asks whether a supervisor runs holds its lock for a moment


@command(json=False, config=True)
@click.option("--coder", default="", help="The coder of tasks that name none.")
@click.option("--max", "most", type=click.IntRange(1, 1000), help="How many runs at once.")
@click.option("--once", is_flag=True, help="End when nothing runs and nothing could start.")
def run(
    coder: str,
    most: int | None,
    once: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> int:
    """Run the supervisor: it turns ready tasks into runs."""
    from fleet.bootstrap import App
    from fleet.client import here
    from fleet.supervisor import forever

    if coder:
        _check_coder(coder)
    app = App(here(), os.environ, config_file=config, listening=True)
    with _alone(app):
        supervisor = app.supervisor(coder=coder, max_concurrent=most or 0)
        stop = _Stop()
        say(f"Supervising {app.home.path} as {app.home.host_id()}. Ctrl-C stops; agents go on.")
        forever.run(supervisor, app.store, once=once, stopping=stop, tell=_tell, warn=_warn)
        if supervisor.attempts:
            count = len(supervisor.attempts)
            say(f"Stopped. {count} still run; the next `fleet run` takes them up.")
    return 0


def _check_coder(name: str) -> None:
    from fleet.bootstrap import make_coder
    from fleet.domain.errors import NotFound, nearest
    from fleet.domain.fleet import CODERS

    if name not in CODERS:
        fix = nearest(name, CODERS) or f"Coders: {', '.join(CODERS)}."
        raise NotFound(f"There is no coder '{name}'.", fix=fix)
    make_coder(name)


@contextmanager
def _alone(app: App) -> Iterator[None]:
    """Be the supervisor of this home, or say who is."""
    from fleet.domain.errors import Refused

    for _ in range(GLANCES):
        with app.home.alone() as mine:
            if mine:
                yield
                return
        time.sleep(0.01)
    raise Refused(
        f"A supervisor runs here already (pid {app.home.supervisor_pid()}).",
        fix="It takes new tasks by itself; `fleet tasks --watch` shows them.",
        code="already_running",
    )


class _Stop:
    """True once a signal has asked for it; a second one ends us at once, as it ends anything."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, _frame: object) -> None:
        self._asked = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self._asked


def _tell(event: Event) -> None:
    about = event.run or event.task
    rest = " ".join(str(v) for v in event.data.values() if v)
    clock = time.strftime("%H:%M:%S", time.localtime(event.at / 1_000_000))
    say(f"{clock} {about:<8} {event.type} {' '.join(rest.split())[:100]}".rstrip())


def _warn(text: str) -> None:
    say(text, "yellow")


@command(config=True)
@click.argument("name", metavar="TASK", shell_complete=complete_tasks)
@click.option("-n", "--lines", type=click.IntRange(min=1), default=50, help="The last so many.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--raw", is_flag=True, help="Exactly what the coder wrote.")
def logs(
    name: str,
    lines: int,
    follow: bool,  # noqa: FBT001  # click passes by name
    raw: bool,  # noqa: FBT001
    config: Path | None,
) -> Result:
    """Show what a task's newest run said (or TASK.N's)."""
    from fleet.cli.connect import connect

    client = connect(config=config)
    spoken, read, last = _so_far(client, name, lines, raw=raw)
    if follow:
        heard = chain(last, _and_on(client, spoken, read))
        return Result("line", heard, Feed(lambda said: said["text"]))
    shown = [said["text"] for said in last if said["text"] is not None]
    return Result("lines", last, Text("\n".join(shown)))


def _so_far(
    client: Client, name: str, most: int, *, raw: bool
) -> tuple[Spoken, Reader, list[dict[str, Any]]]:
    """The last lines of what was said, and how and from where to read on."""
    from fleet.operations.runs import ReadTranscript

    spoken = client.call(ReadTranscript(name))
    read = _reader(client, spoken, raw=raw)
    last: deque[dict[str, Any]] = deque(maxlen=most)
    while spoken.lines:  # from the first: a conversation is followed from its beginning
        last.extend(map(read, spoken.lines))
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
    return spoken, read, list(last)


def _and_on(client: Client, spoken: Spoken, read: Reader) -> Iterator[dict[str, Any]]:
    """What comes, until the run has ended and all of it was read."""
    from fleet.operations.runs import ReadTranscript

    while spoken.live or spoken.lines:
        client.app.store.wait(0.2)
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
        yield from map(read, spoken.lines)


def _reader(client: Client, spoken: Spoken, *, raw: bool) -> Reader:
    """Each line as it was written (`line`) and as a person reads it (`text`, or None)."""
    from fleet.bootstrap import make_coder
    from fleet.domain.transcript import SaidKind

    if raw:
        return lambda line: {"line": line, "text": line}
    listener = make_coder(spoken.coder).listen(client.app.keepers.opening(spoken.run))
    quiet = {SaidKind.USAGE, SaidKind.SESSION, SaidKind.TURN, SaidKind.REPLY}

    def read(line: str) -> dict[str, Any]:
        shown = []
        for said in listener.hear(line):
            text = " ".join(p for p in (said.name, said.text) if p)
            if text and said.kind not in quiet:
                shown.append(text if said.kind is SaidKind.TEXT else f"[{said.kind}] {text}")
        return {"line": line, "text": "\n".join(shown) or None}

    return read
