"""An office: a store in memory, a declared world, and whoever is needed to ask for things."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleet.adapters.coders.plain.scripted import ScriptedCoder
from fleet.config import Settings
from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused
from fleet.domain.event import Event
from fleet.domain.fleet import Agent, Fleet, Model, Node, Serving
from fleet.domain.forges.pull import PullSeen, PullState
from fleet.domain.nodes.inventory import Inventory, NodeModel, Resident, SeenNode
from fleet.domain.run import Choice, Ending, Outcome, Progress, RunState, Usage
from fleet.domain.task import Retry, claim
from fleet.operations.catalogue import Context, perform
from fleet.operations.messages.ask_answer_send import Ask
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.commit import parent_changes
from fleet.operations.tasks.show import ShowTask
from fleet.ports import (
    Ahead,
    ChangedFile,
    CommitRow,
    FileDiff,
    FileSeen,
    GateSeen,
    Hunk,
    MergeRow,
    Outlook,
    PushRow,
    Put,
    Screen,
    ShownSetting,
    Sight,
    TaskDiff,
    Ticket,
    WorktreeRow,
)
from fleet.supervisor.attempt.settle import end_run
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import FakeLogins, FakeMachine, FakeMachines, FakeProcess, MemoryTrail
from fleet.testing.memory_store import MemoryStore

ADA = Actor("ada", Role.COORDINATOR, token="of-ada")


class Meddler:
    """A store in which somebody else is quicker, once: after the read, before the commit."""

    def __init__(self, store, act) -> None:
        self._store, self._act = store, act

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, changes, events):
        act, self._act = self._act, lambda: None
        act()
        return self._store.commit(changes, events)


class FakeForges:
    """One forge, on which every pull request was closed."""

    def of(self, repository, remote):
        del repository, remote
        return self

    def show(self, number):
        closed = PullState.CLOSED
        return PullSeen(number, f"https://x/{number}", closed, "c1", "fleet/t-1", "main")

    def close(self, number):
        del number

    @property
    def tickets(self):
        return self

    def read(self, url):
        return Ticket(url, "#7", "Wrong prices", "All of them.", "mallory", ("fleet",))

    def search(self, query, repository, remote, limit):
        del query, repository, remote, limit
        return [self.read("https://x/7")]


class FakeTrees:
    """A worktree for every task, each with one change to commit, and nobody's remote in the way."""

    def revert(self, repository, onto, span, message):
        return "9" * 40

    def count_lines(self, task, path):
        return None

    def __init__(self) -> None:
        self.done = set()

    def _first(self, what: str, task) -> bool:
        """Whether it was not done before."""
        new = (what, task.id) not in self.done
        self.done.add((what, task.id))
        return new

    def ahead(self, project, branches):
        return [Ahead(branch, "main") for branch in branches]

    def outlook(self, repository, works):
        del repository
        return {work.task: Outlook(1, 2, 3, ("a.py",)) for work in works}

    def gate_result(self, task, tree):
        del task, tree
        return ""

    def changes(self, task, wish):
        hunk = Hunk(1, 1, 1, 1, "", (f"+{task.title}",))
        file = FileDiff(wish.path or "a.py", "modified", 1, 0, hunks=(hunk,))
        return TaskDiff(task.id, "c0", "c1", (file,), 1, 1, 0)

    def diff(self, task, *, stat):
        return f"diff of {task.title}"

    def status(self, task):
        files = (ChangedFile("a.py", "modified"),)
        return WorktreeRow(task.id, task.title, "/x", "c0", 1, 0, 1, 1, files, ())

    def work(self, task):
        return f"c-{task.id}", True

    def commit(self, task, message):
        if not self._first("commit", task):
            raise Refused("There is nothing to commit.", fix="Change something.")
        return CommitRow(task.id, task.title, message, 1)

    def push(self, task):
        return PushRow(task.id, task.title, "origin", nothing=not self._first("push", task))

    def origin(self, task):
        return task.project, "main"

    def repository_of(self, task):
        del task
        return ""

    def check_branch(self, repository, branch):
        del repository, branch

    def has_work(self, repository, branch, commit, tip):
        del repository, branch, commit, tip
        return True

    def check_remote(self, repository, remote):
        del repository, remote

    def repository(self, project):
        return project

    def forges(self):
        return FakeForges()

    def remote_has(self, repository, remote, branch, commit):
        del repository, remote, branch, commit
        return True

    def merge(self, task, onto, *, tested):
        nothing = not self._first("merge", task)
        return MergeRow(
            task.id, task.title, onto or "main", "c1", fast_forward=True, nothing=nothing
        )

    def propose(self, task, title, body, base):
        if not self._first("propose", task):
            raise Refused("There is already a pull request.", fix="Look at it.")
        return PushRow(task.id, task.title, "origin", nothing=False, url=f"https://x/{title}")


class FakeAgents:
    """The agents of the one host, each of which asks for the same."""

    shared = False

    host = "box-1"

    def __init__(self) -> None:
        self.answers = []

    def look(self, subjects):
        asks = "Bash: rm -rf build"
        return {s.run: Sight("permission", "its screen", asks=asks) for s in subjects}

    def seen(self, runs):
        del runs
        return {}

    def listener(self, subject):
        del subject
        return ScriptedCoder().listen("")

    def screen(self, run_id, *, history=0, colours=False):
        del history, colours
        return Screen(f"screen of {run_id}")

    def attach_argv(self, run_id):
        return ["tmux", "attach-session", "-t", f"={run_id}"]

    def interrupt(self, run_id):
        self.answers.append((run_id, "interrupted"))

    def gate(self, run_id, *, tail):
        del tail
        return GateSeen("make test", ended=True, code=0, seconds=1.5, output=f"gate of {run_id}")

    def files(self, task_id, runs, *, name="", tail):
        del runs, tail
        return [FileSeen("log.jsonl", 12, 1, f"log of {task_id}" if name else "")]

    def forks(self, coder, project):
        del project
        return coder == "scripted"

    def session(self, subject):
        return f"session of {subject.run}"

    def permit(self, run_id, *, yes, expected="", always=False):
        del expected
        self.answers.append((run_id, "always" if always else yes))
        return "Bash: rm -rf build"


