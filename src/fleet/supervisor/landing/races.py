"""Races: test the solutions of the same work side by side, and pick the best.

Everything that is known is in the store: the race, and what each test said of each tree. So the next
supervisor goes on wherever one ended, and tests nothing twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.causes import PLAIN
from fleet.domain.data import NamedTuple
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Conflict, FleetError, Refused
from fleet.domain.event import Event, Kind
from fleet.domain.landing.changes import read_changes
from fleet.domain.landing.landing import with_report
from fleet.domain.landing.race import (
    FIRST_WAVE,
    MOST_JUDGED,
    Contender,
    Proof,
    RaceState,
    RaceVerdict,
    crossed,
    disqualified,
    judge,
    judge_prompt,
    needs_cross,
    needs_more,
    proof_of,
    read_choice,
    results,
    with_reports,
)
from fleet.domain.task import ENDED, Limits, Spec, Task, TaskState
from fleet.operations.landing.race import home_of, picked, read_race, waits, with_race
from fleet.operations.tasks.commit import children
from fleet.ports import EntryQuery, MemberWork, Put
from fleet.supervisor.landing.gates import Gates, known_result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.domain.entry import Entry
    from fleet.domain.landing.changes import Changes
    from fleet.domain.landing.landing import GateResult
    from fleet.domain.landing.race import Race
    from fleet.domain.run import Workspace
    from fleet.ports import Branches, Built, Change, Job, Target
    from fleet.supervisor.landing.parts import LandingParts
    from fleet.supervisor.parts import Parts, ThisSupervisor

LOOK_SECONDS = 0.3  # between two looks at the races
WAIT_SECONDS = 2.0  # before the next try when something outside was in the way
MOST_RACES = 100  # that are decided at once
MOST_SEARCHED = 4_000_000  # characters of a contender's diff in which secrets are looked for
JUDGE_LABEL = "judge"


class Races:
    """All races of this host."""

    def __init__(self, parts: Parts, here: ThisSupervisor, more: LandingParts) -> None:
        self._parts = parts
        self._here = here
        self._more = more
        self._runners: dict[str, RaceRunner] = {}
        self._looked_at = -LOOK_SECONDS
        self.trouble: dict[str, str] = {}  # by batch: what is in its way
        self.went_on = False  # in the last step

    def step(self) -> None:
        self.went_on = False
        now = self._parts.clock.since_boot()
        if now - self._looked_at < LOOK_SECONDS and not any(r.busy for r in self._runners.values()):
            return
        self._looked_at = now
        store = self._parts.store
        query = EntryQuery(EntryKind.RACE, counting_at=store.now(), limit=MOST_RACES)
        entries = {entry.id: entry for entry in store.entries(query)}
        for entry in entries.values():
            if entry.id not in self._runners:
                self._runners[entry.id] = RaceRunner(self._parts, self._here, self._more)
            self._run(self._runners[entry.id], entry)
        for gone in [i for i in self._runners if i not in entries]:
            if self._runners[gone].end():
                del self._runners[gone]
        self.trouble = {e.key: t for i, e in entries.items() if (t := self._runners[i].trouble)}

    def _run(self, runner: RaceRunner, entry: Entry) -> None:
        runner.went_on = False
        try:
            runner.step(entry)
        except Conflict:
            pass  # another process changed it: the next step reads it again
        except (FleetError, OSError) as error:
            runner.wait(str(error))
        self.went_on |= runner.went_on

    @property
    def gates(self) -> int:
        return sum(runner.gates.count for runner in self._runners.values())

    @property
    def names(self) -> set[str]:
        """The gates that run."""
        return {name for runner in self._runners.values() for name in runner.gates.names}

    @property
    def projects(self) -> set[str]:
        """Of the races whose gates are known: those of an earlier supervisor are among them."""
        return {runner.project for runner in self._runners.values() if runner.knows_gates}

    @property
    def idle(self) -> bool:
        """Whether no race could go on without an agent or a person. Looks at once."""
        self._looked_at = -LOOK_SECONDS
        self.step()
        return not any(runner.busy for runner in self._runners.values())


class ContenderFacts(NamedTuple):
    """What git says of one contender's work."""

    tip: str
    tree: str
    base: str
    base_tree: str
    merged: Built  # onto the target
    changes: Changes


