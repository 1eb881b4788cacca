"""CPU of every operation and seed path with 100 tasks and with 100,000: none may scan.

The peer of each is itself, in the small store. Both stores are of one kind: four of five tasks have
ended, half ask for a branch, the open ones stand in every way, and mail, posts, memories, tokens and
chats grow with them. Requests come from the samples that the tests walk, so that a new operation is
measured by itself: once for a coordinator, who sees everything, and once for the lead of a team that
has next to nothing, among all that others have.
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
from _seed_writes import seed_writes
from _store import a_task

sys.path.insert(0, str(Path(__file__).parent.parent))
from starlette.datastructures import QueryParams

from fleet.app import open_store
from fleet.domain.access import Actor, Role
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import FleetError
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Ending, Outcome, Run, RunState, Workspace
from fleet.domain.task import Join, Spec, Tally, TaskState
from fleet.operations.catalogue import operations, perform
from fleet.operations.compat.issues import ListIssues
from fleet.operations.inbox import ListInbox
from fleet.operations.messages.boards import ReadBoard
from fleet.operations.messages.mail import ListMail
from fleet.operations.search import FindText
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.list import ListTasks, ReadyTasks
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.statuses import STATUSES
from fleet.operations.team.members import uid_of
from fleet.ports import Put
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.claude_fleet.routes import SeedCall
from fleet.server.http.codec import encode
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
ENDED = ("failed", "review", "not-landed")
STATES = (*(TaskState.DONE,) * 15, TaskState.CANCELLED, TaskState.FAILED, *(TaskState.OPEN,) * 3)
BOARD = "t-1"
NEW = 1 << 52  # posts are not old, so that nothing archives them
# It counts what there is, or it is about as many as it names.
EXEMPT_MS = 50.0  # what grows for a reason still has a limit
BROADCASTS = ("mail.broadcast", "POST /teams/{team}/broadcast")
BROADCAST_MS = 250.0  # a thousand mails, each a row with its index
REASONS = {
    "run.stop_all": "it ends every run of a host",
    "POST /teams/{team}/broadcast": "as mail.broadcast",
    "POST /memory/search": "as memory.search",
    "mail.broadcast": "it writes to each of up to 1,000 members",
    "alert.raise": "it looks among up to 1,000 members for those who lead",
    "alert.notice": "as above",
    "inbox.list": "it reads a page of each kind, and the small store has few of some",
    "review.list": "it reads the newest 500 tasks that are done, and the small store has few",
    "land.forecast": "it looks at as many, in their repositories",
    "memory.search": "it looks for its words in each memory of the team",
    "a list of the postponed": "it sorts index entries, at 0.1 us each",
    "issues of an assignee": "it reads 200 at a time, and the small store has few",
    "GET /spawn-queue/status": "as above, 50 at a time",
    "task.counts": "it counts index entries at 30 ns each, and tasks where they stand",
    "task.preview": "it counts up to 1,000 that would start first",
    "a search for a word of every task": "it passes over those of other teams, at 0.4 us each",
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
    spec = Spec(agent="implementer", branch=f"feat/x-{number}" if number % 2 else "")
    ended = state is not TaskState.OPEN
    team = "blue" if number % 5 == 0 else "local"
    task = replace(a_task(number), state=state, spec=spec, team=team)
    yield _standing(task, number // len(STATES))
    if ended:
        workspace = Workspace(f"/w/{number}", "/w", spec.branch or f"fleet/t-{number}", "main")
        yield Run(
            f"t-{number}.1", 0, f"t-{number}", RunState.ENDED, Choice("implementer", "claude"),
            "box", "h", number, workspace=workspace, outcome=Outcome(Ending.SUCCEEDED, "Done."),
            started_at=number, ended_at=number + 1,
        )  # fmt: skip


def _standing(task: Task, number: int) -> Task:
    """One of the ways in which a task that is open or done can stand."""
    if task.state is not TaskState.OPEN:
        ways = (Tally(runs=1), Tally(runs=1, landed="c0ffee"), Tally(runs=1, beaten="t-2"))
        return replace(task, tally=ways[number % 3] if task.state is TaskState.DONE else ways[0])
    changes: tuple[dict[str, Any], ...] = (
        {}, {"spec": replace(task.spec, assignee="bob")}, {"paused": True}, {"caused_by": "worker"},
        {"after": (BOARD,)}, {"tally": Tally(not_before=1 << 60)}, {},
    )  # fmt: skip
    return replace(task, **changes[number % len(changes)])


def _post(number: int) -> Message:
    data = {"type": "status", "priority": "normal", "payload": {"text": "x"}}
    question = _question(number + 1000, of=BOARD)
    return replace(
        question, kind=MessageKind.POST, state=MessageState.CLOSED, text="", data=data, at=NEW
    )


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
        note = replace(note, task=BOARD, kind=MessageKind.POST, text="", data=data, at=NEW)
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
CY = Actor("cy", Role.TEAM_LEAD, "red")  # of a team that has next to nothing
SMALL = " for a small team"
ASKED: dict[str, tuple[Callable[[], Any], Actor]] = {
    "a list of a team": (lambda: ListTasks(team="blue", limit=3), ADA),
    "a list of a small team": (lambda: ListTasks(team="red"), ADA),
    "a list of all": (lambda: ListTasks(all=True), BOB),
    "a list of the failed": (lambda: ListTasks(statuses=("failed",), limit=3), BOB),
    **{
        f"a list of the {status}": (partial(ListTasks, statuses=(status,), limit=3), ADA)
        for status in STATUSES
    },
    "a list of two statuses": (lambda: ListTasks(statuses=("review", "held"), limit=3), ADA),
    "the ready after many": (lambda: ReadyTasks(before="t-57", limit=3), ADA),
    "a search for a word of every task": (lambda: FindText("fix"), CY),
    "a list of another project": (lambda: ListTasks(project="/elsewhere", all=True), ADA),
    "a task by its branch": (lambda: ShowTask("feat/x-23"), BOB),
    "a task by the end of its branch": (lambda: ShowTask("x-23"), BOB),
    "a name that is nobody's": (lambda: ShowTask("nobody"), BOB),
    "twenty branches": (lambda: ListIssues(tasks=("feat/x-23",) * 20), BOB),
    "issues of an assignee": (lambda: ListIssues(assignee="bob", limit=3), BOB),
    "agents at work": (ListAgents, BOB),
    "posts of a type": (lambda: ReadBoard(BOARD, type="request"), BOB),
    "what has ended and needs somebody": (lambda: ListInbox(kinds=ENDED, limit=3), ADA),
    "held tasks": (lambda: ListInbox(kinds=("held",), limit=3), ADA),
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


SEED = {f"{path.method} {path.path}": path for path in PATHS}
WRITES = seed_writes(ADA, BOB, BOARD)


def sent(office: Office, path: OtherPath) -> SeedCall:
    """What a client of claude-fleet sends to this path, once what it is about is there."""
    if path.method != "GET":
        parts, body = WRITES[f"{path.method} {path.path}"](office)
        return SeedCall(ADA, parts, QueryParams(), body, "/repo")
    first = path.path.split("/")[1]
    parts = PARTS | (BY_MEMBER if first in {"mail", "checkpoints"} else {})
    return SeedCall(BOB, parts, QueryParams(), {})


def answer(office: Office, path: OtherPath, call: SeedCall) -> None:
    """All that the server does for it, but HTTP; as in `other_routes`."""
    context = office.context(call.actor)
    reply = perform(context, path.ask(call))
    if path.then and reply:
        reply = perform(context, path.then(reply))
    if path.beside and (other := path.beside(call)):
        call = replace(call, beside=perform(context, other))
    encode(path.show(reply, call))


def office_of(folder: Path, count: int) -> Office:
    office = Office()
    office.store = open_store(f"sqlite:///{folder}/{count}.db")
    fill(office.store, count)
    return office


def seconds(office: Office, request: Any, actor: Actor = ADA) -> float:
    context = office.context(actor)
    return measured(lambda: perform(context, request))


def measured(do: Callable[[], Any], *, must_work: bool = False) -> float:
    began = time.process_time()
    try:
        do()
    except FleetError:  # a name that is nobody's is refused
        if must_work:
            raise
    return time.process_time() - began


def seconds_of_seed(office: Office, path: OtherPath) -> float:
    call = sent(office, path)
    return measured(lambda: answer(office, path, call), must_work=path.method != "GET")


def quickest(office: Office, name: str) -> float:
    if path := SEED.get(name):
        return min(seconds_of_seed(office, path) for _ in range(TIMES))
    if name in ASKED:
        make, actor = ASKED[name]
        return min(seconds(office, make(), actor) for _ in range(TIMES))
    if name.endswith(SMALL):
        request = sample(name.removesuffix(SMALL), office, CY.team)
        return min(seconds(office, request, CY) for _ in range(TIMES))
    return min(seconds(office, sample(name, office)) for _ in range(TIMES))


def is_flat(few: Office, many: Office, name: str) -> bool:
    mine, peer = quickest(many, name) + REQUEST, quickest(few, name) + REQUEST
    if reason := REASONS.get(name.removesuffix(SMALL)):
        limit = BROADCAST_MS if name in BROADCASTS else EXEMPT_MS
        good = mine * 1e3 <= limit
        says = "" if good else f" OVER THE BAR of {limit:.0f} ms"
        print(f"{name}: {mine * 1e6:.0f} us ({reason}){says}", flush=True)
        return good
    return verdict(
        name, (f"{{:.0f}} us at {MANY:,}", mine * 1e6), (f"{{:.0f}} at {FEW}", peer * 1e6),
        at_most=BAR,
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        few, many = (office_of(Path(place), count) for count in (FEW, MANY))
        with closing(few.store), closing(many.store):
            reads = [operation.name for operation in operations() if operation.is_read]
            names = (*ASKED, *SEED, *DECLARED, *(f"{name}{SMALL}" for name in reads))
            wanted = sys.argv[1:]
            chosen = [name for name in names if not wanted or any(w in name for w in wanted)]
            finish(*[is_flat(few, many, name) for name in chosen])


if __name__ == "__main__":
    main()