SETTINGS = [
    ShownSetting("run.max_concurrent", "2", "default"),
    ShownSetting("run.gate", "make test", "fleet.yaml:12"),
    ShownSetting("land.gate", "make test", "fleet.yaml:14"),
    ShownSetting("agents.reviewer.prompt", "Run the gate.", "fleet.yaml:20"),
]


class Office:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.trees = FakeTrees()
        self.agents = FakeAgents()
        self.audit = MemoryTrail()
        self.machine = FakeMachine(self.clock, lambda _run, _process: None)
        node = Node("big", "ollama", "http://big:11434")
        model = Model("heavy", "heavy-coder", (Serving(node, "qwen", 32768, 60.0, 1),))
        agents = {
            "implementer": Agent("implementer", "scripted", model),
            "shell": Agent("shell", "command", command=("sh", "-c", "true")),
        }
        self.world = SimpleNamespace(
            settings=Settings(coder="scripted", model="small", max_concurrent=1),
            fleet=Fleet(agents=agents, models={"heavy": model}, nodes={"big": node}),
            withheld=frozenset(),
            for_people=lambda: SETTINGS,
        )
        inventory = Inventory(
            "ollama", (NodeModel("qwen"),), (Resident("qwen", 20, context=32768),)
        )
        seen = [SeenNode("big", up=True, inventory=inventory)]
        self.machines = FakeMachines(self.world.fleet, seen)
        self.logins = FakeLogins()

    def context(self, actor: Actor = ADA, store=None) -> Context:
        return Context(
            actor, store or self.store, lambda: self.machine, lambda _: self.world,
            sign=lambda claims: f"signed {claims['sub']}", trees=lambda: self.trees,
            audit=lambda: self.audit, agents=lambda: self.agents, machines=lambda: self.machines,
            logins=lambda: self.logins,
        )  # fmt: skip

    def call(self, request, actor: Actor = ADA, *, meanwhile=None):
        store = Meddler(self.store, meanwhile) if meanwhile else None
        return perform(self.context(actor, store), request)

    def refused(self, request, actor: Actor = ADA, kind=Refused):
        """It is refused, with a fix, and nothing has changed."""
        before = self.snapshot()
        with pytest.raises(kind) as caught:
            self.call(request, actor)
        assert self.snapshot() == before
        assert caught.value.fix, caught.value.message
        return caught.value

    def snapshot(self):
        return dict(self.store.records), list(self.store.log)

    def add(self, title="Fix the login", actor: Actor = ADA, **given) -> str:
        return self.call(AddTask(title, **given), actor).id

    def ask(self, task: str, text="Which way?", actor: Actor = ADA, **given) -> str:
        return self.call(Ask(text, task, **given), actor).id

    def show(self, task: str):
        return self.call(ShowTask(task))

    def claim(self, task_id: str) -> str:
        """The supervisor takes it: the run's id."""
        choice, host = Choice("scripted", "scripted"), "box-1"
        task, run = claim(
            self.store.task(task_id), choice, host=host, holder="h", slots=(), at=self.clock.now()
        )
        self.store.commit([Put(task), Put(run)], [])
        return run.id

    def start(self, task_id: str, *lines: str) -> str:
        run_id = self.claim(task_id)
        run = self.store.run(run_id)
        running = replace(run, state=RunState.RUNNING, started_at=self.clock.now())
        self.store.commit([Put(running)], [])
        self.machine.processes[run_id] = FakeProcess(launch=None, lines=list(lines))
        return run_id

    def end(self, run_id: str, ending=Ending.SUCCEEDED, detail="Done.", **given) -> None:
        outcome = Outcome(ending, detail, usage=Usage(input=7, output=3, context=5, usd=0.25))
        outcome = replace(outcome, **given)
        end_run(self.store, run_id, lambda _: outcome, Retry(attempts=1), jitter=0.0)

    def finish(self, task_id: str, ending=Ending.SUCCEEDED) -> str:
        run_id = self.start(task_id)
        self.end(run_id, ending)
        return run_id

    def progress(self, run_id: str, **given) -> None:
        self.store.commit([Put(Progress(run_id, 0, self.clock.now(), **given))], [])

    def family(self, *titles: str, join="all") -> tuple[str, ...]:
        """A task and its children."""
        parent = self.add("Parent", join=join)
        return (parent, *(self.add(title, parent=parent) for title in titles))

    def put(self, task_id: str, **changes) -> None:
        """Somebody else writes the task."""
        task = replace(self.store.task(task_id), **changes)
        parents = parent_changes(self.store, task, now=self.clock.now())
        event = Event("task.changed", task_id, "bob", self.clock.now())
        self.store.commit([Put(task), *parents], [event])

    def told(self) -> list[str]:
        return [event.type for event in self.store.log]

    def person(self, role: Role, team="local", name="eve") -> Actor:
        return Actor(name, role, team, token=ADA.token)

    def agent(self, run_id: str, role=Role.WORKER, team="local") -> Actor:
        """The actor inside a run."""
        return Actor(run_id, role, team, run_id)


@pytest.fixture
def office():
    return Office()