class RaceRunner:
    def __init__(self, parts: Parts, here: ThisSupervisor, more: LandingParts) -> None:
        self._parts = parts
        self._here = here
        self._more = more
        self.gates = Gates(parts, more)
        self.project = ""
        self.knows_gates = False
        self.trouble = ""
        self.busy = False  # there is something to do that needs no agent and no person
        self.went_on = False
        self._not_before = 0.0
        self._job: Job | None = None
        self._then: Callable[[], None] = lambda: None
        self._target: Target | None = None
        self._facts: dict[tuple[str, str], ContenderFacts] = {}  # by task and tip
        self._overlays: dict[tuple[str, str], Built] = {}  # by whose tests, on whose work

    def wait(self, why: str) -> None:
        self.trouble = why
        self.busy = False
        self._target = None
        self._not_before = self._parts.clock.since_boot() + WAIT_SECONDS

    def end(self) -> bool:
        """Whether nothing of it runs any more; the race is decided."""
        self.gates.keep(set())
        with suppress(FleetError, OSError):
            self.gates.step(0.0)
        return self.gates.count == 0

    def step(self, entry: Entry) -> None:
        settings = self._parts.world("").settings
        self.gates.step(settings.run.gate_limit)
        if self._job is not None:
            if not self._job.done():
                return
            self.went_on = True
            job, self._job = self._job, None
            job.result()
            self._then()
        if self._parts.clock.since_boot() < self._not_before or not self._is_ours(read_race(entry)):
            return
        self.trouble = ""
        self._advance(self._adopted(entry))

    def _is_ours(self, race: Race) -> bool:
        if race.host in {"", self._here.host}:
            return True
        host = self._parts.store.hosts().get(race.host)
        return host is None or host.lease_until <= self._parts.store.now()

    def _adopted(self, entry: Entry) -> Entry:
        """Fence: from now on a host that had this race before cannot write it."""
        race = read_race(entry)
        if race.host == self._here.host:
            return entry
        return self._put(entry, replace(race, host=self._here.host))

    def _put(self, entry: Entry, race: Race, *more: Change, events: Sequence[Event] = ()) -> Entry:
        (written, *_) = self._parts.store.commit([Put(with_race(entry, race)), *more], events)
        return written  # type: ignore[return-value]

    def _begin(self, act: Callable[[], None], then: Callable[[], None]) -> None:
        self.busy = True
        self._then = then
        self._job = self._parts.jobs.begin(act)

    def _advance(self, entry: Entry) -> None:
        race, store = read_race(entry), self._parts.store
        tasks = [t for t in children(store, store.task(race.batch)) if not waits(race, t)]
        ready = {t.id: tip for t in tasks if (tip := _tip(race, t))}
        spaces = self._spaces([t for t in tasks if t.id in ready])
        self.project = tasks[0].project if tasks else ""
        self.busy = False
        missing = {i: tip for i, tip in ready.items() if i in spaces and not self._fact(i, tip)}
        if missing:
            self._look(race, missing, spaces)
            return
        self._judge(entry, race, tasks, self._contenders(race, tasks, ready))

    def _spaces(self, tasks: Sequence[Task]) -> dict[str, Workspace]:
        """Where each of these worked; without those that worked elsewhere."""
        runs = self._parts.store.runs_by_id([task.run_id for task in tasks])
        spaces = {run.task: run.workspace for run in runs.values() if run.workspace}
        return {
            task: space
            for task, space in spaces.items()
            if space.repository and self._more.is_here(space.repository)
        }

    def _fact(self, task: str, tip: str) -> ContenderFacts | None:
        return self._facts.get((task, tip)) if self._target else None

    def _git(self, space: Workspace) -> Branches:
        return self._more.branches(space.repository, "")

    def _onto(self, race: Race, space: Workspace) -> str:
        wanted = self._parts.world(self.project).settings.land.onto
        onto = race.rules.onto or wanted or space.onto
        if not onto:
            raise Refused(
                f"The tasks of {race.batch} did not start from a branch.",
                fix=f"fleet pick {race.batch} --onto BRANCH",
            )
        return onto

    def _look(self, race: Race, tips: Mapping[str, str], spaces: Mapping[str, Workspace]) -> None:
        """Ask git what each of these changed, and what comes of it on the target."""
        known, target = dict[tuple[str, str], ContenderFacts](), self._target
        targets: list[Target] = []

        def act() -> None:
            for task, tip in tips.items():
                space = spaces[task]
                git = self._git(space)
                if not targets:
                    targets.append(target or git.target(self._onto(race, space)))
                merged = git.build(targets[0].commit, MemberWork(tip, f"Try {task}"))
                files, tests = git.changed(space.base, tip)
                whole = git.patch(space.base, tip, most=MOST_SEARCHED)
                changes = read_changes(files, tests, race.rules.touches, whole=whole)
                trees = git.tree(tip), git.tree(space.base)
                known[task, tip] = ContenderFacts(
                    tip, trees[0], space.base, trees[1], merged, changes
                )

        def then() -> None:
            if target is None:
                self._facts.clear()
                self._overlays.clear()
            self._target = targets[0]
            self._facts |= known

        self._begin(act, then)

    def _test(self, race: Race) -> str:
        """The command that decides."""
        world = self._parts.world(self.project)
        if race.rules.test:
            return race.rules.test
        if {"run.gate", "land.gate"} & world.withheld:
            raise Refused(
                "The gate of the project is not trusted.", fix=f"In {self.project}: fleet trust"
            )
        return world.settings.land.gate or world.settings.run.gate

    def _result(self, race: Race, tree: str) -> GateResult:
        return with_report(known_result(self._parts, tree, self._test(race), self.project))

    def _contenders(
        self,
        race: Race,
        tasks: Sequence[Task],
        ready: Mapping[str, str],
    ) -> list[Contender]:
        made = []
        for task in tasks:
            cost = round(task.tally.spent.usd * 1_000_000)
            contender = Contender(task.id, cost=cost, took=task.tally.worked)
            facts = self._fact(task.id, ready[task.id]) if task.id in ready else None
            if facts is None:
                out = "Its work is on another machine." if task.id in ready else _out(race, task)
                made.append(contender._replace(out=out))
                continue
            made.append(self._proven(race, contender, facts))
        return made

    def _proven(self, race: Race, contender: Contender, facts: ContenderFacts) -> Contender:
        own = self._result(race, facts.tree)
        changes = facts.changes
        if own.tests:
            changes = with_reports(changes, self._result(race, facts.base_tree).tests, own.tests)
        if facts.merged.conflicts:
            files = ", ".join(facts.merged.conflicts[:3])
            main: Proof | None = Proof(False, f"it conflicts in {files}")
        else:
            main = proof_of(self._result(race, facts.merged.tree))
        return contender._replace(own=proof_of(own), main=main, changes=changes)

    def _judge(
        self, entry: Entry, race: Race, tasks: Sequence[Task], contenders: list[Contender]
    ) -> None:
        facts = self._current(tasks, race)
        over = [
            t for t in tasks if t.state in ENDED or t.state is TaskState.REVIEW or t.id in facts
        ]
        unproven = self._unproven(race, contenders, facts)
        if race.rules.first and not unproven:
            passed = [c for c in contenders if c.task in facts and not disqualified(c)]
            if passed:
                self._settle(entry, race, contenders, judge(passed))
                return
        if unproven or len(over) < len(tasks):  # or agents still work
            self._run_gates(race, unproven)
            self._show(entry, race, contenders)
            return
        crossing = self._crossed(race, contenders, facts)
        if crossing is None:
            self._show(entry, race, contenders)
            return
        self._decide(entry, race, crossing, facts)

    def _current(self, tasks: Sequence[Task], race: Race) -> dict[str, ContenderFacts]:
        tips = {task.id: _tip(race, task) for task in tasks}
        return {i: facts for i, tip in tips.items() if tip and (facts := self._fact(i, tip))}

    def _unproven(
        self, race: Race, contenders: Sequence[Contender], facts: Mapping[str, ContenderFacts]
    ) -> dict[str, tuple[str, GateResult]]:
        """By result: the commit that has to be tested. On the target, only what passes alone."""
        wanted: dict[str, tuple[str, GateResult]] = {}
        for contender in contenders:
            fact = facts.get(contender.task)
            if fact is None or contender.out:
                continue
            own = self._result(race, fact.tree)
            if contender.own is None:
                wanted[own.id] = (fact.tip, own)
            elif contender.own.passed and contender.main is None:
                main = self._result(race, fact.merged.tree)
                wanted[main.id] = (fact.merged.commit, main)
            base = self._result(race, fact.base_tree)
            if own.tests and not (base.passed or base.failed):
                wanted[base.id] = (fact.base, base)
        return wanted

    def _run_gates(self, race: Race, wanted: Mapping[str, tuple[str, GateResult]]) -> None:
        """Test these, as many as there are slots for; nothing waits for others."""
        self.knows_gates = True
        self.gates.keep(set(wanted))
        slots = max(1, self._parts.world("").settings.land.slots)
        for name, (commit, result) in wanted.items():
            if name not in self.gates.running and self.gates.count < slots:
                self.gates.start(self.project, result, self._test(race), commit, report=True)
                self.went_on = True
        self.busy = self.busy or bool(wanted)

    def _crossed(
        self, race: Race, contenders: Sequence[Contender], facts: Mapping[str, ContenderFacts]
    ) -> list[Contender] | None:
        """With what the tests of each say of the others' work; None: they have to run."""
        pairs = needs_cross(contenders)
        if missing := [pair for pair in pairs if pair not in self._overlays]:
            self._lay_over(missing, facts)
            return None
        bases = {w: self._result(race, self._overlays[w, ""].tree) for w, on in pairs if not on}
        wanted = {
            base.id: (self._overlays[w, ""].commit, base)
            for w, base in bases.items()
            if proof_of(base, tries=1) is None
        }
        if wanted:
            self._run_gates(race, wanted)
            return None
        known: dict[str, dict[str, tuple[bool, str]]] = {}
        for writer, on in pairs:
            base = bases[writer]
            if not on or (base.verdict.good and not base.tests):
                continue  # tests that pass on the base show nothing
            overlay = self._overlays[writer, on]
            result = self._result(race, overlay.tree)
            if proof_of(result) is None:
                wanted[result.id] = (overlay.commit, result)
                continue
            says = crossed(base, self._result(race, facts[writer].tree), result)
            if says is not None:
                known.setdefault(on, {})[writer] = (says, result.id)
        if wanted:
            self._run_gates(race, wanted)
            return None
        return [_with_cross(c, known.get(c.task, {})) for c in contenders]

    def _lay_over(
        self, pairs: Sequence[tuple[str, str]], facts: Mapping[str, ContenderFacts]
    ) -> None:
        """The tests of one contender on the work of another, or on what they started from."""
        made: dict[tuple[str, str], Built] = {}
        store = self._parts.store
        spaces = self._spaces([store.task(task) for task in {w for w, _ in pairs}])

        def act() -> None:
            for writer, on in pairs:
                theirs = facts[writer]
                commit = facts[on].tip if on else theirs.base
                git = self._git(spaces[writer])
                made[writer, on] = git.overlay(commit, theirs.tip, theirs.changes.tests)

        self._begin(act, lambda: self._overlays.update(made))

    def _decide(
        self,
        entry: Entry,
        race: Race,
        contenders: list[Contender],
        facts: Mapping[str, ContenderFacts],
    ) -> None:
        if race.reserve and needs_more(contenders):
            self._send_reserve(entry, race)
            return
        verdict = judge(contenders)
        if verdict.tie and race.rules.judge and not race.judges:
            self._ask_judges(entry, race, verdict.tie, facts)
            return
        if verdict.tie and race.judges:
            tasks = self._parts.store.tasks_by_id(race.judges)
            if any(task.state not in ENDED for task in tasks.values()):
                return
            verdict = judge(contenders, _preferred(race, tasks))
        self._settle(entry, race, contenders, verdict)

    def _send_reserve(self, entry: Entry, race: Race) -> None:
        """The next ones start: those so far do not decide."""
        store = self._parts.store
        next_, rest = race.reserve[:FIRST_WAVE], race.reserve[FIRST_WAVE:]
        tasks = [t for t in store.tasks_by_id(next_).values() if waits(race, t)]
        now = store.now()
        events = [Event(Kind.TASK_RESUMED, task.id, SUPERVISOR, now) for task in tasks]
        started = [Put(replace(task, paused=False)) for task in tasks]
        self._put(entry, replace(race, reserve=rest), *started, events=events)
        self.busy = True

    def _ask_judges(
        self, entry: Entry, race: Race, tie: Sequence[str], facts: Mapping[str, ContenderFacts]
    ) -> None:
        """Two tasks, one for each order: a judge that prefers the first or the last decides nothing."""
        store = self._parts.store
        batch = store.task(race.batch)
        spaces = self._spaces([store.task(task) for task in tie])
        diffs: dict[str, str] = {}

        def act() -> None:
            for task in tie:
                git = self._git(spaces[task])
                diffs[task] = git.patch(facts[task].base, facts[task].tip, most=MOST_JUDGED)

        def then() -> None:
            prompt = store.task(tie[0]).prompt
            orders = [tuple(tie), tuple(reversed(tie))]
            tasks = [
                self._judge_task(batch, race, judge_prompt(prompt, [diffs[t] for t in order]))
                for order in orders
            ]
            about = [Event(Kind.TASK_ADDED, t.id, SUPERVISOR, t.created_at, "", {"title": t.title})
                     for t in tasks]  # fmt: skip
            judged = replace(race, judges=tuple(t.id for t in tasks), equals=tuple(tie))
            self._put(entry, judged, *map(Put, tasks), events=about)

        self._begin(act, then)

    def _judge_task(self, batch: Task, race: Race, prompt: str) -> Task:
        store = self._parts.store
        return Task(
            id=store.new_id("t"),
            version=0,
            state=TaskState.OPEN,
            title=f"Judge the solutions of {batch.id}",
            prompt=prompt,
            project=batch.project,
            author=race.author,
            created_at=store.now(),
            team=batch.team,
            spec=Spec(
                agent=race.rules.judge,
                cwd=batch.spec.cwd,
                labels=(JUDGE_LABEL,),
                limits=Limits(permissions="read"),
            ),
            depth=batch.depth,
            role=PLAIN,  # whatever role its agent is declared with
            spawned=batch.spawned,
            caused_by=batch.caused_by,
        )

    def _settle(
        self, entry: Entry, race: Race, contenders: list[Contender], verdict: RaceVerdict
    ) -> None:
        """The end of the race: a winner, a person who decides, or nobody."""
        store = self._parts.store
        race = replace(race, results=results(contenders, verdict))
        if verdict.winner and not race.rules.ask:
            race = replace(race, winner=verdict.winner, why=verdict.why[verdict.winner])
            home = home_of(self._parts.world(self.project).settings.land)
            changes, events = picked(store, entry, race, home, actor=SUPERVISOR)
            store.commit(changes, events)
            return
        state, why = _undecided(verdict)
        race = replace(race, state=state, why=why, ended_at=store.now())
        about = {"why": why}
        event = Event(Kind.RACE_UNDECIDED, race.batch, SUPERVISOR, race.ended_at, "", about)
        self._put(entry, race, events=[event])

    def _show(self, entry: Entry, race: Race, contenders: Sequence[Contender]) -> None:
        """What is known so far, for whoever looks; nothing is decided by it."""
        nothing = RaceVerdict("", (), {c.task: disqualified(c) for c in contenders})
        known = tuple(replace(row, rank=0) for row in results(contenders, nothing))
        if known != race.results:
            self._put(entry, replace(race, results=known))


