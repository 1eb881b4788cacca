"""What needs a person, and what that person can do about it. Derived from facts, never stored.

`fleet status`, `fleet top`, the notices and the dashboard all show these items in these words.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.base.outside import Time, moment  # a client reads the types of a reply
from fleet.domain.access import SUPERVISOR
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.task import TaskState, mend_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fleet.domain.landing.landing import Landing
    from fleet.domain.message import Message
    from fleet.domain.run import Host, Run
    from fleet.domain.task import Task

NOBODY: dict[str, int] = {}


class Severity(StrEnum):
    HIGH = "high"  # an agent stands still until you act
    MEDIUM = "medium"  # something went wrong
    LOW = "low"  # it can wait


class Need(StrEnum):
    """The kinds of items, in the order in which they are listed."""

    QUESTION = "question"
    PERMISSION = "permission"  # a dialog of the agent's program
    FIRST_START = "first-start"  # what the agent's program asks only once: theme, login, trust
    PANEL = "panel"  # an open panel of the agent's program, into which messages would be typed
    BUDGET = "budget"  # the task's budget is spent
    FAILED = "failed"
    CONFLICT = "conflict"  # the work is done, but its branch conflicts
    LANDING = "landing"  # a landing is held: it failed too often, or a person holds it
    NODE = "node"  # it does not answer
    HOST = "host"  # a host with runs is silent
    UNTRUSTED = "untrusted"  # settings of a project are ignored until a person trusts them
    HELD_BACK = "held"  # its author may not start runs, or a person must change something first
    REVIEW = "review"
    NOT_LANDED = "not-landed"
    FINISHED = "finished"  # recently done, only for information; listed on request


ORDER = {kind: rank for rank, kind in enumerate(Need)}
SCREENS = frozenset({Need.PERMISSION, Need.FIRST_START, Need.PANEL})
SEVERITY = {
    **dict.fromkeys((Need.QUESTION, Need.BUDGET, *SCREENS), Severity.HIGH),
    **dict.fromkeys(
        (Need.FAILED, Need.CONFLICT, Need.LANDING, Need.NODE, Need.HOST), Severity.MEDIUM
    ),
}


@dataclass(frozen=True, slots=True)
class Action:
    """`command`: what to type. `operation`: what does the same; empty: only a terminal can."""

    name: str
    command: str
    operation: str = ""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """`id` is `KIND:SUBJECT:FACT`: the same as long as the fact is, another when it happens again.

    `behind`: how many open tasks wait for its task. `always`: how the program of a dialog offers to
    allow this from now on, in its words. `given`: the member it was given to; it counts for that one
    alone. The first action is the usual one.
    """

    id: str
    kind: str
    severity: str
    words: str
    actions: tuple[Action, ...]
    task: str = ""
    run: str = ""
    title: str = ""
    project: str = ""
    options: tuple[str, ...] = ()
    since: Time | None = None
    behind: int = 0
    always: str = ""
    given: str = ""


class OnScreen(NamedTuple):
    """An agent whose terminal waits for a person. `words`: what its screen asks.

    `always`: the answer on its screen that allows this from now on, if there is one.
    """

    task: Task
    run: Run
    kind: Need
    words: str
    always: str = ""


class Unlanded(NamedTuple):
    """Work that is done and not in the branch `onto`, and the files in which the two conflict."""

    task: Task
    run: Run
    onto: str
    conflicts: tuple[str, ...] = ()


class Down(NamedTuple):
    """A node, one model of a node, or the gateway, that does not answer.

    `behind`: how many ready tasks need it.
    """

    name: str
    address: str
    why: str
    behind: int
    gateway: bool = False


class Silent(NamedTuple):
    """A silent host that has runs. `tasks`: those of the runs, as far as the caller may see them.

    `lost`: its lease is over, so other hosts may take over its tasks.
    """

    host: Host
    tasks: tuple[str, ...]
    runs: int
    lost: bool


class InboxFacts(NamedTuple):
    """`tasks`: those that the questions are about. `waiting`: how many open tasks wait for each."""

    tasks: Mapping[str, Task]
    questions: Iterable[Message] = ()
    screens: Iterable[OnScreen] = ()
    ended: Iterable[Task] = ()  # failed, or in review
    unlanded: Iterable[Unlanded] = ()
    down: Iterable[Down] = ()
    silent: Iterable[Silent] = ()
    untrusted: Iterable[tuple[str, Iterable[str]]] = ()  # projects, and their settings
    held_back: Iterable[Task] = ()
    held_landings: Iterable[tuple[Task, Landing]] = ()
    finished: Iterable[Task] = ()
    waiting: Mapping[str, int] = NOBODY


def inbox(facts: InboxFacts) -> list[InboxItem]:
    """Kind by kind, the oldest of each first."""
    return sorted(_items(facts), key=_turn)


def _turn(item: InboxItem) -> tuple[int, int, str]:
    return ORDER[Need(item.kind)], item.since or 0, item.id


def _items(facts: InboxFacts) -> Iterator[InboxItem]:
    waiting = facts.waiting
    questions = list(facts.questions)
    by_task = Counter(question.task for question in questions)
    for question in questions:
        if task := facts.tasks.get(question.task):
            name = task.id if by_task[task.id] == 1 else question.id
            yield question_item(task, question, name, waiting)
    yield from (screen_item(screen, waiting) for screen in facts.screens)
    for task in facts.ended:
        if task.join is None:  # a parent is not listed: its children are
            yield ended_item(task, waiting)
    yield from (unlanded_item(work, waiting) for work in facts.unlanded)
    yield from map(_node_item, facts.down)
    yield from map(_host_item, facts.silent)
    yield from (_untrusted_item(project, settings) for project, settings in facts.untrusted)
    yield from (_held_item(task, waiting) for task in facts.held_back)
    yield from (landing_item(task, landing, waiting) for task, landing in facts.held_landings)
    yield from (_finished_item(task, waiting) for task in facts.finished)


def question_item(
    task: Task, question: Message, name: str = "", waiting: Mapping[str, int] = NOBODY
) -> InboxItem:
    """`name`: the id to use with `fleet answer`; empty: the task's."""
    kind = Need.BUDGET if question.author == SUPERVISOR else Need.QUESTION
    typed = "1" if kind is Need.BUDGET else "TEXT"
    answer = Action("answer", f"fleet answer {name or task.id} {typed}", "message.answer")
    return _item(
        kind, task, question.id, question.text, (answer, _show(task)),
        since=question.at, options=question.details.options, waiting=waiting,
    )  # fmt: skip


