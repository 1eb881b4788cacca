"""`fleet status`: one page about everything here, and what needs you."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import Feed, Result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.cli.terminal.view import Stack
    from fleet.client import Client
    from fleet.domain.nodes.inventory import Seen

NODES_WITHIN = 1.5  # seconds for all nodes together, while the rest is read
EVERY = 2.0  # seconds between the looks of `--watch`
MOST_NEEDS = 100  # of each kind, in one page
SCREENS = ("permission", "panel", "first-start")  # what a person has to answer or to close
DOWN = 3  # the exit status when the queue cannot be read


@command(config=True)
@click.option("-w", "--watch", is_flag=True, help="Keep updating the view.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=600),
    default=NODES_WITHIN,
    help="Seconds to wait for all nodes together.",
)
def status(*, watch: bool, timeout: float, config: Path | None) -> Result:
    """Show the supervisor, the server, the work, what needs you, the agents and the nodes.

    Each item that needs you comes with the command to type: questions, permission dialogs, failed
    tasks, finished work that is not merged. `fleet nodes` shows the nodes alone.
    """
    from fleet.cli.terminal.connect import connect

    client = connect(config=config)
    if watch and wants_json():
        return Result("status", _looks(client, timeout), Feed(lambda _: None))
    if watch:
        _watch(client, timeout)
    data, view, notes = page(client, timeout)
    return Result("status", data, view, notes=notes, exit_status=DOWN if data["error"] else 0)


def page(client: Client, timeout: float) -> tuple[dict[str, Any], Stack, list[str]]:
    """The facts for `--json`, the same for a person, and notes about the nodes."""
    from fleet.cli.status.views import status_page

    nodes = _Nodes(client, timeout)
    data = {"tasks": None, "not_merged": 0, "needs_you": [], "agents": [], **facts(client)}
    if data["error"] is None:
        data |= read_queue(client, data["supervisor"])
    known, view, notes = nodes.result()
    data = {**known, **data}
    return data, status_page(data, view, time.time_ns() // 1000), notes


class _Nodes:
    """Asked in a thread of their own while the rest of the page is read."""

    def __init__(self, client: Client, timeout: float) -> None:
        from threading import Thread

        self._fleet = client.loaded.fleet
        self._compute = client.compute()
        self._timeout = timeout
        self._answers: list[tuple[list[Seen], dict[str, Any] | None]] = []
        self._thread = Thread(target=self._ask, daemon=True)
        if self._fleet.nodes:
            self._thread.start()

    def _ask(self) -> None:
        self._answers.append(self._compute.look_around(within=self._timeout))

    def result(self) -> tuple[dict[str, Any], Stack, list[str]]:
        """The facts, the view of them, and what the settings say that the nodes do not bear out."""
        from fleet.cli.compute.views import advice, status_data, status_view
        from fleet.cli.terminal.view import Stack

        fleet = self._fleet
        if not fleet.nodes:
            return {"fleet": fleet.name, "nodes": [], "routes": [], "relay": None}, Stack([]), []
        self._thread.join()
        seen, relay = self._answers[0]
        notes = advice(fleet, seen, self._compute.unsaid)
        return status_data(fleet, seen, relay), status_view(fleet, seen, relay), notes


def facts(client: Client) -> dict[str, Any]:
    """The supervisor and the server; with FLEET_URL, the server alone."""
    from fleet.cli.server.serve import server_facts
    from fleet.cli.supervisor.status import supervisor_facts
    from fleet.client import RemoteClient
    from fleet.domain.errors import FleetError

    if not isinstance(client, RemoteClient):
        here = client.this_machine("The supervisor")
        return {
            "supervisor": supervisor_facts(here),
            "server": server_facts(here.home),
            "error": None,
        }
    server: dict[str, Any] = {"url": client.url, "running": False}
    try:
        server |= {"running": True, **client.health()}
    except FleetError as error:
        return {"supervisor": None, "server": server, "error": error.message}
    return {"supervisor": None, "server": server, "error": None}


def read_queue(client: Client, supervisor: dict[str, Any] | None) -> dict[str, Any]:
    from fleet.cli.supervisor.status import counts
    from fleet.domain.errors import FleetError
    from fleet.operations.shared.names import PAGE
    from fleet.operations.tasks.at_work import ListAgents

    try:
        agents = client.observed(client.call(ListAgents(limit=PAGE)))
        needs = needs_you(client, agents)
        tasks = (supervisor["tasks"] if supervisor else None) or counts(client)
    except FleetError as error:  # a store that cannot be opened is part of the page, too
        return {"error": error.message}
    unmerged = sum(need["what"] == "not merged" for need in needs)
    return {"tasks": tasks, "not_merged": unmerged, "needs_you": needs, "agents": agents}


def needs_you(client: Client, agents: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What waits for a person, most pressing first, each with the command that goes on with it."""
    from fleet.operations.messages.ask_answer_send import ListQuestions
    from fleet.operations.tasks.list import ListTasks

    questions = client.call(ListQuestions(MOST_NEEDS))
    needs = [_need(q.task, "asks", q.text, f"fleet answer {q.task} TEXT") for q in questions]
    for agent in agents:
        if agent["doing"] in SCREENS:
            name = agent["branch"] or agent["task"]
            what = agent["screen"] or agent["title"]
            needs.append(_need(agent["task"], agent["doing"], what, f"fleet attach {name}"))
    ended = client.call(ListTasks(statuses=("failed", "review"), limit=MOST_NEEDS))
    for row in ended:
        goes_on = "retry" if row.state == "failed" else "close"
        about = (row.run.last if row.run and row.state == "failed" else "") or row.title
        needs.append(_need(row.id, row.state, about, f"fleet {goes_on} {row.id}"))
    return needs + _not_merged(client)


def _not_merged(client: Client) -> list[dict[str, str]]:
    if client.is_remote:  # its repositories are not here
        return []
    workspaces = client.this_machine("Merging").workspaces
    return [
        _need(task, "not merged", branch, f"fleet merge {task}")
        for task, branch in workspaces.not_merged(MOST_NEEDS)
    ]


def _need(task: str, what: str, about: str, command: str) -> dict[str, str]:
    return {"task": task, "what": what, "about": about, "command": command}


def _watch(client: Client, timeout: float) -> NoReturn:
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            live.update(page(client, timeout)[1])
            time.sleep(EVERY)


def _looks(client: Client, timeout: float) -> Iterator[dict[str, Any]]:
    while True:
        yield page(client, timeout)[0]
        time.sleep(EVERY)
