"""Messages about a task: notes, words to its agent, questions and answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain import message as rules
from fleet.domain import task as tasks
from fleet.domain.access import SUPERVISOR, Permission, allow
from fleet.domain.causes import let_run
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Forbidden, Mismatch, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Items, Rows, TextLimit, Whole
from fleet.domain.message import Details, Message, MessageKind, MessageState, Receipt
from fleet.domain.spending.budget import GIVE_UP, OPTIONS
from fleet.domain.task import ENDED, Task, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import readable_on_task
from fleet.operations.messages.rows import MessageRow, message_row
from fleet.operations.shared.causes import cause_of, may_speak
from fleet.operations.shared.names import (
    team_in_view,
    the_question,
    the_task,
)
from fleet.operations.tasks.commit import decided, parent_changes
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.event import Event
    from fleet.operations.catalogue import Context

MAX_CHARACTERS = 100_000

Words = Annotated[str, TextLimit(MAX_CHARACTERS, some=True, what="message")]
Options = Annotated[
    tuple[
        Annotated[
            str,
            TextLimit(
                1000, some=True, what="option", example="Name an answer, or leave out --option."
            ),
        ],
        ...,
    ],
    Items(20),
]


@dataclass(frozen=True, slots=True)
class Comment(Request[MessageRow]):
    """With `path`, it is a remark on the task's work: `task.send_back` gives it to the agent."""

    task: str
    text: Annotated[str, TextLimit(MAX_CHARACTERS, some=True, what="comment")]
    path: Annotated[str, TextLimit(1000, what="file")] = ""
    line: Annotated[int, Whole(0, 10_000_000, "line")] = 0


@dataclass(frozen=True, slots=True)
class Ask(Request[MessageRow]):
    """`park`: the asker ends its turn now, and is resumed with the answer."""

    text: Annotated[str, TextLimit(MAX_CHARACTERS, some=True, what="question")]
    task: str = ""
    options: Options = ()
    park: bool = False


@dataclass(frozen=True, slots=True)
class SendWords(Request[MessageRow]):
    """The agent reads it during its turn if its coder supports that; else the next run does.

    The reply's `status` is `queued`; it becomes `delivered` when the message is in a conversation.
    """

    task: str
    text: Words


@dataclass(frozen=True, slots=True)
class Unsend(Request[MessageRow]):
    """Only what the agent has not read. Another member's message needs the permission *assign*."""

    message: str


@dataclass(frozen=True, slots=True)
class ReadMessage(Request[MessageRow]):
    message: str


@dataclass(frozen=True, slots=True)
class Answer(Request[MessageRow]):
    """`name` is the question's id, or its task's when that has one open question.

    `as_text`: a number is the answer itself, not one of the question's options.
    """

    name: str
    text: Annotated[str, TextLimit(MAX_CHARACTERS, some=True, what="answer")]
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class TakeAnswer(Request[MessageRow | None]):
    """Returns the answer, or null while there is none, and marks the answer as read."""

    question: str


@dataclass(frozen=True, slots=True)
class ListQuestions(Request[tuple[MessageRow, ...]]):
    """Oldest first. `before`: the last question of the page before."""

    limit: Rows = 100
    before: Annotated[
        str, TextLimit(pattern="(m-[0-9]{1,18})?", what="id of a message", example="As in m-12.")
    ] = ""


def comment(context: Context, request: Comment) -> MessageRow:
    task = the_task(context, request.task, Permission.SEND)
    note = _message(context, task, MessageKind.NOTE, request.text.strip())
    if path := request.path.strip():
        if not may_speak(context, task):  # its agent is told when the work is sent back
            raise _runs_its_input(task, "write it")
        _check_changed(context, task, path)
        if request.line:
            _check_line(context, task, path, request.line)
        position = {"path": path, **({"line": request.line} if request.line else {})}
        note = replace(note, state=MessageState.OPEN, data=position)
    context.commit([Put(note)], context.event(Kind.MESSAGE_POSTED, task.id, message=note.id))
    return message_row(note)


def _check_changed(context: Context, task: Task, path: str) -> None:
    """Raise `Mismatch` when the task did not change this file, if this machine has its work."""
    from fleet.ports import DiffWish  # noqa: PLC0415  # start-up time

    try:
        changed = context.trees().changes(task, DiffWish(stat=True))
    except FleetError:  # its work is elsewhere
        return
    names = [file.path for file in changed.files]
    if path in names or len(names) < changed.total:
        return
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise Mismatch(
        f"{task.id} did not change '{path}'.",
        fix=f"It changed {some}. Leave out --file to comment on the whole change."
        if names
        else "It changed nothing: leave out --file to comment on the whole change.",
        code="not_changed",
    )


