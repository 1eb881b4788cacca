"""Fakes of the ports that a supervisor needs, for tests and the simulator.

A `FakeMachine` is the world outside the supervisor: its coders go on when the supervisor is gone.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fleet.domain.audit import number_of
from fleet.domain.errors import BadInput, Refused, Unavailable
from fleet.domain.hosts.piece import Piece
from fleet.domain.nodes.inventory import Warmth
from fleet.domain.run import Workspace
from fleet.domain.search import matches
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import (
    Brief,
    Chunk,
    GatewayPulse,
    GatewaySeen,
    Launch,
    Look,
    NodesSeen,
    Passage,
    Presence,
    Pulse,
    Screen,
    ScreenState,
    ServiceSeen,
    StoreLogin,
    Tip,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.domain.audit import AuditQuery, AuditRecord
    from fleet.domain.evals.result import Evaluation
    from fleet.domain.event import Event
    from fleet.domain.fleet import Fleet, Gateway, Node, Serving
    from fleet.domain.nodes.inventory import SeenNode
    from fleet.domain.nodes.trace import Trace, TraceFilter
    from fleet.domain.run import Run
    from fleet.domain.task import Spec, Task
    from fleet.domain.transcript import Exit
    from fleet.ports import Clock, SaidQuery, Site


@dataclass
class FakeProcess:
    """One coder under its keeper. `ended` is what the keeper recorded."""

    launch: Launch
    lines: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    closed: bool = False
    ended: Exit | None = None
    keeper: bool = True
    running: bool = True
    stopping: bool = False
    began: float = 0.0
    expired: bool = False  # its lease ended it


class FakeMachine:
    """Launcher and Transcripts of one host. `work` is what a coder does when it gets time."""

    def __init__(self, clock: Clock, work: Callable[[str, FakeProcess], None]) -> None:
        self.passages = MemorySaid()
        self._clock = clock
        self._work = work
        self.processes: dict[str, FakeProcess] = {}
        self.starting: dict[str, Launch] = {}  # a keeper needs a moment before it can be seen
        self.forbidden: set[str] = set()
        self.leases: dict[str, float] = {}

    def tick(self) -> None:
        """Every coder gets some time; one whose lease has run out is ended by its keeper."""
        for run_id, launch in self.starting.items():
            if run_id not in self.forbidden:
                self.processes[run_id] = FakeProcess(launch, began=self._clock.since_boot())
        self.starting.clear()
        for run_id, process in list(self.processes.items()):
            if run_id in self.leases and self._clock.since_boot() >= self.leases[run_id]:
                process.expired = process.expired or process.running
                self._finish(process, -9)
            elif process.running:
                self._work(run_id, process)

    def finish(self, run_id: str, code: int) -> None:
        self._finish(self.processes[run_id], code)

    def _finish(self, process: FakeProcess, code: int) -> None:
        from fleet.domain.transcript import Exit  # noqa: PLC0415  # a name for types above

        process.running = False
        if process.keeper and process.ended is None:
            process.ended = Exit(code)

    def kill_keeper(self, run_id: str) -> None:
        """The coder lives on, with nobody to record how it ends."""
        self.processes[run_id].keeper = False

    def running(self) -> list[str]:
        return [run_id for run_id, p in self.processes.items() if p.running]

    def launch(self, run_id: str, launch: Launch) -> None:
        if run_id not in self.forbidden and run_id not in self.processes:
            self.starting.setdefault(run_id, launch)

    def is_used(self, run_id: str) -> bool:
        return run_id in self.processes or run_id in self.forbidden

    def look(self, run_id: str) -> Look:
        process = self.processes.get(run_id)
        if process is None:
            return Look(Presence.GONE if run_id in self.forbidden else Presence.NEVER)
        if process.ended is not None:
            ended = process.ended
            return Look(Presence.EXITED, ended.code, ended.stderr, expired=process.expired)
        return Look(Presence.ALIVE, began=process.began) if process.keeper else Look(Presence.GONE)

    def tell(self, run_id: str, text: str, *, key: str) -> None:
        self._piped(run_id).told.setdefault(key, text)

    def delivered(self, run_id: str) -> list[str]:
        process = self.processes.get(run_id)
        return list(process.told) if process else []

    def close(self, run_id: str) -> None:
        self._piped(run_id).closed = True

    def first(self, run_id: str) -> str:
        process = self.processes.get(run_id)
        return (process.launch.stdin or "") if process else ""

    def opening(self, run_id: str) -> str:
        process = self.processes.get(run_id)
        return process.launch.opening if process else ""

    def stop(self, run_id: str, *, grace: float) -> None:
        del grace  # nobody here is slow to end
        process = self._started(run_id)
        process.stopping = True
        if process.keeper and process.running:
            self._finish(process, -15)

    def _started(self, run_id: str) -> FakeProcess:
        if run_id not in self.processes:
            raise Unavailable(f"{run_id} was never started on this machine.")
        return self.processes[run_id]

    def _piped(self, run_id: str) -> FakeProcess:
        process = self._started(run_id)
        if process.launch.terminal:
            raise Unavailable(f"{run_id} runs in a terminal, and takes its input there.")
        return process

    def end(self, run_id: str) -> bool:
        process = self.processes.get(run_id)
        if process is None:
            self.forbidden.add(run_id)
            return True
        if process.keeper and process.running:
            self.stop(run_id, grace=0)
            return False
        process.running = False
        return True

    def renew(self, run_ids: Sequence[str], *, until: float) -> None:
        self.leases.update(dict.fromkeys(run_ids, until))

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        del limit, final
        process = self.processes.get(run_id)
        lines = tuple(process.lines[max(0, offset) :]) if process else ()
        return Chunk(lines, max(0, offset) + len(lines))

    def count(self, run_id: str, *, final: bool = False) -> int:
        del final
        process = self.processes.get(run_id)
        return len(process.lines) if process else 0

    def lines(
        self, run_id: str, first: int, count: int, *, last: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        del last
        process = self.processes.get(run_id)
        return first, tuple(process.lines[first : first + count]) if process else ()

    def stderr(self, run_id: str, *, tail: int = 4096) -> str:
        del run_id, tail
        return ""


class FakeTerminal:
    """The screens of a `FakeMachine`'s coders. `typed` is what was typed, in order, by run."""

    def __init__(self, machine: FakeMachine) -> None:
        self._machine = machine
        self.screens: dict[str, Screen] = {}  # what they show; nothing: ready for a prompt
        self.typed: dict[str, list[str]] = {}

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        del history
        process = self._machine.processes.get(run_id)
        if process is None or not process.launch.terminal:
            raise Unavailable(f"{run_id} has no terminal.")
        screen = self.screens.get(run_id, Screen("> ", state=ScreenState.READY, rule="fake.box"))
        ended = process.ended
        return screen._replace(alive=process.running, status=ended.code if ended else None)

    def is_ready(self, run_id: str) -> bool:
        with suppress(Unavailable):
            screen = self.screen(run_id)
            return screen.alive and screen.state is ScreenState.READY
        return False

    def paste(self, run_id: str, text: str) -> None:
        screen = self.screen(run_id)
        if not text.strip() or "\0" in text:
            raise BadInput("That cannot be typed.")
        if not screen.alive:
            raise Refused(f"The program of {run_id} has ended.", code="exited")
        if screen.state is ScreenState.WANTS:
            raise Refused(f"{run_id} asks for permission.", code="wants_permission")
        self.typed.setdefault(run_id, []).append(text)

    def press(self, run_id: str, key: str) -> None:
        if key not in {"Enter", "Escape", "C-c", "C-u", "C-g"}:
            raise BadInput(f"'{key}' is not a key.")
        if not self.screen(run_id).alive:
            raise Refused(f"The program of {run_id} has ended.", code="exited")
        self.typed.setdefault(run_id, []).append(key)


