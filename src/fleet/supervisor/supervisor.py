"""The supervisor: watch this host's runs and start ready tasks. `step` never waits."""

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
from fleet.domain.schedule import (
    NODE_DOWN,
    Ask,
    Slot,
    Start,
    Wait,
    credential,
    schedule,
    within_parent,
)
from fleet.domain.schedule import waits as reasons
from fleet.domain.task import SECOND, Mode, Retry, TaskState, claim
from fleet.operations.shared.choice import choose_for
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
MARGIN = 15 * SECOND  # a keeper ends its coder this long before another host may start the task
FAR_FUTURE = 1 << 62
MOST_WORDS = 10_000
MOST_CANDIDATES = 5_000
LOOK_FAR_SECONDS = 1.0  # between two reads of MOST_CANDIDATES tasks
NODE_SECONDS = 5.0  # how long `fleet run --once` waits for a node that does not answer
LOOK_AHEAD = 64  # candidates beyond the free slots: some wait for slots that are taken


class Supervisor:
    def __init__(self, parts: Parts, here: Here) -> None:
        self._parts = parts
        self._here = here
        self._host = Host(here.host, 0, here.name, here.holder, here.boot, 0)
        self._leftovers: set[str] = set()
        self.attempts: dict[str, Attempt] = {}
        self.waits: tuple[Wait, ...] = ()
        self.trouble: dict[str, str] = {}  # by run: the error of its last step
        self.claiming = True
        self.only: frozenset[str] = frozenset()  # ids of the tasks to start; empty: all
        self._keeper_lease = 0.0
        self._looked_far = 0.0
        self._stuck: dict[str, str] = {}  # by task: what a person must fix before it can start
        self._down: dict[str, str] = {}  # by endpoint: why the node cannot be used
        self._waiting_since: float | None = None  # since when only nodes keep tasks from starting
        self._checked: set[str] = set()  # endpoints whose nodes were asked in this pass

    def start(self) -> None:
        """Register as this host's supervisor."""
        row = self._parts.store.hosts().get(self._here.host)
        self._host = replace(self._host, version=row.version if row else 0)
        self._renew()

    def step(self) -> bool:
        """Return whether runs began or ended: then there may be more to do at once."""
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
        """Whether a message is being pasted into an agent's prompt box."""
        return any(attempt.typing for attempt in self.attempts.values())

    @property
    def stuck(self) -> dict[str, str]:
        """By task: what a person must fix before it can start."""
        return self._stuck

    @property
    def idle(self) -> bool:
        """Whether no run here needs us, and no task could start without a person or a node.

        A node has a while to answer. An agent in a terminal goes on without us.
        """
        if any(not attempt.left_to_its_person for attempt in self.attempts.values()):
            return False
        blocked = {**self._stuck, **self._without_node()}
        left = self._parts.store.candidates(now=FAR_FUTURE, limit=len(blocked) + 1)
        if not all(task.id in blocked for task in left):
            self._waiting_since = None
            return False
        now = self._parts.clock.since_boot()
        self._waiting_since = now if self._waiting_since is None else self._waiting_since
        waited = now - self._waiting_since >= NODE_SECONDS
        return waited or not any(task.id not in self._stuck for task in left)

    def left(self) -> dict[str, str]:
        """By task: what is not done, and why we need not wait for it."""
        at_terminals = {a.run.task: "it goes on in its terminal" for a in self.attempts.values()}
        return {**at_terminals, **self._without_node()}

    def _without_node(self) -> dict[str, str]:
        return {wait.task: wait.why for wait in self.waits if wait.code == NODE_DOWN}

    def _renew(self) -> None:
        """Renew the one lease of all our runs.

        When this machine slept past the lease and no other host took a run over, we carry on.
        """
        now = self._parts.store.now()
        down = tuple(f"{address} {why}" for address, why in sorted(self._down.items()))
        changed = down != self._host.down
        if self._host.version and self._host.lease_until - now > LEASE // 2 and not changed:
            return
        renewed = replace(self._host, lease_until=now + LEASE, down=down, room=self._room())
        until = self._parts.clock.since_boot() + (LEASE - MARGIN) / SECOND  # read before the commit
        try:
            (self._host,) = self._parts.store.commit([Put(renewed)], [])  # type: ignore[assignment]
        except Conflict:
            row = self._parts.store.hosts()[self._here.host]
            self._host = replace(renewed, version=row.version)
            return
        self._keeper_lease = until
        if self._here.shared:
            self._renew_keepers(self._parts.store.live_runs(host=self._here.host))

    def _renew_keepers(self, runs: Iterable[Run]) -> None:
        try:
            names = [name for run in runs for name in (run.id, gate_name(run.id))]
            self._parts.launcher.renew(names, until=self._keeper_lease)
        except OSError as error:  # a full disk: the keepers will end their coders in time
            self.trouble["leases"] = str(error)
        else:
            self.trouble.pop("leases", None)

    def _tend(self) -> None:
        live = {r.id: r for r in self._parts.store.live_runs(host=self._here.host)}
        for run_id in [i for i in self.attempts if i not in live]:
            del self.attempts[run_id]
            self._leftovers |= {run_id, gate_name(run_id)}  # another process ended it
        words = self._unheard_words() if live else {}
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

    def _unheard_words(self) -> dict[str, list[Message]]:
        """By task: the messages that its agent has not heard yet."""
        words: dict[str, list[Message]] = {}
        for message in self._parts.store.open_messages(MessageKind.WORDS, limit=MOST_WORDS):
            words.setdefault(message.task, []).append(message)
        return words

    def _adopt(self, attempt: Attempt) -> bool:
        """Take over a run of the supervisor before us as it is: its epoch stays."""
        ours = replace(attempt.run, holder=self._here.holder)
        try:
            (adopted,) = self._parts.store.commit([Put(ours)], [])
        except Conflict:
            return False  # the run has just changed: the next step reads it again
        assert isinstance(adopted, Run)
        attempt.run = adopted
        return True

    def _advance(self, attempt: Attempt) -> None:
        """Step one run; its error does not hold up the others."""
        try:
            attempt.step()
        except (FleetError, OSError) as error:
            self.trouble[attempt.run.id] = str(error)
        except Exception as error:  # noqa: BLE001  # a bug, perhaps in the adapter of one coder
            self.trouble[attempt.run.id] = f"{type(error).__name__}: {error}"
        else:
            self.trouble.pop(attempt.run.id, None)
        if attempt.over:
            del self.attempts[attempt.run.id]

    def _clean_up(self) -> None:
        for run_id in sorted(self._leftovers):
            with suppress(FleetError, OSError):  # the next step tries again
                if self._parts.launcher.end(run_id):
                    self._leftovers.discard(run_id)

    def _reclaim(self) -> None:
        """End the runs of hosts whose lease has expired: their keepers have ended the coders."""
        for run in self._parts.store.live_runs():
            if run.host != self._here.host and self._expired_lease(run.host) is not None:
                outcome = Outcome(Ending.LOST, f"Its host {run.host} went silent.", gone=False)
                end_run(
                    self._parts.store,
                    run.id,
                    partial(_as_it_is, outcome),
                    Retry(),
                    jitter=0.0,
                    provided=partial(self._expired_lease, run.host),
                )

    def _expired_lease(self, host_id: str) -> list[Change] | None:
        """What a commit must check to rely on an expired lease; None: it has not expired."""
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
            enough = len(plan.starts) >= room or len(candidates) < limit
            if enough or limit >= MOST_CANDIDATES or not self._may_look_far():
                break
            limit = MOST_CANDIDATES  # the first ones all wait; later ones may not
        self.waits = (*waits, *plan.waits)
        self._stuck = {wait.task: wait.why for wait in waits}
        for run in self._claim_all(plan.starts, rows):
            self.attempts[run.id] = Attempt(self._parts, self._here, run)

    def _may_look_far(self) -> bool:
        """Whether to read MOST_CANDIDATES tasks. Rarely: thousands may wait for a node."""
        now = self._parts.clock.since_boot()
        if now - self._looked_far < LOOK_FAR_SECONDS:
            return False
        self._looked_far = now
        return True

    def _candidates(self, limit: int) -> list[Task]:
        """The tasks that could start; only those of `only` when it names some."""
        store = self._parts.store
        now = store.now()
        if not self.only:
            return store.candidates(now=now, limit=limit)
        tasks = store.tasks_by_id(sorted(self.only)).values()
        return [t for t in tasks if t.state is TaskState.OPEN and not self._must_wait(t, now)]

    def _must_wait(self, task: Task, now: int) -> bool:
        needs = self._parts.store.tasks_by_id(task.after)
        messages = self._parts.store.messages(task.id)
        return bool(reasons(task, list(needs.values()), messages, now=now))

    def _room(self) -> int:
        return self._here.max_concurrent or self._parts.world("").settings.max_concurrent

    def _asks(self, tasks: Iterable[Task]) -> tuple[list[Ask], list[Wait]]:
        asks: list[Ask] = []
        waits: list[Wait] = []
        self._checked.clear()
        for task in tasks:
            try:
                asks.append(self._ask(task))
            except FleetError as error:  # its project's settings are wrong: only this task waits
                waits.append(Wait(task.id, error.code, error.message, error.fix))
        return asks, waits

    def _ask(self, task: Task) -> Ask:
        task = replace(task, spec=self._parts.files.edited(task))
        world = self._parts.world(task.project)
        if "run.gate" in world.withheld and not task.spec.gate:
            raise Refused(  # without the gate, nothing would check the task
                "The gate of its project is not trusted, so the task could not be checked.",
                fix=f"In {task.project}: fleet trust",
                code="untrusted",
            )
        choice = choose_for(world, task, coder=self._here.coder)
        swarm = within_parent(self._parts.store.task(task.parent) if task.parent else None)
        needs: list[tuple[Slot, ...]] = [swarm] if swarm else []
        if task.spec.mode == Mode.QUEUED or task.spawned:
            needs.append((Slot(f"host {self._here.host}", self._room()),))
        if task.spec.mode == Mode.TERMINAL:  # idle most of the time: it takes no other slot
            return Ask(task, choice, tuple(needs), credential(choice))
        servings = model_slots(choice, world.fleet, self._nodes_down(choice, world.fleet))
        if servings:
            needs.append(servings)
        if task.spec.in_place:
            needs.append((Slot(f"directory {task.spec.cwd}", 1),))
        return Ask(task, choice, tuple(needs), "" if servings else credential(choice))

    def _nodes_down(self, choice: Choice, fleet: Fleet) -> dict[str, str]:
        """By endpoint: why a node cannot be used. Asks the nodes that serve the chosen model.

        Each is asked once in a pass, so that a node which comes up during it lets no task overtake
        another. A node that never answered cannot be used either.
        """
        model = fleet.model(choice.model) if choice.model else None
        servings = model.servings if model else ()
        for node in {s.node for s in servings if s.node.endpoint not in {"", *self._checked}}:
            self._checked.add(node.endpoint)
            pulse = self._parts.nodes.pulse(node)
            if pulse.up:
                self._down.pop(node.endpoint, None)
            else:
                self._down[node.endpoint] = pulse.why
        return self._down

    def _claim_all(self, starts: Sequence[Start], rows: dict[str, Slots]) -> list[Run]:
        """Claim all in one commit; where other hosts claim too, each as soon as it is planned."""
        planned: Iterable[tuple[Task, Run]] = map(self._planned, starts)
        alone = len(starts) > 1 and not self._here.shared
        planned = list(planned) if alone else planned
        with self._parts.store.together() if alone else nullcontext():
            claimed = [self._claim(task, run, rows) for task, run in planned]
        return [run for run in claimed if run is not None]

    def _planned(self, start: Start) -> tuple[Task, Run]:
        """The claimed task and its run, which names its workspace before that is made."""
        store = self._parts.store
        messages = store.messages(start.task.id)  # the run hears them all, whatever the clock says
        at = max([store.now(), *(message.at for message in messages)])
        here = self._here
        task, run = claim(
            start.task, start.choice, host=here.host, holder=here.holder, slots=start.slots, at=at
        )
        with suppress(Exception):  # the run itself reports what is wrong there
            site = site_of(store, task, run, last_started(store, run))
            run = replace(run, workspace=self._parts.checkout(task.project).plan(site))
        return task, run

    def _claim(self, task: Task, run: Run, rows: dict[str, Slots]) -> Run | None:
        """Write the task, its run and its slots in one commit. None: another host took the task."""
        changes: list[Change] = [Put(task), Put(run)]
        for name in run.slots:
            row = rows.get(name) or Slots(name, 0)
            changes.append(Put(replace(row, holders=(*row.holders, run.id))))
        data = {"coder": run.choice.coder}
        event = Event(Kind.RUN_CLAIMED, task.id, SUPERVISOR, run.claimed_at, run.id, data)
        try:
            written = self._parts.store.commit(changes, [event])
        except Conflict:
            return None  # rows are not read again: the row judged must be the row written
        rows |= {r.id: r for r in written if isinstance(r, Slots)}
        return replace(run, version=1)


def _as_it_is(outcome: Outcome, _run: Run) -> Outcome:
    return outcome
