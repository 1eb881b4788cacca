"""The metrics of a server, counted from the events since it started."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.domain.choice import slot_of
from fleet.domain.errors import FleetError
from fleet.domain.event import Kind
from fleet.domain.nodes.breaker import State
from fleet.domain.schedule import ON_HOST
from fleet.domain.task import TaskState
from fleet.ports import Totals
from fleet.server.prometheus import Histogram, Metric, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fleet.domain.event import Event
    from fleet.domain.fleet import Fleet
    from fleet.ports import Store

NONE: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
SECOND = 1_000_000
BATCH = 1000
FLOOR = 1.0  # seconds after which the watch looks at the store even if nothing woke it
RECOUNT = 1.0  # seconds between two counts of all tasks
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)


class Meters:
    """The counters. The event watch and the loop write them, any thread reads them."""

    def __init__(self) -> None:
        self.number = 0  # of the last event that was counted
        self.lag = 0.0
        self._runs: Counter[tuple[str, str]] = Counter()
        self._tokens = Counter(dict.fromkeys(("input", "output", "cached"), 0))
        self._dollars = 0.0
        self._waits, self._spawns = Histogram(), Histogram()
        self._requests: dict[tuple[str, int], Histogram] = {}
        self.totals = Totals()
        self._totalled: tuple[int, float] = (-1, 0.0)
        self._counted: tuple[int, float, dict[str, int]] = (-1, 0.0, {})

    def fold(self, store: Store, events: Iterable[Event]) -> None:
        for event in events:
            self.number = event.number
            self.lag = max(0.0, (store.now() - event.at) / SECOND)
            with suppress(FleetError):  # what it is about may be gone
                self._count(store, event)

    def _count(self, store: Store, event: Event) -> None:
        match event.type:
            case Kind.RUN_CLAIMED:
                waited = event.at - ready_at(store, event)
                self._waits.observe(max(0.0, waited / SECOND))
            case Kind.RUN_STARTED:
                took = event.at - store.run(event.run).claimed_at
                self._spawns.observe(max(0.0, took / SECOND))
            case Kind.RUN_ENDED:
                run = store.run(event.run)
                self._runs[str(event.data.get("ending", "")), run.choice.coder] += 1
                if run.outcome is not None:
                    used = run.outcome.usage
                    self._tokens.update(input=used.input, output=used.output, cached=used.cached)
                    self._dollars += used.usd

    def count(self, store: Store) -> None:
        """Count the store's rows, at most every `RECOUNT` seconds and only after an event."""
        number, at = self._totalled
        now = time.monotonic()
        if number != self.number and now - at > RECOUNT:
            self.totals = store.totals()
            self._totalled = (self.number, now)

    def answered(self, method: str, status: int, seconds: float) -> None:
        key = (method, status)
        if key not in self._requests:
            self._requests[key] = Histogram(QUICK)
        self._requests[key].observe(seconds)

    def read(
        self, store: Store, fleet: Fleet, relay: Mapping[str, Mapping[str, Any]] = NONE
    ) -> tuple[Metric, ...]:
        """`relay`: what the relay says of each node, if one runs."""
        runs = (Sample({"ending": e, "coder": c}, n) for (e, c), n in sorted(self._runs.items()))
        tokens = (Sample({"kind": kind}, n) for kind, n in self._tokens.items())
        requests = (
            sample
            for (method, status), took in sorted(self._requests.items())
            for sample in took.samples({"method": method, "status": str(status)})
        )
        counts = self._tasks(store)
        tasks = (Sample({"state": s}, counts.get(s, 0)) for s in TaskState)
        return (
            Metric("fleet_tasks", "gauge", "Tasks by state.", tuple(tasks)),
            Metric(
                "fleet_queue_depth", "gauge", "Tasks that wait only for a free slot.",
                (Sample({}, self.totals.ready),),
            ),
            Metric("fleet_runs_total", "counter", "Runs that ended.", tuple(runs)),
            Metric("fleet_tokens_total", "counter", "Tokens of runs that ended.", tuple(tokens)),
            Metric(
                "fleet_cost_dollars_total", "counter", "Cost of runs that ended.",
                (Sample({}, self._dollars),),
            ),
            Metric(
                "fleet_queue_wait_seconds", "histogram",
                "Time a task waits for a free slot before its run starts.",
                tuple(self._waits.samples()),
            ),
            Metric(
                "fleet_spawn_seconds", "histogram", "Time from the claim of a run to the start of its coder.",
                tuple(self._spawns.samples()),
            ),
            Metric("fleet_slots", "gauge", "Slots: requests that can run at once.", tuple(_slots(store, fleet))),
            Metric(
                "fleet_node_breaker", "gauge", "The state of a node's breaker; 1 marks the current one.",
                tuple(_breakers(relay)),
            ),
            Metric(
                "fleet_node_requests", "gauge", "Requests that a node is answering, or that wait for it.",
                tuple(_requests(relay)),
            ),
            Metric(
                "fleet_http_request_seconds", "histogram", "Time until a response begins.",
                tuple(requests),
            ),
            Metric(
                "fleet_event_lag_seconds", "gauge", "Age of the newest event when the server read it.",
                (Sample({}, self.lag),),
            ),
        )  # fmt: skip

    def _tasks(self, store: Store) -> dict[str, int]:
        """Return the number of tasks by state, counted anew at most every `RECOUNT` seconds."""
        number, at, counts = self._counted
        if number != self.number or not number:
            now = time.monotonic()
            if now - at > RECOUNT or not number:
                counts = store.counts()
                self._counted = (self.number, now, counts)
        return counts


