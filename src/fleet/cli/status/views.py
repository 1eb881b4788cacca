"""How the page of `fleet status` looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.view import Cell, Column, Pairs, Stack, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.cli.terminal.view import Style, Value, View

MOST_OF_A_KIND = 5  # of each kind of what needs you; the last line counts the others
STYLES: dict[str, Style] = {"failed": "red", "not merged": "dim"}
LISTS = {  # where the others are
    "asks": "fleet questions",
    **dict.fromkeys(("permission", "panel", "first-start"), "fleet list"),
    "failed": "fleet tasks --status failed",
    "review": "fleet tasks --status review",
    "not merged": "fleet status --json",
}


def status_page(data: Mapping[str, Any], nodes: Stack, now: int) -> Stack:
    from fleet.cli.agents.views import agent_table

    pairs = [*_supervisor(data["supervisor"], now), _server(data["server"]), _work(data)]
    if not nodes.parts:
        words = "none declared: `fleet init` writes a fleet.yaml with one"
        pairs.append(("nodes", Cell(words, "dim")))
    agents = agent_table(data["agents"], now, grouped=False) if data["agents"] else Table([], [])
    needs = Table(
        ["task", "what", Column("about", flexible=True, least=16), "next"],
        _needs(data["needs_you"]),
    )
    parts: list[tuple[str, View]] = [
        ("", Pairs(pairs)),
        ("Needs you:", needs),
        ("Agents at work:", agents),
    ]
    return Stack([*parts, *nodes.parts])


def _supervisor(facts: Mapping[str, Any] | None, now: int) -> list[tuple[str, Value]]:
    from fleet.cli.terminal.human import ago, moment

    if facts is None:  # it is the server's to know
        return []
    if not facts["running"]:
        return [("supervisor", Cell("not running: fleet run", "yellow"))]
    where = ", inside the server" if facts["in_server"] else ""
    since = f"{moment(facts['since'])} ({ago(facts['since'], now)})"
    line = Cell(f"running since {since}, pid {facts['pid']}{where}", "green")
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


def _work(data: Mapping[str, Any]) -> tuple[str, Value]:
    if data["error"] is not None:
        return "work", Cell(f"cannot be read: {data['error']}", "red")
    parts = [f"{count} {state}" for state, count in data["tasks"].items()]
    if data["not_merged"]:
        parts.append(f"{data['not_merged']} done and not merged")
    if not parts:
        return "work", Cell('no tasks: fleet add "TITLE" queues one', "dim")
    return "work", Cell(", ".join(parts), "red" if "failed" in data["tasks"] else "")


def _needs(needs: Sequence[Mapping[str, str]]) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for what in dict.fromkeys(need["what"] for need in needs):
        same = [need for need in needs if need["what"] == what]
        for need in same[:MOST_OF_A_KIND]:
            about = " ".join(need["about"].split())
            state = Cell(what, STYLES.get(what, "yellow"))
            rows.append([need["task"], state, about, need["command"]])
        if len(same) > MOST_OF_A_KIND:
            rows.append(
                [None, Cell(what, "dim"), f"and {len(same) - MOST_OF_A_KIND} more", LISTS[what]]
            )
    return rows
