"""`fleet status`: one page about everything here, and what needs you."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import ItemStream, Result, Stack
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadConfig, FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.client import Client, LocalClient
    from fleet.domain.inbox import InboxItem
    from fleet.domain.nodes.inventory import SeenNode

NODES_WITHIN = 1.5  # seconds for all nodes together, while the rest is read
WATCH_SECONDS = 2.0  # seconds between the looks of `--watch`
MOST_NEEDS = 200  # items in one page
UNLANDED = ("not-landed", "conflict")
DOWN = 3  # the exit status when the queue cannot be read


@command(config=True)
@click.option("-w", "--watch", is_flag=True, help="Keep updating the view.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=600),
    default=NODES_WITHIN,
    help="Seconds to wait for all nodes together.",
)
@click.option("--everywhere", is_flag=True, help="Show the work of every project.")
def status(*, watch: bool, timeout: float, everywhere: bool, config: Path | None) -> Result:
    """Show the supervisor, the server, the work here, what needs you, the agents and the nodes.

    Each item that needs you comes with the command to type: questions, permission dialogs, failed
    tasks, finished work that has not landed. Outside of any project, the work of all of them is
    shown. `fleet` alone is the same. `fleet nodes` shows the nodes alone.
    """
    subject = _subject(config, everywhere=everywhere)
    if watch and wants_json():
        return Result("status", _looks(subject, timeout), ItemStream(lambda _: None))
    if watch:
        _watch(subject, timeout)
    data, view, notes = page(subject, timeout)
    return Result("status", data, view, notes=notes, exit_status=DOWN if data["error"] else 0)


class StatusSubject(NamedTuple):
    """What the page is about. `project`: empty for all. `broken`: the error in its settings, if any."""

    client: Client
    project: str
    broken: tuple[InboxItem, ...] = ()


def _subject(config: Path | None, *, everywhere: bool) -> StatusSubject:
    try:
        client = connect(config=config)
        return StatusSubject(client, client.scope(everywhere=everywhere) if client.project else "")
    except BadConfig as error:
        if config is not None or (subject := _without_settings(error)) is None:
            raise
        return subject._replace(project="") if everywhere else subject


def _without_settings(error: BadConfig) -> StatusSubject | None:
    """The project with only the home's settings; None if the error is in those."""
    from fleet.client import here
    from fleet.config import home
    from fleet.config.places import find_project
    from fleet.domain.inbox import Action, InboxItem

    project = find_project(here())
    try:
        client = connect(cwd=home(os.environ))
    except BadConfig:
        return None
    words = " ".join(error.message.split())
    mend = (Action("validate", "fleet validate"),)
    name = str(project or "")
    item = InboxItem(f"settings:{name}:wrong", "settings", "medium", words, mend, project=name)
    return StatusSubject(client, name, (item,))


def page(subject: StatusSubject, timeout: float) -> tuple[dict[str, Any], Stack, list[str]]:
    """The facts for `--json`, the same for a person, and notes about the nodes."""
    from fleet.cli.status.views import status_page

    client, project, broken = subject
    nodes = _NodeRows(client, timeout)
    data: dict[str, Any] = {
        "tasks": None,
        "not_landed": 0,
        "needs_you": [],
        "agents": [],
        "hosts": [],
    }
    data |= facts(client, project)
    if data["error"] is None:
        data |= read_queue(client, data["supervisor"], project)
    data["needs_you"] = [*broken, *data["needs_you"]]
    known, view, notes = nodes.result()
    data = {**known, **data}
    now = time.time_ns() // 1000
    page_view = status_page(data, view, now, everywhere=not project, readable=not broken)
    return data, page_view, notes


class _NodeRows:
    """Asked in a thread of their own while the rest of the page is read."""

    def __init__(self, client: Client, timeout: float) -> None:
        from threading import Thread

        self._fleet = client.loaded.fleet
        self._timeout = timeout
        self._answers: list[tuple[list[SeenNode], dict[str, Any] | None]] = []
        self._thread = Thread(target=self._ask, daemon=True)
        if self._fleet.nodes:
            self._compute = client.compute()
            self._thread.start()

    def _ask(self) -> None:
        self._answers.append(self._compute.look_around(within=self._timeout))

    def result(self) -> tuple[dict[str, Any], Stack, list[str]]:
        """The facts, the view of them, and what the settings say that the nodes do not bear out."""
        fleet = self._fleet
        if not fleet.nodes:
            return {"fleet": fleet.name, "nodes": [], "routes": [], "relay": None}, Stack([]), []
        from fleet.cli.compute.views import advice, status_data, status_view

        self._thread.join()
        seen, relay = self._answers[0]
        notes = advice(fleet, seen, self._compute.unsaid)
        return status_data(fleet, seen, relay), status_view(fleet, seen, relay), notes


def facts(client: Client, project: str = "") -> dict[str, Any]:
    """The supervisor and the server; with FLEET_URL, the server alone."""
    from fleet.cli.server.serve import server_facts
    from fleet.cli.supervisor.status import supervisor_facts

    if not client.is_remote:
        local = client.this_machine("The supervisor")
        return {
            "supervisor": supervisor_facts(local, project),
            "server": server_facts(local.home),
            "gateway": _gateway(local),
            "error": None,
        }
    from fleet.client.remote import RemoteClient

    assert isinstance(client, RemoteClient)
    server: dict[str, Any] = {"url": client.url, "running": False}
    try:
        server |= {"running": True, **client.health()}
    except FleetError as error:
        return {"supervisor": None, "server": server, "error": error.message}
    return {"supervisor": None, "server": server, "error": None}


def _gateway(local: LocalClient) -> list[dict[str, Any]]:
    """LiteLLM and the relay, as recorded when they were started; neither is asked."""
    fleet = local.loaded.fleet
    if not fleet.nodes:
        return []
    from fleet.app.compute.gateway import Services

    services = Services(fleet, local.home, local.home)
    rows = []
    for service in (services.gateway, services.relay):
        record, running = service.record(), service.running() is not None
        row = {"name": service.name, "started": record is not None, "running": running}
        restarts, since = (record.restarts, record.started_at) if record else (0, None)
        rows.append(row | {"port": services.port, "since": since, "restarts": restarts})
    return rows


def read_queue(
    client: Client, supervisor: dict[str, Any] | None, project: str = ""
) -> dict[str, Any]:
    from fleet.cli.supervisor.status import counts
    from fleet.operations.compute.hosts import ListHosts
    from fleet.operations.inbox import ListInbox
    from fleet.operations.shared.names import PAGE
    from fleet.operations.tasks.at_work import ListAgents

    try:
        client.note_merged()
        agents = client.observed(client.call(ListAgents(project, limit=PAGE)))
        items = client.call(ListInbox(project, limit=MOST_NEEDS))
        hosts = client.call(ListHosts())
        tasks = (supervisor["tasks"] if supervisor else None) or counts(client, project)
    except FleetError as error:  # a store that cannot be opened is part of the page, too
        return {"error": error.message}
    unlanded = sum(item.kind in UNLANDED for item in items)
    work = {"tasks": tasks, "not_landed": unlanded, "needs_you": items}
    return {**work, "agents": agents, "hosts": hosts}


def _watch(subject: StatusSubject, timeout: float) -> NoReturn:
    from fleet.cli.terminal.live import Live

    with Live() as live:
        while True:
            live.update(page(subject, timeout)[1])
            time.sleep(WATCH_SECONDS)


def _looks(subject: StatusSubject, timeout: float) -> Iterator[dict[str, Any]]:
    while True:
        yield page(subject, timeout)[0]
        time.sleep(WATCH_SECONDS)
