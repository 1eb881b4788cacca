"""Whether a supervisor runs, and what it has to do."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.cli.terminal.view import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.client import Client, LocalClient

T = TypeVar("T")


def or_none(read: Callable[[LocalClient], T], client: LocalClient) -> T | None:
    """The result of `read`; None while the store, or the settings that name it, cannot be read."""
    from fleet.domain.errors import FleetError

    try:
        return read(client)
    except FleetError:
        return None


def going(client: LocalClient) -> list[str]:
    host = client.app.home.host_id()
    return [run.id for run in client.app.store.live_runs(host=host)]


def supervisor_facts(client: LocalClient, project: str = "") -> dict[str, Any]:
    """`project`: only its tasks are counted; empty: all."""
    from fleet import __version__
    from fleet.app.server_process import service_of, serving_pid

    app = client.app
    running, last = app.daemon.running(), app.daemon.last()
    inside = running is not None and running.pid == serving_pid(app.home.path)
    return {
        "running": running is not None,
        "pid": running.pid if running else None,
        "since": running.started_at if running else None,
        "detached": running.detached if running else None,
        "in_server": inside,
        "version": running.version if running else None,
        "installed": __version__,
        "outdated": bool(running and running.code != app.daemon.fingerprint()),
        "host": app.home.host_id(),
        "home": str(app.home.path),
        "log": str(service_of(app.home.path).log if inside else app.daemon.log),
        "runs": or_none(going, client),
        "tasks": or_none(partial(counts, project=project), client),
        "complaints": dict(running.complaints) if running else {},
        "error": (last.error if last else "") or None,
        "error_at": (last.error_at if last else 0) or None,
    }


def counts(client: Client, project: str = "") -> dict[str, int]:
    """Of the tasks in view, and of those that land, how many are shown with which status."""
    from collections import Counter

    from fleet.operations.tasks.list import ListTasks

    landing = ListTasks(project, statuses=("landing",), limit=10_000)
    rows = (*client.call(ListTasks(project, limit=10_000)), *client.call(landing))
    by_status = Counter(row.status for row in rows)
    return dict(sorted(by_status.items()))


def supervisor_pairs(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    from fleet.cli.terminal.human import ago, moment

    at = time.time_ns() // 1000
    state = Cell("running", "green") if facts["running"] else Cell("stopped", "yellow")
    pairs: list[tuple[str, Any]] = [("supervisor", state)]
    if facts["running"]:
        how = "detached" if facts["detached"] else "in a terminal or under a service manager"
        how = "inside the server" if facts["in_server"] else how
        since = f"{moment(facts['since'])} ({ago(facts['since'], at)})"
        pairs += [("pid", f"{facts['pid']}, {how}"), ("since", since)]
        pairs.append(("version", _version(facts)))
    pairs += [("host", facts["host"]), ("home", facts["home"]), ("log", facts["log"])]
    if facts["tasks"] is not None:
        tasks = ", ".join(f"{count} {status}" for status, count in facts["tasks"].items())
        pairs += [("runs", ", ".join(facts["runs"] or ()) or "none"), ("tasks", tasks or "none")]
    pairs += [("settings", Cell(text, "yellow")) for text in facts["complaints"].values()]
    if facts["error"]:
        text = f"{ago(facts['error_at'], at)}: {facts['error']}"
        pairs.append(("last error", Cell(text, "yellow")))
    return pairs


def _version(facts: Mapping[str, Any]) -> Cell:
    if not facts["outdated"]:
        return Cell(str(facts["version"]))
    disk = facts["installed"]
    text = f"{facts['version']}, but other code ({disk}) is installed: fleet run restart"
    return Cell(text, "yellow")
