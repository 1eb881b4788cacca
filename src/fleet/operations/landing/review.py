"""Look at the work of tasks before it lands: what each one changed, and what you think of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain import task as rules
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Mismatch, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import OneOf, Rows, TextLimit, Whole
from fleet.domain.run import has_work
from fleet.domain.task import Option, Spec, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.landing import LandTasks, land
from fleet.operations.shared.names import team_in_view, the_run, the_task
from fleet.operations.tasks.change import AddTask, add
from fleet.operations.tasks.commit import decided, write_task
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.operations.tasks.send_back import MAX_CHARACTERS, SendBack, send_back
from fleet.ports import DiffWish, Finished, Merge, Outlook, TaskDiff, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MOST_TASKS = 500  # the newest that are done or in review are looked at
ACCEPT, SEND_BACK = VERDICTS = ("accept", "send-back")
REVIEW_LABEL = "review"
BranchName = Annotated[str, TextLimit(250, what="branch")]
FilePath = Annotated[str, TextLimit(4096, what="path")]
RunNumber = Annotated[int, Whole(0, 10**9, example="Use 0 for all runs.")]


@dataclass(frozen=True, slots=True)
class DiffTask(Request[TaskDiff]):
    """What the task itself changed: without what the tasks it waited for, or its branch, brought.

    `against`: what it would bring to this branch instead. `run`: only the changes of this run, by
    its number. `path`: only this file. `stat`: the files without their lines. A reply has at most
    400 KB, and 5,000 lines of a file.
    """

    task: str = ""
    against: BranchName = ""
    run: RunNumber = 0
    path: FilePath = ""
    stat: bool = False


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """Work that is done, and on no branch but its own.

    `brings`: the tasks whose work would land with it. `part_of`: the task that brings this one.
    `gate`: passed, failed or untested; empty: there is none. `cost`: millionths of a dollar.
    `conflicts`: files in which it conflicts with `onto` now; `rivals`: tasks it conflicts with.
    Of work on another machine, the numbers are not known.
    """

    task: str
    title: str
    status: str
    onto: str
    brings: tuple[str, ...]
    part_of: str
    files: int | None
    added: int | None
    removed: int | None
    gate: str
    cost: int
    at: Time
    conflicts: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListReviews(Request[tuple[ReviewRow, ...]]):
    """All work that is done and not landed, of the newest 500 such tasks; `project`: only there.

    Those that no other task brings come first, the oldest of them first.
    """

    project: str = ""
    limit: Rows = 100


@dataclass(frozen=True, slots=True)
class SubmitReview(Request[TaskRow]):
    """`verdict`: accept queues the work to land; send-back gives it to its agent with `text`.

    `onto`: the branch to land on; empty: the one that the task started from.
    """

    task: str
    verdict: Annotated[str, OneOf(VERDICTS, "verdict")]
    text: Annotated[str, TextLimit(MAX_CHARACTERS, what="text")] = ""
    onto: BranchName = ""


@dataclass(frozen=True, slots=True)
class AskReview(Request[TaskRow]):
    """A new task, in which `agent` reads the work and writes its remarks on it as comments."""

    task: str
    agent: Option


def diff(context: Context, request: DiffTask) -> TaskDiff:
    task = the_task(context, request.task, Permission.READ)
    if request.run:
        the_run(context, f"{task.id}.{request.run}", Permission.READ)
    wish = DiffWish(request.against.strip(), request.run, request.path, request.stat)
    return context.trees().changes(task, wish)


def list_reviews(context: Context, request: ListReviews) -> tuple[ReviewRow, ...]:
    tasks, runs = _not_landed(context, request.project)
    brings = {task: tuple(brings_of(task, tasks)) for task in tasks}
    outlooks, here = outlooks_of(context, tasks, runs, brings)
    tasks = {i: t for i, t in tasks.items() if i in outlooks or i not in here}
    brings = {i: tuple(one for one in brings[i] if one in tasks) for i in tasks}
    inner = {part for parts in brings.values() for part in parts}
    part_of = {part: i for i, parts in brings.items() if i not in inner for part in parts}
    order = sorted(tasks, key=lambda i: (i in part_of, tasks[i].tally.ended_at))[: request.limit]
    chosen = [tasks[i] for i in order]
    gates = _gates(context, chosen, outlooks)
    statuses = {row.id: row.status for row in rows(context, chosen)}
    return tuple(
        ReviewRow(
            task=task.id,
            title=task.title,
            status=statuses[task.id],
            onto=onto_of(context, task, runs[task.id]),
            brings=brings[task.id],
            part_of=part_of.get(task.id, ""),
            files=look.files if look else None,
            added=look.added if look else None,
            removed=look.removed if look else None,
            gate=gates.get(task.id, ""),
            cost=round(task.tally.spent.usd * 1_000_000),
            at=task.tally.ended_at,
            conflicts=look.conflicts if look else (),
            rivals=look.rivals if look else (),
        )
        for task, look in ((task, outlooks.get(task.id)) for task in chosen)
    )


def _not_landed(context: Context, project: str) -> tuple[dict[str, Task], dict[str, Run]]:
    """The tasks with work of their own that has not landed, and the run of each."""
    states = (TaskState.DONE, TaskState.REVIEW)
    query = TaskQuery(states, project, team_in_view(context), limit=MOST_TASKS)
    tasks = {t.id: t for t in context.store.tasks(query) if is_away(t)}
    known = context.store.runs_by_id([task.run_id for task in tasks.values()])
    runs = {
        run.task: run for run in known.values() if has_work(tasks[run.task].tally.checkpoint, run)
    }
    return {i: task for i, task in tasks.items() if i in runs}, runs


def is_away(task: Task) -> bool:
    """Whether it ran, and its work may still land: no other solution of it was picked."""
    return bool(task.run_id) and not task.tally.landed and not task.tally.beaten


def brings_of(task: str, tasks: Mapping[str, Task]) -> Iterator[str]:
    """The tasks that it waited for, and those that they waited for, that have not landed."""
    seen, queue = {task}, list(tasks[task].after)
    while queue:
        here = queue.pop(0)
        if here in tasks and here not in seen:
            seen.add(here)
            yield here
            queue += tasks[here].after


def onto_of(context: Context, task: Task, run: Run) -> str:
    try:
        wanted = context.world(task.project).settings.land.onto
    except FleetError:  # `fleet validate` says what is wrong there
        wanted = ""
    return wanted or (run.workspace.onto if run.workspace else "")


def outlooks_of(
    context: Context,
    tasks: Mapping[str, Task],
    runs: Mapping[str, Run],
    brings: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, Outlook], set[str]]:
    """What git says of the tasks whose repository is on this machine, and which these are."""
    needs = context.store.tasks_by_id(sorted({need for t in tasks.values() for need in t.after}))
    works: dict[str, list[Finished]] = {}
    for task in tasks.values():
        space, checkpoint = runs[task.id].workspace, task.tally.checkpoint
        assert space is not None
        tip = checkpoint.commit if checkpoint else ""
        commits = [need.tally.checkpoint for i in task.after if (need := needs.get(i))]
        brought = tuple(Merge("", point.commit) for point in commits if point and point.commit)
        onto = onto_of(context, task, runs[task.id])
        work = Finished(task.id, space.branch, space.base, onto, tip, brought, brings[task.id])
        works.setdefault(space.repository, []).append(work)
    outlooks, here = dict[str, Outlook](), set[str]()
    for repository, some in works.items():
        reply = _outlook(context, repository, some)
        if reply is not None:
            outlooks |= {task: look for task, look in reply.items() if look}
            away = {task for task, look in reply.items() if look is None}
            here |= {work.task for work in some if work.onto} - away
    return outlooks, here


def _outlook(
    context: Context, repository: str, works: Sequence[Finished]
) -> dict[str, Outlook | None] | None:
    try:
        return context.trees().outlook(repository, works)
    except (FleetError, OSError):  # not on this machine
        return None


def _gates(
    context: Context, tasks: Sequence[Task], outlooks: Mapping[str, Outlook]
) -> dict[str, str]:
    """What the gate has said of each task's own tree."""
    names = {
        task.id: context.trees().gate_result(task, look.tree)
        for task in tasks
        if (look := outlooks.get(task.id))
    }
    results = context.store.gate_results([name for name in names.values() if name])
    verdicts = {}
    for task, name in names.items():
        result = results.get(name)
        if name:
            verdicts[task] = (
                "untested" if result is None else "passed" if result.passed else "failed"
            )
    return verdicts