def ready_at(store: Store, claimed: Event) -> int:
    """Return when a claimed task only waited for capacity any more, as far as is known now."""
    task = store.task(claimed.task)
    times = [task.created_at, task.tally.not_before]
    times += [need.tally.ended_at for need in store.tasks_by_id(task.after).values()]
    number = int(claimed.run.rpartition(".")[2])
    times += [run.ended_at for run in store.runs(task.id) if run.number < number]
    return max((at for at in times if at <= claimed.at), default=claimed.at)


def _slots(store: Store, fleet: Fleet) -> Iterable[Sample]:
    rows = store.slots()
    for name, model in fleet.models.items():
        for serving in model.servings:
            name_of = slot_of(serving, "")
            own = [r for n, r in rows.items() if n == name_of or n.startswith(name_of + ON_HOST)]
            taken = sum(len(row.holders) for row in own)
            labels = {"node": serving.node.name, "model": name}
            yield Sample({**labels, "state": "held"}, taken)
            yield Sample(
                {**labels, "state": "free"}, max(0, serving.slots * max(1, len(own)) - taken)
            )


def _breakers(relay: Mapping[str, Mapping[str, Any]]) -> Iterable[Sample]:
    for name, node in sorted(relay.items()):
        for state in State:
            yield Sample({"node": name, "state": state}, float(node.get("breaker") == state))


def _requests(relay: Mapping[str, Mapping[str, Any]]) -> Iterable[Sample]:
    for name, node in sorted(relay.items()):
        for state in ("busy", "waiting"):
            yield Sample({"node": name, "state": state}, float(node.get(state) or 0))


class EventWatch:
    """A thread that reads all events of all processes, counts them, and wakes the streams.

    `saw` is called with them, too.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        meters: Meters,
        wake: Callable[[], None],
        saw: Callable[[Sequence[Event]], None] = lambda _: None,
    ) -> None:
        self._open, self._meters, self._wake, self._saw = open_store, meters, wake, saw
        self._fresh = threading.Event()
        self._nudged = self._over = False
        self.looked, self.trouble = time.monotonic(), ""  # the last look; why it failed
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()  # until the thread counts what is written

    def stop(self) -> None:
        self._over = True
        self._fresh.set()
        self._thread.join()

    def heard(self) -> None:
        """Look at once; the supervisor in this process calls it after each change."""
        self._nudged = True
        self._fresh.set()

    def _run(self) -> None:
        store = self._open()
        try:
            newest = store.events(limit=1, newest=True)
            self._meters.number = newest[0].number if newest else 0
            self._ready.set()
            while not self._over:
                self._look_again(store)
        finally:
            self._ready.set()
            store.close()

    def _look_again(self, store: Store) -> None:
        """Look at the store, then wait for a change. Note its trouble: it may come back."""
        try:
            self._look(store)
            self._meters.count(store)
            self.trouble = ""
        except FleetError as error:
            self.trouble = f"The store cannot be used ({error.code})."
        self.looked = time.monotonic()
        try:
            self._wait(store)
        except FleetError:
            self._fresh.wait(FLOOR)

    def _look(self, store: Store) -> None:
        more = True
        while more and (events := store.events(after=self._meters.number, limit=BATCH)):
            self._meters.fold(store, events)
            self._wake()
            self._saw(events)
            more = len(events) == BATCH

    def _wait(self, store: Store) -> None:
        if self._nudged:
            self._fresh.wait(FLOOR)
            self._fresh.clear()
        else:
            store.wait(FLOOR)
