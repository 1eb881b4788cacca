"""For every operation a world in which it can be asked for, and the request."""

from __future__ import annotations

from fleet.domain.task import Limits, Spec
from fleet.operations.agents import ListAgents
from fleet.operations.assigning import AssignTask
from fleet.operations.catalogue import operations
from fleet.operations.dependencies import AddDependency, RemoveDependency
from fleet.operations.editing import EditTask
from fleet.operations.issues import ListIssues
from fleet.operations.listing import ListTasks, ReadyTasks
from fleet.operations.messages import (
    Answer,
    Ask,
    Comment,
    ListQuestions,
    ReadMessage,
    SendWords,
    TakeAnswer,
)
from fleet.operations.runs import ReadTranscript
from fleet.operations.showing import ShowTask
from fleet.operations.stopping import StopRuns
from fleet.operations.tasks import AddTask, CancelTask, CloseTask, PauseTask, ResumeTask, RetryTask

DECLARED = {operation.name: operation for operation in operations()}
SECRET = "blueprint"


def _asked(office, team: str) -> str:
    return office.ask(office.add(SECRET, team=team), f"{SECRET}?", options=("yes", SECRET))


def _answered(office, team: str) -> str:
    question = _asked(office, team)
    office.call(Answer(question, SECRET))
    return question


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
    "message.comment": lambda office, team: Comment(office.add(SECRET, team=team), SECRET),
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
