"""For every operation a world in which it can be asked for, and the request."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.audit import AuditRecord
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.evals.result import CaseResult, EvalResult, Evaluation
from fleet.domain.landing.landing import (
    Evidence,
    Landing,
    LandingState,
    LandingWish,
    Proposal,
    Pull,
    Train,
    new_train,
    train_id,
)
from fleet.domain.nodes.trace import TokenCounts, Trace, TraceSource
from fleet.domain.run import (
    Checkpoint,
    Choice,
    DoneItem,
    Host,
    Run,
    RunState,
    Slots,
    Summary,
    Workspace,
)
from fleet.domain.task import Limits, Spec, TaskState
from fleet.operations.catalogue import operations
from fleet.operations.compat.issues import ListIssues
from fleet.operations.compat.mark import MarkTask
from fleet.operations.compat.team_tasks import ListTeamTasks
from fleet.operations.compute.evals import ListEvals, ShowEval
from fleet.operations.compute.gateway import ReadGatewayLog, ShowGateway
from fleet.operations.compute.hosts import (
    DrainHost,
    ExamineHost,
    ForgetHost,
    ListHosts,
    ListLimits,
    ResumeHost,
    ShowHost,
)
from fleet.operations.compute.joining import CreateHostToken, InviteHost, JoinHost
from fleet.operations.compute.nodes import ExplainRoute, ListModels, ListNodes, WarmModel
from fleet.operations.compute.traces import ListTraces
from fleet.operations.forges.pulls import ClosePull, MergePull, OpenPull, ShowPull, SyncPull
from fleet.operations.forges.tickets import AddTicket, FindTickets
from fleet.operations.inbox import ListInbox, SeeItems, SnoozeItem
from fleet.operations.insight.conversation import ReadSaid
from fleet.operations.insight.history import CountTasks, ReadTaskFiles, TaskEvents, TaskGates
from fleet.operations.insight.preview import PreviewTask
from fleet.operations.insight.usage import ListBudgets, ReportUsage
from fleet.operations.landing.forecast import ForecastLandings
from fleet.operations.landing.landing import (
    DropLanding,
    GiveLanding,
    HoldLanding,
    LandTasks,
    ListLandings,
    MoveLanding,
    ReleaseLanding,
    ShowLanding,
    UndoLanding,
)
from fleet.operations.landing.output import ReadGateOutput
from fleet.operations.landing.race import ListRaces, PickBest, RaceRules, ShowRace, StartRace
from fleet.operations.landing.review import AskReview, DiffTask, ListReviews, SubmitReview
from fleet.operations.landing.trains import ListTrains, PauseTrain, ResumeTrain
from fleet.operations.messages.alerts import RaiseAlert, SendNotice
from fleet.operations.messages.ask_answer_send import (
    Answer,
    Ask,
    Comment,
    ListQuestions,
    ReadMessage,
    SendWords,
    TakeAnswer,
    Unsend,
)
from fleet.operations.messages.boards import ArchivePosts, MarkRead, Post, ReadBoard
from fleet.operations.messages.chats import ListChats, MarkChat, OpenChat, ReadChat, Say
from fleet.operations.messages.mail import Broadcast, ListMail, ReadMail, SendMail, TakeMail
from fleet.operations.search import FindText
from fleet.operations.settings import FindSettings
from fleet.operations.tasks.add_all import AddTasks, PlannedTask
from fleet.operations.tasks.assign import AssignTask
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import (
    AddTask,
    CancelTask,
    CloseTask,
    PauseTask,
    ResumeTask,
    RetryTask,
)
from fleet.operations.tasks.dependencies import AddDependency, RemoveDependency
from fleet.operations.tasks.edit import EditTask
from fleet.operations.tasks.fork import ForkAgent
from fleet.operations.tasks.graph import GraphTasks
from fleet.operations.tasks.list import ListTasks, ReadyTasks
from fleet.operations.tasks.observe import LookAtAgents, PermitRun
from fleet.operations.tasks.send_back import SendBack
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.tasks.stats import ShowStats
from fleet.operations.tasks.stop import StopRuns
from fleet.operations.tasks.transcript import AttachRun, InterruptRun, ReadScreen, ReadTranscript
from fleet.operations.team.audit import ListAudit
from fleet.operations.team.checkpoints import (
    AcceptCheckpoint,
    LatestCheckpoint,
    ListCheckpoints,
    LoadCheckpoint,
    RejectCheckpoint,
    SaveCheckpoint,
)
from fleet.operations.team.enrolments import (
    CreateEnrolment,
    Enrol,
    ListEnrolments,
    RevokeEnrolment,
    ShowEnrolment,
)
from fleet.operations.team.file_claims import ClaimFile, ListFiles, ReleaseFile
from fleet.operations.team.members import BeSeen, ListMembers, ShowMember
from fleet.operations.team.memory import ListMemory, Recall, SearchMemory, StoreMemory
from fleet.operations.team.sessions import CreateCode, OpenSession, RenewSession, ShowMe
from fleet.operations.team.swarms import CreateSwarm, KillSwarm, ListSwarms, ShowSwarm
from fleet.operations.team.tokens import CreateToken, ListTokens, RevokeToken
from fleet.operations.views import ListViews, RemoveView, SaveView
from fleet.operations.worktrees import (
    CommitWorktree,
    DiffWorktree,
    MergeWorktree,
    ProposeWorktree,
    PushWorktree,
    ShowWorktree,
)
from fleet.ports import Put

DECLARED = {operation.name: operation for operation in operations()}
SECRET = "blueprint"


def _asked(office, team: str) -> str:
    return office.ask(office.add(SECRET, team=team), f"{SECRET}?", options=("yes", SECRET))


def _sent(office, team: str) -> str:
    return office.call(SendWords(office.add(SECRET, team=team), SECRET)).id


def _answered(office, team: str) -> str:
    question = _asked(office, team)
    office.call(Answer(question, SECRET))
    return question


def _audited(office, team: str) -> None:
    record = AuditRecord("", 1, "allowed", "ann", "worker", team, operation="task.add")
    office.audit.add(record)


def _enrolment(office, team: str):
    return office.call(CreateEnrolment("team-lead", team))


def _chat(office, team: str) -> str:
    """Ada's, with everyone in the team, in which somebody said something."""
    chat = office.call(OpenChat(team=team)).id
    office.call(Say(chat, SECRET, team=team))
    return chat


