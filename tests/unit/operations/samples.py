"""For every operation a world in which it can be asked for, and the request."""

from __future__ import annotations

from fleet.domain.audit import AuditRecord
from fleet.domain.run import DoneItem, Summary
from fleet.domain.task import Limits, Spec
from fleet.operations.catalogue import operations
from fleet.operations.compat.issues import ListIssues
from fleet.operations.compat.mark import MarkTask
from fleet.operations.compat.team_tasks import ListTeamTasks
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
from fleet.operations.tasks.list import ListTasks, ReadyTasks
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.tasks.stop import StopRuns
from fleet.operations.tasks.transcript import ReadTranscript
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
from fleet.operations.team.swarms import CreateSwarm, KillSwarm, ListSwarms, ShowSwarm
from fleet.operations.team.tokens import CreateToken, ListTokens, RevokeToken
from fleet.operations.worktrees import (
    CommitWorktree,
    MergeWorktree,
    ProposeWorktree,
    PushWorktree,
    ShowWorktree,
)

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


SPEC = Spec(agent="implementer", priority=1, labels=("red",), branch="fix/login", limits=Limits(3))
SAMPLES = {
    "task.add": lambda office, team: AddTask(SECRET, "Do it.", "/repo", SPEC, team=team),
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
    "chat.open": lambda office, team: OpenChat(team=team),
    "chat.list": lambda office, team: [_chat(office, team), ListChats(team)][1],
    "chat.say": lambda office, team: Say(_chat(office, team), SECRET, team=team),
    "chat.read": lambda office, team: ReadChat(_chat(office, team), team=team),
    "chat.mark_read": lambda office, team: MarkChat(_chat(office, team), team=team),
    "worktree.status": lambda office, team: ShowWorktree(office.add(SECRET, team=team)),
    "worktree.commit": lambda office, team: CommitWorktree(SECRET, _ours(office, team)),
    "worktree.push": lambda office, team: PushWorktree(office.add(SECRET, team=team)),
    "worktree.merge": lambda office, team: MergeWorktree(office.add(SECRET, team=team)),
    "worktree.pr": lambda office, team: ProposeWorktree(SECRET, task=office.add(SECRET, team=team)),
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
    "run.stop_all": lambda office, team: StopRuns(office.store.run(f"{_ran(office, team)}.1").host),
}


def sample(name: str, office, team: str = "local"):
    """Make the world that it needs, then the request."""
    return SAMPLES[name](office, team)