def _check_line(context: Context, task: Task, path: str, line: int) -> None:
    """Raise `Mismatch` when the file has no such line, if this machine has the task's work."""
    try:
        count = context.trees().count_lines(task, path)
    except FleetError:  # its work is elsewhere
        return
    if count is not None and line > count:
        lines = "1 line" if count == 1 else f"{count} lines"
        raise Mismatch(
            f"{path} has {lines} in the work of {task.id}, so there is no line {line}.",
            fix="Leave --line out to remark on the whole file.",
            code="no_line",
        )


def send(context: Context, request: SendWords) -> MessageRow:
    """Send a message to the task's agent.

    The commit writes the task too, so that a supervisor that settles it meanwhile has a conflict.
    """
    task = the_task(context, request.task, Permission.SEND)
    text = request.text.strip()
    if task.join is not None:
        raise Refused(
            f"{task.id} has child tasks and no run of its own.",
            fix="Send it to one of its children.",
        )
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}: no run will read the message.",
            fix=f"`fleet retry {task.id}` opens it again; then send it.",
            code="ended",
        )
    if not may_speak(context, task):
        raise _runs_its_input(task, "send it")
    words = _message(context, task, MessageKind.WORDS, text)
    words = replace(words, at=_after_its_claim(context, task))
    event = context.event(Kind.MESSAGE_SENT, task.id, message=words.id)
    if task.state is TaskState.REVIEW:  # there is more to do
        task = let_run(tasks.reopen(task), cause_of(context))
    parents = parent_changes(context.store, task, now=words.at)
    context.commit([Put(words), Put(task), *parents], event)
    return message_row(words)


def _runs_its_input(task: Task, what: str) -> Forbidden:
    return Forbidden(
        f"The coder of {task.id} executes its messages as a program.",
        fix=f"Ask a coordinator to {what}.",
    )


def unsend(context: Context, request: Unsend) -> MessageRow:
    message = readable_on_task(context, request.message.strip())
    if message is None:
        raise NotFound(
            f"There is no message '{request.message[:60]}' about a task.",
            fix="`fleet show TASK` lists the messages of a task.",
        )
    if message.kind is not MessageKind.WORDS:
        raise Mismatch(
            f"{message.id} is not a message to an agent.",
            fix="`fleet show TASK` lists the messages of a task.",
        )
    task = the_task(context, message.task, Permission.SEND)
    if message.author != context.actor.name:
        allow(context.actor, Permission.ASSIGN, team=task.team)
    if message.state is not MessageState.OPEN:
        was = message_row(message).status
        raise Refused(f"{message.id} was already {was}.", fix=f"fleet show {task.id}", code="ended")
    withdrawn = rules.withdrawn(message, context.actor.name, at=context.store.now())
    event = context.event(Kind.MESSAGE_WITHDRAWN, task.id, message=message.id)
    context.commit([Put(withdrawn)], event)
    return message_row(withdrawn)


def read(context: Context, request: ReadMessage) -> MessageRow:
    """Read a message about a task. Mail, chats and hand-offs have their own operations."""
    message = readable_on_task(context, request.message.strip())
    if message is None:
        raise NotFound(
            f"There is no message '{request.message[:60]}' about a task.",
            fix="`fleet mail list`, `fleet chat list` and `fleet checkpoints` list the others.",
        )
    return message_row(message)


def ask(context: Context, request: Ask) -> MessageRow:
    if not request.task and not context.actor.run:
        raise NotFound(
            "No task was named for the question.", fix="Name one: fleet ask --task t-1 …"
        )
    task = the_task(context, request.task, Permission.ASK)
    text = request.text.strip()
    options = tuple(dict.fromkeys(option.strip() for option in request.options))
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}: there is nothing to ask about.",
            fix=f"`fleet retry {task.id}` opens it again.",
        )
    if request.park and context.actor.task != task.id:
        raise Mismatch("--park works only inside a run, for its own task.", fix="Leave out --park.")
    question = _message(
        context, task, MessageKind.QUESTION, text, options=options, parked=request.park
    )
    context.commit([Put(question)], context.event(Kind.MESSAGE_ASKED, task.id, message=question.id))
    return message_row(question)


def _message(
    context: Context,
    task: Task,
    kind: MessageKind,
    text: str,
    *,
    options: tuple[str, ...] = (),
    parked: bool = False,
) -> Message:
    now = context.store.now()
    holds = kind in {MessageKind.QUESTION, MessageKind.WORDS}
    return Message(
        id=context.store.new_id("m"),
        version=0,
        task=task.id,
        author=context.actor.name,
        kind=kind,
        text=text,
        state=MessageState.OPEN if holds else MessageState.CLOSED,
        at=now,
        details=Details(options=options, parked=parked),
        receipt=Receipt(closed_at=0 if holds else now),
    )


