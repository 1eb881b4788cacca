"""One run, from claimed to ended: prepare, launch, watch, settle.

Any step may be the last one before a crash. Whoever comes next finds the run in the store and in
its folder, and goes on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.choice import Defaults, choose
from fleet.domain.errors import Conflict, FleetError
from fleet.domain.event import Event
from fleet.domain.message import Message, MessageKind, MessageState, delivered
from fleet.domain.run import Ending, Outcome, Progress, Run, RunState, Wanted
from fleet.domain.task import SECOND, Retry
from fleet.domain.transcript import Conversation, Exit, SaidKind, hear, judge
from fleet.ports import Brief, Look, Merge, Presence, Put, Site
from fleet.supervisor.brief import compose
from fleet.supervisor.settling import end_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.config import Settings
    from fleet.domain.task import Task
    from fleet.ports import Job, Listener
    from fleet.supervisor.parts import Here, Parts

BATCH = 1 << 20  # bytes of transcript in one step, so that one loud coder holds up nobody
PROOF = 30 * SECOND  # how long we look for proof that a vanished keeper's processes are gone


class Attempt:
    def __init__(self, parts: Parts, here: Here, run: Run) -> None:
        self._parts = parts
        self._here = here
        self.run = run
        self.over = False
        self._listener: Listener | None = None
        self._replies: dict[str, str] = {}
        self._job: Job | None = None
        self._heard = Conversation()
        self._offset = 0
        self._cut: Ending | None = None
        self._told_to_stop = False
        self._closed = False
        self._lost_at = 0
        self._progress = Progress(run.id, -1, 0)
        task = parts.store.task(run.task)
        self._project = task.project
        self._limit = task.spec.time_limit

    def step(self) -> None:
        """Do what can be done now, without waiting."""
        try:
            if self.run.state is RunState.CLAIMED:
                self._start()
            elif self.run.state is RunState.RUNNING:
                self._watch()
        except Conflict:
            pass  # somebody changed the run: it is read again before the next step

    @property
    def _settings(self) -> Settings:
        return self._parts.world(self._project).settings

    def _start(self) -> None:
        look = self._parts.launcher.look(self.run.id)
        match look.presence:
            case Presence.UNKNOWN:
                return
            case Presence.NEVER:
                if self._job is not None and not self._job.done():
                    return
                if self.run.wanted:
                    self._give_up(Outcome(Ending.FAILED))
                else:
                    self._make_ready()
            case _:
                self._started()

    def _make_ready(self) -> None:
        """Up to the launch, which may be repeated: it counts once its keeper has been seen."""
        try:
            if self._prepared():
                self._launch()
        except Conflict:
            raise
        except FleetError as error:
            fix = f" {error.fix}" if error.fix else ""
            self._give_up(Outcome(Ending.FAILED, f"{error.message}{fix}"))

    def _prepared(self) -> bool:
        """Plan, record, make: in that order, so that whatever is made has an owner."""
        site = self._site(self._parts.store.task(self.run.task))
        checkout = self._parts.checkout(self._project)
        if self.run.workspace is None:
            planned = replace(self.run, workspace=checkout.plan(site))
            (now,) = self._parts.store.commit([Put(planned)], [])
            assert isinstance(now, Run)
            self.run = now
        assert self.run.workspace is not None
        if self._job is None:
            self._job = self._parts.jobs.begin(partial(checkout.prepare, self.run.workspace, site))
        if not self._job.done():
            return False
        self._job.result()
        return True

    def _site(self, task: Task) -> Site:
        """The last run's workspace, once its processes are gone; else a new one from there."""
        last = self._last_run()
        reusable = (
            last is not None
            and last.host == self._here.host
            and last.workspace is not None
            and (last.outcome is None or last.outcome.gone)
        )
        checkpoint = task.tally.checkpoint
        return Site(
            task,
            self.run,
            merges=self._merges(task),
            previous=last.workspace if last and reusable else None,
            start=checkpoint.commit if checkpoint and last else "",
        )

    def _last_run(self) -> Run | None:
        runs = [r for r in self._parts.store.runs(self.run.task) if r.id != self.run.id]
        return runs[-1] if runs else None

    def _merges(self, task: Task) -> tuple[Merge, ...]:
        """The work of the tasks it waited for, where that is in the same repository."""
        store = self._parts.store
        needs = store.tasks_by_id(task.after)
        found = []
        for need in (needs[i] for i in task.after if needs[i].project == task.project):
            place = next((r.workspace for r in store.runs(need.id)[::-1] if r.workspace), None)
            commit = need.tally.checkpoint.commit if need.tally.checkpoint else ""
            if place and place.branch:
                found.append(Merge(place.branch, commit))
        return tuple(found)

    def _launch(self) -> None:
        store, workspace = self._parts.store, self.run.workspace
        assert workspace is not None
        task = store.task(self.run.task)
        world = self._parts.world(task.project)
        defaults = Defaults(self._here.coder or world.settings.coder, world.settings.model)
        agent, _ = choose(task.spec, world.fleet, defaults)
        coder, last = self._parts.coder(self.run.choice.coder), self._last_run()
        session = self._session(task, last) if coder.resumes else ""
        said = {m.id: m for m in store.messages(task.id)}
        brief = Brief(
            run_id=self.run.id,
            prompt=compose(task, last, said, self._answers(said), resuming=bool(session)),
            cwd=workspace.path,
            task_dir=str(self._parts.task_dir(task.id)),
            model=self.run.choice.model,
            instructions=agent.prompt,
            session=session,
            env=self._parts.env(task.id, self.run.id),
            options={"command": agent.command, "extra_args": agent.extra_args},
        )
        self._parts.launcher.launch(self.run.id, coder.launch(brief))

    def _session(self, task: Task, last: Run | None) -> str:
        """A conversation goes on only where it is kept: with that coder, on that host."""
        here = last is not None and last.host == self._here.host
        if last is None or not here or last.choice.coder != self.run.choice.coder:
            return ""
        return task.tally.checkpoint.session if task.tally.checkpoint else ""

    def _answers(self, said: dict[str, Message]) -> list[Message]:
        return [
            m
            for m in said.values()
            if m.kind is MessageKind.ANSWER and m.state is MessageState.OPEN
        ]

    def _started(self) -> None:
        store = self._parts.store
        now = store.now()
        said = {m.id: m for m in store.messages(self.run.task)}
        running = replace(self.run, state=RunState.RUNNING, started_at=now)
        told = [Put(delivered(m, at=now)) for m in self._answers(said)]
        event = Event("run.started", self.run.task, SUPERVISOR, now, self.run.id)
        self.run = store.commit([Put(running), *told], [event])[0]  # type: ignore[assignment]

    def _give_up(self, outcome: Outcome) -> None:
        """It never started, and never will."""
        if self._parts.launcher.end(self.run.id):
            self._end(lambda run: replace(outcome, ending=_wished(run, outcome.ending)))

    def _watch(self) -> None:
        self._listen(final=False)
        look = self._parts.launcher.look(self.run.id)
        match look.presence:
            case Presence.ALIVE:
                self._converse()
                self._mind()
                self._report()
            case Presence.EXITED:
                self._listen(final=True)
                self._finish(look, gone=True)
            case Presence.GONE | Presence.NEVER:
                self._lost(look)
            case Presence.UNKNOWN:
                pass

    def _listen(self, *, final: bool) -> None:
        listener = self._ear()
        while True:
            chunk = self._parts.transcripts.read(
                self.run.id, self._offset, limit=BATCH, final=final
            )
            if chunk.offset == self._offset:
                return
            self._offset = chunk.offset
            heard = replace(self._heard, lines=self._heard.lines + len(chunk.lines))
            for line in chunk.lines:
                for said in listener.hear(line):
                    heard = hear(heard, said)
                    if said.kind is SaidKind.REPLY:
                        self._replies[said.name] = said.text
            self._heard = heard
            if not final:
                return

    def _ear(self) -> Listener:
        if self._listener is None:
            coder = self._parts.coder(self.run.choice.coder)
            self._listener = coder.listen(self._parts.launcher.opening(self.run.id))
        return self._listener

    def _converse(self) -> None:
        """Give its protocol what it waits for; once a turn has ended, there is no more to come."""
        for key, text in self._replies.items():
            self._parts.launcher.tell(self.run.id, text, key=key)
        self._replies.clear()
        if self._heard.ended_turns and not self._closed:
            self._parts.launcher.close(self.run.id)
            self._closed = True

    def _mind(self) -> None:
        """Stop it when somebody wants that, when its time is up, or its context full."""
        self._cut = self._cut or self._reason_to_cut()
        if (self._cut or self.run.wanted) and not self._told_to_stop:
            self._parts.launcher.stop(self.run.id, grace=self._settings.run.grace)
            self._told_to_stop = True

    def _reason_to_cut(self) -> Ending | None:
        settings = self._settings
        limit = self._limit or settings.run.time_limit
        age = self._parts.store.now() - self.run.started_at
        if limit and self.run.started_at and age > limit * SECOND:
            return Ending.TIMED_OUT
        model = self._parts.world(self._project).fleet.model(self.run.choice.model)
        share = settings.context_pressure_threshold_pct / 100
        if model and self._heard.usage.context >= model.context * share:
            return Ending.CONTEXT_FULL
        return None

    def _report(self) -> None:
        """How far it is: one row, at most once a second, and only when there is news."""
        now = self._parts.store.now()
        if self._heard.lines == self._progress.lines or now - self._progress.at < SECOND:
            return
        if self._progress.version < 0:
            held = self._parts.store.progress([self.run.id])
            version = held[self.run.id].version if held else 0
            self._progress = replace(self._progress, version=version)
        try:
            (written,) = self._parts.store.commit([Put(self._come_to(now))], [])
        except Conflict:
            self._progress = replace(self._progress, version=-1)
            return
        assert isinstance(written, Progress)
        self._progress = written

    def _come_to(self, now: int) -> Progress:
        heard = self._heard
        return replace(
            self._progress,
            at=now,
            lines=heard.lines,
            usage=heard.usage,
            peak_context=heard.peak_context,
            session=heard.session,
            last=heard.last[:500],
        )

    def _lost(self, look: Look) -> None:
        """The keeper is dead. Its processes are ended before anyone else starts, if they can be."""
        now = self._parts.store.now()
        self._lost_at = self._lost_at or now
        gone = self._parts.launcher.end(self.run.id) and look.presence is not Presence.NEVER
        if not gone and now - self._lost_at < PROOF:
            return
        self._listen(final=True)
        self._cut = self._cut or Ending.LOST
        self._finish(look, gone=gone)

    def _finish(self, look: Look, *, gone: bool) -> None:
        workspace = self.run.workspace
        commit = self._parts.checkout(self._project).commit(workspace) if workspace else ""

        def judged(run: Run) -> Outcome:
            outcome = judge(
                self._heard,
                Exit(look.code, look.stderr),
                asked=self._asked(run),
                wanted=run.wanted,
                cut=self._cut,
                commit=commit,
            )
            return replace(outcome, gone=gone)

        self._end(judged)

    def _asked(self, run: Run) -> bool:
        """It parked on a question: also when the answer came before it had ended."""
        return any(
            m.kind is MessageKind.QUESTION and m.parked and m.author == run.id
            for m in self._parts.store.messages(run.task)
        )

    def _end(self, judged: Callable[[Run], Outcome]) -> None:
        settings = self._settings.run
        retry = Retry(settings.attempts, int(settings.backoff * SECOND))
        jitter = self._parts.jitter()
        end_run(self._parts.store, self.run.id, judged, retry, jitter=jitter)
        self.over = True


def _wished(run: Run, otherwise: Ending) -> Ending:
    match run.wanted:
        case Wanted.CANCEL:
            return Ending.CANCELLED
        case Wanted.STOP:
            return Ending.STOPPED
    return otherwise
