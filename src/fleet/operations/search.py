"""Search the titles and prompts of tasks, and what their agents said."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.addressing import without_private
from fleet.domain.data import dataclass
from fleet.domain.errors import Mismatch
from fleet.domain.limits import Name, TextLimit, Whole
from fleet.domain.search import (
    MatchSpan,  # imported at run time: a client reads the types of a reply
    matches,
    query_of,
    snippet_of,
)
from fleet.domain.task import Directory
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.shared.names import PAGE, team_in_view, the_task
from fleet.ports import SaidQuery, TaskSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Passage

MOST_TEXT = 1000  # characters of a query
MOST_PASSAGES = 200  # passages that are checked in each part of the index
MOST_LIVE = 50  # live runs whose newest lines, which no index has, are searched


@dataclass(frozen=True, slots=True)
class Hit:
    """`where`: title, prompt, or transcript; then `run` is the one that said it.

    `marks`: where the words are in `text`, in characters.
    """

    task: str
    title: str
    where: str
    run: str
    at: Time
    text: str
    marks: tuple[MatchSpan, ...]


@dataclass(frozen=True, slots=True)
class FindText(Request[tuple[Hit, ...]]):
    """Each word of `text` must be there; one of three or more characters can begin a longer one.

    `since`: microseconds since 1970. `limit`: 1 to 200. Of each task the newest match counts.
    """

    text: Annotated[str, TextLimit(MOST_TEXT, some=True, example="For example: fleet search login")]
    task: str = ""
    project: Directory = ""
    team: Name = ""
    since: Annotated[int, Whole(0)] = 0
    limit: Annotated[int, Whole(1, PAGE)] = 20


def find_text(context: Context, request: FindText) -> tuple[Hit, ...]:
    query = query_of(request.text)
    if not query:
        raise Mismatch("There is no word to search for.", fix="For example: fleet search login")
    team = team_in_view(context, request.team)
    task = the_task(context, request.task, Permission.READ).id if request.task else ""
    search = TaskSearch(query, team, request.project, task, request.since, request.limit)
    hits = [_of_task(each, query) for each in context.store.search_tasks(search)]
    hits += islice(_of_transcripts(context, search), request.limit)
    return tuple(sorted(hits, key=lambda hit: hit.at, reverse=True)[: request.limit])


def _of_task(task: Task, query: tuple[str, ...]) -> Hit:
    where, text = ("title", task.title) if matches(task.title, query) else ("prompt", task.prompt)
    piece = snippet_of(text, query)
    return Hit(task.id, task.title, where, "", task.created_at, piece.text, piece.marks)


def _of_transcripts(context: Context, search: TaskSearch) -> Iterator[Hit]:
    """The newest match of each task."""
    reader = reader_of(context.store, context.actor)
    seen: set[str] = set()
    for passage in _passages(context, search):
        if passage.task in seen:
            continue
        task = context.store.tasks_by_id([passage.task]).get(passage.task)
        if task is None or not _is_wanted(task, search):
            continue
        texts = tuple(line.text for line in passage.lines)
        if not reader.leads:
            texts = without_private(texts, context.store.messages(task.id), reader)
        hit = _of_lines(task, passage, texts, search)
        if hit is not None:
            seen.add(task.id)
            yield hit


def _passages(context: Context, search: TaskSearch) -> Iterator[Passage]:
    """The newest lines of live runs, which no index has yet; then the index's passages, newest first."""
    index = context.transcripts().passages
    live = {run.task for run in context.store.live_runs() if search.task in {"", run.task}}
    tasks = context.store.tasks_by_id(sorted(live)).values()
    live = {task.id for task in tasks if _is_wanted(task, search)}  # before the limit is applied
    for name in sorted(live, key=lambda name: -int(name.removeprefix("t-")))[:MOST_LIVE]:
        yield index.newest(name)
    yield from index.find(
        SaidQuery(
            search.words, search.team, search.project, search.task, search.since, MOST_PASSAGES
        )
    )


def _is_wanted(task: Task, search: TaskSearch) -> bool:
    return search.team in {"", task.team} and search.project in {"", task.project}


def _of_lines(
    task: Task, passage: Passage, texts: tuple[str, ...], search: TaskSearch
) -> Hit | None:
    """The last line with all words; else, if the lines together have all, the last with any of them."""
    if not matches("\n".join(texts), search.words):
        return None
    both = list(zip(passage.lines, texts, strict=True))
    both = [(line, text) for line, text in both if line.at >= search.since]
    best = [(line, text) for line, text in both if matches(text, search.words)]
    some = [(line, text) for line, text in both if any(matches(text, (w,)) for w in search.words)]
    for line, text in (*best[-1:], *some[-1:]):
        piece = snippet_of(text, search.words)
        return Hit(task.id, task.title, "transcript", line.run, line.at, piece.text, piece.marks)
    return None


OPERATIONS = (
    Operation(
        "search.find",
        FindText,
        Permission.READ,
        find_text,
        "Search titles, prompts and transcripts for words.",
    ),
)
