"""`queue: beads`: ready issues of a beads database become tasks, and what becomes of them is told.

An issue is claimed there before it is a task here, and it is a task once. `bd` is only ever called
beside the loop; the store only within it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fleet.domain.errors import FleetError, NotFound, Unavailable
from fleet.domain.task import SECOND, Spec, TaskState
from fleet.operations.tasks.change import MOST_TITLE, AddTask, RetryTask
from fleet.ports import TaskQuery
from fleet.supervisor.beads.plan import LABEL, Back, bead_of, what_to_take, what_to_tell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fleet.domain.event import Event
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Request
    from fleet.ports import Bead, Job, Jobs, Mark, Store, Tracker

POLL = 5 * SECOND
SOON = SECOND  # after something has happened here
LONGEST = 300 * SECOND  # between two tries of a bd that fails
TRIES = 5  # to tell it one thing while everything else works
BATCH = 500


class Round:
    """All that is asked of `bd` in one go, beside the loop. What it got is kept as it goes."""

    def __init__(self, bd: Tracker, backs: Sequence[Back]) -> None:
        self._bd = bd
        self._backs = backs
        self.stuck: tuple[Back, str] | None = None
        self.told = 0  # how many of the backs
        self.up = False
        self.taken: list[Bead] = []

    def run(self, known: Collection[str], again: Collection[str], room: int) -> None:
        for back in self._backs:
            try:
                self._bd.tell(back.bead, back.act, back.text)
            except Unavailable as error:
                self.stuck = back, error.message
                break
            self.told += 1
        held = self._bd.held()
        ready = self._bd.ready(len(known) + room) if room > 0 else []
        self.up = True
        taking = what_to_take(ready, held, known, again, room)
        self.taken += taking.adopt
        for bead in taking.claim:
            if self._bd.claim(bead.id):
                self.taken.append(bead)


class Beads:
    """`step` is done in every round of the loop, and never waits.

    `call` asks for operations as the actor `name`, of which each host has its own: tasks that
    another host took from its own database are left to that one.
    """

    def __init__(
        self,
        store: Store,
        bd: Tracker,
        *,
        name: str,
        call: Callable[[Request[Any]], Any],
        jobs: Jobs,
        mark: Mark,
        room: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        self._store, self._bd, self._jobs = store, bd, jobs
        self._name, self._call = name, call
        self._mark, self._room, self._warn = mark, room, warn
        self._tasks: dict[str, str] | None = None  # by issue
        self._over: set[str] = set()  # issues whose tasks are done or failed
        self._seen = 0
        self._noted = -1
        self._backs: list[Back] = []
        self._round: Round | None = None
        self._job: Job | None = None
        self._next, self._soon, self._pause, self._complaint = 0, 0, POLL, ""
        self._tries: Counter[Back] = Counter()

    def step(self, now: int) -> None:
        if self._job is not None:
            if not self._job.done():
                return
            self._finish(now)
        if now >= self._next or (now >= self._soon and self._news()):
            self._begin(now)

    @property
    def idle(self) -> bool:
        """Everything is told, and there was nothing to take; or bd cannot be asked now."""
        if self._job is not None or self._tasks is None:
            return False
        return bool(self._complaint) or not (self._backs or self._news())

    def _news(self) -> bool:
        newest = self._store.events(limit=1, newest=True)
        return bool(newest) and newest[0].number > self._seen

    def _begin(self, now: int) -> None:
        if self._tasks is None:
            self._recall()
        self._hear()
        assert self._tasks is not None
        free = self._room() - len(self._store.live_runs())
        room = free - len(self._store.candidates(now=now, limit=max(1, free)))
        self._round = round_ = Round(self._bd, tuple(self._backs))
        known, again = frozenset(self._tasks), frozenset(self._over)
        self._job = self._jobs.begin(lambda: round_.run(known, again, room))

    def _recall(self) -> None:
        """Which tasks came from there; the log is read on from where the last one stopped."""
        self._tasks, before = {}, ""
        while page := self._store.tasks(TaskQuery(before=before, limit=BATCH)):
            for task in page:
                if bead := self._bead(task):
                    self._tasks.setdefault(bead, task.id)
                    if task.state in {TaskState.DONE, TaskState.FAILED}:
                        self._over.add(bead)
            before = page[-1].id
        newest = self._store.events(limit=1, newest=True)
        seen = self._mark.read()
        self._seen = seen if seen is not None else newest[0].number if newest else 0

    def _hear(self) -> None:
        """What is new in the log, as things to tell."""
        while events := self._store.events(after=self._seen, limit=BATCH):
            for event in events:
                self._backs += self._heard(event)
            self._seen = events[-1].number
        self._note()

    def _note(self) -> None:
        """How far everything has been told."""
        told = self._backs[0].number - 1 if self._backs else self._seen
        if told != self._noted:
            self._mark.write(told)
            self._noted = told

    def _heard(self, event: Event) -> list[Back]:
        task = self._store.tasks_by_id([event.task]).get(event.task) if event.task else None
        bead = self._bead(task) if task else ""
        if task is None or not bead:
            return []
        ended = task.state in {TaskState.DONE, TaskState.FAILED}
        (self._over.add if ended else self._over.discard)(bead)
        question = self._text(str(event.data.get("message", "")))
        return what_to_tell(event, bead, question=question, why=task.tally.why)

    def _bead(self, task: Task) -> str:
        return bead_of(task.spec.labels) if task.author == self._name else ""

    def _text(self, message: str) -> str:
        try:
            return self._store.message(message).text if message else ""
        except NotFound:
            return ""

    def _finish(self, now: int) -> None:
        assert self._job is not None
        assert self._round is not None
        done, complaint = self._round, ""
        try:
            self._job.result()
        except Exception as error:  # noqa: BLE001  # whatever bd does, the loop goes on
            complaint = error.message if isinstance(error, FleetError) else repr(error)
        self._job = self._round = None
        del self._backs[: done.told]
        if done.stuck is not None:
            complaint = complaint or self._stuck(*done.stuck, up=done.up)
        self._note()
        for bead in done.taken:
            self._take(bead)
        self._complain(complaint, now)

    def _stuck(self, back: Back, why: str, *, up: bool) -> str:
        """One issue that bd will not have told anything about holds up the others only so long."""
        self._tries[back] += up
        if self._tries[back] >= TRIES:
            self._backs.remove(back)
            return f"bd was not asked to {back.act} {back.bead}: {why}"
        return f"{back.act} {back.bead}: {why}"

    def _complain(self, complaint: str, now: int) -> None:
        """Said once, and tried again later and later."""
        if complaint and complaint != self._complaint:
            self._warn(f"beads: {complaint}")
        self._complaint = complaint
        self._pause = min(LONGEST, self._pause * 2) if complaint else POLL
        self._next = now + self._pause
        self._soon = self._next if complaint else now + SOON

    def _take(self, bead: Bead) -> None:
        assert self._tasks is not None
        try:
            if bead.id in self._tasks:
                self._call(RetryTask(self._tasks[bead.id]))
            else:
                self._tasks[bead.id] = self._call(self._task(bead)).id
            self._over.discard(bead.id)
        except FleetError as error:  # its title, its directory or its coder cannot be had
            why = f"The fleet cannot take it: {error.message} {error.fix}".strip()
            self._backs.append(Back(self._seen, bead.id, "block", why))

    def _task(self, bead: Bead) -> AddTask:
        wanted = self._bd.wanted(bead.id)
        spec = Spec(
            coder=wanted.get("coder", ""),
            model=wanted.get("model", ""),
            priority=min(4, max(0, bead.priority)),
            labels=(f"{LABEL}{bead.id}",),
            cwd=wanted["cwd"],
            in_place=not wanted.get("checkout", ""),
        )
        title = " ".join(bead.title.split())[:MOST_TITLE] or bead.id
        return AddTask(title, bead.description, wanted.get("project", "") or wanted["cwd"], spec)