def _ours(office, team: str) -> str:
    """A task that is Ada's, as a worker may have one."""
    return office.add(SECRET, team=team, spec=Spec(assignee="ada"))


def _ran(office, team: str) -> str:
    task = office.add(SECRET, team=team)
    run = office.start(task, f"text {SECRET}")
    office.progress(run, lines=1, last=SECRET)
    return task


def _rich(office, team: str) -> str:
    """A task of which there is something to show everywhere."""
    task, need = _ran(office, team), office.add(f"{SECRET} first", team=team)
    office.call(Comment(task, SECRET))
    office.end(f"{task}.1")
    office.call(RetryTask(task))
    office.call(AddDependency(task, need))
    office.ask(task, SECRET)
    return task


def _failed(office, team: str) -> str:
    task = office.add(SECRET, team=team)
    office.finish(task, "failed")
    return task


def _paused(office, team: str) -> str:
    task = office.add(SECRET, team=team)
    office.call(PauseTask(task))
    return task


def _pair(office, team: str) -> tuple[str, str]:
    return office.add(SECRET, team=team), office.add(f"{SECRET} first", team=team)


def _waiting(office, team: str) -> tuple[str, str]:
    task, need = _pair(office, team)
    office.call(AddDependency(task, need))
    return task, need


def _listed(office, team: str, request):
    _rich(office, team)
    office.add(f"{SECRET} ready", team=team)
    return request