def _after_its_claim(context: Context, task: Task) -> int:
    """Now, or just after the run was claimed if the clock was set back: its prompt lacks the message."""
    now = context.store.now()
    return max(now, context.store.run(task.run_id).claimed_at + 1) if task.run_id else now


def answer(context: Context, request: Answer) -> MessageRow:
    question = the_question(context, request.name, Permission.ANSWER)
    task = context.store.task(question.task)
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}: no run is waiting for the answer.",
            fix=f"`fleet retry {task.id}` opens it again.",
            code="ended",
        )
    if not may_speak(context, task):
        raise _runs_its_input(task, "answer it")
    text = request.text.strip()
    text = text if request.as_text else _chosen(question, text)
    with decided(task):
        closed, reply = rules.answer(
            question,
            text,
            by=context.actor.name,
            at=_after_its_claim(context, task),
            new_id=context.store.new_id("m"),
        )
    event = context.event(Kind.MESSAGE_ANSWERED, question.task, message=question.id)
    if question.author == SUPERVISOR:
        return _decide_on_budget(context, closed, reply, event)
    context.commit([Put(closed), Put(reply)], event)
    return message_row(reply)


def _decide_on_budget(
    context: Context, question: Message, reply: Message, event: Event
) -> MessageRow:
    """Grant the task its budget once more, or cancel it; other answers also go to its agent."""
    task = context.store.task(question.task)
    now = context.store.now()
    if reply.text in OPTIONS:
        reply = rules.delivered(reply, at=now)
    if reply.text == GIVE_UP:
        task = tasks.cancel(task, "Its budget was spent.", now=now)
    else:
        task = tasks.grant(task)
    parents = parent_changes(context.store, task, now=now)
    context.commit([Put(question), Put(reply), Put(task), *parents], event)
    return message_row(reply)


def _chosen(question: Message, text: str) -> str:
    """The option with this number; any other text is the answer itself."""
    numbers = {str(n): option for n, option in enumerate(question.details.options, 1)}
    if text in question.details.options or not numbers or not text.isdecimal():
        return text
    if text not in numbers:
        choices = "  ".join(f"{number}) {option}" for number, option in numbers.items())
        raise Mismatch(
            f"{question.id} has no option {text}: {choices}",
            fix=f"If {text} is the answer itself: fleet answer {question.id} {text} --as-text",
        )
    return numbers[text]


def take_answer(context: Context, request: TakeAnswer) -> MessageRow | None:
    question = the_question(context, request.question, Permission.ASK)
    if question.author != context.actor.name:
        raise Forbidden(
            f"{question.id} was asked by {question.author}, who waits for the answer.",
            fix=f"`fleet show {question.task}` shows it.",
        )
    reply = _reply(context, question)
    if reply is None:
        return None
    if reply.state is MessageState.OPEN:
        reply = rules.delivered(reply, at=context.store.now())
        context.commit(
            [Put(reply)], context.event(Kind.MESSAGE_HEARD, reply.task, message=reply.id)
        )
    return message_row(reply)


def _reply(context: Context, question: Message) -> Message | None:
    for message in context.store.messages(question.task):
        if message.kind is MessageKind.ANSWER and message.reply_to == question.id:
            return message
    task = context.store.task(question.task)
    if task.state in ENDED:
        raise Refused(
            f"{task.id} is {task.state}, and {question.id} has no answer.",
            fix=f"`fleet show {task.id}` shows what happened.",
            code="unanswered",
        )
    return None


def questions(context: Context, request: ListQuestions) -> tuple[MessageRow, ...]:
    """Open questions of tasks that have not ended."""
    limit, team = request.limit, team_in_view(context)
    messages = context.store.questions(team=team, after=request.before, limit=limit)
    return tuple(map(message_row, messages))


_P = Permission
OPERATIONS = (
    Operation(
        "message.comment",
        Comment,
        _P.SEND,
        comment,
        "Write a note on a task.",
        idempotent=False,
        shown_by="message.read",
        outside=True,  # it looks into the work for the line
    ),
    Operation(
        "message.send",
        SendWords,
        _P.SEND,
        send,
        "Send a message to an agent.",
        idempotent=False,
        shown_by="message.read",
    ),
    Operation(
        "message.unsend", Unsend, _P.SEND, unsend, "Withdraw a message that was not read yet."
    ),
    Operation("message.read", ReadMessage, _P.READ, read, "Read one message."),
    Operation(
        "message.ask",
        Ask,
        _P.ASK,
        ask,
        "Ask a question.",
        idempotent=False,
        shown_by="message.read",
    ),
    Operation("message.answer", Answer, _P.ANSWER, answer, "Answer a question."),
    Operation("message.take", TakeAnswer, _P.ASK, take_answer, "Take the answer to a question."),
    Operation("message.questions", ListQuestions, _P.READ, questions, "List the open questions."),
)
