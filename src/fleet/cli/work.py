"""The supervisor and what its runs say: run, logs."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import click

from fleet.cli.completion import complete_tasks
from fleet.cli.frame import command
from fleet.cli.render import Feed, Result, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.client import Client
    from fleet.domain.event import Event
    from fleet.ports import Listener


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
    from pathlib import Path

    from fleet.bootstrap import App, make_coder
    from fleet.domain.errors import Refused
    from fleet.supervisor import forever

    if coder:
        make_coder(coder)
    app = App(Path.cwd(), os.environ, config_file=config, listening=True)
    with app.home.alone() as mine:
        if not mine:
            raise Refused(
                f"A supervisor runs here already (pid {app.home.supervisor_pid()}).",
                fix="It takes new tasks by itself; `fleet tasks --watch` shows them.",
                code="already_running",
            )
        supervisor = app.supervisor(coder=coder, max_concurrent=most or 0)
        stop = _Stop()
        say(f"Supervising {app.home.path} as {app.home.host_id()}. Ctrl-C stops; agents go on.")
        forever.run(supervisor, app.store, once=once, stopping=stop, tell=_tell, warn=_warn)
        if supervisor.attempts:
            count = len(supervisor.attempts)
            say(f"Stopped. {count} still run; the next `fleet run` takes them up.")
    return 0


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
    raw: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Show what a task's newest run said (or TASK.N's)."""
    from fleet.client import connect

    client = connect(config=config)
    found = _spoken(client, name, lines, follow=follow)
    return Result("line", found, Feed(lambda said: said["line"] if raw else said["text"]))


def _spoken(
    client: Client, name: str, last: int, *, follow: bool
) -> Iterator[dict[str, str | None]]:
    """The last lines, then those that come."""
    from fleet.bootstrap import make_coder
    from fleet.operations.runs import ReadTranscript

    spoken = client.call(ReadTranscript(name))
    held = list(spoken.lines)
    while spoken.lines:
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
        held = [*held, *spoken.lines][-last:]
    listener = make_coder(spoken.coder).listen(client.app.keepers.opening(spoken.run))
    for line in held[-last:]:
        yield _line(listener, line)
    while follow and spoken.live:
        client.app.store.wait(0.2)
        spoken = client.call(ReadTranscript(spoken.run, spoken.offset))
        for line in spoken.lines:
            yield _line(listener, line)


def _line(listener: Listener, line: str) -> dict[str, str | None]:
    from fleet.domain.transcript import SaidKind

    kinds = SaidKind
    quiet_kinds = {kinds.USAGE, kinds.SESSION, kinds.TURN, kinds.REPLY}
    shown = []
    for said in listener.hear(line):
        text = " ".join(p for p in (said.name, said.text) if p)
        quiet = said.kind in quiet_kinds
        if text and not quiet:
            shown.append(text if said.kind is SaidKind.TEXT else f"[{said.kind}] {text}")
    return {"line": line, "text": "\n".join(shown) or None}
