"""`fleet best` and `fleet pick`: several agents do the same work, and the proven best is picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_agents, complete_tasks
from fleet.cli.terminal.connect import connect, unsupervised
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Cell, Column, Result, Table, Text
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.cli.terminal.view import Value
    from fleet.client import Client
    from fleet.operations.landing.race import ContenderRow, RaceRow, RaceRules

NOW_SECONDS = 24 * 3600.0
COLOURS = {"passed": "green", "failed": "red"}


def rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How the best is found."""
    for option in reversed(_RULES):
        function = option(function)
    return function


_RULES = (
    click.option(
        "--test", default="", metavar="COMMAND",
        help="What a solution must pass. Default: the project's gate. It may write JUnit XML to "
        "$FLEET_JUNIT_XML, or print TAP.",
    ),
    click.option(
        "--pick", "how", type=click.Choice(["auto", "ask"]), default="auto",
        help="auto: Fleet picks the best; ask: you do.",
    ),
    click.option("--land", is_flag=True, help="Land the one that is picked."),
    click.option("--onto", default="", metavar="BRANCH", help="The branch that the solutions are tested on."),
    click.option("--first", is_flag=True, help="The first that passes wins; stop the others."),
    click.option(
        "--judge", default="", metavar="AGENT", shell_complete=complete_agents,
        help="An agent of another vendor, which compares solutions that are equal in all else. Default: "
        "an agent that fleet.yaml declares; none: no judge.",
    ),
    click.option(
        "--touches", multiple=True, metavar="PATTERN",
        help="A file or folder that a solution may change; one that changes others cannot win. May be repeated.",
    ),
)  # fmt: skip


