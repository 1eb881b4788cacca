"""CPU of every operation and seed path with 100 tasks and with 100,000: none may scan.

The peer of each is itself, in the small store. Both stores are of one kind: four of five tasks have
ended, half ask for a branch, and mail, posts, memories, tokens and chats grow with them. Requests
come from the samples that the tests walk, so that a new operation is measured by itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _bench import finish, verdict
from _store import a_task

sys.path.insert(0, str(Path(__file__).parent.parent))
from starlette.datastructures import QueryParams

from fleet.app import open_store
from fleet.domain.access import Actor, Role
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Ending, Outcome, Run, RunState, Workspace
from fleet.domain.task import Join, Spec, Tally, TaskState
from fleet.operations.catalogue import perform
from fleet.operations.compat.issues import ListIssues
from fleet.operations.messages.boards import ReadBoard
from fleet.operations.messages.mail import ListMail
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.show import ShowTask
from fleet.operations.team.members import uid_of
from fleet.ports import Put
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.claude_fleet.routes import Call
from tests.unit.operations.conftest import Office
from tests.unit.operations.samples import DECLARED, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.domain.task import Task
    from fleet.ports import Record, Store
    from fleet.server.claude_fleet.routes import OtherPath

FEW, MANY = 100, int(os.environ.get("MANY", "100000"))
TIMES = 12  # of which the quickest counts: other processes share this processor
REQUEST = 150e-6  # seconds of CPU that any request costs before its operation begins
BAR = 2.0
STATES = (*(TaskState.DONE,) * 15, TaskState.CANCELLED, TaskState.FAILED, *(TaskState.OPEN,) * 3)
BOARD = "t-1"
# It counts what there is, or it is about as many as it names.
REASONS = {
    "run.stop_all": "it ends every run of a host",
    "mail.broadcast": "it writes to each of up to 1,000 members",
    "message.questions": "it passes over questions that ended tasks left open, at 4 us each",
    "memory.search": "it looks for its words in each memory of the team",
}


def grown(count: int) -> Iterator[list[Record]]:
    """A page of each list is full in the small store, too: pages are compared, not their rows."""
    yield [replace(a_task(1), join=Join.ALL, team="local")]
    yield [_question(number, of=f"t-{17 + 20 * (number % 4)}") for number in range(1, 150)]
    yield [_post(number) for number in range(1, 150)]
    yield [
        Entry(f"e-{(1 << 40) + n}", 0, EntryKind.FILE, "local", f"f{n}", "bob", n)
        for n in range(100)
    ]
    for number in range(2, count + 1):
        yield [*_task_and_run(number), *_words(number)]


def _task_and_run(number: int) -> Iterator[Task | Run]:
    state = STATES[number % len(STATES)]
    spec = Spec(
        agent="implementer",
        branch=f"feat/x-{number}" if number % 2 else "",
        assignee="bob" if state is TaskState.OPEN and number % 4 == 0 else "",
    )
    ended = state is not TaskState.OPEN
    team = "blue" if number % 5 == 0 else "local"
    tally = Tally(runs=1) if ended else Tally()
    yield replace(a_task(number), state=state, spec=spec, team=team, tally=tally)
    if ended:
        workspace = Workspace(f"/w/{number}", "/w", spec.branch or f"fleet/t-{number}", "main")
        yield Run(
            f"t-{number}.1", 0, f"t-{number}", RunState.ENDED, Choice("implementer", "claude"),
            "box", "h", number, workspace=workspace, outcome=Outcome(Ending.SUCCEEDED, "Done."),
            started_at=number, ended_at=number + 1,
        )  # fmt: skip


def _post(number: int) -> Message:
    data = {"type": "status", "priority": "normal", "payload": {"text": "x"}}
    question = _question(number + 1000, of=BOARD)
    return replace(question, kind=MessageKind.POST, state=MessageState.CLOSED, text="", data=data)


def _question(number: int, *, of: str) -> Message:
    kind, state = MessageKind.QUESTION, MessageState.OPEN
    return Message(f"m-{(1 << 40) + number}", 0, of, "ada", kind, "Which?", state, number)


def _words(number: int) -> Iterator[Record]:
    """About each task a note; of every tenth number one of each thing that a team keeps."""
    at, closed = number, MessageState.CLOSED
    note = Message(f"m-{number}", 0, f"t-{number}", "ada", MessageKind.NOTE, "Hm.", closed, at)
    if number % 100 == 0:
        note = replace(note, kind=MessageKind.QUESTION, state=MessageState.OPEN)
    elif number % 10 == 1:
        data = {"type": "status", "priority": "normal", "payload": {"text": "x"}}
        note = replace(note, task=BOARD, kind=MessageKind.POST, text="", data=data)
    elif number % 10 == 2:
        note = replace(note, task="", kind=MessageKind.MAIL, to="bob", team="local")
    elif number % 10 == 3:
        note = replace(note, task="", kind=MessageKind.CHAT, chat="c", team="local")
    yield note
    for place, kind in enumerate((EntryKind.MEMORY, EntryKind.MEMBER, EntryKind.FILE)):
        if number % 10 == 4 + place:
            name = f"k{number}"
            yield Entry(f"e-{number}", 0, kind, "local", name, name, at, body=_body(kind, name))


def _body(kind: EntryKind, name: str) -> dict[str, Any]:
    known: dict[EntryKind, dict[str, Any]] = {
        EntryKind.MEMORY: {"key": name, "value": "v", "type": "fact", "tags": [], "changed_at": 1},
        EntryKind.MEMBER: {"role": "worker", "seen_at": 1},
        EntryKind.FILE: {},
    }
    return known[kind]


def fill(store: Store, count: int) -> None:
    batch: list[Record] = []
    for records in grown(count):
        batch += records
        if len(batch) >= 1000:
            _put(store, batch)
            batch = []
    _put(store, batch)
    with store.together():
        for kind in ("t", "m", "e"):  # the next ids are free ones
            for _ in range(count):
                store.new_id(kind)


def _put(store: Store, records: list[Record]) -> None:
    tasks = [r.id for r in records if r.id.startswith("t-") and "." not in r.id]
    events = [Event(Kind.TASK_ADDED, task, "ada", 1) for task in tasks]
    with store.together():
        store.commit([Put(record) for record in records], events)


ADA = Actor("ada", Role.COORDINATOR, "local")
BOB = Actor("bob", Role.WORKER, "local")
ASKED: dict[str, tuple[Callable[[], Any], Actor]] = {
    "a list of a team": (lambda: ListTasks(team="blue", limit=3), ADA),
    "a list of a small team": (lambda: ListTasks(team="red"), ADA),
    "a list of all": (lambda: ListTasks(all=True), BOB),
    "a list of the failed": (lambda: ListTasks(statuses=("failed",), limit=3), BOB),
    "a list of another project": (lambda: ListTasks(project="/elsewhere", all=True), ADA),
    "a task by its branch": (lambda: ShowTask("feat/x-23"), BOB),
    "a task by the end of its branch": (lambda: ShowTask("x-23"), BOB),
    "a name that is nobody's": (lambda: ShowTask("nobody"), BOB),
    "twenty branches": (lambda: ListIssues(tasks=("feat/x-23",) * 20), BOB),
    "issues of an assignee": (lambda: ListIssues(assignee="bob", limit=3), BOB),
    "agents at work": (ListAgents, BOB),
    "posts of a type": (lambda: ReadBoard(BOARD, type="request"), BOB),
    "unread mail": (lambda: ListMail(unread=True, limit=3), BOB),
}


PARTS = {
    "team": "local",
    "id": "t-57",
    "handle": "feat/x-57",
    "swarm": BOARD,
    "agent": "k14",
    "key": "k14",
    "uid": uid_of("local", "bob"),
    "chat": "c",
}
BY_MEMBER = {"handle": "bob"}  # of mail and checkpoints


def seed_paths() -> dict[str, tuple[Callable[[], Any], Actor]]:
    """What each path of claude-fleet's clients asks for."""
    return {
        f"{path.method} {path.path}": (partial(_asked, path), BOB)
        for path in PATHS
        if path.method == "GET"
    }


