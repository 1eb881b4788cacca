"""`fleet discover --scan`: model servers that fleet.yaml does not name yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.terminal.frame import wants_json
from fleet.cli.terminal.render import can_ask, confirm
from fleet.cli.terminal.view import Result, Table
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.app import App
    from fleet.domain.nodes.finding import FoundNode


def scan_result(app: App, where: str, ports: Sequence[int], *, write: bool) -> Result:
    from fleet.app.compute.scan import scan

    servers, notes = scan(app, where, ports)
    if not servers:
        notes.append("No model server that is not in fleet.yaml answered.")
    elif _agreed(servers, write=write):
        notes.append(_add(app, servers))
    else:
        notes.append("To add them to fleet.yaml: the same command with --write")
    rows = [[each.name, each.kind, each.endpoint, each.by] for each in servers]
    data = {"found": [each._asdict() for each in servers]}
    return Result("scan", data, Table(["node", "kind", "endpoint", "by"], rows), notes=tuple(notes))


def _agreed(servers: Sequence[FoundNode], *, write: bool) -> bool:
    if write or wants_json() or not can_ask():
        return write
    listed = "\n".join(f"  {each.name}: {each.kind} at {each.endpoint}" for each in servers)
    return confirm(f"{listed}\nAdd them to fleet.yaml?", otherwise="--write")


def _add(app: App, servers: Sequence[FoundNode]) -> str:
    from fleet.config.commands.set import SettingFiles, apply, parsed
    from fleet.config.keys import table
    from fleet.config.loader import display_path

    file = app.loaded.project_file
    if file is None:
        raise BadInput("There is no fleet.yaml here to add them to.", fix="Write one: fleet init")
    changes = [
        parsed(f"nodes.{each.name}.{setting}={value}")
        for each in servers
        for setting, value in (("endpoint", each.endpoint), ("kind", each.kind))
    ]
    context = SettingFiles(app.cwd, app.home.path, app.env)
    apply(changes, file=file, layer=table.PROJECT, context=context)
    names = ", ".join(each.name for each in servers)
    return f"Added to {display_path(file, app.cwd)}: {names}."