class FakeCheckout:
    """Workspaces that are only names. `broken` tasks cannot have one."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.broken: set[str] = set()
        self.commits: set[str] = set()  # that came from other hosts

    def plan(self, site: Site) -> Workspace:
        if site.task.spec.in_place:
            return Workspace(site.task.spec.cwd or site.task.project)
        if site.previous is not None:
            return site.previous
        branch = f"fleet/{site.task.id}"
        if f"/worktrees/{branch}" in self.made:
            branch += f"-a{site.run.number}"
        path = str(PurePosixPath("/worktrees") / branch)
        return Workspace(path, path, branch, site.start or "base", made=True)

    def prepare(self, workspace: Workspace, site: Site) -> None:
        if site.task.id in self.broken:
            raise Refused(f"{site.task.id} cannot have a workspace.")
        if workspace.made:
            self.made.add(workspace.path)

    def interrupt(self, workspace: Workspace, site: Site) -> None:
        """It runs no commands."""

    def discard(self, workspace: Workspace, *, task: str, project: str) -> None:
        del task, project
        self.made.discard(workspace.path)

    def commit(self, workspace: Workspace) -> str:
        return f"tip of {workspace.branch}"

    def finish(self, workspace: Workspace, site: Site, *, gather: bool) -> Tip:
        del site, gather
        return Tip(self.commit(workspace))

    def pack(self, workspace: Workspace, commit: str) -> Sequence[Piece]:
        del workspace
        return (Piece(commit, 0, ""),) if commit else ()

    def missing(self, task: Task, commits: Sequence[str]) -> list[str]:
        del task
        return [commit for commit in commits if commit not in self.commits]

    def bring(self, task: Task, pieces: Sequence[Piece], wanted: Sequence[str]) -> list[str]:
        self.commits.update(piece.id for piece in pieces)
        return self.missing(task, wanted)


class FakeCoder:
    """Says `kind text` lines."""

    name = "fake"
    resumes = True
    stalls = True
    costs = True
    window = 128_000

    def launch(self, brief: Brief) -> Launch:
        return Launch(("fake", brief.prompt), brief.cwd, dict(brief.env), stdin=brief.prompt)

    def listen(self, opening: str) -> FakeCoder:
        del opening
        return self

    def hear(self, line: str) -> Sequence[Said]:
        kind, _, text = line.partition(" ")
        if kind not in set(SaidKind):
            return (Said(SaidKind.TEXT, line),) if line.strip() else ()
        item = Said(SaidKind(kind), text)
        return (replace(item, failed=True),) if text == "failed" else (item,)

    def words(self, text: str) -> str | None:
        return text


class FakeNodes:
    """All are up, but those that are named as down."""

    def __init__(self) -> None:
        self.down: dict[str, str] = {}
        self.shut: dict[str, str] = {}  # what the relay has shut off
        self.age = 3600.0  # seconds since the gateway was started
        self.traces: list[Trace] = []

    def pulse(self, node: Node) -> Pulse:
        why = self.down.get(node.name, "")
        return Pulse(not why, why)

    def gateway(self, gateway: Gateway) -> GatewayPulse:
        why = self.down.get("gateway", "")
        return GatewayPulse(not why, why, self.age if gateway else None, self.shut)

    def last_request(self, gateway: Gateway, run_id: str, agent: str, since: int) -> Trace | None:
        del gateway
        traces = [t for t in self.traces if t.source.run in {run_id, ""} and t.ended_at >= since]
        return traces[-1] if traces and agent else None


class NoFiles:
    """A task's folder that keeps nothing."""

    trouble = ""

    def is_there(self, task_id: str) -> bool:
        return bool(task_id)

    def refresh(self, task_id: str) -> None: ...

    def begin(self, task: Task, run: Run) -> None: ...

    def add_to_transcript(self, run: Run, heard: Sequence[tuple[int, Said]]) -> None: ...

    def note(self, event: Event) -> None: ...

    def ended(self, run: Run) -> None: ...

    def edited(self, task: Task) -> Spec:
        return task.spec


