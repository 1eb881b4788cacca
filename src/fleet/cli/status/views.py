"""How the page of `fleet status` looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.view import Cell, Column, Pairs, Stack, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.inbox import InboxItem
    from fleet.operations.compute.hosts import HostRow

MOST_OF_A_KIND = 5  # of each kind of what needs you; the last line counts the others
WORDS = {  # for the kind of an item
    "question": "asks",
    "first-start": "first start",
    "not-landed": "not landed",
}
TITLED = {
    "failed",
    "conflict",
    "landing",
    "review",
    "not-landed",
}  # what it says is not what the task is
STYLES: dict[str, Style] = {"high": "yellow", "medium": "red", "low": "dim"}
ORDER = (  # in which the work is counted; a task with children is counted by them
    *("running", "starting", "stopping", "ready", "waiting", "postponed", "assigned"),
    *("asking", "paused", "held", "review", "failed", "landing"),
)
LISTS = {  # where the others are
    "question": "fleet questions",
    **dict.fromkeys(("permission", "panel", "first-start"), "fleet list"),
    **{state: f"fleet tasks --status {state}" for state in ("failed", "held")},
    **dict.fromkeys(("not-landed", "conflict", "review"), "fleet review"),
    "budget": "fleet questions",
    "landing": "fleet land list",
    "node": "fleet nodes",
    "host": "fleet host list",
}
OF_EVERY_PROJECT = {"tasks": "--everywhere", "list": "--everywhere", "review": "--all"}


def status_page(
    data: Mapping[str, Any],
    nodes: Stack,
    now: int,
    *,
    everywhere: bool = False,
    readable: bool = True,
) -> Stack:
    """`everywhere`: it is about all projects, so each row names its own. `readable`: its settings."""
    from fleet.cli.agents.views import agent_table

    pairs = [*_supervisor(data["supervisor"], now), _server(data["server"])]
    pairs += [*_gateway(data.get("gateway"), now), _work(data)]
    if not nodes.parts:
        why = "none declared under nodes: in fleet.yaml"
        pairs.append(("nodes", Cell(why if readable else "unknown: see the mistake below", "dim")))
    agents = (
        agent_table(data["agents"], now, grouped=False, everywhere=everywhere)
        if data["agents"]
        else Table([], [])
    )
    needs = _needs(data["needs_you"], everywhere=everywhere)
    parts: list[tuple[str, View]] = [
        ("", Pairs(pairs)),
        ("Needs you:", needs),
        ("Agents at work:", agents),
        ("Hosts:", _hosts(data["hosts"], now)),
    ]
    return Stack([*parts, *nodes.parts])


def _hosts(rows: Sequence[HostRow], now: int) -> Table:
    """Where there are several: one alone is what the line of the supervisor is about."""
    if len(rows) < 2:
        return Table([], [])
    from fleet.cli.hosts.host import host_table

    return host_table(rows, now)


def _supervisor(facts: Mapping[str, Any] | None, now: int) -> list[tuple[str, Value]]:
    from fleet.cli.terminal.human import ago

    if facts is None:  # it is the server's to know
        return []
    if not facts["running"]:
        return [("supervisor", Cell("not running: fleet run", "yellow"))]
    where = ", inside the server" if facts["in_server"] else ""
    since = ago(facts["since"], now)
    line = Cell(f"running, started {since}, pid {facts['pid']}{where}", "green")
    if facts["outdated"]:
        words = "it runs older code than is installed: fleet run restart"
        return [("supervisor", line), ("", Cell(words, "yellow"))]
    return [("supervisor", line)]


def _server(facts: Mapping[str, Any]) -> tuple[str, Value]:
    if not facts["running"] and facts.get("url"):
        return "server", Cell(f"{facts['url']} does not answer", "red")
    if not facts["running"]:
        return "server", Cell("not running: fleet serve --background", "dim")
    pid = f", pid {facts['pid']}" if facts.get("pid") else ""
    return "server", Cell(f"running at {facts['url']}{pid}", "green")


def _gateway(rows: Sequence[Mapping[str, Any]] | None, now: int) -> list[tuple[str, Value]]:
    from fleet.cli.terminal.human import ago

    if not rows:  # no nodes, or the server's to know
        return []
    if not any(row["started"] for row in rows):
        return [("gateway", Cell("not running: fleet up", "dim"))]
    dead = [row["name"] for row in rows if not row["running"]]
    if dead:
        words = f"the {' and the '.join(dead)} died; a supervisor starts them again: fleet up"
        return [("gateway", Cell(words, "red"))]
    again = [
        f"; the {row['name']} was restarted {row['restarts']} x, last {ago(row['since'], now)}"
        for row in rows
        if row["restarts"]
    ]
    words = f"running on port {rows[0]['port']}{''.join(again)}"
    return [("gateway", Cell(words, "yellow" if again else "green"))]


def _work(data: Mapping[str, Any]) -> tuple[str, Value]:
    if data["error"] is not None:
        return "work", Cell(f"cannot be read: {data['error']}", "red")
    known = [state for state in ORDER if data["tasks"].get(state)]
    parts = [f"{data['tasks'][state]} {state}" for state in known]
    if data["not_landed"]:
        parts.append(f"{data['not_landed']} done and not landed")
    if not parts:
        return "work", Cell('nothing open: fleet add "TITLE" queues a task', "dim")
    return "work", Cell(", ".join(parts), "red" if "failed" in data["tasks"] else "")


def _needs(items: Sequence[InboxItem], *, everywhere: bool) -> Table:
    from fleet.cli.tasks.views import PROJECT, project_names

    columns: list[Column | str] = ["task", "what", Column("about", flexible=True, least=16), "next"]
    if not everywhere:
        return Table(columns, [cells for _, cells in _rows(items, everywhere=False)])
    names = project_names(item.project for item in items)
    rows = [
        [cells[0], names.get(project), *cells[1:]]
        for project, cells in _rows(items, everywhere=True)
    ]
    return Table([columns[0], PROJECT, *columns[1:]], rows)


def _rows(items: Sequence[InboxItem], *, everywhere: bool) -> Iterator[tuple[str, list[Value]]]:
    """Each with its project."""
    for kind in dict.fromkeys(item.kind for item in items):
        same = [item for item in items if item.kind == kind]
        what = WORDS.get(kind, kind)
        for item in same[:MOST_OF_A_KIND]:
            state = Cell(what, STYLES[item.severity])
            yield (
                item.project,
                [item.task or None, state, about_item(item), item.actions[0].command],
            )
        if len(same) > MOST_OF_A_KIND:
            more = f"and {len(same) - MOST_OF_A_KIND} more"
            where = LISTS.get(kind, "fleet status --json")
            option = OF_EVERY_PROJECT.get(where.split()[1], "") if everywhere else ""
            yield "", [None, Cell(what, "dim"), more, f"{where} {option}".strip()]


def about_item(item: InboxItem) -> str:
    """Who has it, what it says, the answers that can be chosen, and how many tasks wait for it."""
    options = " ".join(f"{n}) {option}" for n, option in enumerate(item.options, 1))
    tasks = "task" if item.behind == 1 else "tasks"
    behind = f"({item.behind} {tasks} behind it)" if item.behind else ""
    title = f"{item.title}: " if item.kind in TITLED and item.title != item.words else ""
    given = f"with {item.given}: " if item.given else ""
    return " ".join(f"{behind} {given}{title}{item.words} {options}".split())
