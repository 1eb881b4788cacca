"""One run, from claimed to ended: prepare, launch, watch, settle.

Any step may be the last one before a crash. Whoever comes next finds the run in the store and in
its folder, and goes on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.choice import Defaults, choose
from fleet.domain.errors import BadConfig, Conflict, FleetError
from fleet.domain.event import Event
from fleet.domain.message import MessageKind, delivered
from fleet.domain.run import Ending, Outcome, Progress, Run, RunState, Wanted
from fleet.domain.task import SECOND, Retry
from fleet.domain.transcript import Conversation, Exit, SaidKind, hear, judge
from fleet.ports import Brief, Look, Presence, Put
from fleet.supervisor.brief import answers, compose, options_of, session_of
from fleet.supervisor.settling import end_run
from fleet.supervisor.site import last_started, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.config import Settings
    from fleet.domain.run import Workspace
    from fleet.domain.task import Task
    from fleet.ports import Job, Listener
    from fleet.supervisor.parts import Here, Parts

BATCH = 1 << 20  # bytes of transcript in one step, so that one loud coder holds up nobody
LINGER = 30 * SECOND  # for a program that does not end after its last turn, as some do now and then
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
        self._given_up: Outcome | None = None
        self._delivered = False
        self._closed_at = 0
        self._let_go = False
        self._lost_at = 0
        self._traceless = False  # its folder vanished, and with it all proof
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
    def _known(self) -> str:
        """Its project, or the home when the project's settings have become wrong meanwhile."""
        try:
            self._parts.world(self._project)
        except BadConfig:
            return ""
        return self._project

    @property
    def _settings(self) -> Settings:
        return self._parts.world(self._known).settings

    def _start(self) -> None:
        look = self._parts.launcher.look(self.run.id)
        match look.presence:
            case Presence.UNKNOWN:
                return
            case Presence.NEVER | Presence.GONE if self._given_up:
                self._give_up(self._given_up)
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
        last = last_started(self._parts.store, self.run)
        site = site_of(self._parts.store, self.run, last)
        with self._or_give_up():
            checkout = self._parts.checkout(self._project)
            planned = self.run.workspace or checkout.plan(site)
        if self._given_up:
            return
        if self.run.workspace is None:
            self._record(planned)
        if self._job is None:
            self._job = self._parts.jobs.begin(partial(checkout.prepare, planned, site))
        if self._job.done():
            self._launch(site.task, last, planned)

    @contextmanager
    def _or_give_up(self) -> Iterator[None]:
        """What is wrong with its workspace, settings or coder is how this run ends."""
        try:
            yield
        except (FleetError, OSError) as error:
            fix = f" {error.fix}" if isinstance(error, FleetError) and error.fix else ""
            self._given_up = Outcome(Ending.FAILED, f"{error}{fix}")
            self._give_up(self._given_up)

    def _record(self, planned: Workspace) -> None:
        """Before it is made, so that whatever is made has an owner."""
        (now,) = self._parts.store.commit([Put(replace(self.run, workspace=planned))], [])
        assert isinstance(now, Run)
        self.run = now

    def _launch(self, task: Task, last: Run | None, workspace: Workspace) -> None:
        said = self._parts.store.messages(task.id)
        env = self._parts.env(task.id, self.run.id)
        with self._or_give_up():
            assert self._job is not None
            self._job.result()
            there = self._parts.world(task.project)
            defaults = Defaults(self._here.coder or there.settings.coder, there.settings.model)
            agent, _ = choose(task.spec, there.fleet, defaults)
            coder = self._parts.coder(self.run.choice.coder)
            session = session_of(task, last, self.run) if coder.resumes else ""
            brief = Brief(
                run_id=self.run.id,
                prompt=compose(task, last, said, self.run.claimed_at, resuming=bool(session)),
                cwd=workspace.path,
                task_dir=str(self._parts.task_dir(task.id)),
                model=self.run.choice.model,
                instructions=agent.prompt,
                session=session,
                env=env,
                options=options_of(agent, there.fleet, self.run.choice),
            )
            self._parts.launcher.launch(self.run.id, coder.launch(brief))

    def _started(self) -> None:
        store = self._parts.store
        now = store.now()
        running = replace(self.run, state=RunState.RUNNING, started_at=now)
        event = Event("run.started", self.run.task, SUPERVISOR, now, self.run.id)
        self.run = store.commit([Put(running)], [event])[0]  # type: ignore[assignment]

    def _deliver(self) -> None:
        """What it was told when it started has been taken."""
        if not self._delivered:
            store = self._parts.store
            now, said = store.now(), store.messages(self.run.task)
            told = [Put(delivered(m, at=now)) for m in answers(said, self.run.claimed_at)]
            if told:
                store.commit(told, [])
            self._delivered = True

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
                if look.code == 0:
                    self._deliver()
                elif self._is_full():  # whoever stopped it for that may not have lived to say so
                    self._cut = self._cut or Ending.CONTEXT_FULL
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
            if heard.turns:
                self._deliver()
            if not final:
                return

    def _ear(self) -> Listener:
        if self._listener is None:
            coder = self._parts.coder(self.run.choice.coder)
            self._listener = coder.listen(self._parts.launcher.opening(self.run.id))
        return self._listener

    def _converse(self) -> None:
        """Give its protocol what it waits for; once no turn goes on, there is no more to come."""
        for key, text in self._replies.items():
            self._parts.launcher.tell(self.run.id, text, key=key)
        self._replies.clear()
        if self._heard.at_rest and not self._closed_at:
            self._parts.launcher.close(self.run.id)
            self._closed_at = self._parts.store.now()

    @property
    def _lingers(self) -> bool:
        """It has said its result, has been told that nothing comes, and is still there."""
        if not self._closed_at or not self._heard.at_rest:
            return False
        return self._parts.store.now() - self._closed_at > LINGER

    def _mind(self) -> None:
        """Stop it when somebody wants that, when its time is up, or its context full."""
        self._cut = self._cut or self._reason_to_cut()
        self._let_go = self._let_go or self._lingers
        if (self._cut or self.run.wanted or self._let_go) and not self._told_to_stop:
            self._parts.launcher.stop(self.run.id, grace=self._settings.run.grace)
            self._told_to_stop = True

    def _reason_to_cut(self) -> Ending | None:
        settings = self._settings
        limit = self._limit or settings.run.time_limit
        age = self._parts.store.now() - self.run.started_at
        if limit and self.run.started_at and age > limit * SECOND:
            return Ending.TIMED_OUT
        return Ending.CONTEXT_FULL if self._is_full() else None

    def _is_full(self) -> bool:
        world = self._parts.world(self._known)
        model = world.fleet.model(self.run.choice.model)
        share = world.settings.context_pressure_threshold_pct / 100
        return model is not None and self._heard.usage.context >= model.context * share

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
        self._traceless = self._traceless or look.presence is Presence.NEVER
        gone = self._parts.launcher.end(self.run.id) and not self._traceless
        if not gone and now - self._lost_at < PROOF:
            return
        self._listen(final=True)
        self._cut = self._cut or Ending.LOST
        self._finish(look, gone=gone)

    def _finish(self, look: Look, *, gone: bool) -> None:
        workspace = self.run.workspace
        commit = self._parts.checkout(self._known).commit(workspace) if workspace else ""
        heard = replace(self._heard, session=self._session())

        def judged(run: Run) -> Outcome:
            outcome = judge(
                heard,
                Exit(0 if self._let_go and heard.at_rest else look.code, look.stderr),
                in_turns=bool(self._parts.launcher.opening(run.id)),
                asked=self._asked(run),
                wanted=run.wanted,
                cut=self._cut,
                commit=commit,
            )
            return replace(outcome, gone=gone)

        self._end(judged)

    def _session(self) -> str:
        """Its conversation, once it has taken what it was told; else the one it was to go on with.

        One that was named but never begun knows nothing of the task.
        """
        if self._heard.turns and self._heard.session:
            return self._heard.session
        store = self._parts.store
        last = last_started(store, self.run)
        return session_of(store.task(self.run.task), last, self.run) if last else ""

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
