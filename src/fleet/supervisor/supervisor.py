"""The supervisor: reconcile what is, decide what starts, act. One `step` never waits."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.choice import model_slots
from fleet.domain.errors import Conflict, FleetError, Refused
from fleet.domain.event import Event, Kind
from fleet.domain.message import MessageKind
from fleet.domain.run import Ending, Host, Outcome, Run, RunState, Slots
from fleet.domain.schedule import Ask, Slot, Start, Wait, credential, schedule, within_parent
from fleet.domain.schedule import waits as reasons
from fleet.domain.task import SECOND, Mode, Retry, TaskState, claim
from fleet.operations.shared.choice import choose_in
from fleet.ports import Put, Same
from fleet.supervisor.attempt.attempt import Attempt
from fleet.supervisor.attempt.gate import gate_name
from fleet.supervisor.attempt.settle import end_run
from fleet.supervisor.attempt.site import last_started, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.domain.fleet import Fleet
    from fleet.domain.message import Message
    from fleet.domain.run import Choice
    from fleet.domain.task import Task
    from fleet.ports import Change
    from fleet.supervisor.parts import Here, Parts

LEASE = 90 * SECOND
MARGIN = 15 * SECOND  # a keeper ends its coder so much before anyone else may start it
NEVER = 1 << 62
MOST_WORDS = 10_000
MOST_CANDIDATES = 5_000
FAR = 1.0  # seconds between two looks at all of those
LOOK_AHEAD = 64  # candidates beyond the free slots: some need what others hold


class Supervisor:
    def __init__(self, parts: Parts, here: Here) -> None:
        self._parts = parts
        self._here = here
        self._host = Host(here.host, 0, here.name, here.holder, here.boot, 0)
        self._leftovers: set[str] = set()
        self.attempts: dict[str, Attempt] = {}
        self.waits: tuple[Wait, ...] = ()
        self.trouble: dict[str, str] = {}  # by run: what keeps it from going on
        self.claiming = True
        self.only: frozenset[str] = frozenset()  # the tasks to start; empty: all
        self._keeper_lease = 0.0
        self._looked_far = 0.0
        self._stuck: dict[str, str] = {}  # tasks that wait for a person to set something right
        self._down: dict[str, str] = {}  # by their addresses, why nodes cannot be used
        self._felt: set[str] = set()  # the addresses whose nodes were asked in this pass

    def start(self) -> None:
        """Register as this host's supervisor."""
        held = self._parts.store.hosts().get(self._here.host)
        self._host = replace(self._host, version=held.version if held else 0)
        self._renew()

    def step(self) -> bool:
        """Whether runs began or ended: then there may be more to do at once."""
        before = set(self.attempts)
        self._renew()
        if self._here.shared:
            self._reclaim()
        if self.claiming:
            self._start_ready()
        self._tend()
        self._clean_up()
        return before != set(self.attempts)

    @property
    def typing(self) -> bool:
        """Something is half-way into a prompt box."""
        return any(attempt.typing for attempt in self.attempts.values())

    @property
    def stuck(self) -> dict[str, str]:
        """By task, what a person has to set right before it can start."""
        return self._stuck

    @property
    def idle(self) -> bool:
        """Nothing runs here, and nothing could start now or by itself later."""
        if self.attempts:
            return False
        left = self._parts.store.candidates(now=NEVER, limit=len(self._stuck) + 1)
        return all(task.id in self._stuck for task in left)

    def _renew(self) -> None:
        """One row for all our runs. Asleep past the lease and not taken over: we carry on."""
        now = self._parts.store.now()
        down = tuple(f"{address} {why}" for address, why in sorted(self._down.items()))
        news = down != self._host.down
        if self._host.version and self._host.lease_until - now > LEASE // 2 and not news:
            return
        mine = replace(self._host, lease_until=now + LEASE, down=down, room=self._room())
        until = self._parts.clock.since_boot() + (LEASE - MARGIN) / SECOND  # from before the commit
        try:
            (self._host,) = self._parts.store.commit([Put(mine)], [])  # type: ignore[assignment]
        except Conflict:
            held = self._parts.store.hosts()[self._here.host]
            self._host = replace(mine, version=held.version)
            return
        self._keeper_lease = until
        if self._here.shared:
            self._renew_keepers(self._parts.store.live_runs(host=self._here.host))

    def _renew_keepers(self, runs: Iterable[Run]) -> None:
        try:
            names = [name for run in runs for name in (run.id, gate_name(run.id))]
            self._parts.launcher.renew(names, until=self._keeper_lease)
        except OSError as error:  # a full disk: their keepers will end them in time
            self.trouble["leases"] = str(error)
        else:
            self.trouble.pop("leases", None)

    def _tend(self) -> None:
        live = {r.id: r for r in self._parts.store.live_runs(host=self._here.host)}
        for run_id in [i for i in self.attempts if i not in live]:
            del self.attempts[run_id]
            self._leftovers |= {run_id, gate_name(run_id)}  # ended by somebody else: no more of it
        words = self._words() if live else {}
        for run in live.values():
            if self._here.shared and run.state is RunState.CLAIMED:
                self._renew_keepers([run])
            attempt = self.attempts.get(run.id)
            if attempt is None:
                attempt = self.attempts[run.id] = Attempt(self._parts, self._here, run)
            attempt.run = run
            attempt.waiting = words.get(run.task, ())
            if run.holder == self._here.holder or self._adopt(attempt):
                self._advance(attempt)

    def _words(self) -> dict[str, list[Message]]:
        """What was sent and not heard yet, by task."""
        found: dict[str, list[Message]] = {}
        for message in self._parts.store.open_messages(MessageKind.WORDS, limit=MOST_WORDS):
            found.setdefault(message.task, []).append(message)
        return found

    def _adopt(self, attempt: Attempt) -> bool:
        """Take over a run of the incarnation before us as it is: its epoch stays."""
        mine = replace(attempt.run, holder=self._here.holder)
        try:
            (adopted,) = self._parts.store.commit([Put(mine)], [])
        except Conflict:
            return False  # it has just changed: the next step reads it again
        assert isinstance(adopted, Run)
        attempt.run = adopted
        return True

    def _advance(self, attempt: Attempt) -> None:
        """One run that cannot go on now holds up none of the others."""
        try:
            attempt.step()
        except (FleetError, OSError) as error:
            self.trouble[attempt.run.id] = str(error)
        except Exception as error:  # noqa: BLE001  # a bug, perhaps in one coder's adapter
            self.trouble[attempt.run.id] = f"{type(error).__name__}: {error}"
        else:
            self.trouble.pop(attempt.run.id, None)
        if attempt.over:
            del self.attempts[attempt.run.id]

    def _clean_up(self) -> None:
        for run_id in sorted(self._leftovers):
            with suppress(FleetError, OSError):  # tried again in the next step
                if self._parts.launcher.end(run_id):
                    self._leftovers.discard(run_id)

    def _reclaim(self) -> None:
        """End runs whose host has let its lease run out; their keepers have ended them there."""
        for run in self._parts.store.live_runs():
            if run.host != self._here.host and self._silent(run.host) is not None:
                outcome = Outcome(Ending.LOST, f"Its host {run.host} went silent.", gone=False)
                end_run(
                    self._parts.store,
                    run.id,
                    partial(_as_it_is, outcome),
                    Retry(),
                    jitter=0.0,
                    provided=partial(self._silent, run.host),
                )

    def _silent(self, host_id: str) -> list[Change] | None:
        """That the host's lease has run out, as something to insist on; None: it has not."""
        host = self._parts.store.hosts().get(host_id)
        if host is None:
            return []
        return [Same(host)] if host.lease_until < self._parts.store.now() else None

    def _start_ready(self) -> None:
        store = self._parts.store
        room = self._room() - len(self.attempts)
        limit = max(0, room) + LOOK_AHEAD
        while True:
            candidates = self._candidates(limit)
            asks, waits = self._asks(candidates)
            rows = store.slots(sorted({name for ask in asks for name in ask.names})) if asks else {}
            plan = schedule(asks, rows, now=store.now())
            found = len(plan.starts) >= room or len(candidates) < limit
            if found or limit >= MOST_CANDIDATES or not self._may_look_far():
                break
            limit = MOST_CANDIDATES  # all of the first ones wait for something that others do not
        self.waits = (*waits, *plan.waits)
        self._stuck = {wait.task: wait.why for wait in waits}
        for run in self._claim_all(plan.starts, rows):
            self.attempts[run.id] = Attempt(self._parts, self._here, run)

    def _may_look_far(self) -> bool:
        """Now and then: thousands of tasks that wait for a node are not gone through all the time."""
        now = self._parts.clock.since_boot()
        if now - self._looked_far < FAR:
            return False
        self._looked_far = now
        return True

    def _candidates(self, limit: int) -> list[Task]:
        """What could start; of a supervisor that is there for some tasks only, those."""
        store = self._parts.store
        now = store.now()
        if not self.only:
            return store.candidates(now=now, limit=limit)
        asked = store.tasks_by_id(sorted(self.only)).values()
        return [t for t in asked if t.state is TaskState.OPEN and not self._held(t, now)]

    def _held(self, task: Task, now: int) -> bool:
        needs = self._parts.store.tasks_by_id(task.after)
        messages = self._parts.store.messages(task.id)
        return bool(reasons(task, list(needs.values()), messages, now=now))

    def _room(self) -> int:
        return self._here.max_concurrent or self._parts.world("").settings.max_concurrent

    def _asks(self, tasks: Iterable[Task]) -> tuple[list[Ask], list[Wait]]:
        asks: list[Ask] = []
        waits: list[Wait] = []
        self._felt.clear()
        for task in tasks:
            try:
                asks.append(self._ask(task))
            except FleetError as error:  # its project's settings are wrong: it waits, others do not
                waits.append(Wait(task.id, error.code, error.message, error.fix))
        return asks, waits

    def _ask(self, task: Task) -> Ask:
        task = replace(task, spec=self._parts.files.edited(task))
        world = self._parts.world(task.project)
        if "run.gate" in world.withheld and not task.spec.gate:
            raise Refused(  # without it the task would be done unchecked
                "The gate of its project is not trusted, so the task could not be checked.",
                fix=f"In {task.project}: fleet trust",
                code="untrusted",
            )
        _, choice = choose_in(world, task.spec, coder=self._here.coder)
        swarm = within_parent(self._parts.store.task(task.parent) if task.parent else None)
        needs: list[tuple[Slot, ...]] = [swarm] if swarm else []
        if task.spec.mode == Mode.QUEUED or task.spawned:
            needs.append((Slot(f"host {self._here.host}", self._room()),))
        if task.spec.mode == Mode.TERMINAL:  # idle most of the time: it holds no other capacity
            return Ask(task, choice, tuple(needs), credential(choice))
        servings = model_slots(choice, world.fleet, self._pulses(choice, world.fleet))
        if servings:
            needs.append(servings)
        if task.spec.in_place:
            needs.append((Slot(f"directory {task.spec.cwd}", 1),))
        return Ask(task, choice, tuple(needs), "" if servings else credential(choice))

    def _pulses(self, choice: Choice, fleet: Fleet) -> dict[str, str]:
        """Why nodes that serve its model cannot be used; one that never answered cannot, either.

        Each is asked once for all tasks: one that comes up meanwhile lets none overtake another.
        """
        model = fleet.model(choice.model) if choice.model else None
        servings = model.servings if model else ()
        for node in {s.node for s in servings if s.node.endpoint not in {"", *self._felt}}:
            self._felt.add(node.endpoint)
            pulse = self._parts.nodes.pulse(node)
            if pulse.up:
                self._down.pop(node.endpoint, None)
            else:
                self._down[node.endpoint] = pulse.why
        return self._down

    def _claim_all(self, starts: Sequence[Start], rows: dict[str, Slots]) -> list[Run]:
        """In one commit; where other hosts claim, too, each in its own, as soon as it is planned."""
        planned: Iterable[tuple[Task, Run]] = map(self._planned, starts)
        alone = len(starts) > 1 and not self._here.shared
        planned = list(planned) if alone else planned
        with self._parts.store.together() if alone else nullcontext():
            claimed = [self._claim(task, run, rows) for task, run in planned]
        return [run for run in claimed if run is not None]

    def _planned(self, start: Start) -> tuple[Task, Run]:
        """The task and its run, which will work where is written down before anything is made."""
        store = self._parts.store
        said = store.messages(start.task.id)  # which it has heard of, wherever the clock was then
        now = max([store.now(), *(message.at for message in said)])
        here = self._here
        task, run = claim(
            start.task, start.choice, host=here.host, holder=here.holder, slots=start.slots, at=now
        )
        with suppress(Exception):  # whatever is wrong there, the run itself will say
            site = site_of(store, task, run, last_started(store, run))
            run = replace(run, workspace=self._parts.checkout(task.project).plan(site))
        return task, run

    def _claim(self, task: Task, run: Run, rows: dict[str, Slots]) -> Run | None:
        """The task, its run, the capacity: all or nothing. None: it was taken by another."""
        changes: list[Change] = [Put(task), Put(run)]
        for name in run.slots:
            row = rows.get(name) or Slots(name, 0)
            changes.append(Put(replace(row, holders=(*row.holders, run.id))))
        data = {"coder": run.choice.coder}
        event = Event(Kind.RUN_CLAIMED, task.id, SUPERVISOR, run.claimed_at, run.id, data)
        try:
            done = self._parts.store.commit(changes, [event])
        except Conflict:
            return None  # no rows are read anew: a limit is judged on the very row that is written
        rows |= {r.id: r for r in done if isinstance(r, Slots)}
        return replace(run, version=1)


def _as_it_is(outcome: Outcome, _run: Run) -> Outcome:
    return outcome