def _asked(path: OtherPath) -> Any:
    first = path.path.split("/")[1]
    parts = PARTS | (BY_MEMBER if first in {"mail", "checkpoints"} else {})
    return path.ask(Call(BOB, parts, QueryParams(), {}))


def office_of(folder: Path, count: int) -> Office:
    office = Office()
    office.store = open_store(f"sqlite:///{folder}/{count}.db")
    fill(office.store, count)
    return office


REQUESTS = ASKED | seed_paths()


def seconds(office: Office, request: Any, actor: Actor = ADA) -> float:
    context = office.context(actor)
    began = time.process_time()
    try:
        perform(context, request)
    except Exception as error:  # a name that is nobody's is refused
        if not hasattr(error, "code"):
            raise
    return time.process_time() - began


def quickest(office: Office, name: str) -> float:
    if name in REQUESTS:
        make, actor = REQUESTS[name]
        return min(seconds(office, make(), actor) for _ in range(TIMES))
    return min(seconds(office, sample(name, office)) for _ in range(TIMES))


def is_flat(few: Office, many: Office, name: str) -> bool:
    mine, peer = quickest(many, name) + REQUEST, quickest(few, name) + REQUEST
    if name in REASONS:
        print(f"{name}: {mine * 1e6:.0f} us ({REASONS[name]})")
        return True
    return verdict(
        name, (f"{{:.0f}} us at {MANY:,}", mine * 1e6), (f"{{:.0f}} at {FEW}", peer * 1e6),
        at_most=BAR,
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        few, many = (office_of(Path(place), count) for count in (FEW, MANY))
        with closing(few.store), closing(many.store):
            finish(*[is_flat(few, many, name) for name in (*REQUESTS, *DECLARED)])


if __name__ == "__main__":
    main()
