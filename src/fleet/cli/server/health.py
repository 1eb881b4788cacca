"""`fleet health` and `fleet metrics`: what the server says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Pairs, Raw, Result, Table

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.app.server_address import Remote


@command(config=True)
def health(*, config: Path | None) -> Result:
    """Check whether the server answers: the one at FLEET_URL, else this home's."""
    server = _server(config)
    reply = server.say("GET", "/health")
    data = {"url": server.url, **reply}
    status = 0 if reply.get("status") == "ok" else 3
    pairs = [(key, _text(value)) for key, value in data.items()]
    return Result("health", data, Pairs(pairs), exit_status=status)


@command(config=True)
@click.option("--prometheus", is_flag=True, help="Print the metrics in the format of Prometheus.")
def metrics(*, prometheus: bool, config: Path | None) -> Result:
    """Show the server's metrics; counters start at zero when the server starts."""
    server = _server(config)
    if prometheus:
        text = server.text("GET", "/metrics")
        return Result("text", text, Raw(text))
    rows = server.say("GET", "/metrics/json")["data"]
    cells = [(row["name"], _labels(row["labels"]), f"{row['value']:g}") for row in rows]
    columns = [Column("metric"), Column("of", flexible=True), Column("value", right=True)]
    return Result("metrics", rows, Table(columns, cells))


def _server(config: Path | None) -> Remote:
    from fleet.app.server_address import remote_of
    from fleet.client import connect_here

    return remote_of(connect_here(config=config).app)


def _labels(labels: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())


def _text(value: Any) -> str:
    return " ".join(value.values()) if isinstance(value, dict) else str(value)
