"""The lander: it runs the trains of this host, one for each branch of each repository.

Git works beside the loop, one job at a time for each train; gates run under keepers. What a train
has decided is in the store before it is done, so the next supervisor goes on wherever one ended.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Conflict, FleetError, NotFound, Refused
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import (
    UNDO_LABEL,
    Evidence,
    LandingState,
    Move,
    Planned,
    gate_command,
    landed,
    landing_rule,
    queued_again,
    sent_back,
    since,
    tested_tree,
)
from fleet.domain.landing.train import (
    GateVerdicts,
    Waiting,
    arrange,
    decide,
    next_batch,
    next_rate,
)
from fleet.domain.run import Wanted
from fleet.domain.task import ENDED, Mode, TaskState
from fleet.operations.landing.trains import teams_of
from fleet.ports import Arrival, Fit, LandingQuery, MemberWork, Put
from fleet.supervisor.landing.gates import Gates, known_result
from fleet.supervisor.landing.landed_elsewhere import Noticing
from fleet.supervisor.landing.races import Races
from fleet.supervisor.landing.send_back import conflict_text, gate_text, reconciler_of, send_back
from fleet.supervisor.share_commits import pieces_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.domain.landing.landing import GateResult, Landing, Train
    from fleet.domain.landing.train import Candidate
    from fleet.domain.task import Task
    from fleet.ports import Branches, Built, Change, Job, Target
    from fleet.supervisor.landing.parts import LandingParts
    from fleet.supervisor.parts import Parts, ThisSupervisor

LOOK_SECONDS = 2.0  # between two looks at where a branch is
LEFTOVER_SECONDS = 10.0  # between two looks at worktrees that no gate uses any more
WAIT_SECONDS = 2.0  # before the next try when something outside was in the way
MOST_WAITING = 500  # landings of one train that are read at once
AHEAD = 40  # members of a train that are planned for
WINDOW = 16  # landings that are new, and are put into an order among each other
WRONG_TREE = "wrong_tree"  # the branch is not what was tested: a person must look
PASSED = GateVerdicts(passed=1)  # of a tree that no gate has to test
MOST_TRIES = (
    3  # at what needs no person, such as a lock of git, before `fleet run --once` leaves it
)
MOST_UNCLEARED = 50  # of the newest landings, that are looked at when a lander starts


class Lander:
    def __init__(self, parts: Parts, here: ThisSupervisor, more: LandingParts) -> None:
        self._parts = parts
        self._here = here
        self._more = more
        self._runners: dict[str, TrainRunner] = {}
        self._noticing = Noticing(parts, here, more)
        self._races = Races(parts, here, more)
        self._clearing: list[Job] = []  # of worktrees whose work has landed
        self._has_looked_back = False
        self._next_leftovers = 0.0
        self.trouble: dict[str, str] = {}  # by train: what is in its way
        self._went_on = False  # in this step

    def step(self) -> None:
        self._clearing = [job for job in self._clearing if not job.done()]
        self._clear_the_rest()
        self._noticing.step()
        self._races.step()
        self._went_on = self._races.went_on
        self._end_leftovers()
        for train in self._parts.store.trains().values():
            if self._is_ours(train):
                runner = self._runners.get(train.id)
                if runner is None:
                    runner = self._runners[train.id] = self._new_runner(train)
                self._run(runner, train)
                self._clear(runner)
        if self._went_on:
            self._more.step_again()

    def _clear(self, runner: TrainRunner) -> None:
        """What landed needs its worktree no more."""
        while runner.landed:
            with suppress(FleetError, OSError):
                self._clear_one(self._parts.store.task(runner.landed.pop()))

    def _clear_one(self, task: Task) -> None:
        if task.state in ENDED:
            self._clearing.append(self._parts.jobs.begin(self._more.clearing(task)))

    def _clear_the_rest(self) -> None:
        """Once: what an earlier lander could not clear, since it ended after the landing."""
        if self._has_looked_back:
            return
        self._has_looked_back = True
        landings = self._parts.store.landings(LandingQuery(limit=MOST_UNCLEARED))
        names = [one.task for one in landings if one.state is LandingState.LANDED]
        for task in self._parts.store.tasks_by_id(names).values():
            if task.tally.landed and self._more.is_uncleared(task):
                self._clear_one(task)

    def _new_runner(self, train: Train) -> TrainRunner:
        from fleet.supervisor.landing.pulls import PullRunner  # noqa: PLC0415  # it builds on this

        made = PullRunner if train.pulls else TrainRunner
        return made(self._parts, self._here, self._more, train.id)

    def _run(self, runner: TrainRunner, train: Train) -> None:
        if runner.reported and not train.waits:
            runner.try_again()  # more was queued: a person expects that it works now
        runner.went_on = False
        try:
            runner.step(train)
        except Conflict:
            runner.idle = False  # another process changed it: the next step reads it again
        except (FleetError, OSError) as error:
            runner.wait(_words(error), for_person=isinstance(error, (Refused, NotFound)))
        self._went_on |= runner.went_on
        self.trouble.pop(train.id, None)
        if runner.trouble:
            self.trouble[train.id] = runner.trouble
        if runner.trouble != runner.reported:
            self._tell(runner, train.id)

    def _end_leftovers(self) -> None:
        """Free the worktrees of gates that an earlier supervisor started and no train waits for."""
        now = self._parts.clock.since_boot()
        if now < self._next_leftovers:
            return
        self._next_leftovers = now + LEFTOVER_SECONDS
        ours = {name for runner in self._runners.values() for name in runner.gates.names}
        ours |= self._races.names
        projects = {runner.project for runner in self._runners.values() if runner.project}
        for project in projects | self._races.projects:
            house = self._more.gate_worktrees(project)
            for name in house.busy():
                if name not in ours and self._parts.launcher.end(name):
                    house.leave(name)

    def _tell(self, runner: TrainRunner, train_id: str) -> None:
        """Write down what is in its way, for those who wait for it."""
        with suppress(Conflict):
            train = self._parts.store.trains()[train_id]
            self._parts.store.commit([Put(replace(train, waits=runner.trouble))], [])
            runner.reported = runner.trouble

    def _is_ours(self, train: Train) -> bool:
        if train.host and train.host != self._here.host:
            host = self._parts.store.hosts().get(train.host)
            if host is not None and host.lease_until > self._parts.store.now():
                return False
        return not self._here.shared or self._more.is_here(train.repository)

    @property
    def gates(self) -> int:
        return self._races.gates + sum(runner.gates.count for runner in self._runners.values())

    @property
    def has_cleared(self) -> bool:
        """Whether nothing of what landed is left to be parked or deleted."""
        return not self._clearing

    @property
    def idle(self) -> bool:
        """Whether no landing could go on without a person."""
        return (
            self.has_cleared
            and self._noticing.idle
            and self._races.idle
            and all(runner.idle for runner in self._runners.values())
        )


class OtherSide(NamedTuple):
    """What work conflicts with: in which files, what the branch changed there, and its commits."""

    files: tuple[str, ...]
    changes: str
    mainline: Sequence[tuple[str, bool]]  # as `Branches.mainline` gives them


class TrainRunner:
    def __init__(
        self, parts: Parts, here: ThisSupervisor, more: LandingParts, train_id: str
    ) -> None:
        self._parts = parts
        self._here = here
        self._more = more
        self._train_id = train_id
        self.project = ""  # of what it tested last
        self.gates = Gates(parts, more)
        self.trouble = ""
        self.reported = ""  # of that, what the store has
        self.idle = False
        self.went_on = False
        self.landed: list[str] = []  # tasks whose worktrees are not cleared yet
        self._job: Job | None = None
        self._then: Callable[[], None] = lambda: None
        self._target: Target | None = None
        self._looked_at = -LOOK_SECONDS
        self._not_before = 0.0
        self._tries = 0  # in a row, that met something outside in the way
        self._looking = False  # whether it finds out where the branch is
        self._could_look = True  # if not, that is the trouble, and gone once it can
        self._built: dict[Candidate, Built] = {}  # on the target as it was when we looked
        self._branches: Branches | None = None
        self._open: set[str] = set()  # landings that are queued, or with their agent
        self._contested: dict[str, tuple[str, ...]] = {}  # what went back, and where it conflicts
        self._behind: dict[str, str] = {}  # what waits for one of those
        self._arranged: set[str] = set()  # what keeps its place: it was new once, or is tested

    def try_again(self) -> None:
        self.reported = ""
        self._not_before = 0.0
        self._clear_trouble()

    def wait(self, why: str, *, for_person: bool) -> None:
        """Something outside is in the way: try again in a while."""
        self.trouble = why
        self._tries += 1
        self._could_look, self._looking = not self._looking, False
        # `fleet run --once` does not wait for a person, nor for what does not go away.
        self.idle = for_person or self._tries >= MOST_TRIES
        self._target = None
        self._not_before = self._parts.clock.since_boot() + WAIT_SECONDS

    def _clear_trouble(self) -> None:
        """Nothing is in the way any more."""
        self.trouble, self._tries, self._could_look = "", 0, True

    def step(self, train: Train) -> None:
        settings = self._parts.world("").settings
        for result in self.gates.step(settings.run.gate_limit):
            self._clear_trouble()
            train = self._heard(train, result)
        if self._job is not None:
            if not self._job.done():
                return
            self.went_on = True
            job, self._job = self._job, None
            try:
                job.result()
            except Conflict:
                self._target = None  # the branch moved: build anew
                if train.move:
                    self._put(replace(train, move=None))
                return
            except FleetError as error:
                stopped = _words(error) if error.code == WRONG_TREE else ""
                if train.move:
                    self._put(replace(train, move=None, stopped=stopped))
                raise
            self._then()
            return
        if self._parts.clock.since_boot() < self._not_before:
            return
        if train.move is not None:
            self.idle = False
            self._begin_move(train, train.move)
            return
        queue = self._queue(train)
        self.idle = not queue or bool(train.paused or train.stopped)
        if not queue or train.paused or train.stopped:
            self.trouble = train.stopped
            self.gates.keep(set())
            self._plan(train, ())
            return
        if not self._more.is_here(train.repository):
            fix = "Move it back to where it was, or make a link there."
            raise NotFound(f"{train.repository} does not exist.", fix=fix)
        self._advance(self._adopted(train), queue)

    def _heard(self, train: Train, result: GateResult) -> Train:
        """A gate has ended: a failure halves the batch, and one that then passed is flaky."""
        if result.verdict.bad and result.failed == 1:
            return self._put(replace(train, batch=next_batch(train.batch, passed=False)))
        if result.verdict.flaky and result.failed:
            store, about = self._parts.store, {"onto": train.onto, "gate": result.command}
            at = store.now()
            events = [
                Event(Kind.GATE_FLAKY, "", SUPERVISOR, at, "", {**about, "team": team})
                for team in teams_of(store, train)
            ]
            return self._put(replace(train, flaky=result.command), *events)
        return train

    def _begin(self, act: Callable[[], None], then: Callable[[], None]) -> None:
        self._then = then
        self._job = self._parts.jobs.begin(act)

    def _git(self, train: Train) -> Branches:
        if self._branches is None:
            self._branches = self._more.branches(train.repository, train.remote)
        return self._branches

    def _put(self, train: Train, *events: Event) -> Train:
        (written,) = self._parts.store.commit([Put(train)], events)
        return written  # type: ignore[return-value]

    def _adopted(self, train: Train) -> Train:
        """Fence: from now on a host that had this train before cannot write it."""
        if train.host == self._here.host:
            return train
        return self._put(replace(train, host=self._here.host))

    def _queue(self, train: Train) -> list[Landing]:
        """The landings that can go on, in order; one whose agent is done with it is queued again."""
        waiting = self._all_open(train)
        tasks = self._parts.store.tasks_by_id([landing.task for landing in waiting])
        queue = []
        self._open = {each.id for each in waiting if _goes_on(each, tasks[each.task])}
        for each in sorted(waiting, key=lambda one: (one.order, one.at)):
            task, landing = tasks[each.task], each
            if landing.state is LandingState.RETURNED and task.state is TaskState.DONE:
                landing = self._queued_again(landing, task)
            if landing.state is LandingState.QUEUED and (_is_done(task) or landing.wish.force):
                queue.append(landing)
        going = {one.id for one in queue}
        stuck = [one for one in waiting if one.id not in going]
        return self._free(queue, tasks, stuck) if stuck else queue

    def _all_open(self, train: Train) -> list[Landing]:
        query = LandingQuery(train=train.id, open_only=True, limit=MOST_WAITING)
        landings = page = self._parts.store.landings(query)
        while len(page) == MOST_WAITING:
            page = self._parts.store.landings(query._replace(before=page[-1].id))
            landings += page
        return landings

    def _free(
        self, queue: Sequence[Landing], tasks: Mapping[str, Task], stuck: Sequence[Landing]
    ) -> list[Landing]:
        """Without those that would bring work of a landing that waits for a person, or its agent."""
        by_task = {one.task: one for one in stuck}
        free = []
        for landing in queue:
            after = () if landing.wish.force else tasks[landing.task].after
            needs = self._with_needs(after) if after else ()
            below = next((by_task[i] for i in needs if i in by_task), None)
            if below is None:
                free.append(landing)
            else:
                how = "held" if below.state is LandingState.HELD else "with its agent"
                why = f"It has the work of {below.task}, whose landing is {how} ({below.id})."
                self._wait_behind(landing, why)
        return free

    def _queued_again(self, landing: Landing, task: Task) -> Landing:
        checkpoint = task.tally.checkpoint
        tip = checkpoint.commit if checkpoint and checkpoint.commit else landing.tip
        now = self._parts.store.now()
        again = queued_again(landing, tip, at=now)
        event = self._event(Kind.LANDING_QUEUED, again)
        (written,) = self._parts.store.commit([Put(again)], [event])
        return written  # type: ignore[return-value]

    def _event(self, kind: Kind, landing: Landing, **data: str) -> Event:
        about = {"landing": landing.id, "onto": landing.onto, **data}
        return Event(kind, landing.task, SUPERVISOR, self._parts.store.now(), "", about)

    def _advance(self, train: Train, queue: Sequence[Landing]) -> None:
        now = self._parts.clock.since_boot()
        if self._target is None or now - self._looked_at >= LOOK_SECONDS:
            self._look(train, queue)
            return
        if fresh := self._fresh(train, queue):
            self._arrange(train, fresh)
            return
        if not self._open.issuperset(self._behind.values()):
            self._behind.clear()  # what they waited for has settled
            self._built.clear()
        by_id = {landing.id: landing for landing in self._ready(queue)}
        for landing in by_id.values():
            self._wait_behind(landing, "")
        slots = max(1, self._parts.world("").settings.land.slots)
        verdict = partial(self._verdict, by_id)
        decision = decide([*by_id], verdict, slots=slots, batch=train.batch, rate=train.rate)
        if decision.land:
            self._land(train, decision.land, by_id)
        elif decision.blame:
            self.went_on = True
            self._blame(train, by_id[decision.blame])
        else:
            self._test(train, decision.test, by_id, slots)

    def _fresh(self, train: Train, queue: Sequence[Landing]) -> list[Landing]:
        """What is new in the queue, of one priority; nothing where that has an order already.

        So nobody is overtaken by what comes later, and no gate that runs is in vain.
        """
        self._arranged &= self._open
        self._arranged |= {member for planned in train.plan for member in planned.members}
        known = self._arranged | {one.id for one in queue if one.wish.moved}
        if all(one.id in known for one in queue[:WINDOW]):
            return []
        new = [one for one in queue[:AHEAD] if one.id not in known][:WINDOW]
        same = [one for one in new if one.priority == new[0].priority]
        if len(same) < 2:
            self._arranged |= {one.id for one in same}
            return []
        return same

    def _arrange(self, train: Train, fresh: Sequence[Landing]) -> None:
        """Give those that are new their order among each other, and write it down."""
        assert self._target is not None
        git, base, store = self._git(train), self._target, self._parts.store
        works = {one.id: self._work(one) for one in fresh}
        fits: dict[str, Fit] = {}

        def act() -> None:
            with suppress(FleetError):  # then they land in the order in which they came
                fits.update(git.compare(base.commit, works))

        def then() -> None:
            tasks = store.tasks_by_id([one.task for one in fresh])
            by_task = {one.task: one.id for one in fresh}
            waiting = []
            for one in fresh:
                needs = {by_task[need] for need in tasks[one.task].after if need in by_task}
                fit = fits.get(one.id, Fit(0))
                waiting.append(Waiting(one.id, frozenset(needs), len(fit.rivals), fit.lines))
            by_id = {one.id: one for one in fresh}
            orders = zip(arrange(waiting), sorted(one.order for one in fresh), strict=True)
            changed = [Put(replace(by_id[i], order=o)) for i, o in orders if by_id[i].order != o]
            if changed:
                store.commit(changed, [])
            self._arranged |= by_id.keys()

        self._begin(act, then)

    def _look(self, train: Train, queue: Sequence[Landing]) -> None:
        """Where are the branch and the work? What was built of other commits is forgotten."""
        git = self._git(train)
        self._looking = True
        known = {part[-1] for part in self._built}
        works = {one.id: self._work(one) for one in queue if one.id in known}
        targets: list[Target] = []
        tips: dict[str, str] = {}

        def act() -> None:
            targets.append(git.target(train.onto))
            tips.update(git.tips(works))

        def then() -> None:
            (target,) = targets
            built = self._built.items()
            if self._target != target or any(b.tip != tips.get(p[-1], b.tip) for p, b in built):
                self._built.clear()
            self._target, self._looked_at = target, self._parts.clock.since_boot()
            self._looking = False
            if not self._could_look:
                self._clear_trouble()

        self._begin(act, then)

    def _ready(self, queue: Sequence[Landing]) -> list[Landing]:
        """Those that can be tested now, all of one project: the gate is their project's.

        What conflicts with one before it waits until that one has landed.
        """
        position = {one.id: n for n, one in enumerate(queue)}
        waiting = set()
        for *before, last in (part for part, built in self._built.items() if built.conflicts):
            if last in position and all(
                position.get(one, len(queue)) < position[last] for one in before
            ):
                waiting.add(last)
        free = [one for one in queue if one.id not in waiting]
        same = takewhile(lambda one: one.project == free[0].project, free)
        return list(islice(same, AHEAD))

    def _gate(self, candidate: Candidate, by_id: dict[str, Landing]) -> str:
        """The command that tests it: the project's gate, and those that its tasks asked for."""
        first = by_id[candidate[0]]
        world = self._parts.world(first.project)
        if {"run.gate", "land.gate"} & world.withheld:
            raise Refused(  # without the gate, nothing would test the work
                "The gate of its project is not trusted, so the work could not be tested.",
                fix=f"In {first.project}: fleet trust",
                code="untrusted",
            )
        settings = world.settings
        tasks = self._parts.store.tasks_by_id([by_id[m].task for m in candidate])
        commands = [settings.land.gate or settings.run.gate]
        commands += [tasks[by_id[m].task].spec.gate for m in candidate if not by_id[m].wish.force]
        return gate_command(commands)

    def _verdict(self, by_id: dict[str, Landing], candidate: Candidate) -> GateVerdicts:
        built = self._built.get(candidate)
        if built is None or built.conflicts:
            return GateVerdicts()
        if all(by_id[m].wish.force for m in candidate):
            return PASSED
        gate = self._gate(candidate, by_id)
        if not gate:
            return PASSED
        return self._result(candidate, gate, by_id).verdict

    def _result(self, candidate: Candidate, gate: str, by_id: Mapping[str, Landing]) -> GateResult:
        """What the gate has said of its tree since its members were queued."""
        members = [by_id[member] for member in candidate]
        tree = self._built[candidate].tree
        result = known_result(self._parts, tree, gate, members[0].project)
        return since(result, max(member.at for member in members))

    def _land(self, train: Train, candidate: Candidate, by_id: dict[str, Landing]) -> None:
        assert self._target is not None
        steps = [self._built[candidate[: n + 1]].commit for n in range(len(candidate))]
        result, rule = self._reason(candidate, by_id)
        tips = tuple(self._built[candidate[: n + 1]].tip for n in range(len(candidate)))
        move = Move(self._target.commit, steps[-1], candidate, tuple(steps), result, rule, tips)
        self._begin_move(self._put(replace(train, move=move)), move)

    def _reason(self, candidate: Candidate, by_id: dict[str, Landing]) -> tuple[str, str]:
        """The result of the gate that let it land, and the rule in a sentence."""
        landings = [by_id[member] for member in candidate]
        if all(landing.wish.force for landing in landings):
            return "", "It was forced."
        gate = self._gate(candidate, by_id)
        if not gate:
            return "", "There is no gate."
        result = self._result(candidate, gate, by_id)
        return result.id, landing_rule(result, queued_at=max(one.at for one in landings))

    def _begin_move(self, train: Train, move: Move) -> None:
        git, store = self._git(train), self._parts.store
        works = {i: self._work(store.landing(i)) for i in move.landings}
        parts = self._parts_of(move)
        brought: list[str] = []
        tasks = store.tasks_by_id([store.landing(landing).task for landing in move.landings])
        undoes = any(UNDO_LABEL in task.spec.labels for task in tasks.values())

        def act() -> None:
            if move.result and git.tree(move.after) != tested_tree(move.result):
                raise Refused(
                    f"The files of {move.after[:12]} are not those that were tested for"
                    f" {', '.join(move.landings)}.",
                    fix=f"To have them tested again: fleet land resume {train.onto}",
                    code=WRONG_TREE,
                )
            current = tuple(git.tips(works).values())
            tips = move.tips or current
            if not git.has(train.onto, [move.after]):
                if tips != current:
                    raise Conflict("The work has changed since it was tested.")
                git.move(train.onto, move.after, move.before)
            arrivals = {
                i: Arrival(before, commit, tip, works[i].how)
                for (i, before, commit), tip in zip(move.each(), tips, strict=True)
            }
            git.check_home(train.onto, arrivals)
            if undoes:
                git.release_landed(train.onto)
            for tip in tips if parts else ():
                inside = git.within(tip, list(parts.values()))
                brought.extend(task for task, commit in parts.items() if commit in inside)

        self._begin(act, lambda: self._landed(move, brought))

    def _parts_of(self, move: Move) -> dict[str, str]:
        """The tasks that these waited for, and their commits: what has not landed comes along."""
        tasks = self._with_needs([self._parts.store.landing(i).task for i in move.landings])
        points = {i: t.tally.checkpoint for i, t in tasks.items() if _is_away(t)}
        return {i: point.commit for i, point in points.items() if point and point.commit}

    def _with_needs(self, names: Sequence[str]) -> dict[str, Task]:
        """These tasks, and those that they waited for."""
        seen: dict[str, Task] = {}
        while names and len(seen) < MOST_WAITING:
            fresh = self._parts.store.tasks_by_id(
                [i for i in dict.fromkeys(names) if i not in seen]
            )
            seen |= fresh
            names = [need for task in fresh.values() for need in task.after]
        return seen

    def _landed(self, move: Move, brought: Sequence[str]) -> None:
        store = self._parts.store
        train = store.trains()[self._train_id]
        self._target = None
        self._built.clear()
        self._clear_trouble()
        if train.move != move:
            return  # another host wrote it down
        now = store.now()
        batch, rate = next_batch(train.batch, passed=True), train.rate
        for _ in move.landings:
            rate = next_rate(rate, passed=True)
        after = replace(train, move=None, batch=batch, rate=rate, plan=())
        changes: list[Change] = [Put(after)]
        events = []
        for landing_id, before, commit in move.each():
            evidence = Evidence(commit, before, move.result, move.rule)
            landing = replace(
                store.landing(landing_id),
                state=LandingState.LANDED,
                why="",
                evidence=evidence,
            )
            changes += [Put(landing), Put(landed(store.task(landing.task), commit, now=now))]
            changes += self._close_terminal(landing.task)
            events.append(self._event(Kind.TASK_LANDED, landing, commit=commit))
        parts = [t for t in store.tasks_by_id(brought).values() if _is_away(t)]
        for part in parts:
            changes.append(Put(landed(part, move.after, now=now)))
            about = {"onto": train.onto, "commit": move.after}
            events.append(Event(Kind.TASK_LANDED, part.id, SUPERVISOR, now, "", about))
        store.commit(changes, events)
        self.landed += [store.landing(landing).task for landing in move.landings]
        self.landed += [part.id for part in parts]

    def _close_terminal(self, task_id: str) -> list[Change]:
        """Work that was forced to land may have an agent that waits in its terminal: it is done."""
        task = self._parts.store.task(task_id)
        if task.state is not TaskState.RUNNING or task.spec.mode != Mode.TERMINAL:
            return []
        run = self._parts.store.run(task.run_id)
        return [Put(replace(run, wanted=Wanted.CLOSE, closed="Landed."))] if not run.wanted else []

    def _blame(self, train: Train, landing: Landing) -> None:
        assert self._target is not None
        alone = (landing.id,)
        gate = self._gate(alone, {landing.id: landing})
        result = self._result(alone, gate, {landing.id: landing})
        text = gate_text(train.onto, self._target.commit, gate, result.output)
        why = f"On {train.onto} at {self._target.commit[:12]} it does not pass: {gate}"
        self._put(replace(train, rate=next_rate(train.rate, passed=False), plan=()))
        self._send_back(landing, why, text, result.id)

    def _send_back(self, landing: Landing, why: str, text: str, result: str = "") -> None:
        store, world = self._parts.store, self._parts.world(landing.project)
        land = world.settings.land
        mends = reconciler_of(store.task(landing.task), land.reconciler, world.fleet)
        back = partial(sent_back, why=why, tries=land.tries, result=result)
        send_back(store, landing.id, back, text, reconciler=mends)
        self._built.clear()

    def _test(
        self,
        train: Train,
        candidates: Sequence[Candidate],
        by_id: dict[str, Landing],
        slots: int,
    ) -> None:
        if missing := [c for c in candidates if c not in self._built]:
            self._build(train, missing, by_id)
            return
        wanted: dict[str, tuple[Candidate, GateResult, str]] = {}
        for candidate in candidates:
            gate = self._gate(candidate, by_id)
            result = self._result(candidate, gate, by_id)
            wanted[result.id] = (candidate, result, gate)
        self.gates.keep(set(wanted))
        if not wanted:
            self.idle = True  # all of them wait for work that is with its agent
            self._plan(train, ())
            return
        self.project = by_id[candidates[0][0]].project
        for name, (candidate, result, gate) in wanted.items():
            if name not in self.gates.running and self.gates.count < slots:
                commit = self._built[candidate].commit
                self.gates.start(by_id[candidate[0]].project, result, gate, commit)
                self.went_on = True
        self._plan(train, [self._planned(train, r, c) for c, r, _ in wanted.values()])

    def _planned(self, train: Train, result: GateResult, candidate: Candidate) -> Planned:
        built = self._built[candidate]
        known = (one for one in train.plan if one.result == result.id and one.tests(result))
        began = next((one.began for one in known), 0)
        if not began and result.id in self.gates.running:
            began = self._parts.store.now()
        return Planned(candidate, built.commit, built.tree, result.id, began)

    def _plan(self, train: Train, plan: Sequence[Planned]) -> None:
        """Write down what is tested, for readers; nothing is decided by it."""
        if tuple(plan) != train.plan:
            self._put(replace(train, plan=tuple(plan)))

    def _build(
        self, train: Train, candidates: Sequence[Candidate], by_id: dict[str, Landing]
    ) -> None:
        """Merge what is missing of these candidates; the first conflict is looked at next."""
        assert self._target is not None
        git, base = self._git(train), self._target
        works = {i: self._work(landing) for i, landing in by_id.items()}
        fresh: dict[Candidate, Built] = {}
        others: dict[str, OtherSide] = {}  # by member that conflicts with the branch itself
        bring = self._bringing([*by_id.values()])

        def act() -> None:
            bring()
            for candidate in candidates:
                before = base.commit
                for n in range(len(candidate)):
                    part = candidate[: n + 1]
                    built = self._built.get(part) or fresh.get(part)
                    if built is None:
                        built = fresh[part] = git.build(before, works[part[-1]])
                    if built.conflicts and n == 0:
                        others[part[0]] = _other_side(git, base.commit, built)
                    if built.conflicts:
                        return
                    before = built.commit

        def then() -> None:
            self._built.update(fresh)
            for member, other in others.items():
                self._conflict(train, base, by_id[member], other)

        self._begin(act, then)

    def _bringing(self, landings: Sequence[Landing]) -> Callable[[], object]:
        """Takes what was made on other hosts into this repository."""
        if not self._here.shared:
            return lambda: None
        store, task = self._parts.store, self._parts.store.task(landings[0].task)
        checkout = self._parts.checkout(task.project)
        missing = checkout.missing(task, [landing.tip for landing in landings])
        pieces = pieces_of(store, missing) if missing else []
        return lambda: checkout.bring(task, pieces, missing) if missing else None

    def _rival(self, landing: Landing, files: Sequence[str]) -> str:
        """A landing before this one that went back for a conflict in the same files.

        Were both mended at once, the second would conflict with the first again.
        """
        for other, contested in self._contested.items():
            if other != landing.id and other in self._open and set(contested) & set(files):
                return other
        return ""

    def _wait_behind(self, landing: Landing, why: str) -> None:
        if landing.why != why:
            with suppress(Conflict):
                self._parts.store.commit([Put(replace(landing, why=why))], [])

    def _work(self, landing: Landing) -> MemberWork:
        title = self._parts.store.task(landing.task).title
        message = f"{title}\n\nLanded by fleet: {landing.task}, {landing.id}."
        runs = reversed(self._parts.store.runs(landing.task))
        workspace = next((run.workspace for run in runs if run.workspace), None)
        branch = workspace.branch if workspace else ""
        return MemberWork(landing.tip, message, landing.wish.how, branch)

    def _conflict(self, train: Train, base: Target, landing: Landing, other: OtherSide) -> None:
        files = ", ".join(other.files[:10])
        why = f"It conflicts with {train.onto} in {files}."
        if rival := self._rival(landing, other.files):
            self._behind[landing.id] = rival
            self._wait_behind(landing, f"{why} So did {rival}: it waits for that one.")
            return
        self._contested[landing.id] = other.files
        owners = self._owners(train, other.mainline)
        text = conflict_text(train.onto, base.commit, other.files, other.changes, owners)
        self._send_back(landing, why, text)

    def _owners(self, train: Train, mainline: Sequence[tuple[str, bool]]) -> list[str]:
        """The tasks whose work changed these files, with their titles, newest first."""
        store = self._parts.store
        known = store.landings(LandingQuery(train=train.id, limit=MOST_WAITING))
        landed_ = [one for one in known if one.state is LandingState.LANDED]
        by_commit = {one.commit: one.task for one in landed_}
        starts = {one.evidence.before for one in landed_}
        owner, owners = "", dict[str, None]()
        for commit, touches in mainline:
            if commit in by_commit:
                owner = by_commit[commit]
            elif commit in starts:
                owner = ""  # from here on a person's
            if touches and owner:
                owners[owner] = None
        titles = store.tasks_by_id(list(owners))
        return [f"{task} ({titles[task].title})" for task in owners if task in titles]


def _other_side(git: Branches, onto: str, built: Built) -> OtherSide:
    changes, mainline = "", list[tuple[str, bool]]()
    with suppress(FleetError, OSError):
        changes = git.sides(onto, built.tip, built.conflicts)
        mainline = git.mainline(onto, built.tip, built.conflicts)
    return OtherSide(built.conflicts, changes, mainline)


def _words(error: FleetError | OSError) -> str:
    """What is in the way, and what a person can do about it."""
    if isinstance(error, (Refused, NotFound)) and error.fix:
        return f"{error.message.rstrip('.')}. {error.fix.rstrip('.')}."
    return str(error)


def _goes_on(landing: Landing, task: Task) -> bool:
    """Whether it may land without a person."""
    if landing.state is LandingState.RETURNED:
        return not task.paused and task.state not in {TaskState.FAILED, TaskState.CANCELLED}
    return landing.state is LandingState.QUEUED


def _is_away(task: Task) -> bool:
    """Whether it is done, and its work neither landed nor waits to land by itself."""
    return task.state is TaskState.DONE and not (task.tally.landed or task.tally.landing)


def _is_done(task: Task) -> bool:
    return task.state in {TaskState.DONE, TaskState.REVIEW}