def _tip(race: Race, task: Task) -> str:
    """The work of a contender that can be tested; empty: there is none, or not yet."""
    if task.id in race.tips and task.state is TaskState.RUNNING:
        return race.tips[task.id]
    if task.state not in {TaskState.DONE, TaskState.REVIEW}:
        return ""
    point = task.tally.checkpoint
    return point.commit if point else ""


def _out(race: Race, task: Task) -> str:
    """Why it has no work to compare; empty: its agent still works."""
    why = " ".join(task.tally.why.split())[:200]
    match task.state:
        case TaskState.FAILED:
            return f"It failed: {why}".rstrip(": ")
        case TaskState.CANCELLED:
            return "It was cancelled."
        case TaskState.DONE | TaskState.REVIEW:
            return "It has no commit."
        case TaskState.RUNNING if task.id in race.tips:
            return "It has done nothing yet."
    return ""


def _with_cross(contender: Contender, known: Mapping[str, tuple[bool, str]]) -> Contender:
    return contender._replace(
        cross={writer: passed for writer, (passed, _) in known.items()},
        crossed={writer: result for writer, (_, result) in known.items()},
    )


def _preferred(race: Race, tasks: Mapping[str, Task]) -> str:
    """The contender that the judge chose in both orders; empty: it disagrees with itself."""
    orders = [race.equals, tuple(reversed(race.equals))]
    choices = set()
    for judge_id, order in zip(race.judges, orders, strict=True):
        task = tasks.get(judge_id)
        point = task.tally.checkpoint if task else None
        choices.add(read_choice(point.summary if point else "", order))
    return choices.pop() if len(choices) == 1 else ""


def _undecided(verdict: RaceVerdict) -> tuple[RaceState, str]:
    if verdict.winner:
        return RaceState.ASKS, f"{verdict.winner} is the best: {verdict.why[verdict.winner]}"
    if verdict.tie:
        return RaceState.ASKS, f"{', '.join(verdict.tie)} are equal in all that was measured."
    return RaceState.NOBODY, "No solution can win."
