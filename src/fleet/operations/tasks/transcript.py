"""Read the transcript of a run, and the screen of its terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.addressing import without_private
from fleet.domain.causes import check_may_allow
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Whole
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.shared.causes import own_task
from fleet.operations.shared.elsewhere import must_be_here
from fleet.operations.shared.names import the_run

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MAX_BYTES = 1 << 24
MAX_HISTORY = 5000  # lines


@dataclass(frozen=True, slots=True)
class Spoken:
    """Lines of a transcript as the coder wrote them, and where the next ones start.

    Messages to the agent that the caller may not read are replaced.
    """

    run: str
    coder: str
    lines: tuple[str, ...]
    offset: int
    live: bool


@dataclass(frozen=True, slots=True)
class ReadTranscript(Request[Spoken]):
    """`name` is a run, or a task for its newest run. `limit` is in bytes.

    A negative `offset`: from the first line that begins within so many bytes of the end.
    """

    name: str
    offset: int = 0
    limit: Annotated[int, Whole(1, MAX_BYTES)] = 1 << 20


@dataclass(frozen=True, slots=True)
class ScreenText:
    """The lines of a terminal. `column` and `line`: where the cursor is, from 0.

    `state`: what it shows, such as working or wants, by `rule`. `watchers`: people who are attached.
    `asks`: what it asks permission for; `always`: its answer to that for good, if it has one.
    """

    run: str
    lines: tuple[str, ...]
    column: int
    line: int
    alive: bool
    state: str
    rule: str
    watchers: int
    asks: str
    always: str


@dataclass(frozen=True, slots=True)
class ReadScreen(Request[ScreenText]):
    """`name` is a run in a terminal of the machine that is asked, or a task for its newest run.

    `history`: so many lines from before what is visible. `colours`: with their escape sequences.
    """

    name: str
    history: Annotated[int, Whole(0, MAX_HISTORY)] = 0
    colours: bool = False


@dataclass(frozen=True, slots=True)
class InterruptRun(Request[ScreenText]):
    """Press Escape in the terminal of an agent: it ends its turn, and waits for a message."""

    name: str


@dataclass(frozen=True, slots=True)
class Seat:
    """`argv`: the command that attaches to the terminal, on the run's host.

    `host`: where that is, when a server answers for another host; then there is no command.
    """

    run: str
    task: str
    argv: tuple[str, ...]
    host: str = ""


@dataclass(frozen=True, slots=True)
class AttachRun(Request[Seat]):
    """The command that opens an agent's terminal. Over the network, `/ws/terminal` does it.

    Only for those who may allow what an agent asks for: its program obeys who types there.
    """

    name: str


def attach(context: Context, request: AttachRun) -> Seat:
    run = the_run(context, request.name, Permission.ATTACH)
    check_may_allow(context.actor, own_task(context), run.task)
    if not run.live:
        raise Refused(f"{run.task} is not running.", fix=f"`fleet show {run.task}` says why.")
    must_be_here(context, run, "its terminal is", f"fleet attach {run.task}")
    argv = context.agents().attach_argv(run.id)
    context.commit([], context.event(Kind.RUN_ATTACHED, run.task, run=run.id))
    return Seat(run.id, run.task, tuple(argv))


def read(context: Context, request: ReadTranscript) -> Spoken:
    run = the_run(context, request.name, Permission.READ)
    chunk = context.transcripts().read(
        run.id, request.offset, limit=request.limit, final=not run.live
    )
    if not chunk.lines and not chunk.offset:
        must_be_here(context, run, "its output is", f"fleet logs {run.task}")
    lines, reader = chunk.lines, reader_of(context.store, context.actor)
    if lines and not reader.leads:
        lines = without_private(lines, context.store.messages(run.task), reader)
    return Spoken(run.id, run.choice.coder, lines, chunk.offset, run.live)


def screen(context: Context, request: ReadScreen) -> ScreenText:
    run = the_run(context, request.name, Permission.ANSWER)
    must_be_here(context, run, "its terminal is", f"fleet attach {run.task}")
    return _screen_of(context, run.id, history=request.history, colours=request.colours)


def _screen_of(
    context: Context, run_id: str, *, history: int = 0, colours: bool = False
) -> ScreenText:
    seen = context.agents().screen(run_id, history=history, colours=colours)
    return ScreenText(
        run_id,
        tuple(line.rstrip() for line in seen.text.rstrip().splitlines()),
        *seen.cursor,
        seen.alive,
        str(seen.state),
        seen.rule,
        seen.watchers,
        seen.asks,
        seen.always,
    )


def interrupt(context: Context, request: InterruptRun) -> ScreenText:
    run = the_run(context, request.name, Permission.ASSIGN)
    must_be_here(context, run, "its terminal is", f"fleet attach {run.task}")
    if not run.live or not (seen := context.agents().screen(run.id)).alive:
        raise Refused(f"{run.task} is not running.", fix=f"`fleet show {run.task}` says why.")
    if seen.asks:
        raise Refused(
            f"{run.task} asks for permission, and Escape would refuse it.",
            fix=f"fleet deny {run.task}",
            code="wants_permission",
        )
    context.agents().interrupt(run.id)
    context.commit([], context.event(Kind.RUN_INTERRUPTED, run.task, run=run.id))
    return _screen_of(context, run.id)


OPERATIONS = (
    Operation(
        "run.screen",
        ReadScreen,
        Permission.ANSWER,  # it may show what others wrote to the agent alone
        screen,
        "Read what a run's terminal shows now.",
        reads=True,
        outside=True,
    ),
    Operation(
        "run.interrupt",
        InterruptRun,
        Permission.ASSIGN,
        interrupt,
        "Interrupt the turn of an agent in a terminal.",
        idempotent=False,
        outside=True,
    ),
    Operation(
        "run.attach",
        AttachRun,
        Permission.ATTACH,
        attach,
        "Open an agent's terminal.",
        idempotent=False,
        outside=True,
    ),
    Operation("run.transcript", ReadTranscript, Permission.READ, read, "Read a run's transcript."),
)
