"""What agents on this host are doing and using, seen from outside, with or without a supervisor."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.activity import (
    Activity,
    Doing,
    by_its_process,
    by_its_screen,
    by_its_words,
    in_doubt,
)
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.ports import InTerminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.app import App
    from fleet.ports import Screen

TAIL = 64 * 1024  # bytes of what its hooks wrote: enough for what it did last
HEAD = 8 * 1024
FEW = 20  # agents, whose screens are all looked at
NOTHING_YET = Activity(Doing.STARTING, "its process is there, and it has said nothing yet")


class Subject(NamedTuple):
    """A run to look at."""

    run: str
    coder: str
    project: str
    terminal: bool
    here: bool
    live: bool


class Sight(NamedTuple):
    """`cpu` is in percent of one core, `memory` in bytes: of its whole process tree.

    `exit` is the status that its program ended with, `screen` what a rule reads from its screen.
    """

    doing: str
    by: str
    cpu: float | None = None
    memory: int | None = None
    exit: int | None = None
    screen: str = ""


class _Words(NamedTuple):
    """What it comes to that it said, and how many seconds ago the last of it was."""

    activity: Activity | None
    silent: float


def observe(app: App, subjects: Iterable[Subject]) -> dict[str, Sight]:
    from fleet.adapters.processes.usage import used

    known = list(subjects)
    sights = {s.run: _by_its_process(app, s) for s in known}
    talking = {s.run: s for s in known if sights[s.run] is None}
    sights |= _by_their_words(app, talking)
    roots = {s.run: pid for s in known if s.live and s.here and (pid := _keeper(app, s.run))}
    using = used(roots, app.home.path / "samples.json") if roots else {}
    return {
        run: sight._replace(cpu=using[run].cpu, memory=using[run].memory) if run in using else sight
        for run, sight in sights.items()
        if sight is not None
    }


def _by_its_process(app: App, subject: Subject) -> Sight | None:
    """None when that is there, and it has words of its own."""
    if not subject.here:
        return Sight(Doing.UNKNOWN, "it runs on another host")
    look = app.keepers.look(subject.run)
    over = by_its_process(str(look.presence), look.code)
    if over is not None:
        return Sight(str(over.doing), over.by, exit=look.code)
    if not subject.terminal:
        return Sight(Doing.WORKING, "its process is there, and it has no turns of its own")
    return None


def _by_their_words(app: App, subjects: Mapping[str, Subject]) -> dict[str, Sight | None]:
    """And by their screens: of all of them when they are few, else where their words leave doubt."""
    found: dict[str, Sight | None] = {}
    words: dict[str, _Words] = {}
    for run, subject in subjects.items():
        try:
            words[run] = _words(app, subject)
        except (FleetError, OSError, ValueError) as error:
            found[run] = Sight(Doing.UNKNOWN, f"what it said cannot be read: {error}")
    doubtful = [r for r, w in words.items() if in_doubt(w.activity, silent=w.silent)]
    screens = _screens(app, list(words) if len(words) <= FEW else doubtful)
    for run, (said, silent) in words.items():
        screen = screens.get(run)
        state, rule = (str(screen.state), screen.rule) if screen else ("", "")
        better = by_its_screen(said, state, rule, silent=silent) if screen else None
        doing, by = better or said or NOTHING_YET
        found[run] = Sight(str(doing), by, screen=f"{state} ({rule})" if rule else state)
    return found


def _screens(app: App, runs: list[str]) -> dict[str, Screen]:
    with suppress(FleetError, OSError):  # a failed look asserts nothing
        return app.terminals.screens(runs) if runs else {}
    return {}


def _words(app: App, subject: Subject) -> _Words:
    coder = app.coder(subject.coder, subject.project)
    file = app.keepers.folder(subject.run) / "transcript"
    if not isinstance(coder, InTerminal) or not file.exists():
        return _Words(None, 0.0)
    listener = coder.watch(app.keepers.opening(subject.run))
    held = file.stat()
    start = max(0, held.st_size - TAIL)
    lines = app.keepers.read(subject.run, start).lines
    if start:  # which conversation it is, a program may tell only once
        for line in app.keepers.read(subject.run, 0, limit=HEAD).lines:
            listener.hear(line)
    heard = []
    for line in lines[1:] if start else lines:
        heard += [(said.kind, said.text or said.name) for said in listener.hear(line)]
    return _Words(by_its_words(heard), max(0.0, time.time() - held.st_mtime))


def _keeper(app: App, run: str) -> int:
    with suppress(OSError, ValueError, KeyError):
        held = json.loads((app.keepers.folder(run) / "keeper.json").read_bytes())
        return int(held["pid"])
    return 0
