"""Read pages of a run's transcript in one form for all coders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.addressing import without_private
from fleet.domain.data import dataclass
from fleet.domain.limits import Items, OneOf, TextLimit, Whole
from fleet.domain.task import Mode
from fleet.domain.transcript import SaidKind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.shared.elsewhere import must_be_here
from fleet.operations.shared.names import the_run
from fleet.operations.tasks.rows import UsageRow, usage_row
from fleet.ports import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.domain.run import Run
    from fleet.domain.transcript import Said
    from fleet.operations.catalogue import Context
    from fleet.ports import Listener

MOST_LINES = 1000  # of a transcript, in one reply
FEWEST_LINES = 200  # lines to read at once when the request filters them
MOST_READ = 20_000  # lines to search when the request filters them
LONGEST_TEXT = 20_000  # characters of one text
BEFORE = 50  # earlier lines to parse first: some programs name a tool once and refer to it later
HIDDEN = frozenset({SaidKind.REPLY})  # part of the coder's protocol

Kinds = Annotated[
    tuple[Annotated[str, OneOf(tuple(SaidKind), "kind of line")], ...], Items(len(SaidKind))
]


@dataclass(frozen=True, slots=True)
class SaidRow:
    """`line`: of the transcript, from 1; one line may say several things.

    `cut`: the text is longer, and ends here.
    """

    line: int
    kind: str
    name: str
    text: str
    failed: bool
    cut: bool
    usage: UsageRow | None


@dataclass(frozen=True, slots=True)
class SaidPage:
    """Lines `first` to `last` of `total`, oldest first, as far as they said anything."""

    run: str
    coder: str
    rows: tuple[SaidRow, ...]
    first: int
    last: int
    total: int
    live: bool


@dataclass(frozen=True, slots=True)
class ReadSaid(Request[SaidPage]):
    """`run`: a run, or a task for its newest run. `limit`: lines of the transcript.

    `after`: the lines that follow this one; else `before`: those that lead up to that one; else the
    last ones. `kinds` and `text`: only these, and with this text in them in any case; they are
    looked for in up to 20,000 lines.
    """

    run: str
    after: Annotated[int, Whole(-1)] = -1
    before: Annotated[int, Whole(0)] = 0
    limit: Annotated[int, Whole(1, MOST_LINES)] = 200
    kinds: Kinds = ()
    text: Annotated[str, TextLimit(200, what="text")] = ""


def read_conversation(context: Context, request: ReadSaid) -> SaidPage:
    run = the_run(context, request.run, Permission.READ)
    task = context.store.task(run.task)
    subject = Subject(
        run.id, run.choice.coder, task.project, task.spec.mode == Mode.TERMINAL, here=True,
        live=run.live,
    )  # fmt: skip
    return _TranscriptWindow(context, run, request, subject).page()


class _TranscriptWindow:
    """Reads the lines that the request asks for; with `kinds` or `text`, until it has enough rows."""

    def __init__(self, context: Context, run: Run, request: ReadSaid, subject: Subject) -> None:
        self._context, self._run, self._request, self._subject = context, run, request, subject
        self._reader = reader_of(context.store, context.actor)
        self._some = bool(request.kinds or request.text)
        self._text = request.text.casefold()
        self._messages = () if self._reader.leads else context.store.messages(run.task)

    def page(self) -> SaidPage:
        total = self._context.transcripts().count(self._run.id, final=not self._run.live)
        if not total:
            run = self._run
            must_be_here(self._context, run, "its output is", f"fleet logs {run.task}")
        request, rows = self._request, list[SaidRow]()
        forwards = request.after >= 0
        at = min(request.after, total) if forwards else self._end(total)
        first = last = at
        read = 0
        while read < (MOST_READ if self._some else 1) and len(rows) < request.limit:
            size = max(request.limit, FEWEST_LINES) if self._some else request.limit
            start = last if forwards else max(0, first - size)
            stop = min(total, last + size) if forwards else first
            if start >= stop:
                break
            some, reached = self._window(start, stop, forwards=forwards)
            rows = [*rows, *some] if forwards else [*some, *rows]
            first, last = (first, reached) if forwards else (reached, last)
            read += stop - start
        run = self._run
        return SaidPage(run.id, run.choice.coder, tuple(rows), first + 1, last, total, run.live)

    def _end(self, total: int) -> int:
        return min(total, self._request.before - 1) if self._request.before else total

    def _window(self, start: int, stop: int, *, forwards: bool) -> tuple[list[SaidRow], int]:
        """The rows of these lines, and the last line read: fewer lines may fit into one read."""
        begin, lines = self._context.transcripts().lines(
            self._run.id, start, stop - start, last=not forwards
        )
        return list(self._rows(begin, lines)), begin + len(lines) if forwards else begin

    def _rows(self, start: int, lines: Sequence[str]) -> Iterator[SaidRow]:
        listener = self._listener(start)
        clean = without_private(tuple(lines), self._messages, self._reader)
        for number, line in enumerate(clean, start + 1):
            for item in listener.hear(line):
                if self._is_wanted(item):
                    yield _row(number, item)

    def _is_wanted(self, item: Said) -> bool:
        wanted = item.kind not in HIDDEN and item.kind in (self._request.kinds or SaidKind)
        return wanted and self._text in f"{item.name} {item.text}".casefold()

    def _listener(self, start: int) -> Listener:
        listener = self._context.agents().listener(self._subject)
        begin = max(0, start - BEFORE)
        _, lines = self._context.transcripts().lines(self._run.id, begin, start - begin, last=True)
        for line in without_private(lines, self._messages, self._reader):
            listener.hear(line)
        return listener


def _row(line: int, item: Said) -> SaidRow:
    cut = len(item.text) > LONGEST_TEXT
    usage = usage_row(item.usage) if item.usage is not None else None
    text = item.text[:LONGEST_TEXT]
    return SaidRow(line, str(item.kind), item.name[:200], text, item.failed, cut, usage)


OPERATIONS = (
    Operation(
        "run.said", ReadSaid, Permission.READ, read_conversation,
        "Read what a run's coder said and did, in one form for all coders.",
    ),
)  # fmt: skip
