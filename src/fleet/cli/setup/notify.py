"""Whether notices arrive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Cell, Column, Result, Table
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app import App


@command(config=True)
def notify(*, config: Path | None) -> Result:
    """Send a test notification, and show whether it arrived.

    After `fleet config set notify.desktop=true`, or with an address in `notify.webhook`, the
    supervisor notifies you when a task asks, fails or ends.
    """
    from fleet.app.supervisor_parts import notifiers

    app = connect_here(config=config).app
    if not notifiers(app):
        raise Refused(
            "No notification channel is configured.",
            fix="`fleet config set notify.desktop=true`, or notify.webhook=https://HOST/PATH.",
            code="no_notify",
        )
    results = _channels(app)
    rows = [
        (
            each["by"],
            Cell("sent", "green") if each["told"] else Cell("not sent", "red"),
            each["why"],
        )
        for each in results
    ]
    view = Table(["by", "outcome", Column("why", flexible=True)], rows)
    status = 0 if all(each["told"] for each in results) else 3
    return Result("notified", results, view, exit_status=status)


def _channels(app: App) -> list[dict[str, Any]]:
    from fleet.app.supervisor_parts import notifiers
    from fleet.supervisor.notices import Notice

    words = f"This is a test from {app.home.host_id()}."
    body = Notice("test", "", "Fleet", words, "", time.time_ns() // 1000).body()
    rows: list[dict[str, Any]] = []
    for notifier in notifiers(app):
        try:
            notifier.send(body)
        except Unavailable as error:
            rows.append({"by": notifier.name, "told": False, "why": error.message})
        else:
            rows.append({"by": notifier.name, "told": True, "why": None})
    return rows