def _rules(given: dict[str, Any]) -> RaceRules:
    from fleet.operations.landing.race import RaceRules

    return RaceRules(
        test=given["test"],
        ask=given["how"] == "ask",
        land=given["land"],
        first=given["first"],
        judge=given["judge"],
        onto=given["onto"],
        touches=tuple(given["touches"]),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@command(config=True)
@click.argument("count", type=click.IntRange(2, 20))
@click.argument("prompt")
@click.option("--agents", default="", metavar="A,B", help="The agents or coders that take turns.")
@click.option("--models", default="", metavar="A,B", help="The models that take turns.")
@rule_options
@click.option(
    "--escalate", is_flag=True,
    help="Start two, and two more each time that none passes or those that pass disagree.",
)  # fmt: skip
@click.option("--base", default="", help="The commit to start from.")
@click.option(
    "--attempts", type=click.IntRange(1, 100), help="How many runs each gets before it fails."
)
@click.option(
    "--time-limit", type=click.IntRange(min=1), help="The maximum seconds that one run may take."
)
@click.option("--permissions", default="", help="What the agents may do: read, edit or full.")
def best(
    *, count: int, prompt: str, agents: str, models: str, config: Path | None, **given: Any
) -> Result:
    """Have COUNT agents do the same work, and pick the best solution.

    Each works on a branch of its own. Then every solution is tested: alone, and merged onto the
    branch as it is; those that pass are compared by the tests that others wrote, deleted and
    skipped tests, size, cost and time. `fleet pick BATCH` shows how it stands, and why.
    """
    from fleet.cli.tasks.add import where_of
    from fleet.domain.task import Limits, Spec
    from fleet.operations.landing.race import StartRace

    client = connect(config=config)
    where = where_of(client, None, in_place=False)
    limits = Limits(
        attempts=given["attempts"] or 0,
        time_limit=given["time_limit"] or 0,
        permissions=given["permissions"],
    )
    spec = Spec(cwd=str(where.cwd or ""), base=given["base"], limits=limits)
    if where.cwd is not None:
        client.this_machine("Checking a repository").check_start(spec, where.project)
    wanted = StartRace(
        prompt, count, _names(agents), _names(models), _rules(given), where.project, spec,
        escalate=given["escalate"],
    )  # fmt: skip
    row = client.call(wanted)
    tasks = ", ".join(c.task for c in row.contenders)
    text = (
        f"Added {row.batch}: {tasks} do the same work. See their progress: fleet pick {row.batch}"
    )
    return Result("race", row, Text(text), unsupervised(client))


@command(config=True)
@click.argument("batch", metavar="[BATCH]", default="", shell_complete=complete_tasks)
@click.argument("winner", metavar="[TASK]", default="", shell_complete=complete_tasks)
@rule_options
@click.option("--now", is_flag=True, help="Wait until it is decided.")
@click.option("--verdicts", is_flag=True, help="Show what each test printed.")
def pick(
    *, batch: str, winner: str, now: bool, verdicts: bool, config: Path | None, **given: Any
) -> Result:
    """Pick the best task of BATCH: by testing all of them (--test), or TASK by hand.

    BATCH is the task that `fleet best`, `fleet fanout` or `fleet multi` made. Without --test and
    TASK, this shows how it stands, and why; without BATCH, the newest batches.
    """
    from fleet.operations.landing.race import PickBest, RaceRules, ShowRace

    client = connect(config=config)
    rules = _rules(given)
    if not batch and (rules != RaceRules() or now or verdicts):
        raise BadInput("Name the batch that is to be compared.", fix="`fleet pick` lists batches.")
    if not batch:
        return _newest(client)
    if winner and given["test"]:
        raise BadInput(
            "--test and TASK cannot be used together: --test finds the best task, TASK names it.",
            fix="Give one of them.",
        )
    if winner or given["test"]:
        row = client.call(PickBest(batch, winner, rules))
    else:
        row = _known(client, batch, rules)
    if now:
        client.land(
            lambda: client.call(ShowRace(row.batch)).state != "running", patience=NOW_SECONDS
        )
        row = client.call(ShowRace(row.batch))
    if verdicts:
        return Result("race", row, Text(_verdicts(row)))
    notes = () if row.state != "running" else unsupervised(client)
    return Result(
        "race", row, _table(row), (_sentence(row), *notes), exit_status=_status(row, now=now)
    )


def _newest(client: Client) -> Result:
    from fleet.operations.landing.race import ListRaces

    rows = client.call(ListRaces())
    columns = ("batch", Column("title", flexible=True, least=12), "state", "winner")
    cells = [(row.batch, row.title, row.state, row.winner or None) for row in rows]
    empty = "No batch was compared yet. Start one: fleet best 3 PROMPT"
    return Result("races", rows, Table(columns, cells, empty=empty))


def _known(client: Client, batch: str, rules: RaceRules) -> RaceRow:
    """The race as it stands; one of a batch that was never compared begins with its gate."""
    from fleet.operations.landing.race import PickBest, RaceRules, ShowRace

    try:
        row = client.call(ShowRace(batch))
    except NotFound as error:
        if not error.fix.startswith("fleet pick"):
            raise
        return client.call(PickBest(batch, "", rules))
    return row if rules == RaceRules() else client.call(PickBest(row.batch, "", rules))


def _status(row: RaceRow, *, now: bool) -> int:
    return 1 if now and row.state in {"nobody", "asks"} else 0


def _sentence(row: RaceRow) -> str:
    landed = next((c.task for c in row.contenders if c.status.startswith("landed")), "")
    match row.state:
        case "picked":
            step = "" if row.land or landed else f" Land it: fleet land {row.winner}"
            return f"{row.winner} is the best. {row.why}{step}"
        case "asks" if landed:
            return f"{row.why} {landed} has landed."
        case "asks":
            return f"{row.why} Pick one: fleet pick {row.batch} TASK"
        case "nobody":
            return f"{row.why} What each printed: fleet pick {row.batch} --verdicts"
    return "It is not decided yet."


def _table(row: RaceRow) -> Table:
    columns: list[Column | str] = [
        Column("rank", right=True), "task", "status", "agent", "alone", "merged",
        Column("others' tests", spare=1), Column("lines", right=True, spare=2),
        Column("cost", right=True, spare=3), Column("took", right=True, spare=4),
        Column("why", flexible=True),
    ]  # fmt: skip
    return Table(columns, [_cells(c) for c in row.contenders])


def _cells(row: ContenderRow) -> list[Value]:
    from fleet.cli.terminal.human import duration, money

    def verdict(word: str) -> Cell:
        return Cell(word or "-", COLOURS.get(word, ""))  # type: ignore[arg-type]

    who = f"{row.agent} {row.model}".strip()
    return [
        row.rank or "-", row.task, row.status, who, verdict(row.own), verdict(row.main),
        row.cross or "-", row.size.lines, money(row.cost), duration(row.took), row.why,
    ]  # fmt: skip


def _verdicts(row: RaceRow) -> str:
    blocks = []
    for contender in row.contenders:
        head = f"{contender.task} ({contender.status}): {contender.why or 'not decided yet'}"
        lines = [head]
        for verdict in contender.verdicts:
            what = {"own": "alone", "main": "merged"}.get(verdict.of, f"the tests of {verdict.of}")
            word = "passed" if verdict.passed else "failed"
            lines.append(
                f"  {what}: {word} in {verdict.took / 1e6:.1f} s, tree {verdict.tree[:12]}"
            )
            if not verdict.passed:
                lines += [f"    {line}" for line in verdict.output.splitlines()]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
