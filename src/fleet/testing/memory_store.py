"""The store in memory: the same promises as the SQL store, for tests and the simulator."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from fleet.domain.causes import is_held
from fleet.domain.entry import Entry, EntryKind, has_words, words_of
from fleet.domain.errors import Conflict, NotFound, TooSlow
from fleet.domain.hosts.piece import Piece
from fleet.domain.landing.landing import GateResult, Landing, Train
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.schedule import HOLDS, NEED_SOMEBODY, admit, hold_of
from fleet.domain.search import MOST_SEARCHED, matches
from fleet.domain.task import ENDED, SETTLED, Mode, Task, TaskState
from fleet.ports import Offer, Put, TaskQuery, Totals
from fleet.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from fleet.domain.event import Event
    from fleet.domain.schedule import Claim
    from fleet.ports import (
        Change,
        Clock,
        EntryQuery,
        LandingQuery,
        MessageQuery,
        Record,
        TaskSearch,
    )

R = TypeVar(
    "R", Task, Run, Message, Progress, Host, Slots, Entry, Landing, Train, GateResult, Piece
)


class MemoryStore:
    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.records: dict[tuple[type, str], Record] = {}
        self.log: list[Event] = []
        self._last: Counter[str] = Counter()
        self._writing = Lock()
        self._until = math.inf
        self._first = 1

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        with self._writing:
            staged = dict(self.records)
            written: list[Record] = []
            for change in changes:
                record = change.record
                key = (type(record), record.id)
                current = staged.get(key)
                taken = isinstance(change, Put) and _is_taken(record, staged.values())
                if taken or (current.version if current else 0) != record.version:
                    name = f"{type(record).__name__.lower()} {record.id}"
                    raise Conflict(f"{name} changed since it was read.", fix="Try again.")
                if isinstance(change, Put):
                    staged[key] = replace(record, version=record.version + 1)
                    written.append(staged[key])
            copies = [replace(e, data=json.loads(json.dumps(e.data))) for e in events]
            self.records = staged
            for event in copies:
                self.log.append(replace(event, number=self.log[-1].number + 1 if self.log else 1))
            return written

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        ready = {t.id: t.version for t in self.candidates(now=1 << 62, limit=1 << 30)}
        runs = {run.id for run in self._all(Run)}
        admitted, slots = admit(claims, ready, runs, self.slots())
        if not admitted:
            return []
        records = [record for one in admitted for record in (one.task, one.run)]
        self.commit([Put(record) for record in (*records, *slots)], [one.event for one in admitted])
        return [replace(one.run, version=1) for one in admitted]

    def together(self, *, alone: bool = True) -> AbstractContextManager[None]:  # noqa: ARG002  # each is
        return nullcontext()

    def now(self) -> int:
        return self.clock.now()

    def new_id(self, kind: str) -> str:
        with self._writing:
            self._last[kind] += 1
            return f"{kind}-{self._last[kind]}"

    def task(self, task_id: str) -> Task:
        return self._one(Task, task_id)

    def tasks(self, query: TaskQuery) -> list[Task]:
        tasks = [
            t
            for t in self._all(Task)
            if (not query.states or t.state in query.states)
            and query.project in {"", t.project}
            and query.team in {"", t.team}
            and query.parent in {"", t.parent}
            and query.assignee in {"", t.spec.assignee}
            and (not query.branches or t.spec.branch in query.branches)
            and _has_end(t.spec.branch, query.branch_end)
            and (not query.at_work or _is_at_work(t))
            and (not query.is_held or hold_of(t) in NEED_SOMEBODY)
            and (not query.may_be or any(self._may_be(t, where) for where in query.may_be))
        ]
        if not query.oldest_first:
            tasks.reverse()
        if query.before:
            edge, newer = _number(query.before), query.oldest_first
            tasks = [t for t in tasks if _number(t.id) != edge and (_number(t.id) > edge) is newer]
        return tasks[: query.limit]

    def _may_be(self, task: Task, standing: str) -> bool:
        match standing:
            case "asking":
                asking = self.open_messages(MessageKind.QUESTION, limit=1 << 30)
                is_asking = task.id in {message.task for message in asking}
                return is_asking and task.state is TaskState.OPEN
            case "waiting":
                return bool(task.after) and task.state is TaskState.OPEN
            case "ready":
                return task.id in {one.id for one in self.candidates(now=1 << 62, limit=1 << 30)}
            case "postponed":
                ready = self.candidates(now=1 << 62, limit=1 << 30)
                return task.tally.not_before > 0 and task.id in {one.id for one in ready}
            case "landing":
                return any(one.open and one.task == task.id for one in self._all(Landing))
        return hold_of(task) in HOLDS[standing]

    def search_tasks(self, query: TaskSearch) -> list[Task]:
        tasks = [
            t
            for t in reversed(self._all(Task))
            if query.words
            and matches(f"{t.title}\n{t.prompt[:MOST_SEARCHED]}", query.words)
            and query.team in {"", t.team}
            and query.project in {"", t.project}
            and query.task in {"", t.id}
            and t.created_at >= query.since
        ]
        return tasks[: query.limit]

    def index_words(self, limit: int = 1000) -> int:
        del limit
        return 0

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        return self._by_id(Task, ids)

    def dependents(self, task_id: str) -> list[str]:
        return [t.id for t in self._all(Task) if task_id in t.after]

    def waiting(self, ids: Sequence[str]) -> dict[str, int]:
        still = [t for t in self._all(Task) if t.state is TaskState.OPEN]
        return dict(Counter(need for t in still for need in t.after if need in ids))

    def counts(self, *, team: str = "", project: str = "") -> dict[str, int]:
        tasks = (t for t in self._all(Task) if team in {"", t.team} and project in {"", t.project})
        return dict(Counter(str(task.state) for task in tasks))

    def totals(self) -> Totals:
        kinds = Counter(entry.kind for entry in self._all(Entry))
        live = sum(run.live for run in self._all(Run))
        ready = self.candidates(now=0, limit=1 << 30)
        return Totals(
            kinds[EntryKind.MEMBER], kinds[EntryKind.CHAT], self._last["m"], live, len(ready)
        )

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:  # noqa: ARG002  # one process
        return Offer(self.candidates(now=now, limit=limit), self.slots(names) if names else {})

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        asking = {m.task for m in self.open_messages(MessageKind.QUESTION, limit=1 << 30)}
        tasks = [
            t
            for t in self._all(Task)
            if t.state is TaskState.OPEN
            and not t.paused
            and not t.spec.assignee
            and not is_held(t)
            and t.join is None
            and t.tally.not_before <= now
            and t.id not in asking
            and all(self._state(need) is TaskState.DONE for need in t.after)
        ]
        tasks.sort(key=_turn)
        return tasks[:limit]

    def candidates_after(
        self, after: Task | None, *, team: str = "", now: int, limit: int
    ) -> list[Task]:
        later = (
            t
            for t in self.candidates(now=now, limit=1 << 30)
            if team in {"", t.team} and (after is None or _turn(t) > _turn(after))
        )
        return list(islice(later, limit))

    def run(self, run_id: str) -> Run:
        return self._one(Run, run_id)

    def runs(self, task_id: str) -> list[Run]:
        return [r for r in self._all(Run) if r.task == task_id]

    def live_runs(self, *, host: str = "") -> list[Run]:
        return [r for r in self._all(Run) if r.live and host in {"", r.host}]

    def runs_by_id(self, run_ids: Sequence[str]) -> dict[str, Run]:
        return self._by_id(Run, run_ids)

    def message(self, message_id: str) -> Message:
        return self._one(Message, message_id)

    def messages(self, task_id: str, *, newest: int = 0) -> list[Message]:
        messages = [m for m in self._all(Message) if task_id and m.task == task_id]
        return messages[-newest:]

    def open_questions(self, task_ids: Sequence[str]) -> list[Message]:
        wanted = set(task_ids)
        questions = self.open_messages(MessageKind.QUESTION, limit=1 << 30)
        return [question for question in questions if question.task in wanted]

    def questions(self, *, team: str = "", after: str = "", limit: int = 100) -> list[Message]:
        tasks = {task.id: task for task in self._all(Task)}
        questions = [
            question
            for question in self.open_messages(MessageKind.QUESTION, limit=1 << 30)
            if team in {"", tasks[question.task].team}
            and tasks[question.task].state not in ENDED
            and (not after or _number(question.id) > _number(after))
        ]
        return questions[:limit]

    def open_messages(self, kind: str, *, limit: int = 100) -> list[Message]:
        messages = [
            m for m in self._all(Message) if m.kind == kind and m.state is MessageState.OPEN
        ]
        return messages[:limit]

    def find_messages(self, query: MessageQuery) -> list[Message]:
        messages = [
            m
            for m in reversed(self._all(Message))
            if m.kind == query.kind
            and query.task in {"", m.task}
            and query.state in {"", m.state}
            and query.type in {"", m.data.get("type", "")}
            and query.team in {"", m.team}
            and (not query.topic or (m.team and m.topic == query.topic))
        ]
        return _page(messages, query.before, query.limit)

    def entry(self, kind: str, team: str, key: str) -> Entry | None:
        wanted = (kind, team, key)
        return next((e for e in self._all(Entry) if (e.kind, e.team, e.key) == wanted), None)

    def entry_by_id(self, entry_id: str) -> Entry:
        return self._one(Entry, entry_id)

    def prune(self, kind: str, team: str, *, now: int) -> None:
        with self._writing:
            self.records = {
                name: record
                for name, record in self.records.items()
                if not isinstance(record, Entry)
                or (record.kind, record.team) != (kind, team)
                or record.counts(now)
            }

    def entries(self, query: EntryQuery) -> list[Entry]:
        words = words_of(query.text)
        entries = [
            e
            for e in reversed(self._all(Entry))
            if e.kind == query.kind
            and query.team in {"", e.team}
            and query.owner in {"", e.owner}
            and query.namesake.lower() in {"", e.owner.lower()}
            and has_words(e.text, words)
            and query.text_is.casefold() in {"", e.text.casefold()}
            and (not query.counting_at or e.counts(query.counting_at))
        ]
        return _page(entries, query.before, query.limit)

    def landing(self, landing_id: str) -> Landing:
        return self._one(Landing, landing_id)

    def landings(self, query: LandingQuery) -> list[Landing]:
        landings = [
            landing
            for landing in reversed(self._all(Landing))
            if query.train in {"", landing.train}
            and query.task in {"", landing.task}
            and query.team in {"", landing.team}
            and (landing.open or not query.open_only)
        ]
        return _page(landings, query.before, query.limit)

    def trains(self) -> dict[str, Train]:
        return {t.id: t for t in self._all(Train)}

    def gate_results(self, ids: Sequence[str]) -> dict[str, GateResult]:
        return self._by_id(GateResult, ids)

    def pieces(self, commits: Sequence[str]) -> dict[str, Piece]:
        return self._by_id(Piece, commits)

    def progress(self, run_ids: Sequence[str]) -> dict[str, Progress]:
        return self._by_id(Progress, run_ids)

    def slots(self, names: Sequence[str] = ()) -> dict[str, Slots]:
        return self._by_id(Slots, names or [s.id for s in self._all(Slots)])

    def hosts(self) -> dict[str, Host]:
        return {h.id: h for h in self._all(Host)}

    def events(
        self,
        *,
        after: int = 0,
        before: int = 0,
        task: str = "",
        limit: int = 1000,
        newest: bool = False,
    ) -> list[Event]:
        self._in_time()
        events = [e for e in self.log if e.number > after and task in {"", e.task}]
        events = [e for e in events if not before or e.number < before]
        return events[-limit:] if newest else events[:limit]

    def events_of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        return [e for e in self.log if e.number > after and e.type in kinds][:limit]

    def number_before(self, at: int) -> int:
        return next((e.number for e in reversed(self.log) if e.at < at), 0)

    def first_event(self) -> int:
        return self._first

    def forget_events(self, *, upto: int, limit: int) -> int:
        with self._writing:
            last = self.log[-1].number if self.log else 0
            first, beyond = self._first, min(self._first + limit, upto + 1, last)
            if beyond <= first:
                return 0
            alive = {task.id for task in self._all(Task) if task.state not in ENDED}
            self.log = [e for e in self.log if not first <= e.number < beyond or e.task in alive]
            self._first = beyond
        return beyond - first

    def forget_tasks(self, tasks: Sequence[Task]) -> list[str]:
        with self._writing:
            return [task.id for task in tasks if self._forget(task)]

    def _forget(self, task: Task) -> bool:
        known = self.records.get((Task, task.id))
        used = any(task.id in {*t.after, t.parent} for t in self._all(Task))
        if known is None or known.version != task.version or task.state not in ENDED or used:
            return False
        own = (Run, Message, Landing)
        self.records = {
            key: record
            for key, record in self.records.items()
            if key != (Task, task.id)
            and not (isinstance(record, own) and record.task == task.id)
            and not (isinstance(record, Progress) and record.id.startswith(f"{task.id}."))
        }
        self.log = [e for e in self.log[:-1] if e.task != task.id] + self.log[-1:]
        return True

    def changed_at(self, task_ids: Sequence[str]) -> dict[str, int]:
        return {e.task: e.at for e in self.log if e.task in task_ids}

    def limit(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds if seconds else math.inf

    def _in_time(self) -> None:
        if time.monotonic() > self._until:
            raise TooSlow("Reading this took too long.")

    def wait(self, timeout: float) -> None:
        """Nothing happens here but by somebody's call, so there is nothing to wait for."""

    def close(self) -> None: ...

    def _state(self, task_id: str) -> TaskState | None:
        tasks = self.tasks_by_id([task_id])
        return tasks[task_id].state if tasks else None

    def _all(self, kind: type[R]) -> list[R]:
        """By number: the order in which their ids were given."""
        self._in_time()
        records = [r for r in self.records.values() if isinstance(r, kind)]
        return sorted(records, key=lambda r: _number(r.id))

    def _by_id(self, kind: type[R], ids: Sequence[str]) -> dict[str, R]:
        wanted = set(ids)
        return {r.id: r for r in self._all(kind) if r.id in wanted}

    def _one(self, kind: type[R], record_id: str) -> R:
        records = self._by_id(kind, [record_id])
        if not records:
            raise NotFound(f"There is no {kind.__name__.lower()} {record_id}.")
        return records[record_id]