def _done(office, team: str) -> str:
    """A task whose work is on a branch of its own."""
    store = office.store
    task = store.task(office.add(SECRET, team=team))
    space = Workspace(SECRET, SECRET, "fleet/x", "c0", repository=SECRET, onto="main")
    run = Run(
        f"{task.id}.1", 0, task.id, RunState.ENDED, Choice(SECRET, SECRET), SECRET, SECRET, 1,
        workspace=space,
    )  # fmt: skip
    tally = replace(task.tally, runs=1, checkpoint=Checkpoint(commit=SECRET))
    store.commit([Put(replace(task, state=TaskState.DONE, tally=tally)), Put(run)], [])
    return task.id


def _landing(office, team: str) -> str:
    """Of a task that is done, on its way to main."""
    store = office.store
    landing = Landing(
        store.new_id("l"), 0, LandingState.QUEUED, office.add(SECRET, team=team), team, SECRET,
        train_id(SECRET, "main"), "main", SECRET, LandingWish(SECRET), store.now(), why=SECRET,
    )  # fmt: skip
    trains = [] if store.trains() else [Put(Train(landing.train, 0, SECRET, "main"))]
    store.commit([*trains, Put(landing)], [])
    return landing.id


def _held(office, team: str) -> str:
    landing = office.store.landing(_landing(office, team))
    office.store.commit([Put(replace(landing, state=LandingState.HELD))], [])
    return landing.id


def _pull(office, team: str) -> str:
    """A task that is done, with a pull request."""
    store, task = office.store, _done(office, team)
    opened = Pull(7, f"https://x/{SECRET}", SECRET, "c1", "c1", "c0")
    wish = LandingWish(SECRET, remote="origin", pull=Proposal(SECRET, opened=opened))
    landing = Landing(
        store.new_id("l"), 0, LandingState.QUEUED, task, team, SECRET,
        train_id(SECRET, "main", "origin", pulls=True), "main", "c1", wish, store.now(), why=SECRET,
    )  # fmt: skip
    trains = [] if store.trains() else [Put(new_train(landing))]
    waiting = store.task(task)
    waiting = replace(waiting, tally=replace(waiting.tally, landing=landing.id))
    store.commit([*trains, Put(landing), Put(waiting)], [])
    return task


def _reviewed(office, team: str, request):
    _done(office, team)
    return request


def _landed(office, team: str) -> str:
    store = office.store
    landing = store.landing(_landing(office, team))
    evidence = Evidence("2" * 40, "1" * 40)
    store.commit([Put(replace(landing, state=LandingState.LANDED, evidence=evidence))], [])
    return landing.id


def _race(office, team: str) -> str:
    return office.call(StartRace(SECRET, 2, rules=RaceRules("true"), team=team)).batch


def _swarm(office, team: str) -> str:
    swarm = office.call(CreateSwarm(SECRET, 3, SECRET, team=team)).id
    office.add(SECRET, parent=swarm, team=team)
    return swarm


def _post(office, team: str) -> str:
    return office.call(Post(_swarm(office, team), f'{{"text": "{SECRET}"}}')).id


def _board(office, team: str) -> str:
    return office.store.message(_post(office, team)).task


def _mail(office, team: str) -> str:
    return office.call(SendMail("ada", SECRET, SECRET, team=team)).id


def _checkpoint(office, team: str) -> str:
    return office.call(_summary(team)).id


def _summary(team: str) -> SaveCheckpoint:
    done = (DoneItem("One", ("a.py",)),)
    return SaveCheckpoint(Summary(SECRET, "Half.", done=done, next=("More.",)), team=team)


def _remembered(office, team: str, request):
    office.call(StoreMemory(SECRET, f"{SECRET} value", tags=("x",), team=team))
    return request


def _claimed(office, team: str, request):
    office.call(ClaimFile(f"src/{SECRET}.py", team=team))
    return request


def _member(office, team: str, request):
    from fleet.domain.access import Role

    office.call(BeSeen(), office.person(Role.WORKER, team, name=SECRET))
    return request


def _led(office, team: str, request):
    from fleet.domain.access import Role

    office.call(BeSeen(), office.person(Role.TEAM_LEAD, team, name="lead"))
    return request


def _token(office, request):
    office.call(CreateToken(SECRET, team="local"))
    return request


