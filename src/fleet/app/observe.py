"""What this host's agents are doing and using, as observed with or without a supervisor."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.activity import (
    Activity,
    Doing,
    SeenRun,
    by_its_process,
    by_its_screen,
    by_its_words,
    in_doubt,
    wish,
)
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.domain.transcript import SaidKind
from fleet.ports import Forks, GateSeen, InTerminal, Presence, Sight, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.app.app import App
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import FileSeen, Listener, Screen

TAIL = 64 * 1024  # bytes of the transcript: enough for what the agent did last
HEAD = 8 * 1024
FEW = 20  # up to so many agents, we look at every screen
NOTHING_YET = Activity(Doing.STARTING, "its process is running, and it has reported nothing yet")


class _ByTranscript(NamedTuple):
    """What a transcript shows: the activity, the seconds since its last line, what it asks."""

    activity: Activity | None
    silent: float
    asks: str = ""


class HostAgents:
    """The agents of this host, for operations."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def host(self) -> str:
        return self._app.home.host_id()

    @property
    def shared(self) -> bool:
        return self._app.shared

    def look(self, subjects: Iterable[Subject]) -> dict[str, Sight]:
        return observe(self._app, subjects)

    def seen(self, runs: Sequence[tuple[Task, Run]]) -> dict[str, SeenRun]:
        return _seen(self._app, runs)

    def permit(self, run_id: str, *, yes: bool, expected: str = "", always: bool = False) -> str:
        sight = _sights(self._app, [self._subject(run_id)])[run_id]
        asking = sight.doing == Doing.PERMISSION
        terminals = self._app.terminals
        asks = terminals.permit(run_id, yes=yes, expected=expected, announced=asking, always=always)
        return wish(sight.asks, asks)

    def _subject(self, run_id: str) -> Subject:
        run = self._app.store.run(run_id)
        project = self._app.store.task(run.task).project
        coder = run.choice.coder
        return Subject(run_id, coder, project, terminal=True, here=True, live=True)

    def listener(self, subject: Subject) -> Listener:
        coder = self._app.coder(subject.coder, subject.project)
        opening = self._app.keepers.opening(subject.run)
        if subject.terminal and isinstance(coder, InTerminal):
            return coder.watch(opening)
        return coder.listen(opening)

    def screen(self, run_id: str, *, history: int = 0, colours: bool = False) -> Screen:
        terminals = self._app.terminals
        screen = terminals.screen(run_id, history=history)
        return (
            screen._replace(text=terminals.coloured(run_id, history=history)) if colours else screen
        )

    def interrupt(self, run_id: str) -> None:
        self._app.terminals.press(run_id, "Escape")

    def attach_argv(self, run_id: str) -> list[str]:
        return self._app.terminals.attach_argv(run_id, {})

    def gate(self, run_id: str, *, tail: int) -> GateSeen | None:
        from fleet.supervisor.attempt.gate import gate_name

        keepers, name = self._app.keepers, gate_name(run_id)
        look = keepers.look(name)
        if look.presence is Presence.NEVER:
            return None
        folder, output = (
            keepers.folder(name),
            "\n".join(keepers.read(name, -tail, final=True).lines),
        )
        with suppress(OSError, ValueError, LookupError):
            begun = (folder / "keeper.json").stat().st_mtime
            file = folder / "exit.json"
            end = file.stat().st_mtime if file.exists() else time.time()
            ended = look.presence is not Presence.ALIVE
            launch = json.loads((folder / "launch.json").read_bytes())
            command = str(launch["argv"][-1])
            return GateSeen(command, ended, look.code, max(0.0, end - begun), output or look.stderr)
        return None

    def files(
        self, task_id: str, runs: Sequence[str], *, name: str = "", tail: int
    ) -> list[FileSeen]:
        from fleet.adapters.home.task_files import task_files

        folders = [(run, self._app.keepers.folder(run)) for run in runs]
        return task_files(self._app.home.task_dir(task_id), folders, name, tail)

    def forks(self, coder: str, project: str) -> bool:
        adapter = self._app.coder(coder, project)
        return isinstance(adapter, Forks) and adapter.forks

    def session(self, subject: Subject) -> str:
        coder = self._app.coder(subject.coder, subject.project)
        if not isinstance(coder, InTerminal) or not subject.terminal:
            return ""
        listener, session, turns = coder.watch(self._app.keepers.opening(subject.run)), "", 0
        with suppress(OSError):
            for line in self._app.keepers.read(subject.run, 0).lines:
                for item in listener.hear(line):
                    session = item.text if item.kind is SaidKind.SESSION else session
                    turns += item.kind is SaidKind.TURN
        return session if turns else ""


