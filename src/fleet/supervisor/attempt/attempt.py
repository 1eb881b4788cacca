"""One run, from claimed to ended: prepare, launch, watch, settle.

Any step may be the last one before a crash. The next supervisor finds the run in the store and in
its folder, and goes on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from fleet.base.set_up_file import running
from fleet.domain.access import SUPERVISOR
from fleet.domain.choice import model_slots
from fleet.domain.errors import (
    BadConfig,
    BadStore,
    Conflict,
    FleetError,
    StoreAway,
    TooSlow,
)
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import GateResult, LandingWish, Proposal, result_id, with_pass
from fleet.domain.run import Ending, Outcome, Run, RunState, Wanted, release
from fleet.domain.task import SECOND, Mode, Retry
from fleet.domain.transcript import Conversation, Cut, Exit, SaidKind, hear_all, judge
from fleet.ports import Look, Presence, Put, Same, Site, Tip
from fleet.supervisor.attempt.environment import NO_KEYS, for_coder
from fleet.supervisor.attempt.finish import Finishing, with_tip
from fleet.supervisor.attempt.gate import Gate, gate_name
from fleet.supervisor.attempt.limits import (
    Silence,
    SteadyClock,
    is_full,
    out_of_time,
    over_budget,
    window_of,
)
from fleet.supervisor.attempt.pipe import PipeChannel
from fleet.supervisor.attempt.progress import ProgressWriter
from fleet.supervisor.attempt.prompt import has_asked, news_for, session_of
from fleet.supervisor.attempt.settle import blame, end_run, is_recorded, wanted_ending
from fleet.supervisor.attempt.site import last_started, merges_of, site_of
from fleet.supervisor.attempt.start import Starting
from fleet.supervisor.attempt.terminal import TerminalChannel
from fleet.supervisor.attempt.words import changes_of
from fleet.supervisor.share_commits import Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.config import Settings
    from fleet.domain.message import Message
    from fleet.domain.run import Workspace
    from fleet.domain.task import Task
    from fleet.domain.transcript import Said
    from fleet.ports import Coder, Listener, World
    from fleet.supervisor.attempt.settle import Queued
    from fleet.supervisor.parts import Parts, ThisSupervisor

BATCH = 1 << 20  # bytes of transcript in one step, so that one loud coder holds up no other run
SETUP_FAILED = "setup_failed"  # the code of an error that the next run would meet again
HOLDING = frozenset(  # codes of errors that only a person can mend; until then the task is paused
    {"base_conflict", "branch_in_the_way", "branch_pattern", "no_commit", "no_directory"}
    | {"outside_git"}
)
EXPIRED = "Its host could not reach the store for longer than its lease, so its keeper ended it."
BUDGET_EVERY = 2 * SECOND  # between looks at whether a person changed the budget
PROOF = 30 * SECOND  # how long we look for proof that a vanished keeper's processes are gone


class Attempt:
    """A channel, a pipe or a terminal, listens and speaks to the coder.

    It has `listen` (to the coder's output), `confirm` (record the messages that the coder has
    heard), `converse` (send the next message; called once in each step), `typing`, `attended` (a
    person may sit there, so the run is not hurried), `last_words` (of a coder that failed and wrote
    nothing to its standard error) and `end`. The attributes it needs are public.
    """

    def __init__(
        self, parts: Parts, here: ThisSupervisor, run: Run, *, ready: bool = False
    ) -> None:
        """`ready`: its workspace was made ahead."""
        self.parts = parts
        self._here = here
        self.run = run
        self.over = False
        self.has_freed = False  # a slot, which nobody was told of yet
        self._listener: Listener | None = None
        self.replies: dict[str, str] = {}  # by key: our replies to requests of the coder's protocol
        self.conversation = Conversation()
        self._offset = 0
        self._cut: Cut | None = None
        self._told_to_stop = False
        self._given_up: Outcome | None = None
        self._delivered = False
        self.let_go = False  # the coder has finished its work and may be stopped
        self._lost_at = 0
        self._proof_lost = False  # the folder that could prove its processes gone has vanished
        self.progress = ProgressWriter(parts.store, run.id)
        self.task = parts.store.task(run.task)  # as it was when the run was claimed
        self._budget_at = 0
        self._project = self._settings_of = self.task.project
        self._starting = Starting(parts, self._project, ready=ready)
        self._world: World[Settings]
        self.waiting: Sequence[Message] = ()  # messages that the coder has not heard
        self._channel = (
            TerminalChannel(self) if self.task.spec.mode == Mode.TERMINAL else PipeChannel(self)
        )
        self._steady_clock: SteadyClock | None = None
        self._silence = Silence(parts.clock.since_boot())
        self._gate: Gate | None = None
        self._finishing = Finishing(parts)
        self._packing = Packing(parts)
        self._last_commit = ""

    @property
    def typing(self) -> bool:
        """Whether a message is being pasted just now."""
        return self._channel.typing

    @property
    def left_to_its_person(self) -> bool:
        """Whether a person may sit at its terminal and no message waits to be pasted."""
        started = self.run.state is RunState.RUNNING and not self.run.wanted
        return self._channel.attended and started and not self.waiting and not self.typing

    def step(self) -> None:
        """Do what can be done now, without waiting."""
        self._read_settings()
        try:
            if self.run.state is RunState.CLAIMED:
                self._start()
            elif self.run.state is RunState.RUNNING:
                self._watch()
        except Conflict:
            pass  # another process changed the run: the next step reads it again

    def _read_settings(self) -> None:
        """Once a step: the project's, or the home's when the project's have become wrong."""
        try:
            self._world, self._settings_of = self.parts.world(self._project), self._project
        except BadConfig:
            self._world, self._settings_of = self.parts.world(""), ""

    @property
    def settings(self) -> Settings:
        return self._world.settings

    def _start(self) -> None:
        look = self.parts.launcher.look(self.run.id)
        match look.presence:
            case Presence.UNKNOWN:
                return
            case Presence.NEVER | Presence.GONE if self._given_up:
                self._give_up(self._given_up)
            case Presence.NEVER:
                if self._starting.busy:
                    self.progress.set_up(self.run, running(self.parts.task_dir(self.task.id)))
                    if self.run.wanted:
                        self._starting.interrupt(Site(self.task, self.run))
                    return
                if self.run.wanted:
                    self._give_up(Outcome(Ending.FAILED))
                else:
                    self._make_ready()
            case _:
                self._started()

    def _make_ready(self) -> None:
        """Any error but that of a store that does not answer ends the run."""
        store = self.parts.store
        last = last_started(store, self.run)
        site = site_of(store, store.task(self.run.task), self.run, last)
        with self._or_give_up():
            workspace = self._starting.plan(site)
        if self._given_up:
            return
        if self.run.workspace is None:
            self._record(workspace)
        if self._starting.prepared:
            self.parts.files.begin(site.task, self.run)
        with self._or_give_up():
            self._starting.go_on(site._replace(run=self.run), last, workspace)

    @contextmanager
    def _or_give_up(self) -> Iterator[None]:
        """End the run with what is wrong with its workspace, settings or coder."""
        try:
            yield
        except (FleetError, OSError) as error:
            if isinstance(error, StoreAway | TooSlow) and not isinstance(error, BadStore):
                raise  # the next step tries again
            self._given_up = _given_up(error)
            self._give_up(self._given_up)

    def _record(self, planned: Workspace) -> None:
        """Write the workspace down before it is made, so that all that is made has an owner."""
        (written,) = self.parts.store.commit([Put(replace(self.run, workspace=planned))], [])
        assert isinstance(written, Run)
        self.run = written

    def _started(self) -> None:
        store = self.parts.store
        now = store.now()
        self._steady_clock = SteadyClock(now, self.parts.clock)
        running = replace(self.run, state=RunState.RUNNING, started_at=now)
        event = self.event(Kind.RUN_STARTED, now)
        self.run = store.commit([Put(running)], [event])[0]  # type: ignore[assignment]

    def _deliver(self) -> None:
        """Record that the coder has taken its prompt, and the messages in it."""
        if not self._delivered:
            store = self.parts.store
            now, messages = store.now(), store.messages(self.run.task)
            news = news_for(messages, self.run.claimed_at)
            facts = [self.event(Kind.MESSAGE_HEARD, now, message=m.id) for m in news]
            if not is_recorded(store, self.run, Kind.RUN_PROMPTED):
                facts.append(self.event(Kind.RUN_PROMPTED, now))
            if facts:
                changes = [c for m in news for c in changes_of(store, self.run, m, now=now)]
                store.commit([*changes, Same(self.run)], facts)
            self._delivered = True

    def event(self, kind: Kind, at: int, **data: str) -> Event:
        return Event(kind, self.run.task, SUPERVISOR, at, self.run.id, data)

    def _give_up(self, outcome: Outcome) -> None:
        """End a run whose coder never started."""
        if self.parts.launcher.end(self.run.id):
            self._end(lambda run: replace(outcome, ending=wanted_ending(run, outcome.ending)))

    def _watch(self) -> None:
        self._listen(final=False)
        look = self.parts.launcher.look(self.run.id)
        match look.presence:
            case Presence.ALIVE:
                self._channel.converse()
                self._stop_if_due()
                self.progress.note(self.run, self.conversation, window=self._window())
                self._save_commits()
            case Presence.EXITED:
                self._listen(final=True)
                if look.expired:
                    self._cut = self._cut or Cut(Ending.LOST, EXPIRED)
                elif look.code == 0:
                    if not self._opening:  # else the first turn says it
                        self._deliver()
                elif self._is_full():  # an earlier supervisor may have stopped it for that
                    self._cut = self._cut or Cut(Ending.CONTEXT_FULL)
                self._finish(look, gone=True)
            case Presence.GONE | Presence.NEVER:
                self._lost(look)
            case Presence.UNKNOWN:
                pass

    def _listen(self, *, final: bool) -> None:
        listener = self.listener()
        while True:
            chunk = self.parts.transcripts.read(self.run.id, self._offset, limit=BATCH, final=final)
            if chunk.offset == self._offset:
                return
            self._offset = chunk.offset
            self._hear(listener, chunk.lines)
            if self.conversation.turns:
                self._deliver()
            self._channel.confirm()
            if not final:
                return

    def _hear(self, listener: Listener, lines: Sequence[str]) -> None:
        first = self.conversation.lines + 1
        transcript: list[tuple[int, Said]] = []
        for number, line in enumerate(lines, first):
            for item in listener.hear(line):
                if item.kind is SaidKind.REPLY:
                    self.replies[item.name] = item.text
                else:
                    transcript.append((number, item))
        conversation = hear_all(self.conversation, (item for _, item in transcript))
        self.conversation = replace(conversation, lines=first + len(lines) - 1)
        self.parts.files.add_to_transcript(self.run, transcript)

    def listener(self) -> Listener:
        if self._listener is None:
            self._listener = self._channel.listen(self._coder, self._opening)
        return self._listener

    @cached_property
    def _coder(self) -> Coder:
        return self.parts.coder(self.run.choice.coder, self._settings_of)

    @cached_property
    def _opening(self) -> str:
        """The first input of a coder that speaks in turns, as it was launched; else empty."""
        return self.parts.launcher.opening(self.run.id)

    def now(self) -> int:
        """The time for measuring durations: setting the wall clock does not change it."""
        if self._steady_clock is None:
            at = max(self.run.started_at, self.parts.store.now())
            self._steady_clock = SteadyClock(at, self.parts.clock)
        return self._steady_clock.now()

    def _stop_if_due(self) -> None:
        """Stop the coder when a person wants that, a limit is reached, or it has finished."""
        self._cut = self._cut or self._reason_to_cut()
        at_once = self.run.wanted not in {Wanted.NOTHING, Wanted.CLOSE}
        if (self._cut or at_once or self.let_go) and not self._told_to_stop:
            self.parts.launcher.stop(self.run.id, grace=self.settings.run.grace)
            self._told_to_stop = True

    def _take_budget(self, now: int) -> None:
        """The budget of a task can be changed while it runs; of the rest, a run keeps what it began with."""
        if 0 <= now - self._budget_at < BUDGET_EVERY:
            return
        self._budget_at = now
        budget = self.parts.store.task(self.task.id).spec.limits.budget
        if budget != self.task.spec.limits.budget:
            limits = replace(self.task.spec.limits, budget=budget)
            self.task = replace(self.task, spec=replace(self.task.spec, limits=limits))

    def _reason_to_cut(self) -> Cut | None:
        settings, now = self.settings, self.now()
        if over := out_of_time(self.run, self.task, settings, now):
            return over
        if not self._channel.attended and self._is_full():
            return Cut(Ending.CONTEXT_FULL)
        self._take_budget(now)
        if over := over_budget(self.run, self.task, self.conversation, settings, now):
            return over
        if self._channel.attended:
            return None  # a person is not hurried: only the time limit and the budget count
        return self._silence.stalled(
            self.conversation,
            settings.run.stall_limit if self._coder.stalls else 0,
            now=self.parts.clock.since_boot(),
            in_turns=bool(self._opening),
        )

    def _window(self) -> int:
        return window_of(self.run, self._world.fleet, self._coder, self.conversation)

    def _is_full(self) -> bool:
        return is_full(self.conversation, self._window(), self.settings)

    def _lost(self, look: Look) -> None:
        """The keeper is dead. End its processes, if we can, before another run starts."""
        now = self.now()
        self._lost_at = self._lost_at or now
        self._proof_lost = self._proof_lost or look.presence is Presence.NEVER
        gone = self.parts.launcher.end(self.run.id) and not self._proof_lost
        if not gone and now - self._lost_at < PROOF:
            return
        self._listen(final=True)
        self._cut = self._cut or Cut(Ending.LOST)
        self._finish(look, gone=gone)

    def _finish(self, look: Look, *, gone: bool) -> None:
        self._settle(look, gone=gone)
        if gone and not self.over:
            self._free_model()

    def _free_model(self) -> None:
        """Let the next run have its model: the coder has ended, and a gate may take minutes."""
        run, store = self.run, self.parts.store
        slots = model_slots(run.choice, self._world.fleet, hosts=(run.host,))
        free = {each.name for slot in slots for each in slot.all} & set(run.slots)
        if not free:
            return
        kept = replace(run, slots=tuple(name for name in run.slots if name not in free))
        rows = [Put(release(row, run.id)) for row in store.slots(sorted(free)).values()]
        self.run = store.commit([Put(kept), *rows], [])[0]  # type: ignore[assignment]
        self.has_freed = True

    def _settle(self, look: Look, *, gone: bool) -> None:
        conversation = replace(self.conversation, session=self._session())
        tip: Tip | None = Tip()

        def judged(run: Run) -> Outcome:
            assert tip is not None
            outcome = judge(
                conversation,
                self._exit(look),
                in_turns=bool(self._opening),
                parked=has_asked(self.parts.store.messages(run.task), run),
                wanted=run.wanted,
                cut=self._cut,
                commit=tip.commit,
                closed=run.closed,
            )
            outcome = with_tip(outcome, tip, self.settings.run.commit)
            return replace(self._blamed(outcome), gone=gone)

        if (tip := self._left_behind(judged(self.run).ending)) is None:
            return
        if not self._is_packed(tip.commit):
            return
        outcome = self._gated(judged(self.run))
        if outcome is not None:
            if self._gate is not None and outcome.ending is Ending.SUCCEEDED and tip.tree:
                self._passed(tip.tree)
            self.progress.report(self.run, self.conversation, window=self._window(), last_time=True)
            self._end(lambda run: judged(run) if run.wanted else replace(outcome, gone=gone))

    def _exit(self, look: Look) -> Exit:
        fine = (
            self.let_go and self.conversation.at_rest
        )  # we ended it ourselves, after its last turn
        code = 0 if fine else look.code
        words = look.stderr if code == 0 or look.stderr else self._channel.last_words()
        return Exit(code, words, exceeded=look.exceeded, cap=look.cap)

    def _blamed(self, outcome: Outcome) -> Outcome:
        now, worked = self.parts.clock.now(), self.now() - self.run.started_at
        return blame(outcome, self.run, self._world.fleet, self.parts.nodes, now, worked)

    def _left_behind(self, ending: Ending) -> Tip | None:
        """What the coder left in its workspace; None while we look."""
        store, workspace = self.parts.store, self.run.workspace
        if workspace is None:
            return Tip()
        site = Site(self.task, self.run, merges_of(store, self.task.after, self.task.project))
        checkout = self.parts.checkout(self._settings_of)
        tip = self._finishing.tip(checkout, workspace, site, ending, self.settings.run.commit)
        if tip and tip.gathered and not is_recorded(store, self.run, Kind.RUN_COMMITTED):
            data = {"commit": tip.commit, "files": str(tip.gathered)}
            fact = self.event(Kind.RUN_COMMITTED, store.now(), **data)
            store.commit([Same(self.run)], [fact])
        return tip

    def _is_packed(self, commit: str) -> bool:
        """Whether the commit can go to the store with the ending; at once where no host shares it."""
        if not self._here.shared or self.run.workspace is None:
            return True
        checkout = self.parts.checkout(self._settings_of)
        self._last_commit = commit
        return self._packing.is_packed(checkout, self.run.workspace, commit)

    def _save_commits(self) -> None:
        """On a shared store: let another host go on from what the run has committed so far."""
        if not self._here.shared or self.run.workspace is None:
            return
        checkout = self.parts.checkout(self._settings_of)
        if new := self._packing.look(checkout, self.run.workspace):
            self.progress.saved(self.run, *new)

    def _gated(self, outcome: Outcome) -> Outcome | None:
        """The outcome after the gate; None while the gate runs."""
        settings = self.settings.run
        command = self.task.spec.gate or settings.gate
        workspace = self.run.workspace
        if self._gate is None:
            reviewed = self.run.wanted is Wanted.CLOSE  # a person has the last word
            due = command and outcome.ending is Ending.SUCCEEDED and not reviewed
            if workspace is None or not (due or self._gate_began()):
                return outcome
            self._gate = Gate(self.parts, self.run.id, command, limit=settings.gate_limit)
        assert workspace is not None
        return self._gate.pass_through(
            outcome,
            workspace.path,
            {
                **for_coder(
                    self.parts.env(self.run.task, self.run.id), NO_KEYS, passed=settings.env
                ),
                **self.parts.workspace_env(self._settings_of, workspace),
            },
            stop=outcome.ending is not Ending.SUCCEEDED,
            grace=settings.grace,
        )

    def _passed(self, tree: str) -> None:
        """Remember that this tree passed the gate: it can land without another one."""
        spec, settings = self.task.spec, self.settings
        setup = () if spec.quick or settings.workspace.quick else settings.workspace.setup
        environment = self.parts.gate_environment(self.task.project)
        name = result_id(tree, spec.gate or settings.run.gate, setup, environment)
        store = self.parts.store
        result = store.gate_results([name]).get(name) or GateResult(name, 0)
        store.commit([Put(with_pass(result, at=store.now()))], [])

    def _gate_began(self) -> bool:
        """Whether an earlier supervisor started the gate: then we must end it."""
        look = self.parts.launcher.look(gate_name(self.run.id))
        return look.presence is not Presence.NEVER

    def _session(self) -> str:
        """The coder's session once a turn has begun; else the one that this run was to resume.

        A session that was named but never begun knows nothing of the task.
        """
        if self.conversation.turns and self.conversation.session:
            return self.conversation.session
        store = self.parts.store
        last = last_started(store, self.run)
        return session_of(store.task(self.run.task), last, self.run) if last else ""

    def _come_home(self, task: Task, run: Run, now: int) -> Queued:
        land = self.settings.land
        if not land.auto:
            return task, [], []
        from fleet.supervisor.landing.auto import queued  # noqa: PLC0415  # start-up time

        wish = LandingWish(
            SUPERVISOR,
            remote=land.remote if land.push or land.pr else "",
            pull=Proposal(merge=land.merge) if land.pr else None,
        )
        return queued(self.parts.store, task, run, land.onto, now, wish=wish)

    def _end(self, judged: Callable[[Run], Outcome]) -> None:
        settings = self.settings.run
        retry = Retry(settings.attempts, int(settings.backoff * SECOND))
        jitter = self.parts.jitter()
        store = self.parts.store
        end_run(
            store, self.run.id, judged, retry, jitter=jitter, home=self._come_home,
            beside=lambda: self._packing.changes(self._last_commit),
        )  # fmt: skip
        self.parts.files.ended(self.parts.store.run(self.run.id))
        self.over = True
        self._channel.end()


def _given_up(error: FleetError | OSError) -> Outcome:
    """How a run ends whose workspace, settings or coder cannot be had."""
    if not isinstance(error, FleetError):
        return Outcome(Ending.FAILED, str(error))
    detail = f"{str(error).rstrip('.')}. {error.fix}" if error.fix else str(error)
    if error.code == "branch_taken":  # the next run takes another branch
        return Outcome(Ending.YIELDED, detail)
    if error.code == "being_removed":  # such as by what parks a worktree after a landing
        return Outcome(Ending.LOST, detail)
    if error.code in HOLDING:
        return Outcome(Ending.STOPPED, detail, again=False)
    return Outcome(Ending.FAILED, detail, again=error.code != SETUP_FAILED)