def _renewed(office) -> RenewSession:
    at, body = office.store.now(), {"role": "coordinator", "team": "local"}
    if office.store.entry(EntryKind.TOKEN, "", "of-ada") is None:
        new, body = office.store.new_id("e"), body | {"session": at}
        session = Entry(new, 0, EntryKind.TOKEN, "", "of-ada", "ada", at, body=body)
        office.store.commit([Put(session)], [])
    return RenewSession()


def _running(office, team: str, request):
    office.start(office.add(SECRET, team=team))
    return request


def _evaluated(office, request):
    case = CaseResult("review", "review", 0.5, 1, 2, 2, 3.5, 0.5, 90, None, "1 of 2 right")
    row = EvalResult("heavy", "big", "http://10.0.0.7:11434", "qwen:32b", ("reviewer",), (case,))
    office.machines.kept = [
        Evaluation("20261118-090000-ab12", 7, "suite", "builtin", 42, "bubblewrap", (row,))
    ]
    return request


def _traced(office, team: str, request):
    task = office.add(SECRET, team=team)
    estimates = [{"node": "big", "wait": 1, "load": 0, "prefill": 2, "decode": 3}]
    why = {"estimates": estimates, "failed": ["old: it is gone"], "error": SECRET}
    office.machines.written = [
        Trace(
            7,
            SECRET,
            f"{task}.1",
            "heavy",
            node="big",
            source=TraceSource(f"{task}.1", SECRET),
            tokens=TokenCounts(9, 8, 7),
            cost=0.5,
            why=why,
        )
    ]
    office.machines.log = ["INFO: began", '{"message": "failed", "level": "ERROR"}']
    return request


def _hosted(office, request):
    later = office.store.now() + 10**9
    host = Host(
        "h-1", 0, "box", "x", "y", later, ("http://old:1 no answer",), 3, ("codex codex",),
        without=(f"untrusted /{SECRET}",),
    )  # fmt: skip
    parked = Slots("credential:claude", 0, ("t-1.1",), later, f"Rate limit: {SECRET}")
    if not office.store.hosts():
        office.store.commit([Put(host), Put(parked)], [])
    return request


def _stopped(office, request):
    if "h-2" not in office.store.hosts():
        office.store.commit([Put(Host("h-2", 0, "old", "x", "y", 1))], [])
    return request