def _has_end(branch: str, end: str) -> bool:
    return not end or (branch != end and branch.endswith(end))


def _is_at_work(task: Task) -> bool:
    attended = task.spec.mode != Mode.QUEUED and task.join is None
    return task.state is TaskState.RUNNING or (attended and task.state not in SETTLED)


def _is_taken(record: Record, records: Iterable[Record]) -> bool:
    """Whether another entry has its kind, team and key, or it had others itself."""
    if not isinstance(record, Entry):
        return False
    name = (record.kind, record.team, record.key)
    others = (e for e in records if isinstance(e, Entry))
    return any(((e.kind, e.team, e.key) == name) is not (e.id == record.id) for e in others)


def _page(records: list[R], before: str, limit: int) -> list[R]:
    if before:
        records = [r for r in records if _number(r.id) < _number(before)]
    return records[:limit]


def _number(record_id: str) -> tuple[int, ...]:
    """t-31: 31. t-31.2: 31 and 2. Names come in no order. For e-5 among messages see `order_of`."""
    kind, _, number = record_id.rpartition("-")
    parts = number.split(".")
    known = all(part.isdecimal() for part in parts)
    return (int(kind != "e"), *map(int, parts)) if known else ()


def _turn(task: Task) -> tuple[object, ...]:
    return task.spec.priority, task.created_at, _number(task.id)