class DoneJob:
    """Was done when it was begun; what it raised is raised when it is asked for."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._error: Exception | None = None
        try:
            act()
        except Exception as error:  # noqa: BLE001  # kept for whoever asks
            self._error = error

    def done(self) -> bool:
        return True

    def result(self) -> None:
        if self._error is not None:
            raise self._error


class InlineJobs:
    def begin(self, act: Callable[[], None]) -> DoneJob:
        return DoneJob(act)


class MemoryTrail:
    """An audit trail in memory; `full`: the disk is."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []
        self.full = False

    def add(self, record: AuditRecord) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "the disk is full")
        self.records.append(replace(record, id=f"a-{len(self.records) + 1}"))

    def read(self, query: AuditQuery) -> list[AuditRecord]:
        first = number_of(query.after) if query.after else 0
        end = number_of(query.before) - 1 if query.before else len(self.records)
        some = self.records[first:end]
        wanted = [record for record in (some if query.after else some[::-1]) if query.wants(record)]
        return wanted[: query.limit]


class MemorySaid:
    """What agents said: what is `indexed`, oldest first; and what is not yet, by task."""

    def __init__(self) -> None:
        self.indexed: list[Passage] = []
        self.unindexed: dict[str, Passage] = {}

    def find(self, query: SaidQuery) -> list[Passage]:
        texts = {
            passage: "\n".join(line.text for line in passage.lines) for passage in self.indexed
        }
        hits = [p for p, text in reversed(texts.items()) if matches(text, query.words)]
        return [p for p in hits if query.task in {"", p.task}][: query.limit]

    def newest(self, task_id: str) -> Passage:
        return self.unindexed.get(task_id, Passage(task_id, ()))