SPEC = Spec(agent="implementer", priority=1, labels=("red",), branch="fix/login", limits=Limits(3))
SAMPLES = {
    "task.add": lambda office, team: AddTask(SECRET, "Do it.", "/repo", SPEC, team=team),
    "task.add_all": lambda office, team: AddTasks(
        (
            PlannedTask(SECRET, "a", "Do it.", "/repo", SPEC, team=team),
            PlannedTask(SECRET, "b", after=("a", office.add(SECRET, team=team)), team=team),
        ),
        again=True,
    ),
    "search.find": lambda office, team: _listed(office, team, FindText(SECRET)),
    "usage.report": lambda office, team: _listed(office, team, ReportUsage("task")),
    "budget.list": lambda office, team: _running(office, team, ListBudgets()),
    "node.list": lambda office, team: ListNodes(),
    "model.list": lambda office, team: ListModels(),
    "route.explain": lambda office, team: ExplainRoute("heavy"),
    "model.warm": lambda office, team: WarmModel("heavy"),
    "trace.list": lambda office, team: _traced(office, team, ListTraces()),
    "gateway.show": lambda office, team: ShowGateway(),
    "gateway.log": lambda office, team: _traced(office, team, ReadGatewayLog()),
    "eval.list": lambda office, team: _evaluated(office, ListEvals()),
    "eval.show": lambda office, team: _evaluated(office, ShowEval("20261118-090000-ab12")),
    "host.list": lambda office, team: _hosted(office, ListHosts()),
    "host.show": lambda office, team: _hosted(office, ShowHost("h-1")),
    "host.doctor": lambda office, team: _hosted(office, ExamineHost("h-1")),
    "host.drain": lambda office, team: _hosted(office, DrainHost("h-1")),
    "host.resume": lambda office, team: _hosted(office, ResumeHost("h-1")),
    "host.token": lambda office, team: CreateHostToken("box-3f2a9c"),
    "host.invite": lambda office, team: InviteHost("db.example:5432"),
    "host.join": lambda office, team: JoinHost(
        office.call(InviteHost()).secret, "box-3f2a9c", "k" * 43
    ),
    "host.forget": lambda office, team: _stopped(office, ForgetHost("h-2")),
    "limit.list": lambda office, team: _hosted(office, ListLimits()),
    "stats.show": lambda office, team: _listed(office, team, ShowStats()),
    "task.graph": lambda office, team: _listed(office, team, GraphTasks(all=True, whole=True)),
    "agent.fork": lambda office, team: ForkAgent(_ran(office, team), "other"),
    "agent.look": lambda office, team: LookAtAgents((_ran(office, team),)),
    "run.permit": lambda office, team: PermitRun(_ran(office, team), allow=True),
    "agent.list": lambda office, team: _listed(office, team, ListAgents(all=True)),
    "task.list": lambda office, team: _listed(office, team, ListTasks(all=True)),
    "task.ready": lambda office, team: _listed(office, team, ReadyTasks()),
    "task.show": lambda office, team: ShowTask(_rich(office, team)),
    "task.cancel": lambda office, team: CancelTask(office.add(SECRET, team=team)),
    "task.retry": lambda office, team: RetryTask(_failed(office, team)),
    "task.close": lambda office, team: CloseTask(office.add(SECRET, team=team), "By hand."),
    "task.pause": lambda office, team: PauseTask(office.add(SECRET, team=team)),
    "task.resume": lambda office, team: ResumeTask(_paused(office, team)),
    "task.depend": lambda office, team: AddDependency(*_pair(office, team)),
    "task.independ": lambda office, team: RemoveDependency(*_waiting(office, team)),
    "task.assign": lambda office, team: AssignTask(office.add(SECRET, team=team), claim=True),
    "task.edit": lambda office, team: EditTask(office.add(SECRET, team=team), f"{SECRET} two"),
    "task.issues": lambda office, team: _listed(office, team, ListIssues()),
    "task.team": lambda office, team: _listed(office, team, ListTeamTasks(team=team)),
    "task.mark": lambda office, team: MarkTask(office.add(SECRET, team=team), "in_progress"),
    "agent.spawn": lambda office, team: SpawnAgent("", SECRET, team, "/repo"),
    "token.create": lambda office, team: CreateToken(SECRET, team=team),
    "token.revoke": lambda office, team: _token(office, RevokeToken(SECRET)),
    "token.list": lambda office, team: _token(office, ListTokens(all=True)),
    "member.seen": lambda office, team: BeSeen(team),
    "member.list": lambda office, team: _member(office, team, ListMembers(team)),
    "member.show": lambda office, team: _member(office, team, ShowMember(SECRET, team)),
    "alert.raise": lambda office, team: _led(office, team, RaiseAlert("It is full.", team)),
    "alert.notice": lambda office, team: _led(office, team, SendNotice("It is out.", team)),
    "audit.list": lambda office, team: [_audited(office, team), ListAudit(team=team)][1],
    "enrolment.create": lambda office, team: CreateEnrolment("worker", team, "bob"),
    "enrolment.list": lambda office, team: [_enrolment(office, team), ListEnrolments()][1],
    "enrolment.revoke": lambda office, team: RevokeEnrolment(_enrolment(office, team).id),
    "enrolment.show": lambda office, team: ShowEnrolment(_enrolment(office, team).secret),
    "enrolment.use": lambda office, team: Enrol(_enrolment(office, team).secret, SECRET, team),
    "session.code": lambda office, team: CreateCode(SECRET, "worker", team),
    "session.open": lambda office, team: OpenSession(
        office.call(CreateCode(SECRET, "", team)).code
    ),
    "session.renew": lambda office, team: _renewed(office),
    "inbox.seen": lambda office, team: SeeItems(("node:mac:down",)),
    "inbox.snooze": lambda office, team: SnoozeItem("node:mac:down", 60),
    "view.list": lambda office, team: ListViews(
        office.call(SaveView("Mine", "label:ui", team)).team
    ),
    "view.remove": lambda office, team: RemoveView(
        office.call(SaveView("Mine", "label:ui", team)).name, team
    ),
    "view.save": lambda office, team: SaveView("Mine", "label:ui", team),
    "setting.find": lambda office, team: FindSettings("gate"),
    "me.show": lambda office, team: ShowMe(),
    "chat.open": lambda office, team: OpenChat(team=team),
    "chat.list": lambda office, team: [_chat(office, team), ListChats(team)][1],
    "chat.say": lambda office, team: Say(_chat(office, team), SECRET, team=team),
    "chat.read": lambda office, team: ReadChat(_chat(office, team), team=team),
    "chat.mark_read": lambda office, team: MarkChat(_chat(office, team), team=team),
    "worktree.status": lambda office, team: ShowWorktree(office.add(SECRET, team=team)),
    "review.list": lambda office, team: _reviewed(office, team, ListReviews()),
    "review.submit": lambda office, team: SubmitReview(_done(office, team), "accept"),
    "review.ask": lambda office, team: AskReview(_done(office, team), "implementer"),
    "task.diff": lambda office, team: DiffTask(office.add(SECRET, team=team)),
    "worktree.diff": lambda office, team: DiffWorktree(office.add(SECRET, team=team)),
    "worktree.commit": lambda office, team: CommitWorktree(SECRET, _ours(office, team)),
    "worktree.push": lambda office, team: PushWorktree(office.add(SECRET, team=team)),
    "worktree.merge": lambda office, team: MergeWorktree(_done(office, team)),
    "worktree.pr": lambda office, team: ProposeWorktree(SECRET, task=office.add(SECRET, team=team)),
    "task.send_back": lambda office, team: SendBack(_done(office, team), SECRET),
    "land.add": lambda office, team: LandTasks((_done(office, team),)),
    "ticket.find": lambda office, team: FindTickets("prices", "/repo"),
    "ticket.add": lambda office, team: AddTicket(
        f"https://x/{SECRET}", SECRET, "/repo", SPEC, team=team
    ),
    "pull.open": lambda office, team: OpenPull(_done(office, team), SECRET),
    "pull.show": lambda office, team: ShowPull(_pull(office, team)),
    "pull.sync": lambda office, team: SyncPull(_pull(office, team)),
    "pull.merge": lambda office, team: MergePull(_pull(office, team)),
    "pull.close": lambda office, team: ClosePull(_pull(office, team)),
    "land.list": lambda office, team: [_landing(office, team), ListLandings()][1],
    "land.trains": lambda office, team: [_landing(office, team), ListTrains()][1],
    "land.forecast": lambda office, team: _reviewed(office, team, ForecastLandings()),
    "race.start": lambda office, team: StartRace(SECRET, 2, rules=RaceRules("true"), team=team),
    "race.pick": lambda office, team: PickBest(_race(office, team), rules=RaceRules("true")),
    "race.show": lambda office, team: ShowRace(_race(office, team)),
    "race.list": lambda office, team: (_race(office, team), ListRaces())[1],
    "land.show": lambda office, team: ShowLanding(_landing(office, team)),
    "land.output": lambda office, team: ReadGateOutput(_landing(office, team)),
    "land.hold": lambda office, team: HoldLanding(_landing(office, team)),
    "land.give": lambda office, team: GiveLanding(_held(office, team)),
    "land.release": lambda office, team: ReleaseLanding(_landing(office, team)),
    "land.drop": lambda office, team: DropLanding(_landing(office, team)),
    "land.move": lambda office, team: MoveLanding(_landing(office, team)),
    "land.undo": lambda office, team: UndoLanding(_landed(office, team)),
    "land.pause": lambda office, team: [_landing(office, team), PauseTrain("main")][1],
    "land.resume": lambda office, team: [_landing(office, team), ResumeTrain("main")][1],
    "swarm.create": lambda office, team: CreateSwarm(SECRET, team=team),
    "swarm.list": lambda office, team: [_swarm(office, team), ListSwarms()][1],
    "swarm.show": lambda office, team: ShowSwarm(_swarm(office, team)),
    "swarm.kill": lambda office, team: KillSwarm(_swarm(office, team)),
    "board.post": lambda office, team: Post(_swarm(office, team), "{}", to="bob"),
    "board.read": lambda office, team: ReadBoard(_board(office, team)),
    "board.mark_read": lambda office, team: MarkRead((_post(office, team),)),
    "board.archive": lambda office, team: ArchivePosts((_post(office, team),)),
    "mail.send": lambda office, team: SendMail("bob", SECRET, team=team),
    "mail.broadcast": lambda office, team: _member(office, team, Broadcast(SECRET, team=team)),
    "mail.list": lambda office, team: [_mail(office, team), ListMail(team=team)][1],
    "mail.take": lambda office, team: [_mail(office, team), TakeMail(team=team)][1],
    "mail.read": lambda office, team: ReadMail(_mail(office, team)),
    "checkpoint.save": lambda office, team: _summary(team),
    "checkpoint.load": lambda office, team: LoadCheckpoint(_checkpoint(office, team)),
    "checkpoint.latest": lambda office, team: [
        _checkpoint(office, team),
        LatestCheckpoint(team=team),
    ][1],
    "checkpoint.list": lambda office, team: [_checkpoint(office, team), ListCheckpoints()][1],
    "checkpoint.accept": lambda office, team: AcceptCheckpoint(_checkpoint(office, team)),
    "checkpoint.reject": lambda office, team: RejectCheckpoint(_checkpoint(office, team), "No."),
    "memory.store": lambda office, team: StoreMemory("k", SECRET, tags=("x",), team=team),
    "memory.recall": lambda office, team: _remembered(office, team, Recall(SECRET, team=team)),
    "memory.search": lambda office, team: _remembered(office, team, SearchMemory(SECRET.upper())),
    "memory.list": lambda office, team: _remembered(office, team, ListMemory()),
    "file.claim": lambda office, team: ClaimFile(f"src/{SECRET}.py", team=team),
    "file.release": lambda office, team: _claimed(
        office, team, ReleaseFile(f"./src/{SECRET}.py", team)
    ),
    "file.list": lambda office, team: _claimed(office, team, ListFiles()),
    "message.comment": lambda office, team: Comment(office.add(SECRET, team=team), SECRET),
    "message.unsend": lambda office, team: Unsend(_sent(office, team)),
    "message.send": lambda office, team: SendWords(office.add(SECRET, team=team), SECRET),
    "message.read": lambda office, team: ReadMessage(_asked(office, team)),
    "message.ask": lambda office, team: Ask(SECRET, office.add(SECRET, team=team), ("a", "b")),
    "message.answer": lambda office, team: Answer(_asked(office, team), "2"),
    "message.take": lambda office, team: TakeAnswer(_answered(office, team)),
    "message.questions": lambda office, team: _listed(office, team, ListQuestions()),
    "run.transcript": lambda office, team: ReadTranscript(_ran(office, team)),
    "inbox.list": lambda office, team: [_failed(office, team), _listed(office, team, ListInbox())][
        1
    ],
    "task.counts": lambda office, team: _listed(office, team, CountTasks()),
    "task.events": lambda office, team: TaskEvents(_rich(office, team)),
    "task.gates": lambda office, team: TaskGates(_rich(office, team)),
    "task.files": lambda office, team: ReadTaskFiles(_rich(office, team)),
    "task.preview": lambda office, team: PreviewTask("/repo", SPEC),
    "run.said": lambda office, team: ReadSaid(_ran(office, team)),
    "run.attach": lambda office, team: AttachRun(_ran(office, team)),
    "run.interrupt": lambda office, team: InterruptRun(_ran(office, team)),
    "run.screen": lambda office, team: ReadScreen(_ran(office, team)),
    "run.stop_all": lambda office, team: StopRuns(office.store.run(f"{_ran(office, team)}.1").host),
}


def sample(name: str, office, team: str = "local"):
    """Make the world that it needs, then the request."""
    return SAMPLES[name](office, team)