def observe(app: App, subjects: Iterable[Subject]) -> dict[str, Sight]:
    from fleet.adapters.processes.usage import used

    runs = list(subjects)
    sights = _sights(app, runs)
    roots = {s.run: pid for s in runs if s.live and s.here and (pid := _keeper(app, s.run))}
    usage = used(roots, app.home.path / "samples.json") if roots else {}
    return {
        run: sight._replace(cpu=usage[run].cpu, memory=usage[run].memory) if run in usage else sight
        for run, sight in sights.items()
    }


def _sights(app: App, subjects: Sequence[Subject]) -> dict[str, Sight]:
    sights = {s.run: _by_its_process(app, s) for s in subjects}
    talking = {s.run: s for s in subjects if sights[s.run] is None}
    sights |= _by_their_words(app, talking)
    return {run: sight for run, sight in sights.items() if sight is not None}


def _seen(app: App, runs: Iterable[tuple[Task, Run]]) -> dict[str, SeenRun]:
    """Return what agents in this host's terminals do, and what their screens ask."""
    host = app.home.host_id()
    subjects = [
        Subject(run.id, run.choice.coder, task.project, terminal=True, here=True, live=True)
        for task, run in runs
        if run.host == host
    ]
    sights = _sights(app, subjects)
    return {run: SeenRun(sight.doing, sight.asks, sight.always) for run, sight in sights.items()}


def _by_its_process(app: App, subject: Subject) -> Sight | None:
    """Return what the process shows of a run; None when it runs and its transcript shows more."""
    if not subject.here:
        return Sight(Doing.UNKNOWN, "it runs on another host")
    look = app.keepers.look(subject.run)
    over = by_its_process(str(look.presence), look.code)
    if over is not None:
        return Sight(str(over.doing), over.by, exit=look.code)
    if not subject.terminal:
        return Sight(Doing.WORKING, "its process is running, and its program reports no turns")
    return None


def _by_their_words(app: App, subjects: Mapping[str, Subject]) -> dict[str, Sight | None]:
    """Return what transcripts and screens show.

    All screens are read when there are few agents, else those whose transcripts leave doubt.
    """
    sights: dict[str, Sight | None] = {}
    words: dict[str, _ByTranscript] = {}
    for run, subject in subjects.items():
        try:
            words[run] = _words(app, subject)
        except (FleetError, OSError, ValueError) as error:
            sights[run] = Sight(Doing.UNKNOWN, f"its transcript cannot be read: {error}")
    doubtful = [r for r, w in words.items() if in_doubt(w.activity, silent=w.silent)]
    screens = _screens(app, list(words) if len(words) <= FEW else doubtful)
    for run, (activity, silent, wanted) in words.items():
        screen = screens.get(run)
        state, rule = (str(screen.state), screen.rule) if screen else ("", "")
        better = by_its_screen(activity, state, rule, silent=silent) if screen else None
        doing, by = better or activity or NOTHING_YET
        asks = wish(wanted, screen.asks if screen else "") if doing is Doing.PERMISSION else ""
        always = screen.always if screen and asks else ""
        shows = f"{state} ({rule})" if rule else state
        sights[run] = Sight(str(doing), by, screen=shows, asks=asks, always=always)
    return sights


def _screens(app: App, runs: list[str]) -> dict[str, Screen]:
    with suppress(FleetError, OSError):  # a failed look proves nothing
        return app.terminals.screens(runs) if runs else {}
    return {}


def _words(app: App, subject: Subject) -> _ByTranscript:
    coder = app.coder(subject.coder, subject.project)
    file = app.keepers.folder(subject.run) / "transcript"
    if not isinstance(coder, InTerminal) or not file.exists():
        return _ByTranscript(None, 0.0)
    listener = coder.watch(app.keepers.opening(subject.run))
    status = file.stat()
    start = max(0, status.st_size - TAIL)
    lines = app.keepers.read(subject.run, start).lines
    if start:  # a program may name its session only once, at the beginning
        for line in app.keepers.read(subject.run, 0, limit=HEAD).lines:
            listener.hear(line)
    heard = [item for line in (lines[1:] if start else lines) for item in listener.hear(line)]
    wants = [item for item in heard if item.kind is SaidKind.WANTS]
    asks = ": ".join(filter(None, (wants[-1].name, wants[-1].text))) if wants else ""
    activity = by_its_words((item.kind, item.text or item.name) for item in heard)
    return _ByTranscript(activity, max(0.0, time.time() - status.st_mtime), asks)


def _keeper(app: App, run: str) -> int:
    with suppress(OSError, ValueError, KeyError):
        record = json.loads((app.keepers.folder(run) / "keeper.json").read_bytes())
        return int(record["pid"])
    return 0