class FakeLogins:
    """Of a store that machines share. `made`: the roles, `dropped`: those that are gone."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.dropped: list[str] = []

    def check(self) -> None:
        pass

    def make(self, role: str, address: str) -> StoreLogin:
        self.made.append(role)
        url = f"postgresql://{role}:{len(self.made)}@{address or 'db'}/fleet"
        return StoreLogin(url, "", own=True)

    def drop(self, role: str) -> None:
        self.dropped.append(role)


class FakeMachines:
    """Nodes that are as a test says. `begun`: what was asked to be loaded."""

    def __init__(self, fleet: Fleet, seen: Sequence[SeenNode] = ()) -> None:
        self.fleet, self.seen = fleet, tuple(seen)
        self.relay: Mapping[str, Any] | None = None
        self.begun: list[tuple[str, Serving]] = []
        self.written: list[Trace] = []
        self.log: list[str] = []
        self.kept: list[Evaluation] = []

    def look(self) -> NodesSeen:
        return NodesSeen(1, self.seen, self.relay)

    def warm(self, wanted: Sequence[tuple[str, Serving]]) -> None:
        self.begun += wanted

    def warming(self) -> tuple[Warmth, ...]:
        return tuple(
            Warmth(model, serving.node.name, serving.upstream, serving.context, "loading")
            for model, serving in self.begun
        )

    def traces(self, wanted: TraceFilter, *, after: int, limit: int) -> list[Trace]:
        return [t for t in self.written if wanted.takes(t) and t.ended_at > after][-limit:]

    def gateway(self) -> GatewaySeen:
        service = ServiceSeen("gateway", running=True, answers=True, port=4000, since=1)
        return GatewaySeen("http://127.0.0.1:4000", "1.0", (service,), stale=False)

    def gateway_log(self, *, limit: int) -> list[str]:
        return self.log[-limit:]

    def evals(self, *, limit: int) -> list[Evaluation]:
        return self.kept[:limit]

    def evaluation(self, evaluation_id: str) -> Evaluation | None:
        return next((each for each in self.kept if each.id == evaluation_id), None)