def screen_item(screen: OnScreen, waiting: Mapping[str, int] = NOBODY) -> InboxItem:
    task, run = screen.task, screen.run
    branch = run.workspace.branch if run.workspace else ""
    actions: tuple[Action, ...] = (
        Action("attach", f"fleet attach {branch or task.id}"),
        _show(task),
    )
    if screen.kind is Need.PERMISSION:
        answers = [("approve", f"fleet approve {task.id}"), ("deny", f"fleet deny {task.id}")]
        if screen.always:
            answers.insert(1, ("approve always", f"fleet approve {task.id} --always"))
        permits = (Action(name, typed, "run.permit") for name, typed in answers)
        actions = (*permits, *actions)
    return _item(
        screen.kind, task, run.id, screen.words, actions, waiting=waiting, always=screen.always
    )


def ended_item(task: Task, waiting: Mapping[str, int] = NOBODY) -> InboxItem:
    """The item of a task that failed or waits for a review."""
    if task.state is TaskState.REVIEW:
        kind, first = Need.REVIEW, Action("close", f"fleet close {task.id}", "task.close")
        others = (_diff(task), Action("send", f"fleet send {task.id} TEXT", "message.send"))
    else:
        kind, first = Need.FAILED, Action("retry", f"fleet retry {task.id}", "task.retry")
        others = (_show(task), Action("cancel", f"fleet cancel {task.id}", "task.cancel"))
    fact = task.run_id or str(task.tally.ended_at)
    return _item(
        kind, task, fact, task.tally.why or task.title, (first, *others),
        since=task.tally.ended_at or None, waiting=waiting,
    )  # fmt: skip


def unlanded_item(work: Unlanded, waiting: Mapping[str, int] = NOBODY) -> InboxItem:
    task, workspace = work.task, work.run.workspace
    branch, root = (workspace.branch, workspace.root) if workspace else ("", "")
    land = Action("land", f"fleet land {task.id}", "worktree.merge")
    if work.conflicts:
        kind, words = (
            Need.CONFLICT,
            f"{branch} conflicts with {work.onto} in {_some(work.conflicts)}",
        )
        from shlex import quote  # noqa: PLC0415  # `fleet show` loads this module

        merge = Action("merge", f"git -C {quote(root)} merge {quote(work.onto)}")
        actions = (merge, _diff(task))
    else:
        kind, words, actions = Need.NOT_LANDED, branch, (land, _diff(task))
    return _item(
        kind, task, work.run.id, words, actions,
        since=task.tally.ended_at or None, waiting=waiting,
    )  # fmt: skip


