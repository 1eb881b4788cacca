"""A seeded simulator: the real supervisor, fake everything else, and a crash wherever it hurts.

`Simulation(seed).run()` raises `Broken`, with the seed and the story so far, when something that
must never happen did. `crash_at=N` crashes at the Nth moment (before or after a port's call).
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fleet.config import Settings
from fleet.domain.access import Actor, Role
from fleet.domain.errors import FleetError
from fleet.domain.fleet import Agent, Fleet, Model, Node, Serving
from fleet.domain.hosts.lease import ALONE
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.schedule import waits
from fleet.domain.task import ENDED, Join, Limits, Spec, Task, TaskState
from fleet.operations.catalogue import Context, perform
from fleet.operations.messages.ask_answer_send import Answer, SendWords
from fleet.operations.tasks.change import CancelTask, PauseTask, ResumeTask, RetryTask
from fleet.operations.tasks.commit import parent_changes
from fleet.ports import Put, TaskQuery
from fleet.supervisor.parts import Parts, ThisSupervisor
from fleet.supervisor.supervisor import Supervisor
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import (
    FakeCheckout,
    FakeCoder,
    FakeMachine,
    FakeNodes,
    FakeTerminal,
    InlineJobs,
    NoFiles,
)
from fleet.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from fleet.domain.run import Slots

ROOM = 3
NODES = {"small": 1, "big": 2}
HOUR = 3600 * 1_000_000


class Crash(BaseException):
    """kill -9."""


class Broken(AssertionError):
    pass


class MovedClock(FakeClock):
    """Somebody sets the wall clock; the time since boot knows nothing of it."""

    moved = 0

    def now(self) -> int:
        return super().now() + self.moved


class Crasher:
    """Counts the moments before and after every port call, and crashes at the chosen ones.

    `meanwhile` is what others do at such a moment: between a read and the commit built on it.
    """

    def __init__(self) -> None:
        self.moment = 0
        self.at: int | None = None
        self.meanwhile = lambda: None

    def wrap(self, port):
        return _Wrapped(port, self)

    def tick(self, what: str) -> None:
        self.moment += 1
        self.meanwhile()
        if self.at is not None and self.moment == self.at:
            self.at = None
            raise Crash(what)


class _Wrapped:
    def __init__(self, port, crasher: Crasher) -> None:
        self._port, self._crasher = port, crasher

    def __getattr__(self, name: str):
        real = getattr(self._port, name)
        if not callable(real):
            return real

        def call(*args, **kwargs):
            self._crasher.tick(f"before {name}")
            result = real(*args, **kwargs)
            self._crasher.tick(f"after {name}")
            return result

        return call


@dataclass
class SimHost:
    """A machine that outlives its supervisors, and the supervisor it has now, if any."""

    name: str
    machine: FakeMachine
    checkout: FakeCheckout
    supervisor: Supervisor | None = None
    asleep_until: float = 0.0  # since boot
    incarnations: int = 0
    nodes: FakeNodes = field(default_factory=FakeNodes)


class Simulation:
    """`moves`: the wall clock is assigned to moved, by hours. On a shared store it is the server."""

    def __init__(
        self,
        seed: int,
        *,
        hosts: int = 1,
        tasks: int = 6,
        crash_at: int | None = None,
        moves: bool = False,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = MovedClock()
        self.moves = moves
        self.store = MemoryStore(self.clock)
        self.crasher = Crasher()
        self.crasher.at = crash_at
        self.crasher.meanwhile = self._meanwhile
        self.random_crashes = crash_at is None
        self.killed: set[str] = set()
        self._busy: SimHost | None = None
        self._between = False
        self.settling = False  # nobody adds tasks any more: more of them would never end
        self.story: list[str] = []
        self.shared = hosts > 1
        self.hosts = [self._host(f"h{n}") for n in range(hosts)]
        self.world = SimpleNamespace(
            settings=Settings(coder="fake"), fleet=_fleet(), withheld=frozenset()
        )
        for _ in range(tasks):
            self._add_task()

    def _host(self, name: str) -> SimHost:
        return SimHost(name, FakeMachine(self.clock, self._work), FakeCheckout())

    def run(self, steps: int = 60) -> None:
        try:
            for _ in range(steps):
                self._act()
                self._check()
            self._settle_down()
        except Broken as error:
            story = "\n".join(self.story[-40:])
            raise Broken(f"seed {self.seed}: {error}\n{story}") from error

    def _act(self) -> None:
        roll = self.rng.random()
        if roll < 0.55:
            self._step(self.rng.choice(self.hosts))
        elif roll < 0.80:
            for host in self.hosts:
                host.machine.tick()
        elif roll < 0.88:
            self.clock.advance(self.rng.choice([0.1, 1, 15]))
        else:
            self._somebody()

    def _meanwhile(self) -> None:
        """Now and then the other host, or a person, gets in between."""
        busy = self._busy
        if busy is None or self._between or self.rng.random() > 0.02:
            return
        self._between = True
        moment, self.crasher.at = self.crasher.at, None
        others = [h for h in self.hosts if h is not busy]
        act = self.rng.choice([self._somebody, *(partial(self._step, h) for h in others)])
        act()
        self._between, self._busy, self.crasher.at = False, busy, moment

    def _step(self, host: SimHost) -> None:
        if self.clock.since_boot() < host.asleep_until:
            return
        self._busy = host
        try:
            self._step_alone(host)
        finally:
            self._busy = None

    def _step_alone(self, host: SimHost) -> None:
        if self.random_crashes and self.rng.random() < 0.35:
            self.crasher.at = self.crasher.moment + self.rng.randint(1, 60)
        try:
            if host.supervisor is None:
                host.supervisor = self._incarnate(host)
                host.supervisor.start()
            host.supervisor.step()
        except Crash as crash:
            self.story.append(f"{host.name} crashed {crash}")
            host.supervisor = None
        finally:
            if self.random_crashes:
                self.crasher.at = None

    def _incarnate(self, host: SimHost) -> Supervisor:
        host.incarnations += 1
        wrap = self.crasher.wrap
        machine, checkout = wrap(host.machine), wrap(host.checkout)
        parts = Parts(
            store=wrap(self.store),
            launcher=machine,
            transcripts=machine,
            clock=self.clock,
            jobs=InlineJobs(),
            quick=InlineJobs(),
            coder=lambda _name, _project: FakeCoder(),
            world=lambda _: self.world,
            checkout=lambda _: checkout,
            task_dir=lambda task: Path("/tasks") / task,
            env=lambda task, run: {"FLEET_TASK_ID": task, "FLEET_RUN_ID": run},
            workspace_env=lambda _project, _workspace: {},
            gateway_key=lambda _gateway: "",
            provider_keys=lambda _coder: None,
            jitter=lambda: 0.0,
            files=NoFiles(),
            nodes=host.nodes,
            terminal=FakeTerminal(host.machine),
        )
        holder = f"{host.name}#{host.incarnations}"
        return Supervisor(
            parts,
            ThisSupervisor(
                host.name, host.name, "boot", holder, max_concurrent=ROOM, shared=self.shared
            ),
        )

    def _work(self, run_id: str, process) -> None:
        """What a coder does with its time: usually it talks; now and then it ends, or worse."""
        roll = self.rng.random()
        machine = next(h.machine for h in self.hosts if run_id in h.machine.processes)
        if run_id.endswith(".gate"):
            if roll < 0.7:
                machine.finish(run_id, int(roll < 0.2))
        elif self._hears(process) and roll < 0.3:
            process.lines.append("heard you")
        elif roll < 0.45:
            process.lines.append(f"text working on {run_id}")
        elif roll < 0.75:
            process.lines.append("result all good")
            machine.finish(run_id, 0)
        elif roll < 0.83:
            machine.finish(run_id, 1)
        elif roll < 0.88:
            process.lines.append("limit too many requests")
            machine.finish(run_id, 1)
        elif roll < 0.94:
            self._ask(run_id)
            machine.finish(run_id, 0)
        elif process.keeper:
            self.story.append(f"the keeper of {run_id} dies")
            self.killed.add(run_id)
            machine.kill_keeper(run_id)

    def _hears(self, process) -> bool:
        """Whether it was told something that it has not taken up."""
        told = sum(key.startswith("words ") for key in process.told)
        return told > sum(line.startswith("heard") for line in process.lines)

    def _ask(self, run_id: str) -> None:
        task = run_id.rpartition(".")[0]
        if self.store.task(task).run_id != run_id or not self.store.run(run_id).live:
            return  # a stale run is refused
        question = Message(
            self.store.new_id("m"), 0, task, run_id, MessageKind.QUESTION, "Which?",
            MessageState.OPEN, self.clock.now(), details=Details(parked=True),
        )  # fmt: skip
        self.store.commit([Put(question)], [])

    def _add_task(self) -> None:
        known = [t.id for t in self._tasks() if t.join is None]
        after = tuple(self.rng.sample(known, k=min(len(known), self.rng.choice([0, 0, 1, 2]))))
        parent = next((t.id for t in self._tasks() if t.join and t.state is TaskState.OPEN), "")
        spec = Spec(
            agent=self.rng.choice(["fake", "small", "pooled"]),
            priority=self.rng.randint(0, 4),
            in_place=self.rng.random() < 0.2,
            cwd="/project",
            limits=Limits(attempts=self.rng.choice([0, 0, 4])),
            gate=self.rng.choice(["", "", "make test"]),
        )
        made = self.rng.random() < 0.15 and not parent
        task = Task(
            id=self.store.new_id("t"), version=0, state=TaskState.OPEN, title="Do it",
            prompt="do it", project="/project", author="someone", created_at=self.clock.now(),
            spec=spec, after=() if made else after, join=Join.ALL if made else None,
            parent=parent if self.rng.random() < 0.5 and not made else "",
        )  # fmt: skip
        parents = parent_changes(self.store, task, now=self.clock.now())
        self.store.commit([Put(task), *parents], [])

    def _somebody(self) -> None:
        """A person does something at the worst moment."""
        act = self.rng.choice(
            [
                self._cancel,
                self._answer,
                self._retry,
                self._sleep,
                self._send if self.settling else self._add_task,
                self._send,
                self._cut_off,
                *([self._move_clock] * 3 if self.moves else []),
            ]
        )
        try:
            act()
        except FleetError:
            return  # refused, as it should be

    def _ask_for(self, request) -> None:
        actor = Actor("someone", Role.COORDINATOR)
        machine = self.hosts[0].machine
        perform(Context(actor, self.store, lambda: machine, lambda _: self.world), request)

    def _cancel(self) -> None:
        task = self.rng.choice(self._tasks())
        self.story.append(f"somebody cancels or pauses {task.id}")
        self._ask_for(self.rng.choice([CancelTask, PauseTask])(task.id))

    def _answer(self) -> None:
        for question in self.store.open_messages(MessageKind.QUESTION):
            with suppress(FleetError):  # its task has ended
                self._ask_for(Answer(question.id, "This."))

    def _send(self) -> None:
        task = self.rng.choice(self._tasks())
        self._ask_for(SendWords(task.id, f"words {len(self.store.log)}"))
        self.story.append(f"somebody sends words to {task.id}")

    def _cut_off(self) -> None:
        """A node goes down, as one host sees it, or comes back."""
        host = self.rng.choice(self.hosts)
        name = self.rng.choice([*NODES])
        if host.nodes.down.pop(name, None) is None:
            host.nodes.down[name] = "connection refused"

    def _move_clock(self) -> None:
        self.clock.moved = self.rng.choice([-2, 0, 2]) * HOUR
        self.story.append(f"the wall clock is off by {self.clock.moved // HOUR} h")

    def _retry(self) -> None:
        self._ask_for(RetryTask(self.rng.choice(self._tasks()).id))

    def _sleep(self) -> None:
        """The laptop's lid is closed: its supervisor gets no time, nor do its coders end."""
        host = self.rng.choice(self.hosts)
        nap = self.rng.choice([1, ALONE + 30])
        host.asleep_until = self.clock.since_boot() + nap
        self.story.append(f"{host.name} sleeps for {nap} s")
        others = [h for h in self.hosts if h is not host]
        while others and self.clock.since_boot() < host.asleep_until and not self._between:
            self.clock.advance(4)  # and the others look on
            for other in others:
                self._step(other)
                other.machine.tick()
            host.machine.tick()
        self.clock.advance(max(0.0, host.asleep_until - self.clock.since_boot()))

    def _tasks(self) -> list[Task]:
        return self.store.tasks(TaskQuery(limit=10_000, oldest_first=True))

    def _check(self) -> None:
        self._check_one_coder_per_task()
        self._check_runs()
        self._check_capacity()
        self._check_endings()
        self._check_words()

    def _check_words(self) -> None:
        """What counts as delivered was in a prompt, or was told and heard; and only once."""
        for task in self._tasks():
            words = [m for m in self.store.messages(task.id) if m.kind is MessageKind.WORDS]
            for message in words:
                reached = self._reached(task.id, message)
                if message.state is MessageState.CLOSED and not reached:
                    raise Broken(f"{message.id} of {task.id} was never said to anyone")
                if task.state is TaskState.DONE and message.state is MessageState.OPEN:
                    raise Broken(f"{task.id} is done, and {message.id} was not heard")

    def _reached(self, task: str, message: Message) -> int:
        """How many runs have been told it, at their start or in between."""
        found = 0
        for host in self.hosts:
            for run_id, process in host.machine.processes.items():
                if run_id.rpartition(".")[0] != task:
                    continue
                told = [k for k in process.told if k.startswith("words ")]
                heard = sum(line.startswith("heard") for line in process.lines)
                in_time = f"words {message.id}" in told[:heard]
                found += message.text in (process.launch.stdin or "") or in_time
        return found

    def _check_endings(self) -> None:
        """No run is said to have failed or been lost that was neither."""
        for event in self.store.log:
            if event.type != "run.ended" or self.shared:
                continue
            process = self.hosts[0].machine.processes.get(event.run)
            down = event.data["detail"].startswith(("Its node", "The keeper of its gate"))
            if event.data["ending"] == "lost" and event.run not in self.killed and not down:
                raise Broken(f"{event.run} was not lost")
            if event.data["ending"] == "failed" and (process is None or process.ended is None):
                raise Broken(f"{event.run} did not fail: {event.data}")

    def _check_one_coder_per_task(self) -> None:
        """At most one coder of a task is alive where it could still count."""
        alive: dict[str, list[str]] = {}
        for host in self.hosts:
            for run_id in host.machine.running():
                lease = host.machine.leases.get(run_id)
                fenced = lease is not None and self.clock.since_boot() >= lease
                if not fenced:
                    alive.setdefault(run_id.rpartition(".")[0], []).append(run_id)
        for task, runs in alive.items():
            if len(runs) > 1:
                raise Broken(f"{task} is worked on by {runs} at once")

    def _check_runs(self) -> None:
        for task in self._tasks():
            runs = self.store.runs(task.id)
            live = [r.id for r in runs if r.live]
            if (task.state is TaskState.RUNNING) != bool(live) or len(live) > 1:
                raise Broken(f"{task.id} is {task.state} with live runs {live}")
            if live and live != [task.run_id]:
                raise Broken(f"{task.id}'s live run {live} is not its newest, {task.run_id}")
        ended = [e.run for e in self.store.log if e.type == "run.ended"]
        if len(ended) != len(set(ended)):
            raise Broken(f"a run ended twice: {sorted(ended)}")

    def _check_capacity(self) -> None:
        live = {r.id: r for r in self.store.live_runs()}
        for slots in self.store.slots().values():
            stray = [h for h in slots.holders if h not in live or slots.id not in live[h].slots]
            if stray or len(set(slots.holders)) != len(slots.holders):
                raise Broken(f"{slots.id} is held by {slots.holders}, of which not live: {stray}")
            if len(slots.holders) > self._limit(slots):
                raise Broken(f"{slots.id} holds {slots.holders}: too many")

    def _limit(self, slots: Slots) -> int:
        if slots.id.startswith("host "):
            return ROOM
        if slots.id.startswith("credential "):
            return 0  # it is parked or not, and held by nobody
        return 1 if slots.id.startswith("directory ") else NODES[slots.id.rpartition("/")[2]]

    def _settle_down(self) -> None:
        """In a kind world without crashes everything ends, or can say why it does not."""
        self.random_crashes, self.settling = False, True
        self.crasher.at = None
        self._work_kindly()
        for _ in range(1600 if self.moves else 400):  # it may have been set back by four hours
            for host in self.hosts:
                host.asleep_until = 0
                host.nodes.down.clear()
                self._step(host)
                host.machine.tick()
            self._answer()
            for task in self._tasks():
                if task.paused:
                    self._ask_for(ResumeTask(task.id))
            self.clock.advance(30)
            self._check()
            if all(self._is_over(t) for t in self._tasks()):
                return
        raise Broken(
            f"never ends: {[(t.id, t.state) for t in self._tasks() if not self._is_over(t)]}"
        )

    def _work_kindly(self) -> None:
        def work(run_id: str, process) -> None:
            machine = next(h.machine for h in self.hosts if run_id in h.machine.processes)
            machine.finish(run_id, 0)
            process.running = False

        for host in self.hosts:
            host.machine._work = work

    def _is_over(self, task: Task) -> bool:
        """Ended, or waiting with a reason that names something that has ended badly."""
        if task.state in ENDED or task.state is TaskState.REVIEW:
            return True
        if task.state is TaskState.RUNNING:
            return False
        if task.join is not None:
            children = self.store.tasks(TaskQuery(parent=task.id, limit=1000))
            return not children or any(not self._is_done(c) and self._is_over(c) for c in children)
        needs = list(self.store.tasks_by_id(task.after).values())
        held = waits(task, needs, self.store.messages(task.id), now=self.clock.now())
        return any(w.code == "after" for w in held) and all(
            self._is_over(n) for n in needs if n.state is not TaskState.DONE
        )

    def _is_done(self, task: Task) -> bool:
        return task.state is TaskState.DONE


def _fleet() -> Fleet:
    small, big = (Node(n, "ollama", f"http://node/{n}") for n in NODES)
    one = Model("one", "one", (Serving(small, "m", 8192, 300, 1),))
    pool = Model(
        "pool", "pool", (Serving(small, "m", 8192, 300, 1), Serving(big, "m", 8192, 300, 2))
    )
    agents = {
        "fake": Agent("fake", "fake"),
        "small": Agent("small", "fake", model=one),
        "pooled": Agent("pooled", "fake", model=pool),
    }
    return Fleet(
        "sim", nodes={"small": small, "big": big}, models={"one": one, "pool": pool}, agents=agents
    )
