"""The best of N: have several agents do the same work, and pick the solution that is proven best.

The supervisor tests the contenders and picks; see `fleet.supervisor.landing.races`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission, allow
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Mismatch, NotFound, Refused, Unavailable
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import LandingWish, check_ready, new_landing, new_train
from fleet.domain.landing.race import FIRST_WAVE, Race, RaceJudging, RaceState, vendor
from fleet.domain.limits import Items, Name, Rows, TextLimit, Whole
from fleet.domain.record_json import changed, reader
from fleet.domain.run import Wanted
from fleet.domain.task import (
    Directory,
    Join,
    Mode,
    Option,
    Spec,
    Task,
    TaskState,
    cancel,
    join,
)
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.landing import is_undone
from fleet.operations.shared.causes import decide
from fleet.operations.shared.choice import choose_for
from fleet.operations.shared.entries import new_entry
from fleet.operations.shared.names import team_in_view, the_task
from fleet.operations.tasks.change import MOST_TITLE, AddTask, draft_task
from fleet.operations.tasks.commit import children, parent_changes
from fleet.operations.tasks.rows import rows
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.landing.landing import GateResult
    from fleet.domain.landing.race import ContenderResult
    from fleet.domain.run import Run
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Store
    from fleet.ports.world import Landed

MAX_CONTENDERS = 20
NO_JUDGE = "none"

SomePrompt = Annotated[
    str, TextLimit(1_000_000, some=True, what="prompt", example='fleet best 3 "Fix the login"')
]
Contenders = Annotated[int, Whole(2, MAX_CONTENDERS, example="Two to twenty.")]
Command = Annotated[str, TextLimit(10_000, what="test")]
Options = Annotated[tuple[Option, ...], Items(MAX_CONTENDERS)]
Touches = Annotated[
    tuple[Annotated[str, TextLimit(1000, some=True, what="pattern")], ...], Items(100)
]
Branch = Annotated[str, TextLimit(250, what="branch")]
BatchName = Annotated[str, TextLimit(250, some=True, what="batch", example="fleet tasks --tree")]


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """What a test said of one tree of a contender.

    `of`: own (the contender's own work), main (merged onto the branch), or the task whose tests
    were run on its work.
    """

    of: str
    passed: bool
    tree: str
    command: str
    took: int
    at: Time
    output: str


@dataclass(frozen=True, slots=True)
class SizeRow:
    """`lines`: added and removed. `tests`: test files that were there before, and changed."""

    lines: int
    files: int
    tests: int


@dataclass(frozen=True, slots=True)
class ContenderRow:
    """`own`, `main`: of the test on its own work, and on that merged onto the branch as it is.

    `rank`: 1: it won, or ties; 0: not decided yet. `why`: the rule that decided. `cross`: how many
    of the tests that others brought pass on it, such as 2/3. `cost`: millionths of a dollar.
    `took`: microseconds. `verdicts`: what each test printed.
    """

    task: str
    status: str
    agent: str
    model: str
    branch: str
    rank: int
    why: str
    own: str
    main: str
    cross: str
    size: SizeRow
    cost: int
    took: int
    verdicts: tuple[VerdictRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RaceRow:
    """`state`: running, picked, asks (a person decides), or nobody (none of them can win).

    `test`: the command; empty: the project's gate. `by`: who picked the winner by hand.
    `judges`: the tasks in which a judge compares equals.
    """

    batch: str
    title: str
    state: str
    winner: str
    why: str
    by: str
    test: str
    land: bool
    contenders: tuple[ContenderRow, ...]
    judges: tuple[str, ...]
    at: Time
    ended_at: Time | None


@dataclass(frozen=True, slots=True)
class RaceRules:
    """`test`: a command; empty: the project's gate. `ask`: a person confirms the winner.

    `first`: the first that passes wins, and the others are stopped. `land`: the winner is queued to
    land. `judge`: an agent of another vendor, that compares those that are equal in all that was
    measured; empty: one that the project declares, if there is one; `none`: no judge. `touches`: patterns of files; who changes others cannot win.
    """

    test: Command = ""
    ask: bool = False
    land: bool = False
    first: bool = False
    judge: Option = ""
    onto: Branch = ""
    touches: Touches = ()


@dataclass(frozen=True, slots=True)
class StartRace(Request[RaceRow]):
    """`count` tasks with the same prompt. `agents` and `models` take turns.

    `spec`: as for `task.add`. `escalate`: two start at once, and two more each time that none passes,
    or that those that pass fail each other's tests.
    """

    prompt: SomePrompt
    count: Contenders
    agents: Options = ()
    models: Options = ()
    rules: RaceRules = RaceRules()  # frozen
    project: Directory = ""
    spec: Spec = Spec()  # frozen
    team: Name = ""
    escalate: bool = False


@dataclass(frozen=True, slots=True)
class PickBest(Request[RaceRow]):
    """Test the tasks of a batch that exists, and pick the best; or pick `winner` by hand."""

    batch: BatchName
    winner: Annotated[str, TextLimit(250, what="task")] = ""
    rules: RaceRules = RaceRules()  # frozen


@dataclass(frozen=True, slots=True)
class ShowRace(Request[RaceRow]):
    """`batch`: its id, or that of a contender."""

    batch: BatchName


@dataclass(frozen=True, slots=True)
class ListRaces(Request[tuple[RaceRow, ...]]):
    """The newest first, without what the tests printed, which `race.show` gives."""

    limit: Rows = 10


def start(context: Context, request: StartRace) -> RaceRow:
    rules = request.rules
    project = request.project or context.project
    _check_rules(context, project, rules)
    entrants = [_entrant(request, n) for n in range(request.count)]
    rules = _with_judge(context, project, rules, entrants)
    title = " ".join(request.prompt.split())
    drafts = [_draft(context, request, spec, title) for spec in entrants]
    _check_onto(context, rules, drafts[0])
    above = AddTask(
        f"Best of {request.count}: {title}"[:MOST_TITLE], "", project,
        Spec(cwd=request.spec.cwd), join=Join.ANY, team=request.team,
    )  # fmt: skip
    batch = replace(draft_task(context, above), id=context.store.new_id("t"))
    tasks = [replace(d, id=context.store.new_id("t"), parent=batch.id) for d in drafts]
    if request.escalate:
        tasks[FIRST_WAVE:] = [replace(task, paused=True) for task in tasks[FIRST_WAVE:]]
    reserve = tuple(task.id for task in tasks if task.paused)
    race = Race(batch.id, context.actor.name, _rules(rules), reserve=reserve)
    entry = _new_entry(context, batch, race)
    events = [context.event(Kind.TASK_ADDED, t.id, title=t.title) for t in (batch, *tasks)]
    events.append(context.event(Kind.RACE_BEGUN, batch.id))
    context.commit([Put(batch), *map(Put, tasks), Put(entry)], *events)
    return show(context, ShowRace(batch.id))


def waits(race: Race, task: Task) -> bool:
    """Whether it has not started, and does so only when those before it do not decide."""
    return task.id in race.reserve and task.paused and task.state is TaskState.OPEN


def _rules(rules: RaceRules) -> RaceJudging:
    return RaceJudging(
        rules.test, rules.ask, rules.land, rules.first, rules.judge, rules.onto, rules.touches
    )


def _check_rules(context: Context, project: str, rules: RaceRules) -> None:
    """Raise unless there is a test, and the actor may have it run and its winner landed."""
    decide(context, project, Spec(gate=rules.test), run=True)
    if rules.land:
        allow(context.actor, Permission.MERGE)
    settings = context.world(project).settings
    if not (rules.test or settings.land.gate or settings.run.gate):
        raise Mismatch(
            "No command to test the solutions is set.",
            fix="Give --test COMMAND, or set run.gate.",
        )


def _check_onto(context: Context, rules: RaceRules, task: Task) -> None:
    """Raise where there is no such branch; a remote's is asked for when the winner lands."""
    if rules.onto and not context.world(task.project).settings.land.push:
        with suppress(Unavailable):  # the repository is on another machine
            repository, _ = context.trees().origin(task)
            context.trees().check_branch(repository, rules.onto)


def _entrant(request: StartRace, number: int) -> Spec:
    spec = replace(request.spec, mode=Mode.QUEUED, review=False, branch="")
    if request.agents:
        spec = replace(spec, agent=request.agents[number % len(request.agents)])
    if request.models:
        spec = replace(spec, model=request.models[number % len(request.models)])
    return spec


def _draft(context: Context, request: StartRace, spec: Spec, title: str) -> Task:
    wanted = AddTask(title[:MOST_TITLE], request.prompt, request.project, spec, team=request.team)
    return draft_task(context, wanted)


def _with_judge(
    context: Context, project: str, rules: RaceRules, entrants: Sequence[Spec]
) -> RaceRules:
    """With a judge of another vendor than every contender: nobody judges its own.

    Without a name it is the first agent that the project declares and that may be it, or nobody.
    Raise unless the actor may cause a run of the one that is named.
    """
    if rules.judge == NO_JUDGE:
        return replace(rules, judge="")
    if rules.judge:
        decide(context, project, Spec(agent=rules.judge))
    world = context.world(project)

    def maker(spec: Spec) -> str:
        choice = choose_for(world, Task("", 0, TaskState.OPEN, "", "", project, "", 0, spec=spec))
        return vendor(choice.coder, choice.model)

    taken = {maker(spec) for spec in entrants}
    if not rules.judge:
        known = (name for name, agent in world.fleet.agents.items() if agent.coder != "scripted")
        others = (name for name in known if maker(Spec(agent=name)) not in taken)
        return replace(rules, judge=next(others, ""))
    judge = maker(Spec(agent=rules.judge))
    if judge in taken:
        raise Mismatch(
            f"The judge {rules.judge} and a contender are both of {judge}.",
            fix=f"Name a judge of another vendor, or `{NO_JUDGE}`: then a tie is declared.",
            code="same_vendor",
        )
    return rules


def _new_entry(context: Context, batch: Task, race: Race) -> Entry:
    actor = context.actor.name
    entry = new_entry(context, EntryKind.RACE, team=batch.team, key=batch.id, owner=actor)
    return replace(entry, body=changed(race))


def read_race(entry: Entry) -> Race:
    race: Race = reader(Race, strict=False)(entry.body)
    return race


def with_race(entry: Entry, race: Race) -> Entry:
    """The entry counts while its race is being decided."""
    until = 0 if race.state is RaceState.RUNNING else max(1, race.ended_at)
    return replace(entry, body=changed(race), until=until)


def pick(context: Context, request: PickBest) -> RaceRow:
    batch = the_task(context, request.batch, Permission.ASSIGN)
    tasks = children(context.store, batch)
    if not tasks:
        raise Mismatch(
            f"{batch.id} is not a batch of tasks.", fix="`fleet tasks --tree` shows which are."
        )
    entry = context.store.entry(EntryKind.RACE, batch.team, batch.id)
    _check_onto(context, request.rules, tasks[0])
    if request.winner:
        return _by_hand(context, request, batch, tasks, entry)
    if len(tasks) > MAX_CONTENDERS:
        raise Refused(
            f"{batch.id} has {len(tasks)} tasks: at most {MAX_CONTENDERS} can be compared."
        )
    _check_rules(context, batch.project, request.rules)
    entrants = [task.spec for task in tasks]
    rules = _rules(_with_judge(context, batch.project, request.rules, entrants))
    race = Race(batch.id, context.actor.name, rules, tips=_tips(context, tasks))
    entry = with_race(entry, race) if entry else _new_entry(context, batch, race)
    context.commit([Put(entry)], context.event(Kind.RACE_BEGUN, batch.id))
    return show(context, ShowRace(batch.id))


def _tips(context: Context, tasks: Sequence[Task]) -> dict[str, str]:
    """What agents in terminals have done by now: they do not end by themselves."""
    tips = {}
    for task in tasks:
        if task.state is TaskState.RUNNING and task.spec.mode == Mode.TERMINAL:
            try:
                tips[task.id] = context.trees().work(task)[0]
            except Unavailable:  # on another machine: what it committed last counts
                point = task.tally.checkpoint
                tips[task.id] = point.commit if point else ""
    return tips


def _by_hand(
    context: Context, request: PickBest, batch: Task, tasks: Sequence[Task], entry: Entry | None
) -> RaceRow:
    winner = the_task(context, request.winner, Permission.ASSIGN)
    if winner.id not in {task.id for task in tasks}:
        raise Mismatch(
            f"{winner.id} is not a task of {batch.id}.",
            fix="Choose one of " + ", ".join(task.id for task in tasks[:MAX_CONTENDERS]) + ".",
        )
    race = read_race(entry) if entry else Race(batch.id, context.actor.name, RaceJudging())
    if request.rules.land:
        allow(context.actor, Permission.MERGE)
    land = request.rules.land or race.rules.land
    _check_none_landed(context.store, batch, winner, tasks)
    if land:
        check_ready(winner)
    entry = entry or _new_entry(context, batch, race)
    rules = replace(race.rules, land=land, onto=request.rules.onto or race.rules.onto)
    why = f"{context.actor.name} picked it."
    race = replace(race, winner=winner.id, why=why, by=context.actor.name, rules=rules)
    home = home_of(context.world(batch.project).settings.land)
    changes, events = picked(context.store, entry, race, home, actor=context.actor.name)
    context.commit(changes, *events)
    return show(context, ShowRace(batch.id))


def _check_none_landed(store: Store, batch: Task, winner: Task, tasks: Sequence[Task]) -> None:
    """Raise when another solution of the same work is on its branch, or on its way there."""
    for task in tasks:
        if task.id == winner.id or not (task.tally.landed or task.tally.landing):
            continue
        if task.tally.landed and is_undone(store, task.id):
            continue
        has_landed = bool(task.tally.landed)
        how = f"has landed ({task.tally.landed[:12]})" if has_landed else "waits to land"
        step = "undo" if has_landed else "drop"
        raise Refused(
            f"{task.id}, another solution of {batch.id}, {how}.",
            fix=f"First: fleet land {step} {task.id}",
            code="landed",
        )


class LandingBranch(NamedTuple):
    """Where the settings want work to land. `remote`: whose branch; empty: the one here."""

    onto: str
    remote: str


def home_of(settings: Landed) -> LandingBranch:
    return LandingBranch(settings.onto, settings.remote if settings.push else "")


def picked(
    store: Store, entry: Entry, race: Race, home: LandingBranch, *, actor: str
) -> tuple[list[Change], list[Event]]:
    """The commit that ends a race with a winner: the others are beaten or cancelled."""
    now, batch = store.now(), store.task(race.batch)
    race = replace(race, state=RaceState.PICKED, ended_at=now)
    changes: list[Change] = [Put(with_race(entry, race))]
    events = [
        Event(Kind.RACE_PICKED, batch.id, actor, now, "", {"winner": race.winner, "why": race.why})
    ]
    after: list[Task] = []
    for task in children(store, batch):
        if task.id == race.winner:
            new, more, news = _winner(store, task, race, home, actor=actor)
        else:
            new, more, news = _beaten(store, task, race.winner, now, actor)
        changes += [*more, *([Put(new)] if new != task else [])]
        events += news
        after.append(new)
    above = join(replace(batch, join=Join.ANY), after, now=now)
    changes += [Put(above), *parent_changes(store, above, now=now)]
    return changes, events


def _beaten(
    store: Store, task: Task, winner: str, now: int, actor: str
) -> tuple[Task, list[Change], list[Event]]:
    why = f"{winner} was picked."
    if task.state is TaskState.RUNNING:
        run = store.run(task.run_id)
        if run.wanted is Wanted.CANCEL:
            return task, [], []
        event = Event(Kind.RUN_STOP_WANTED, task.id, actor, now, run.id)
        return task, [Put(replace(run, wanted=Wanted.CANCEL))], [event]
    if task.state in {TaskState.OPEN, TaskState.REVIEW, TaskState.FAILED}:
        event = Event(Kind.TASK_CANCELLED, task.id, actor, now, "", {"why": why})
        return cancel(task, why, now=now), [], [event]
    return replace(task, tally=replace(task.tally, beaten=winner)), [], []


def _winner(
    store: Store, task: Task, race: Race, home: LandingBranch, *, actor: str
) -> tuple[Task, list[Change], list[Event]]:
    """It lands under the test that it won by."""
    task = replace(task, tally=replace(task.tally, beaten=""))
    if race.rules.test and not task.spec.gate:
        task = replace(task, spec=replace(task.spec, gate=race.rules.test))
    point, run = task.tally.checkpoint, _last_run(store, task)
    space = run.workspace if run else None
    ready = task.state in {TaskState.DONE, TaskState.REVIEW} and not task.tally.landing
    if not (race.rules.land and ready and space and point and point.commit):
        return task, [], []
    onto, now = race.rules.onto or home.onto or space.onto, store.now()
    if not onto or not space.repository or task.tally.landed:
        return task, [], []
    wish = LandingWish(race.author, remote=home.remote)
    landing = new_landing(store.new_id("l"), task, space.repository, onto, wish, at=now)
    more: list[Change] = [Put(landing)]
    if landing.train not in store.trains():
        more.append(Put(new_train(landing)))
    about = {"landing": landing.id, "onto": onto, "force": ""}
    event = Event(Kind.LANDING_QUEUED, task.id, actor, now, "", about)
    return replace(task, tally=replace(task.tally, landing=landing.id)), more, [event]


def _last_run(store: Store, task: Task) -> Run | None:
    return store.runs_by_id([task.run_id]).get(task.run_id) if task.run_id else None


def is_contender(store: Store, task: Task) -> bool:
    """Whether a race decides about its work: nothing else may land it."""
    entry = store.entry(EntryKind.RACE, task.team, task.parent) if task.parent else None
    return entry is not None and read_race(entry).state is not RaceState.PICKED


def show(context: Context, request: ShowRace) -> RaceRow:
    task = the_task(context, request.batch, Permission.READ)
    entry = context.store.entry(EntryKind.RACE, task.team, task.id)
    if entry is None and task.parent:
        entry = context.store.entry(EntryKind.RACE, task.team, task.parent)
    if entry is None:
        raise NotFound(
            f"The tasks of {task.id} have not been compared.",
            fix=f"fleet pick {task.id} --test COMMAND",
        )
    return _row(context, entry)


def list_races(context: Context, request: ListRaces) -> tuple[RaceRow, ...]:
    query = EntryQuery(EntryKind.RACE, team_in_view(context), limit=request.limit)
    races = [_row(context, entry) for entry in context.store.entries(query)]
    return tuple(
        replace(race, contenders=tuple(replace(c, verdicts=()) for c in race.contenders))
        for race in races
    )


def _row(context: Context, entry: Entry) -> RaceRow:
    race = read_race(entry)
    batch = context.store.task(race.batch)
    return RaceRow(
        batch=batch.id,
        title=batch.title,
        state=race.state,
        winner=race.winner,
        why=race.why,
        by=race.by,
        test=race.rules.test,
        land=race.rules.land,
        contenders=_contenders(context, batch, race),
        judges=race.judges,
        at=entry.at,
        ended_at=race.ended_at or None,
    )


def _contenders(context: Context, batch: Task, race: Race) -> tuple[ContenderRow, ...]:
    """In the order of their ranks; those of which nothing is known yet come last."""
    store = context.store
    tasks = {task.id: task for task in children(store, batch)}
    listed = {row.id: row for row in rows(context, list(tasks.values()))}
    known = {result.task: result for result in race.results}
    order = [*(i for i in known if i in tasks), *(i for i in tasks if i not in known)]
    names = [name for result in race.results for _, name in _results(result)]
    proofs = store.gate_results(names)
    runs = store.runs_by_id([task.run_id for task in tasks.values() if task.run_id])
    made = []
    for task_id in order:
        task, row, result = tasks[task_id], listed[task_id], known.get(task_id)
        run = runs.get(task.run_id)
        made.append(
            ContenderRow(
                task=task_id,
                status=row.status,
                agent=row.agent,
                model=row.model,
                branch=run.workspace.branch if run and run.workspace else "",
                rank=result.rank if result else 0,
                why=result.why if result else _reserve_words(race, task),
                own=result.own if result else "",
                main=result.main if result else "",
                cross=result.cross if result else "",
                size=_size(result),
                cost=round(task.tally.spent.usd * 1_000_000),
                took=task.tally.worked,
                verdicts=_verdicts(result, proofs) if result else (),
            )
        )
    return tuple(made)


def _reserve_words(race: Race, task: Task) -> str:
    if waits(race, task):
        return "It starts only if the solutions before it do not decide the race."
    return "It was not needed." if task.id in race.reserve and not task.tally.runs else ""


def _size(result: ContenderResult | None) -> SizeRow:
    if result is None:
        return SizeRow(0, 0, 0)
    return SizeRow(result.lines, result.files, result.tests_changed)


def _results(result: ContenderResult) -> list[tuple[str, str]]:
    """What was tested, and the id of its gate result."""
    both = [("own", result.own_result), ("main", result.main_result)]
    pairs = (each.partition(" ") for each in result.cross_results)
    return [*((of, name) for of, name in both if name), *((of, name) for of, _, name in pairs)]


def _verdicts(result: ContenderResult, proofs: dict[str, GateResult]) -> tuple[VerdictRow, ...]:
    return tuple(
        VerdictRow(
            of=of,
            passed=proof.passed > 0,
            tree=proof.id.partition(" ")[0],
            command=proof.command,
            took=round(proof.seconds * 1_000_000),
            at=proof.at,
            output=proof.output,
        )
        for of, name in _results(result)
        if (proof := proofs.get(name))
    )


OPERATIONS = (
    Operation(
        "race.start", StartRace, Permission.ADD, start,
        "Have several agents do the same work, and pick the best.", outside=True,
        idempotent=False,
    ),
    Operation(
        "race.pick", PickBest, Permission.ASSIGN, pick,
        "Test the tasks of a batch and pick the best, or pick one by hand.", outside=True,
        idempotent=False,
    ),
    Operation("race.show", ShowRace, Permission.READ, show, "Show who is the best, and why."),
    Operation("race.list", ListRaces, Permission.READ, list_races, "List the races, newest first."),
)  # fmt: skip