def landing_item(task: Task, landing: Landing, waiting: Mapping[str, int] = NOBODY) -> InboxItem:
    actions = (
        Action("release", f"fleet land release {landing.id}", "land.release"),
        Action("drop", f"fleet land drop {landing.id}", "land.drop"),
        Action("give", f"fleet land give {landing.id} NAME", "land.give"),
        _diff(task),
    )
    times = f" It has failed to land {landing.returns} times." if landing.returns > 1 else ""
    why = landing.why or "It is held."
    words = f"{why if why[-1] in '.?!' else why + '.'}{times}" if times else why
    return _item(
        Need.LANDING, task, landing.id, words, actions,
        since=landing.at, waiting=waiting, given=landing.wish.given,
    )  # fmt: skip


def _finished_item(task: Task, waiting: Mapping[str, int]) -> InboxItem:
    fact = task.run_id or str(task.tally.ended_at)
    return _item(
        Need.FINISHED, task, fact, task.tally.why or "Done.", (_show(task),),
        since=task.tally.ended_at or None, waiting=waiting,
    )  # fmt: skip


def _node_item(down: Down) -> InboxItem:
    whole = down.address.startswith("http") and down.name != down.address  # not one model of it
    named = f"{down.name} ({down.address})" if whole else down.name
    words = f"{named}: {down.why}"
    actions: tuple[Action, ...] = (
        Action("look", "fleet nodes", "node.list"),
        Action("warm", "fleet warmup", "model.warm"),
        Action("check", "fleet doctor"),
    )
    if down.gateway:
        words, actions = "The gateway does not answer.", (Action("start", "fleet up"), *actions)
    return InboxItem(
        id=f"{Need.NODE}:{down.address}:down",
        kind=Need.NODE,
        severity=_severity(Need.NODE),
        title="" if down.gateway else down.name,
        words=words,
        actions=actions,
        behind=down.behind,
    )


def _host_item(silent: Silent) -> InboxItem:
    host, count = silent.host, silent.runs
    tasks = f": {_some(silent.tasks)}" if silent.tasks else ""
    runs = f"{count} {'run' if count == 1 else 'runs'}{tasks}"
    at = f"{moment(host.lease_until):%Y-%m-%d %H:%M:%S} UTC"
    when = "now" if silent.lost else f"from {at}"
    return InboxItem(
        id=f"{Need.HOST}:{host.id}:{host.lease_until}",
        kind=Need.HOST,
        severity=_severity(Need.HOST),
        words=f"{host.id} is silent, with {runs}. Other hosts may take over {when}.",
        actions=(
            Action("show", f"fleet host show {host.id}", "host.show"),
            Action("forget", f"fleet host forget {host.id}", "host.forget"),
        ),
        since=host.renewed_at,
    )


def _untrusted_item(project: str, settings: Iterable[str]) -> InboxItem:
    from shlex import quote  # noqa: PLC0415  # likewise

    names = sorted(settings)
    return InboxItem(
        id=f"{Need.UNTRUSTED}:{project}:{','.join(names)}",
        kind=Need.UNTRUSTED,
        severity=_severity(Need.UNTRUSTED),
        words=f"not in use until you trust them: {_some(names)}",
        actions=(Action("trust", f"cd {quote(project)} && fleet trust"),),
        project=project,
    )


def _held_item(task: Task, waiting: Mapping[str, int]) -> InboxItem:
    actions: tuple[Action, ...] = (
        Action("resume", f"fleet resume {task.id}", "task.resume"),
        Action("cancel", f"fleet cancel {task.id}", "task.cancel"),
    )
    if task.tally.stuck:
        mend = mend_of(task)
        edit = (Action("edit", mend),) if mend != actions[0].command else ()
        actions = (*edit, *actions, _show(task))
        fact, words = task.run_id, task.tally.why
    else:
        fact, words = task.caused_by, f"A {task.caused_by} asked for it: {task.title}"
    return _item(Need.HELD_BACK, task, fact, words, actions, since=task.created_at, waiting=waiting)


def _item(
    kind: Need,
    task: Task,
    fact: str,
    words: str,
    actions: tuple[Action, ...],
    *,
    waiting: Mapping[str, int],
    since: int | None = None,
    options: tuple[str, ...] = (),
    always: str = "",
    given: str = "",
) -> InboxItem:
    return InboxItem(
        id=f"{kind}:{task.id}:{fact}",
        kind=kind,
        severity=_severity(kind),
        words=words,
        actions=actions,
        task=task.id,
        run=task.run_id,
        title=task.title,
        project=task.project,
        options=options,
        since=since,
        behind=waiting.get(task.id, 0),
        always=always,
        given=given,
    )


def _severity(kind: Need) -> Severity:
    return SEVERITY.get(kind, Severity.LOW)


def _show(task: Task) -> Action:
    return Action("show", f"fleet show {task.id}", "task.show")


def _diff(task: Task) -> Action:
    return Action("diff", f"fleet diff {task.id}")


def _some(names: Iterable[str], most: int = 5) -> str:
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more