def submit(context: Context, request: SubmitReview) -> TaskRow:
    task = the_task(context, request.task, Permission.MERGE)
    if request.verdict == SEND_BACK:
        return send_back(context, SendBack(task.id, request.text))
    if request.text.strip():
        raise Mismatch("Text can be given only with --send-back.", fix="--send-back")
    if task.state is TaskState.REVIEW:
        with decided(task):
            closed = rules.close(task, "Accepted.", now=context.store.now())
        write_task(context, closed, Kind.TASK_CLOSED, why="Accepted.")
    if not task.tally.landing:
        land(context, LandTasks((task.id,), request.onto))
    return rows(context, [context.store.task(task.id)])[0]


PROMPT = """\
Review the work of another agent. Change no file.

The task is {id}: {title}

{prompt}

Its changes are in this repository, and you have them checked out:

    git diff {start} {end}

Look for mistakes, missing tests, and what the task asked for and was not done. Write down each thing that should be
changed, with the file and the line it is in:

    fleet comment {id} --file FILE --line LINE "What is wrong, and what to do about it."

Say at the end, in two sentences, whether you would accept the work."""


def ask(context: Context, request: AskReview) -> TaskRow:
    task = the_task(context, request.task, Permission.SEND)
    checkpoint = task.tally.checkpoint
    if checkpoint is None or not checkpoint.commit:
        raise Refused(
            f"{task.id} has no commit that could be reviewed.",
            fix=f"`fleet show {task.id}` shows what happened.",
            code="no_commit",
        )
    changes = context.trees().changes(task, DiffWish(stat=True))
    prompt = PROMPT.format(
        id=task.id, title=task.title, prompt=task.prompt, start=changes.start, end=changes.end
    )
    spec = Spec(
        agent=request.agent, cwd=task.spec.cwd, base=checkpoint.commit, labels=(REVIEW_LABEL,)
    )
    return add(
        context, AddTask(f"Review {task.id}: {task.title}"[:200], prompt, task.project, spec)
    )


OPERATIONS = (
    Operation(
        "task.diff", DiffTask, Permission.READ, diff, "Show what a task has changed, file by file.",
        outside=True,
    ),
    Operation(
        "review.list", ListReviews, Permission.READ, list_reviews,
        "List work that is done and not landed.", outside=True,
    ),
    Operation(
        "review.submit", SubmitReview, Permission.MERGE, submit,
        "Accept a task's work, or send it back.", outside=True,
    ),
    Operation(
        "review.ask", AskReview, Permission.ADD, ask, "Have an agent review a task's work.",
        idempotent=False, outside=True, shown_by="task.show",
    ),
)  # fmt: skip
