"""What needs a person: the facts behind `fleet.domain.inbox`, each read by an index."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import GRANTS, Permission
from fleet.domain.choice import NEVER, model_slots, serving_place
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import FleetError, NotFound
from fleet.domain.event import Kind
from fleet.domain.fleet import url_of
from fleet.domain.hosts.state import UP, HostState, is_over, state_of
from fleet.domain.inbox import (
    SCREENS,
    Down,
    InboxFacts,
    InboxItem,
    Need,
    OnScreen,
    Silent,
    Unlanded,
    inbox,
)
from fleet.domain.landing.landing import LandingState
from fleet.domain.limits import Items, OneOf, Rows, TextLimit, Whole
from fleet.domain.run import has_work
from fleet.domain.schedule import GATEWAY
from fleet.domain.task import Directory, Mode
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import may_name
from fleet.operations.shared.choice import choose_for
from fleet.operations.shared.entries import keep, new_entry
from fleet.operations.shared.names import PAGE, team_in_view
from fleet.ports import LandingQuery, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from fleet.domain.landing.landing import Landing
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

Kinds = Annotated[tuple[Annotated[str, OneOf(tuple(Need), "kind of item")], ...], Items(50)]
ItemId = Annotated[str, TextLimit(6000, some=True, what="item")]
MAX_OF_A_KIND = PAGE  # items of each kind
SECOND = 1_000_000
DAY = 86400  # seconds
LONGEST_MARK = 30 * DAY  # in seconds
MOST_MARKS = 1000  # of one person
MOST_PLAIN = 60  # characters; longer ids of items are stored as hashes
BY_ITSELF = frozenset(Need) - {Need.FINISHED}
FEW = 50  # tasks that could start next, whose projects are searched for untrusted settings
MOST_PROJECTS = 10  # projects in which we ask git, or look for untrusted settings


@dataclass(frozen=True, slots=True)
class ListInbox(Request[tuple[InboxItem, ...]]):
    """At most 200 of each kind. Empty `kinds`: all but `finished`. `before`: the last of the page before.

    `snoozed`: also what the caller has put away with `inbox.seen` or `inbox.snooze`.

    Dialogs on screens and branches that are not landed are those of the machine that is asked;
    nodes and hosts are listed for a coordinator.
    """

    project: Directory = ""
    kinds: Kinds = ()
    before: str = ""
    limit: Rows = 100
    snoozed: bool = False


@dataclass(frozen=True, slots=True)
class MarkRow:
    """The item is hidden from the caller until then."""

    item: str
    until: Time


@dataclass(frozen=True, slots=True)
class SeeItems(Request[tuple[MarkRow, ...]]):
    """Do not list these items to me again, as long as each is the same fact."""

    items: Annotated[tuple[ItemId, ...], Items(PAGE)]


@dataclass(frozen=True, slots=True)
class SnoozeItem(Request[MarkRow]):
    """Do not list this item to me for so many seconds; 0: list it again now."""

    item: ItemId
    seconds: Annotated[int, Whole(0, LONGEST_MARK, "seconds")] = 3600


def see(context: Context, request: SeeItems) -> tuple[MarkRow, ...]:
    until = context.store.now() + LONGEST_MARK * SECOND
    _mark(context, dict.fromkeys(map(_mark_of, request.items), until))
    return tuple(MarkRow(item, until) for item in request.items)


def snooze(context: Context, request: SnoozeItem) -> MarkRow:
    until = context.store.now() + request.seconds * SECOND
    _mark(context, {_mark_of(request.item): until})
    return MarkRow(request.item, until)


def _mark(context: Context, marks: dict[str, int]) -> None:
    """Hide these items from the actor. One row has all marks of a person; expired ones are dropped."""
    store, actor = context.store, context.actor
    known = store.entry(EntryKind.MARKS, actor.team, actor.name)
    entry = known or new_entry(
        context, EntryKind.MARKS, team=actor.team, key=actor.name, owner=actor.name
    )
    earlier = {k: v for k, v in entry.body.get("items", {}).items() if k not in marks}
    going = [mark for mark in {**earlier, **marks}.items() if mark[1] > store.now()]
    newest = dict(going[-MOST_MARKS:])
    keep(context, replace(entry, body={"items": newest}), Kind.INBOX_MARKED)


def _mark_of(item: str) -> str:
    """The id of an item as it is stored: a hash if it is long, as each change writes all marks."""
    if len(item) <= MOST_PLAIN:
        return item
    import hashlib  # noqa: PLC0415  # few items are so long, and `fleet status` starts quicker

    return "#" + hashlib.sha256(item.encode("utf-8", "replace")).hexdigest()[:32]


def _put_away(context: Context) -> frozenset[str]:
    actor = context.actor
    entry = context.store.entry(EntryKind.MARKS, actor.team, actor.name)
    marks = entry.body.get("items", {}) if entry else {}
    now = context.store.now()
    return frozenset(item for item, until in marks.items() if until > now)


def list_inbox(context: Context, request: ListInbox) -> tuple[InboxItem, ...]:
    items = inbox(_ItemFacts(context, request).facts())
    away = frozenset[str]() if request.snoozed else _put_away(context)
    kinds = (
        item
        for item in items
        if _mark_of(item.id) not in away and (not request.kinds or item.kind in request.kinds)
    )
    return tuple(islice(_after(kinds, request.before), request.limit))


def _after(items: Iterable[InboxItem], last: str) -> Iterator[InboxItem]:
    if not last:
        return iter(items)
    rest = dropwhile(lambda item: item.id != last, items)
    if next(rest, None) is None:
        raise NotFound(
            f"'{last[:100]}' is not in the inbox any more.",
            fix="List the inbox from the beginning.",
        )
    return rest


class _ItemFacts:
    """Reads the facts for the kinds of items that were asked for, as far as the actor may see them."""

    def __init__(self, context: Context, request: ListInbox) -> None:
        self.context, self.store = context, context.store
        self.project, self.team = request.project, team_in_view(context)
        self.kinds = frozenset(map(Need, request.kinds or BY_ITSELF))
        self.most = MAX_OF_A_KIND if request.before else min(MAX_OF_A_KIND, request.limit)
        self.admin = Permission.ADMIN in GRANTS[context.actor.role]

    def facts(self) -> InboxFacts:
        facts = InboxFacts(
            self.context.store.tasks_by_id([]),
            ended=self._ended(),
            screens=self._if(SCREENS, self._screens),
            unlanded=self._if({Need.NOT_LANDED, Need.CONFLICT}, self._unlanded),
            down=self._if({Need.NODE}, self._down) if self.admin else (),
            silent=self._if({Need.HOST}, self._silent) if self.admin else (),
            untrusted=self._if({Need.UNTRUSTED}, self._untrusted),
            held_back=self._if({Need.HELD_BACK}, lambda: self._tasks(is_held=True)),
            held_landings=self._if({Need.LANDING}, self._held_landings),
            finished=self._if({Need.FINISHED}, self._finished),
        )
        facts = self._with_questions(facts)
        stuck = [*facts.tasks, *(task.id for task in (*facts.ended, *facts.held_back))]
        stuck += [screen.task.id for screen in facts.screens]
        return facts._replace(waiting=self.store.waiting(stuck))

    def _if(self, kinds: Iterable[Need], read: Callable[[], Any]) -> Any:
        return read() if self.kinds & set(kinds) else ()

    def _tasks(self, *states: str, **given: Any) -> list[Task]:
        query = TaskQuery(states, self.project, self.team, limit=self.most, **given)
        return self.store.tasks(query)

    def _with_questions(self, facts: InboxFacts) -> InboxFacts:
        if not self.kinds & {Need.QUESTION, Need.BUDGET}:
            return facts
        questions = self.store.questions(team=self.team, limit=self.most)
        tasks = self.store.tasks_by_id(sorted({question.task for question in questions}))
        tasks = {task.id: task for task in tasks.values() if self._is_in_view(task)}
        return facts._replace(questions=questions, tasks=tasks)

    def _ended(self) -> list[Task]:
        states = {Need.FAILED: "failed", Need.REVIEW: "review"}
        states_wanted = [state for kind, state in states.items() if kind in self.kinds]
        return [task for state in states_wanted for task in self._tasks(state)]

    def _is_in_view(self, task: Task) -> bool:
        return self.project in {"", task.project} and self.team in {"", task.team}

    def _screens(self) -> list[OnScreen]:
        runs = self.store.live_runs()
        tasks = self.store.tasks_by_id([run.task for run in runs])
        pairs = [(tasks[run.task], run) for run in runs if run.task in tasks]
        pairs = [
            (task, run)
            for task, run in pairs
            if task.spec.mode == Mode.TERMINAL and self._is_in_view(task)
        ]
        seen = self.context.agents().seen(pairs[:MAX_OF_A_KIND]) if pairs else {}
        return [
            OnScreen(task, run, Need(look.doing), look.words or task.title, look.always)
            for task, run in pairs
            if (look := seen.get(run.id)) is not None and look.doing in SCREENS
        ]

    def _unlanded(self) -> list[Unlanded]:
        """The newest done tasks whose branch has commits of their own that have not landed.

        Git says which branches are ahead. `_has_work` leaves out those without commits of their own, such
        as a reviewer's, which began with another task's work.
        """
        done = [t for t in self._tasks("done") if not _is_settled(t)]
        runs = self.store.runs_by_id([task.run_id for task in done if task.run_id])
        by_directory: dict[str, dict[str, tuple[Task, Run]]] = {}
        for task in done:
            run = runs.get(task.run_id)
            if run is not None and run.workspace is not None and _has_work(runs, task):
                directory = by_directory.setdefault(task.spec.cwd or task.project, {})
                directory.setdefault(run.workspace.branch, (task, run))
        return [
            work
            for directory, branches in islice(by_directory.items(), MOST_PROJECTS)
            for work in self._ahead(directory, branches)
        ]

    def _held_landings(self) -> list[tuple[Task, Landing]]:
        query = LandingQuery(team=self.team, open_only=True, limit=MAX_OF_A_KIND)
        landings = [x for x in self.store.landings(query) if x.state is LandingState.HELD]
        tasks = self.store.tasks_by_id([landing.task for landing in landings])
        pairs = ((tasks[landing.task], landing) for landing in landings if landing.task in tasks)
        return [(task, landing) for task, landing in pairs if self._is_in_view(task)]

    def _finished(self) -> list[Task]:
        """The tasks done in the last day, without those that are listed because they have not landed."""
        after = self.store.now() - DAY * SECOND
        done = [task for task in self._tasks("done") if task.tally.ended_at > after]
        runs = self.store.runs_by_id([task.run_id for task in done if task.run_id])
        return [task for task in done if task.tally.landed or not _has_work(runs, task)]

    def _ahead(self, directory: str, branches: dict[str, tuple[Task, Run]]) -> Iterator[Unlanded]:
        try:
            ahead = self.context.trees().ahead(directory, list(branches))
        except (FleetError, OSError):  # no repository, or one without a commit
            return
        for branch, onto, conflicts in ahead:
            yield Unlanded(*branches[branch], onto, conflicts)

    def _down(self) -> list[Down]:
        from fleet.operations.tasks.show import down_nodes  # noqa: PLC0415  # start-up time

        down = down_nodes(self.store.hosts().values(), self.store.now())
        if not down:
            return []
        behind: Counter[str] = Counter()
        names, gateways = self._declared(self.project or self.context.project)
        for task in self.store.candidates(now=self.store.now(), limit=MAX_OF_A_KIND):
            if self._is_in_view(task):
                behind.update(self._waits_for(task, down, names, gateways))
        nodes = [
            Down(names.get(at, at), at, why, behind[at])
            for at, why in down.items()
            if at not in gateways and not at.endswith(NEVER) and (at in names or not self.project)
        ]
        # A gateway that was never started is listed only when a task needs it.
        waited = {url for url in gateways if url in down or behind[url]}
        return [*nodes, *(Down(url, url, "", behind[url], gateway=True) for url in sorted(waited))]

    def _declared(self, project: str) -> tuple[dict[str, str], set[str]]:
        """By address, the names of the project's nodes and their models; and its gateway's address."""
        try:
            fleet = self.context.world(project).fleet
        except FleetError:
            return {}, set()
        names = {
            serving_place(serving): f"{serving.upstream} on {serving.node.name}"
            for model in fleet.models.values()
            for serving in model.servings
        }
        names |= {node.endpoint: node.name for node in fleet.nodes.values() if node.endpoint}
        return names, {url_of(fleet.gateway)} if fleet.nodes else set()

    def _waits_for(
        self, task: Task, down: dict[str, str], names: dict[str, str], gateways: set[str]
    ) -> set[str]:
        """The addresses that the task waits for, if nothing can serve its model.

        Adds the nodes and the gateway of the task's project to `names` and `gateways`.
        """
        try:
            world = self.context.world(task.project)
            servings = model_slots(choose_for(world, task), world.fleet, down)
        except FleetError:
            return set()
        nodes, own_gateway = self._declared(task.project)
        names.update(nodes)
        gateways |= own_gateway
        if not all(slot.down for slot in servings):
            return set()
        return {
            slot.name.removeprefix(GATEWAY)
            if slot.name.startswith(GATEWAY)
            else next((at for at in down if slot.name == at or slot.name.endswith(f"@{at}")), "")
            for slot in servings
        }

    def _silent(self) -> list[Silent]:
        """The silent hosts that have runs; none unless another host is awake, which could take over."""
        hosts, now = self.store.hosts(), self.store.now()
        states = {host.id: state_of(host, now=now) for host in hosts.values()}
        over = {name for name, host in hosts.items() if is_over(host, now=now)}
        silent = over | {name for name, state in states.items() if state is HostState.SILENT}
        if not silent or not UP.intersection(states.values()):
            return []
        runs: dict[str, list[Run]] = {}
        for run in self.store.live_runs():
            if run.host in silent:
                runs.setdefault(run.host, []).append(run)
        return [
            Silent(hosts[name], self._tasks_of(some), len(some), name in over)
            for name, some in runs.items()
        ]

    def _tasks_of(self, runs: list[Run]) -> tuple[str, ...]:
        tasks = self.store.tasks_by_id([run.task for run in runs])
        return tuple(name for name, task in tasks.items() if self._is_in_view(task))

    def _untrusted(self) -> list[tuple[str, frozenset[str]]]:
        """Untrusted settings of the caller's project and of the projects whose tasks could start now."""
        ready = self.store.candidates(now=self.store.now(), limit=FEW)
        projects = [task.project for task in ready if self._is_in_view(task)]
        own = self.project or self.context.project
        if own and may_name(self.context, own):
            projects = [own, *projects]
        some = islice(dict.fromkeys(filter(None, projects)), MOST_PROJECTS)
        known = {project: self._withheld(project) for project in some}
        return [(project, settings) for project, settings in known.items() if settings]

    def _withheld(self, project: str) -> frozenset[str]:
        try:
            return self.context.world(project).withheld
        except FleetError:  # `fleet validate` says what is wrong there
            return frozenset()


def _is_settled(task: Task) -> bool:
    """Whether the task's work needs no person: it has landed, is landing, or lost a race."""
    return bool(task.tally.landed or task.tally.landing or task.tally.beaten)


def _has_work(runs: Mapping[str, Run], task: Task) -> bool:
    run = runs.get(task.run_id)
    return run is not None and has_work(task.tally.checkpoint, run)


OPERATIONS = (
    Operation("inbox.list", ListInbox, Permission.READ, list_inbox, "List what needs you.",
              outside=True),
    Operation("inbox.seen", SeeItems, Permission.READ, see, "Mark items of the inbox as seen.",
              idempotent=False, reads=False),
    Operation("inbox.snooze", SnoozeItem, Permission.READ, snooze,
              "Hide an item of the inbox for a while.", idempotent=False, reads=False),
)  # fmt: skip
