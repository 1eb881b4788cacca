"""The supervisor: watch this host's runs and start ready tasks. `step` never waits."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.choice import NEVER, model_slots, no_program, program_owner, serving_place
from fleet.domain.errors import Conflict, FleetError, Refused
from fleet.domain.event import Event, Kind
from fleet.domain.fleet import url_of
from fleet.domain.hosts.labels import ABSENT, NO_HOST, UNTRUSTED, WITHOUT, labels_of, lacking
from fleet.domain.hosts.lease import beat, margin, observe
from fleet.domain.message import MessageKind
from fleet.domain.run import Checkpoint, Ending, Host, Outcome, Run, RunState
from fleet.domain.schedule import (
    NO_SLOT,
    NODE_DOWN,
    Claim,
    ReadyTask,
    Slot,
    Start,
    Wait,
    credential,
    on_host,
    schedule,
    within_parent,
    without_its_work,
)
from fleet.domain.schedule import waits as reasons
from fleet.domain.task import SECOND, Mode, Retry, TaskState, claim
from fleet.operations.shared.choice import check_gate, choose_for
from fleet.ports import Put, Same
from fleet.supervisor.ahead import WorkspacesAhead
from fleet.supervisor.attempt.attempt import Attempt
from fleet.supervisor.attempt.gate import gate_name
from fleet.supervisor.attempt.progress import write_together
from fleet.supervisor.attempt.settle import end_run
from fleet.supervisor.attempt.site import last_started, site_of
from fleet.supervisor.share_commits import Bringing

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from fleet.domain.fleet import Fleet, Gateway, Serving
    from fleet.domain.hosts.lease import HostSight
    from fleet.domain.message import Message
    from fleet.domain.run import Choice, Slots
    from fleet.domain.task import Task
    from fleet.ports import Change
    from fleet.supervisor.parts import Parts, ThisSupervisor

FAR_FUTURE = 1 << 62
MOST_WORDS = 10_000
MOST_CANDIDATES = 5_000
LOOK_FAR_SECONDS = 1.0  # at least, between two reads of MOST_CANDIDATES tasks
LOOK_FAR_SHARE = 20  # or so many times as long as the last such read took
NODE_SECONDS = 5.0  # how long `fleet run --once` waits for a node that does not answer
LOOK_AT_HOSTS = 4.0  # seconds between looks at the rows of the other hosts
LOOK_FOR_TASKS = 4.0  # likewise for tasks whose time has come, while nothing happens
LOOK_AT_RUNS = 30.0  # likewise at the runs of hosts that are silent or have no row
DISPLACED = (
    "Another machine uses the id of this host, {}: nothing is started here. "
    "Was this home copied? `fleet run restart` gives it an id of its own."
)
TRIES = 3  # to renew the lease when its row has changed, by a person or a lost reply
LOOK_AHEAD = 64  # tasks to read beyond the free room: some wait for model slots that are taken


class Supervisor:
    def __init__(self, parts: Parts, here: ThisSupervisor) -> None:
        self._parts = self.parts = parts
        self._here = self.here = here
        self._host = Host(
            here.host,
            0,
            here.name,
            here.holder,
            here.boot,
            0,
            labels=here.labels,
            release=here.release,
        )
        self._leftovers: set[str] = set()
        self.attempts: dict[str, Attempt] = {}
        self.waits: tuple[Wait, ...] = ()
        self.trouble: dict[str, str] = {}  # by run: the error of its last step
        self.claiming = True
        self.gates = 0  # how many gates of landings run: they take room, too
        self.only: frozenset[str] = frozenset()  # ids of the tasks to start; empty: all
        self._keeper_lease = 0.0
        self._renewed_at = -math.inf
        self._sights: dict[str, HostSight] = {}
        self._looked_at_hosts = self._looked_at_runs = self._looked_for_tasks = -math.inf
        self.draining = False  # a person wants no new runs here
        self._bringing = Bringing(parts)
        self._ahead = WorkspacesAhead(parts, here)
        self._without: dict[str, str] = {}  # by project: why this host cannot work on it
        self._displaced = False  # another machine writes this host's row: it has our id
        self._looked_far = self._far_took = 0.0
        self._names: Sequence[str] = ()  # of the slots that the last round read
        self._stuck: dict[str, str] = {}  # by task: what a person must fix before it can start
        self._down: dict[str, str] = {}  # by endpoint, or model and endpoint: why it cannot be used
        self._waiting_since: float | None = None  # since when only nodes keep tasks from starting
        # By URL of the gateway, in this pass: the models that its relay has shut off, and why.
        self._shut: dict[str, Mapping[str, str]] = {}
        self._checked: set[str] = set()  # keys of `_down` that were checked in this pass
        self._missing: dict[str, str] = {}  # by owner: its program, which is not on PATH
        self._looked_for: set[str] = set()  # owners whose program was looked for in this pass

    def start(self) -> None:
        """Register as this host's supervisor."""
        row = self._parts.store.hosts().get(self._here.host)
        if row is not None:
            self._host = replace(self._host, version=row.version, draining=row.draining)
        self._renew()

    def step(self) -> bool:
        """Do what can be done now. Return whether runs began or ended: call it again at once then."""
        before = set(self.attempts)
        self._renew()
        self._look_at_hosts()
        self._start_and_tend()
        if before - set(self.attempts) or self._have_freed():
            self._start_and_tend()  # at once, before the events are reported: a slot may be free again
        self._clean_up()
        return before != set(self.attempts)

    def _have_freed(self) -> bool:
        """Whether a run whose coder has ended has just freed its model slot, before its gate."""
        freed = [attempt for attempt in self.attempts.values() if attempt.has_freed]
        for attempt in freed:
            attempt.has_freed = False
        return bool(freed)

    def _start_and_tend(self) -> None:
        if self.claiming and not self._displaced:
            self._start_ready()
            self._renew()  # so that the row names nodes and programs that were just found missing
        self._tend()

    def rest(self) -> bool:
        """Renew the lease and look at the other hosts. Return whether there are tasks that might start."""
        self._renew()
        self._look_at_hosts()
        now = self._parts.clock.since_boot()
        if now - self._looked_for_tasks < LOOK_FOR_TASKS:
            return False
        self._looked_for_tasks = now
        return self.claiming and bool(self._candidates(1))

    @property
    def may_rest(self) -> bool:
        """Whether hosts share the store and nothing is under way on this one."""
        return self._here.shared and not (self.attempts or self._leftovers or self.only)

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
        """Whether no run here needs us, and every open task waits for a person or a node.

        A node has `NODE_SECONDS` to answer. An agent in a terminal goes on without us.
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
        """By task: why `fleet run --once` may end although the task is not done."""
        at_terminals = {a.run.task: "it goes on in its terminal" for a in self.attempts.values()}
        return {**self._stuck, **at_terminals, **self._without_node()}

    def _without_node(self) -> dict[str, str]:
        return {wait.task: wait.why for wait in self.waits if wait.code == NODE_DOWN}

    def _renew(self) -> None:
        """Renew this host's lease, which covers all its runs, when it is due or its row has news.

        After this machine slept past the lease, we carry on with the runs that no other host took over.
        """
        self._forget_absent()
        down = tuple(f"{address} {why}" for address, why in sorted(self._down.items()))
        missing = tuple(f"{owner} {program}" for owner, program in sorted(self._missing.items()))
        without = tuple(f"{why} {project}" for project, why in sorted(self._without.items()))
        news = {"down": down, "missing": missing, "without": without}
        changed = any(getattr(self._host, name) != value for name, value in news.items())
        if self._host.version and not changed and not self._is_renewal_due():
            return
        for _ in range(TRIES):
            if self._displaced:
                return
            row = replace(self._host, **news, room=self._room())  # type: ignore[arg-type]
            if self._renew_as(row):
                return

    def _forget_absent(self) -> None:
        """Drop a project that was absent from this host when it is here now."""
        here = self._parts.is_here
        lines = (line.partition(" ") for line in self._host.without)
        if any(w == ABSENT and at not in self._without and here(at) for w, _, at in lines):
            known = self._without.items()
            self._without = {at: why for at, why in known if why != ABSENT or here(at)}

    def _is_renewal_due(self) -> bool:
        lease = self._here.lease
        if self._here.shared:
            return self._parts.clock.since_boot() - self._renewed_at >= beat(lease)
        return self._host.lease_until - self._parts.store.now() <= lease * SECOND // 2

    def _renew_as(self, row: Host) -> bool:
        """Write the row. Return False when it had changed; `_host` then has its new version.

        If it still has our holder, the change is our own renewal, whose reply was lost, or a person's.
        """
        store, lease = self._parts.store, self._here.lease
        at = (
            self._parts.clock.since_boot()
        )  # before the commit, so no other host sees it any earlier
        row = replace(row, lease=lease, lease_until=store.now() + lease * SECOND)
        try:
            (self._host,) = store.commit([Put(row)], [])  # type: ignore[assignment]
        except Conflict:
            there = store.hosts()[self._here.host]
            if self._here.shared and there.holder not in {"", self._here.holder}:
                self._displaced = True
                self.trouble["host"] = DISPLACED.format(self._here.host)
            self._host = replace(self._host, version=there.version, draining=there.draining)
            return False
        self._renewed_at = at
        self._keeper_lease = at + lease - margin(lease)
        if self._here.shared:
            self._renew_keepers(store.live_runs(host=self._here.host))
        return True

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
        write_together(attempt.progress for attempt in self.attempts.values())

    def _unheard_words(self) -> dict[str, list[Message]]:
        """By task: the messages that its agent has not heard."""
        words: dict[str, list[Message]] = {}
        for message in self._parts.store.open_messages(MessageKind.WORDS, limit=MOST_WORDS):
            words.setdefault(message.task, []).append(message)
        return words

    def _adopt(self, attempt: Attempt) -> bool:
        """Take over a run of this host's last supervisor without a new epoch; return whether we could."""
        if self._displaced:
            return False
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

    def _look_at_hosts(self) -> None:
        now = self._parts.clock.since_boot()
        if now - self._looked_at_hosts < LOOK_AT_HOSTS:
            return
        self._looked_at_hosts = now
        rows = {name: row for name, row in self._parts.store.hosts().items() if not row.forgotten}
        if own := rows.get(self._here.host):
            self.draining = own.draining
        if self._here.shared:
            self._reclaim(rows, now)

    def _reclaim(self, rows: dict[str, Host], now: float) -> None:
        """End the runs of silent hosts, whose keepers have ended the coders by now."""
        store = self._parts.store
        before = {name for name, sight in self._sights.items() if sight.is_silent}
        self._sights = observe(self._sights, rows, at=now)
        silent = {n for n, s in self._sights.items() if s.is_silent and n != self._here.host}
        if silent - before or now - self._looked_at_runs >= LOOK_AT_RUNS:
            self._looked_at_runs = now
            for run in store.live_runs():
                if run.host in silent or run.host not in {*rows, self._here.host}:
                    self._take_from(run)

    def _take_from(self, run: Run) -> None:
        """End a run of a silent host as lost, unless the host has renewed its lease meanwhile."""
        progress = self._parts.store.progress([run.id]).get(run.id)
        commit = progress.commit if progress else ""
        saved = Checkpoint(commit) if commit else None
        why = f"Its host {run.host} went silent."
        outcome = Outcome(Ending.LOST, why, checkpoint=saved, gone=False)
        end_run(
            self._parts.store,
            run.id,
            partial(_as_it_is, outcome),
            Retry(),
            jitter=0.0,
            provided=partial(self._still_silent, run.host),
        )

    def _still_silent(self, host_id: str) -> list[Change] | None:
        """The conditions under which a commit may treat the host as silent; None if it is not."""
        row, sight = self._parts.store.hosts().get(host_id), self._sights.get(host_id)
        if row is None:
            return []
        if row.forgotten:
            return [Same(row)]
        return [Same(row)] if sight and sight.host.version == row.version else None

    def _start_ready(self) -> None:
        if self.draining:
            return
        store = self._parts.store
        room = self._room() - len(self.attempts) - self.gates
        for limit, host in self._looks(room):
            candidates, rows = self._look(limit, host)
            asks, waits = self._asks(candidates)
            rows |= self._slots_of(asks, read=self._names if host else ())
            plan = schedule(asks, rows, now=store.now())
            if len(plan.starts) >= room or len(candidates) < limit:
                break
        if (
            len(candidates) < limit
        ):  # we saw every candidate: nothing waits for what was not checked
            self._down = {at: why for at, why in self._down.items() if at in self._checked}
        self.waits = (*waits, *plan.waits)
        self._stuck = {wait.task: wait.why for wait in waits}
        by_task = {ask.task.id: ask for ask in asks}
        starts = [start for start in plan.starts if self._ahead.admits(by_task[start.task.id])]
        for run in self._claim_all(starts):
            ready = self._ahead.hand_over(run.task)
            self.attempts[run.id] = Attempt(self._parts, self._here, run, ready=ready)
        slotless = [wait.task for wait in plan.waits if wait.code == NO_SLOT]
        self._ahead.prepare([by_task[task] for task in slotless])

    def _looks(self, room: int) -> Iterator[tuple[int, str]]:
        """Yield how many candidates to read, and as which host: more, if those before all must wait.

        On a shared store, read at first only as many as there is room for, as this host, so that the
        hosts are offered different tasks.
        """
        if self._here.shared and room > 0 and not self.only:
            yield room, self._here.host
        yield max(0, room) + LOOK_AHEAD, ""
        if self._may_look_far():
            began = self._parts.clock.since_boot()
            try:
                yield MOST_CANDIDATES, ""
            finally:  # also when the caller does not resume this generator
                self._far_took = self._parts.clock.since_boot() - began

    def _may_look_far(self) -> bool:
        """Whether to read MOST_CANDIDATES tasks. Only now and then: it is slow when thousands wait."""
        now = self._parts.clock.since_boot()
        if now - self._looked_far < max(LOOK_FAR_SECONDS, LOOK_FAR_SHARE * self._far_took):
            return False
        self._looked_far = now
        return True

    def _look(self, limit: int, host: str) -> tuple[list[Task], dict[str, Slots]]:
        """Tasks that could start; as `host`, also the slots that the last round read."""
        if not host:
            return self._candidates(limit), {}
        store = self._parts.store
        offer = store.offer(host, now=store.now(), limit=limit, names=self._names)
        return offer.tasks, offer.slots

    def _slots_of(self, asks: Iterable[ReadyTask], *, read: Container[str]) -> dict[str, Slots]:
        """The slots that these tasks need, without those in `read`."""
        names = sorted({name for ask in asks for name in ask.names})
        unread = [name for name in names if name not in read]
        self._names = names
        return self._parts.store.slots(unread) if unread else {}

    def _candidates(self, limit: int) -> list[Task]:
        """The tasks that could start; if `only` is not empty, only those in it."""
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

    def _asks(self, tasks: Iterable[Task]) -> tuple[list[ReadyTask], list[Wait]]:
        asks: list[ReadyTask] = []
        waits: list[Wait] = []
        self._checked.clear()
        self._shut.clear()
        self._looked_for.clear()
        for task in tasks:
            try:
                asks.append(self._ask(task))
            except (
                FleetError
            ) as error:  # such as wrong settings of its project: only this task waits
                waits.append(Wait(task.id, error.code, error.message, error.fix))
        return asks, waits

    def _ask(self, task: Task) -> ReadyTask:
        task = replace(task, spec=self._parts.files.edited(task))
        if task.spec.limits.needs or self._here.shared:
            self._check_host(task)
        world = self._parts.world(task.project)
        check_gate(task, world)
        for need in self._parts.store.tasks_by_id(task.after).values() if task.after else ():
            if wait := without_its_work(task, need):
                raise Refused(wait.why, fix=wait.fix, code=wait.code)
        choice = choose_for(world, task, coder=self._here.coder)
        self._check_program(choice, task.project, world.fleet)
        swarm = within_parent(self._parts.store.task(task.parent) if task.parent else None)
        needs: list[tuple[Slot, ...]] = [swarm] if swarm else []
        if task.spec.mode == Mode.QUEUED or task.spawned:
            needs.append((Slot(f"host {self._here.host}", self._room()),))
        if task.spec.mode == Mode.TERMINAL:  # mostly idle, so it takes no slot of a model
            return ReadyTask(task, choice, tuple(needs), credential(choice, self._here.host))
        host, down = self._here.host, self._nodes_down(choice, world.fleet)
        servings = model_slots(choice, world.fleet, down, (host,))
        if servings:
            needs.append(servings)
        if task.spec.in_place:
            needs.append((Slot(on_host(f"directory {task.spec.cwd}", host), 1),))
        return ReadyTask(task, choice, tuple(needs), "" if servings else credential(choice, host))

    def _check_host(self, task: Task) -> None:
        """Raise `Refused` when this host cannot run the task, though another host may."""
        here, project = self._here, task.project
        if lacks := lacking(task.spec.limits.needs, labels_of(here.host, here.name, here.labels)):
            raise Refused(f"This host, {here.host}, cannot run it: {lacks}.", code=NO_HOST)
        if not here.shared:
            return
        self._without.pop(project, None)
        if not all(map(self._parts.is_here, {project, task.spec.cwd} - {""})):
            self._without[project] = ABSENT
        elif self._parts.world(project).withheld:
            self._without[project] = UNTRUSTED
        if why := self._without.get(project):
            fix = f"In {project}, on {here.host}: fleet trust" if why == UNTRUSTED else ""
            raise Refused(f"Not on this host, {here.host}: {WITHOUT[why]}.", fix=fix, code=NO_HOST)
        if why := self._bringing.why_not(task):
            raise Refused(why, code=NO_HOST)

    def _check_program(self, choice: Choice, project: str, fleet: Fleet) -> None:
        """Raise `Refused` when the coder's program is not installed: the task waits and fails no run."""
        owner = program_owner(choice, fleet.agent(choice.agent))
        if owner not in self._looked_for:
            self._looked_for.add(owner)
            self._missing.pop(owner, None)
            if program := self._parts.missing_program(choice, project):
                self._missing[owner] = program
        if owner in self._missing:
            raise no_program(self._missing[owner])

    def _nodes_down(self, choice: Choice, fleet: Fleet) -> dict[str, str]:
        """Return `_down` after checking the nodes of the model and its fallbacks, and the gateway.

        Each is checked once in a pass, so that no task overtakes another because a node came up between
        the two. A node that has never answered counts as down.
        """
        model = fleet.model(choice.model) if choice.model else None
        servings = [s for each in (model.chain if model else ()) for s in each.servings]
        for node in {s.node for s in servings if s.node.endpoint not in {"", *self._checked}}:
            self._checked.add(node.endpoint)
            pulse = self._parts.nodes.pulse(node)
            if pulse.up:
                self._down.pop(node.endpoint, None)
            else:
                self._down[node.endpoint] = pulse.why
        if model is not None:
            shut = self._shut_off(fleet.gateway)
            for serving in servings:
                self._note_serving(serving, shut)
        return self._down

    def _note_serving(self, serving: Serving, shut: Mapping[str, str]) -> None:
        """Note whether the relay has shut off this model of the node, unless the node itself is down."""
        where = serving_place(serving)
        self._checked.add(where)
        self._down.pop(where, None)
        if where in shut and serving.node.endpoint not in self._down:
            self._down[where] = shut[where]

    def _shut_off(self, gateway: Gateway) -> Mapping[str, str]:
        """The models of nodes that the relay has shut off; also notes whether the gateway answers."""
        url = url_of(gateway)
        if url in self._shut:
            return self._shut[url]
        self._checked |= {url, url + NEVER}
        pulse = self._parts.nodes.gateway(gateway)
        self._shut[url] = pulse.shut
        for key in (url, url + NEVER):
            self._down.pop(key, None)
        if not pulse.up:
            self._down[url + NEVER if pulse.age is None else url] = pulse.why
        return pulse.shut

    def _claim_all(self, starts: Sequence[Start]) -> list[Run]:
        """Claim these tasks in one commit; leave out those that another host took, or has no slots left."""
        return self._parts.store.claim([self._claim(start) for start in starts]) if starts else []

    def _claim(self, start: Start) -> Claim:
        """The claimed task and its run, with its planned workspace."""
        store = self._parts.store
        messages = store.messages(start.task.id)  # the run hears them all, whatever the clock says
        at = max([store.now(), *(message.at for message in messages)])
        here = self._here
        task, run = claim(
            self._numbered(start.task),
            start.choice,
            host=here.host,
            holder=here.holder,
            slots=start.slots,
            at=at,
        )
        with suppress(Exception):  # the run itself will report what is wrong
            site = site_of(store, task, run, last_started(store, run))
            ready = self._ahead.workspace_of(task.id)
            run = replace(run, workspace=ready or self._parts.checkout(task.project).plan(site))
        data = {"coder": run.choice.coder}
        event = Event(Kind.RUN_CLAIMED, task.id, SUPERVISOR, at, run.id, data)
        return Claim(task, run, event, start.room)

    def _numbered(self, task: Task) -> Task:
        """Skip run numbers that this host used with an earlier store."""
        number = task.tally.runs
        while self._parts.launcher.is_used(f"{task.id}.{number + 1}"):
            number += 1
        return replace(task, tally=replace(task.tally, runs=number))


def _as_it_is(outcome: Outcome, _run: Run) -> Outcome:
    return outcome
