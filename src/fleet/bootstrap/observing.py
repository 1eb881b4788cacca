"""What agents on this host are doing and using, seen from outside, with or without a supervisor."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from fleet.domain.activity import Activity, Doing, by_its_process, by_its_words
from fleet.domain.errors import FleetError
from fleet.ports import InTerminal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.bootstrap import App
    from fleet.domain.transcript import SaidKind

TAIL = 64 * 1024  # bytes of what its hooks wrote: enough for what it did last


class Subject(NamedTuple):
    """A run to look at."""

    run: str
    coder: str
    project: str
    terminal: bool
    here: bool
    live: bool


class Sight(NamedTuple):
    """`cpu` is in percent of one core, `memory` in bytes: of its whole process tree."""

    doing: str
    by: str
    cpu: float | None = None
    memory: int | None = None


def observe(app: App, subjects: Iterable[Subject]) -> dict[str, Sight]:
    from fleet.adapters.host.trees import used

    known = list(subjects)
    doing = {s.run: _activity(app, s) for s in known}
    roots = {s.run: pid for s in known if s.live and s.here and (pid := _keeper(app, s.run))}
    using = used(roots, app.home.path / "samples.json") if roots else {}
    found = {}
    for run, activity in doing.items():
        spent = using.get(run)
        found[run] = Sight(
            str(activity.doing),
            activity.by,
            spent.cpu if spent else None,
            spent.memory if spent else None,
        )
    return found


def _activity(app: App, subject: Subject) -> Activity:
    if not subject.here:
        return Activity(Doing.UNKNOWN, "it runs on another host")
    look = app.keepers.look(subject.run)
    over = by_its_process(str(look.presence), look.code)
    if over is not None:
        return over
    if not subject.terminal:
        return Activity(Doing.WORKING, "its process is there, and it has no turns of its own")
    try:
        said = by_its_words(_last_words(app, subject))
    except (FleetError, OSError, ValueError) as error:
        return Activity(Doing.UNKNOWN, f"what it said cannot be read: {error}")
    return said or Activity(Doing.STARTING, "its process is there, and it has said nothing yet")


def _last_words(app: App, subject: Subject) -> list[tuple[SaidKind, str]]:
    coder = app.coder(subject.coder, subject.project)
    if not isinstance(coder, InTerminal):
        return []
    listener = coder.watch(app.keepers.opening(subject.run))
    file = app.keepers.folder(subject.run) / "transcript"
    size = file.stat().st_size if file.exists() else 0
    start = max(0, size - TAIL)
    lines = app.keepers.read(subject.run, start).lines
    heard = []
    for line in lines[1:] if start else lines:
        heard += [(said.kind, said.text or said.name) for said in listener.hear(line)]
    return heard


def _keeper(app: App, run: str) -> int:
    with suppress(OSError, ValueError, KeyError):
        held = json.loads((app.keepers.folder(run) / "keeper.json").read_bytes())
        return int(held["pid"])
    return 0
