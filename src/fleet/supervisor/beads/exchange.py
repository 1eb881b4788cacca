"""`queue: beads`: make tasks of ready issues in a beads database, and tell `bd` how they end.

An issue is claimed in `bd` before it becomes a task here, and becomes a task only once. Jobs beside
the loop call `bd`; only the loop itself uses the store.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fleet.config import outside_git
from fleet.domain.errors import FleetError, NotFound, Unavailable
from fleet.domain.task import SECOND, Spec, TaskState
from fleet.operations.tasks.change import MOST_TITLE, AddTask, RetryTask
from fleet.ports import TaskQuery
from fleet.supervisor.beads.plan import LABEL, Update, bead_of, updates_for, what_to_take

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fleet.domain.event import Event
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Request
    from fleet.ports import Bead, Job, Jobs, Mark, Store, Tracker

POLL = 5 * SECOND
SOON = SECOND  # between rounds while there are new events
LONGEST_PAUSE = 300 * SECOND  # between two tries when bd fails
TRIES = 5  # to send an update that bd refuses, although it answers other calls
BATCH = 500


class Round:
    """All calls of `bd` in one job beside the loop. What succeeded before an error is kept."""

    def __init__(self, bd: Tracker, updates: Sequence[Update]) -> None:
        self._bd = bd
        self._updates = updates
        self.stuck: tuple[Update, str] | None = None
        self.sent = 0  # how many of the updates
        self.up = False
        self.taken: list[Bead] = []

    def run(self, known: Collection[str], again: Collection[str], room: int) -> None:
        for update in self._updates:
            try:
                self._bd.tell(update.bead, update.act, update.text)
            except Unavailable as error:
                self.stuck = update, error.message
                break
            self.sent += 1
        claimed = self._bd.held()
        ready = self._bd.ready(len(known) + room) if room > 0 else []
        self.up = True
        taking = what_to_take(ready, claimed, known, again, room)
        self.taken += taking.adopt
        for bead in taking.claim:
            if self._bd.claim(bead.id):
                self.taken.append(bead)


class Beads:
    """The loop calls `step` in every round; it never waits.

    `call` calls operations as the actor `name`, which differs for each host: so a host recognizes the
    tasks that it made from its own database.
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
        self._marked = -1
        self._updates: list[Update] = []
        self._round: Round | None = None
        self._job: Job | None = None
        self._next, self._soon, self._pause, self._complaint = 0, 0, POLL, ""
        self._tries: Counter[Update] = Counter()

    def step(self, now: int) -> None:
        if self._job is not None:
            if not self._job.done():
                return
            self._finish(now)
        if now >= self._next or (now >= self._soon and self._news()):
            self._begin(now)

    @property
    def idle(self) -> bool:
        """Whether all updates are sent and no issue was ready, or bd cannot be reached now."""
        if self._job is not None or self._tasks is None:
            return False
        return bool(self._complaint) or not (self._updates or self._news())

    def _news(self) -> bool:
        newest = self._store.events(limit=1, newest=True)
        return bool(newest) and newest[0].number > self._seen

    def _begin(self, now: int) -> None:
        if self._tasks is None:
            self._load_tasks()
        self._read_log()
        assert self._tasks is not None
        free = self._room() - len(self._store.live_runs())
        room = free - len(self._store.candidates(now=now, limit=max(1, free)))
        self._round = round_ = Round(self._bd, tuple(self._updates))
        known, again = frozenset(self._tasks), frozenset(self._over)
        self._job = self._jobs.begin(lambda: round_.run(known, again, room))

    def _load_tasks(self) -> None:
        """Find the tasks made from issues, and how far the last supervisor read the log."""
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

    def _read_log(self) -> None:
        """Turn new events into updates."""
        while events := self._store.events(after=self._seen, limit=BATCH):
            for event in events:
                self._updates += self._updates_from(event)
            self._seen = events[-1].number
        self._write_mark()

    def _write_mark(self) -> None:
        """Save the number of the event up to which every update was sent."""
        sent = self._updates[0].number - 1 if self._updates else self._seen
        if sent != self._marked:
            self._mark.write(sent)
            self._marked = sent

    def _updates_from(self, event: Event) -> list[Update]:
        task = self._store.tasks_by_id([event.task]).get(event.task) if event.task else None
        bead = self._bead(task) if task else ""
        if task is None or not bead:
            return []
        ended = task.state in {TaskState.DONE, TaskState.FAILED}
        (self._over.add if ended else self._over.discard)(bead)
        question = self._text(str(event.data.get("message", "")))
        return updates_for(event, bead, question=question, why=task.tally.why)

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
        except Exception as error:  # noqa: BLE001  # whatever bd does, the loop must go on
            complaint = error.message if isinstance(error, FleetError) else repr(error)
        self._job = self._round = None
        del self._updates[: done.sent]
        if done.stuck is not None:
            complaint = complaint or self._stuck(*done.stuck, up=done.up)
        self._write_mark()
        for bead in done.taken:
            self._take(bead)
        self._complain(complaint, now)

    def _stuck(self, update: Update, why: str, *, up: bool) -> str:
        """Drop an update that bd refused TRIES times, so that it holds up no others."""
        self._tries[update] += up
        if self._tries[update] >= TRIES:
            self._updates.remove(update)
            return f"bd failed to {update.act} {update.bead}, and is not asked again: {why}"
        return f"{update.act} {update.bead}: {why}"

    def _complain(self, complaint: str, now: int) -> None:
        """Warn once, and wait longer before each further try."""
        if complaint and complaint != self._complaint:
            self._warn(f"beads: {complaint}")
        self._complaint = complaint
        self._pause = min(LONGEST_PAUSE, self._pause * 2) if complaint else POLL
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
        except FleetError as error:  # the title, directory or coder is not valid
            why = f"The fleet cannot take it: {error.message} {error.fix}".strip()
            self._updates.append(Update(self._seen, bead.id, "block", why))

    def _task(self, bead: Bead) -> AddTask:
        wanted = self._bd.wanted(bead.id)
        if not wanted.get("checkout"):
            raise outside_git(wanted["cwd"])
        spec = Spec(
            coder=wanted.get("coder", ""),
            model=wanted.get("model", ""),
            priority=min(4, max(0, bead.priority)),
            labels=(f"{LABEL}{bead.id}",),
            cwd=wanted["cwd"],
        )
        title = " ".join(bead.title.split())[:MOST_TITLE] or bead.id
        return AddTask(title, bead.description, wanted.get("project", "") or wanted["cwd"], spec)
