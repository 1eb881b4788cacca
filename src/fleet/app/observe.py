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

TAIL = 64 * 1024  # bytes of the transcript: enough for what the agent did last
HEAD = 8 * 1024
FEW = 20  # up to so many agents, we look at every screen
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
    """The activity by the transcript, and the seconds since its last line."""

    activity: Activity | None
    silent: float


def observe(app: App, subjects: Iterable[Subject]) -> dict[str, Sight]:
    from fleet.adapters.processes.usage import used

    known = list(subjects)
    sights = {s.run: _by_its_process(app, s) for s in known}
    talking = {s.run: s for s in known if sights[s.run] is None}
    sights |= _by_their_words(app, talking)
    roots = {s.run: pid for s in known if s.live and s.here and (pid := _keeper(app, s.run))}
    usage = used(roots, app.home.path / "samples.json") if roots else {}
    return {
        run: sight._replace(cpu=usage[run].cpu, memory=usage[run].memory) if run in usage else sight
        for run, sight in sights.items()
        if sight is not None
    }


def _by_its_process(app: App, subject: Subject) -> Sight | None:
    """None when its process is there and its transcript tells more."""
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
    """By transcript and screen: all screens when agents are few, else where there is doubt."""
    sights: dict[str, Sight | None] = {}
    words: dict[str, _Words] = {}
    for run, subject in subjects.items():
        try:
            words[run] = _words(app, subject)
        except (FleetError, OSError, ValueError) as error:
            sights[run] = Sight(Doing.UNKNOWN, f"what it said cannot be read: {error}")
    doubtful = [r for r, w in words.items() if in_doubt(w.activity, silent=w.silent)]
    screens = _screens(app, list(words) if len(words) <= FEW else doubtful)
    for run, (activity, silent) in words.items():
        screen = screens.get(run)
        state, rule = (str(screen.state), screen.rule) if screen else ("", "")
        better = by_its_screen(activity, state, rule, silent=silent) if screen else None
        doing, by = better or activity or NOTHING_YET
        sights[run] = Sight(str(doing), by, screen=f"{state} ({rule})" if rule else state)
    return sights


def _screens(app: App, runs: list[str]) -> dict[str, Screen]:
    with suppress(FleetError, OSError):  # a failed look proves nothing
        return app.terminals.screens(runs) if runs else {}
    return {}


def _words(app: App, subject: Subject) -> _Words:
    coder = app.coder(subject.coder, subject.project)
    file = app.keepers.folder(subject.run) / "transcript"
    if not isinstance(coder, InTerminal) or not file.exists():
        return _Words(None, 0.0)
    listener = coder.watch(app.keepers.opening(subject.run))
    status = file.stat()
    start = max(0, status.st_size - TAIL)
    lines = app.keepers.read(subject.run, start).lines
    if start:  # a program may name its session only once, at the beginning
        for line in app.keepers.read(subject.run, 0, limit=HEAD).lines:
            listener.hear(line)
    heard = []
    for line in lines[1:] if start else lines:
        heard += [(item.kind, item.text or item.name) for item in listener.hear(line)]
    return _Words(by_its_words(heard), max(0.0, time.time() - status.st_mtime))


def _keeper(app: App, run: str) -> int:
    with suppress(OSError, ValueError, KeyError):
        record = json.loads((app.keepers.folder(run) / "keeper.json").read_bytes())
        return int(record["pid"])
    return 0
