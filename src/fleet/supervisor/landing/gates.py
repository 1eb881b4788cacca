"""Gates on candidates: each tests one tree under a keeper, and its result is kept by the tree."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict, FleetError, Refused
from fleet.domain.landing.landing import GateResult, gate_name, result_id
from fleet.domain.landing.report import read_junit, read_tap
from fleet.ports import Launch, Presence, Put
from fleet.ports.landing import JUNIT
from fleet.supervisor.attempt.gate import MAX_OUTPUT_CHARACTERS

if TYPE_CHECKING:
    from fleet.ports import GateWorktrees, Job
    from fleet.supervisor.landing.parts import LandingParts
    from fleet.supervisor.parts import Parts

SETUP_FAILED = "setup_failed"
MOST_LOST = 5  # gates of one tree that vanish or are killed, before that counts as a failure
MOST_TAP = 4_000_000  # bytes of output in which a report is looked for
MOST_NAMES = 200_000  # characters: beyond that, the exit status alone counts


def known_result(parts: Parts, tree: str, gate: str, project: str) -> GateResult:
    """What this gate has said of the tree, in a worktree set up as the project wants it."""
    workspace = parts.world(project).settings.workspace
    setup = () if workspace.quick else workspace.setup
    name = result_id(tree, gate, setup, parts.gate_environment(project))
    known = parts.store.gate_results([name])
    return known.get(name) or GateResult(name, 0, command=gate)


class CandidateGate:
    """One gate for one tree. Its name follows from the tree, so the next supervisor finds it."""

    def __init__(
        self,
        parts: Parts,
        more: LandingParts,
        project: str,
        result: GateResult,
        command: str,
        *,
        report: bool = False,
    ) -> None:
        self._report = report
        self._parts = parts
        self._more = more
        self._project = project
        self._command = command
        self.name = gate_name(result.id, result.ended + 1)
        self.result = result
        self._house: GateWorktrees = more.gate_worktrees(project)
        self._job: Job | None = None
        self._order: Launch | None = None
        self._stopped = False
        self._late = False
        self._began: float | None = None

    def step(self, commit: str, limit: float) -> GateResult | None:
        """The new result once the gate has ended; None while it runs. Says the same until `leave`."""
        look = self._parts.launcher.look(self.name)
        match look.presence:
            case Presence.NEVER:
                return self._begin(commit)
            case Presence.ALIVE:
                self._stop_if_late(look.began, limit)
            case Presence.EXITED if self._was_killed(look.code):
                by = f" by signal {-look.code}" if look.code else ""
                return self._lost(f"It was killed{by}")
            case Presence.EXITED if self._has_lost_report():
                return self._lost("Its worktree was freed before its report was read")
            case Presence.EXITED:
                return self._ended(look.code, limit=limit)
            case Presence.GONE if self._parts.launcher.end(self.name):
                return self._lost("Its keeper vanished")
        return None

    def _was_killed(self, code: int | None) -> bool:
        """Whether it was killed, such as by us when nothing waited for it: that says nothing."""
        return (code is None or code < 0) and not self._late

    def _has_lost_report(self) -> bool:
        """Whether its worktree was freed before we read the report in it, such as by a clean-up."""
        return self._report and self.name not in self._house.busy()

    def _lost(self, why: str) -> GateResult:
        """Nobody knows what it would have said. One that uses up all memory is lost each time: it fails."""
        if self.result.lost < MOST_LOST:
            return replace(self.result, lost=self.result.lost + 1)
        output = f"{self._output()}\n{why}, {MOST_LOST + 1} times."
        return self._counted(passed=False, output=output.strip())

    def _begin(self, commit: str) -> GateResult | None:
        if self._job is None:
            self._job = self._parts.jobs.begin(partial(self._launch, commit))
            return None
        if not self._job.done():
            return None
        job, self._job = self._job, None
        try:
            job.result()
        except Refused as error:
            if error.code != SETUP_FAILED:
                raise
            return self._counted(passed=False, output=f"{error.message}\n{error.fix}")
        return None

    def _launch(self, commit: str) -> None:
        """Until its keeper has begun. The worktree is prepared once: then the gate may be at work there."""
        if self._order is None:
            self._order = self._prepare(commit)
        self._parts.launcher.launch(self.name, self._order)

    def _prepare(self, commit: str) -> Launch:
        path = self._house.prepare(self.name, commit)
        argv = ("sh", "-c", 'exec 2>&1; eval "$1"', "sh", self._command)
        env = {
            **self._more.gate_env(self._project),
            "FLEET_WORKSPACE": (root := self._house.busy().get(self.name, str(path))),
            "FLEET_JUNIT_XML": f"{root}/{JUNIT}",
        }
        return Launch(argv, str(path), env)

    def _stop_if_late(self, began: float | None, limit: float) -> None:
        now = self._parts.clock.since_boot()
        if self._began is None:
            self._began = now if began is None else began
        self._late = self._late or now - self._began > limit
        if self._late:
            self.stop()

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._parts.launcher.stop(self.name, grace=1.0)

    def leave(self) -> None:
        """Its result is written down: another gate may have its worktree, with the report in it."""
        self._house.leave(self.name)

    def drop(self) -> bool:
        """End a gate that nothing waits for; True when nothing of it runs any more."""
        if self._job is not None and not self._job.done():
            return False
        if not self._parts.launcher.end(self.name):
            return False
        self.leave()
        return True

    def _ended(self, code: int | None, *, limit: float) -> GateResult:
        passed = code == 0 and not self._late
        tests = self._tests() if self._report else {}
        late = f"It took more than {limit:g} s." if self._late else ""
        output = f"{self._output()}\n{late}".strip()
        counted = self._counted(passed=passed, output=output)
        return replace(counted, late=self._late, tests=tests or counted.tests)

    def _tests(self) -> dict[str, str]:
        """What each test said, as JUnit XML or TAP; nothing where there is no such report."""
        tests = read_junit(self._house.report(self.name))
        if not tests:
            chunk = self._parts.transcripts.read(self.name, 0, limit=MOST_TAP, final=True)
            tests = read_tap("\n".join(chunk.lines))
        return tests if sum(map(len, tests)) <= MOST_NAMES else {}

    def _counted(self, *, passed: bool, output: str) -> GateResult:
        began = self._began
        took = self._parts.clock.since_boot() - began if began is not None else 0.0
        return replace(
            self.result,
            at=self._parts.store.now(),
            passed=self.result.passed + passed,
            failed=self.result.failed + (not passed),
            seconds=round(took, 3),
            command=self._command,
            output=self.result.output if passed else output[-MAX_OUTPUT_CHARACTERS:],
            reported=self._report or self.result.knows_tests,
        )

    def _output(self) -> str:
        offset, tail = 0, ""
        while True:
            chunk = self._parts.transcripts.read(self.name, offset, final=True)
            if chunk.offset == offset:
                return tail.strip()
            offset = chunk.offset
            tail = (tail + "\n".join(chunk.lines) + "\n")[-MAX_OUTPUT_CHARACTERS:]


class Gates:
    """The gates that run for one train."""

    def __init__(self, parts: Parts, more: LandingParts) -> None:
        self._parts = parts
        self._more = more
        self.running: dict[str, tuple[CandidateGate, str]] = {}  # by result id; with the commit
        self._dropped: list[CandidateGate] = []

    def start(
        self, project: str, result: GateResult, command: str, commit: str, *, report: bool = False
    ) -> None:
        gate = CandidateGate(self._parts, self._more, project, result, command, report=report)
        self.running[result.id] = (gate, commit)

    def step(self, limit: float) -> list[GateResult]:
        """Those that ended, written down."""
        self._dropped = [gate for gate in self._dropped if not gate.drop()]
        ended = []
        for name, (gate, commit) in list(self.running.items()):
            try:
                result = gate.step(commit, limit)
            except (FleetError, OSError):
                del self.running[name]  # it is started again, but not at once
                raise
            if result is not None:
                with suppress(Conflict):  # another train, or a race, tested the same files with it
                    self._parts.store.commit([Put(result)], [])
                    ended.append(result)
                del self.running[name]
                gate.leave()
        return ended

    def keep(self, wanted: set[str]) -> None:
        """Drop the gates of other trees: nothing waits for them any more."""
        for name in [r for r in self.running if r not in wanted]:
            gate, _ = self.running.pop(name)
            if not self._try_drop(gate):
                self._dropped.append(gate)

    def _try_drop(self, gate: CandidateGate) -> bool:
        try:
            return gate.drop()
        except (FleetError, OSError):
            return False

    @property
    def names(self) -> set[str]:
        return {gate.name for gate in [*(g for g, _ in self.running.values()), *self._dropped]}

    @property
    def count(self) -> int:
        return len(self.running) + len(self._dropped)
