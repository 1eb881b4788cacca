"""The coders: which there are, what each can do, and what of it is on this machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_coders
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Cell, Column, Pairs, Result, Table
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.view import Value
    from fleet.domain.fleet import Fleet

COLUMNS = (
    Column("CODER"),
    Column("PROGRAM", flexible=True),
    Column("VERSION"),
    Column("RESUMES"),
    Column("WORDS"),
    Column("COST"),
    Column("FOUND", flexible=True, least=12),
)
SENTENCES = {
    "resume": "continues an earlier conversation",
    "words": "reads messages while it works",
    "usage": "reports its tokens",
    "cost": "reports its cost",
    "context": "reports its context",
    "limits": "reports a rate limit",
    "read": "permission read",
    "edit": "permission edit",
    "full": "permission full",
    "verified": "tried",
}


@command(config=True)
@click.argument("name", required=False, metavar="[CODER]", shell_complete=complete_coders)
@click.option("--probe/--no-probe", default=True, help="Ask each program for its version.")
def coders(
    name: str | None,
    probe: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """List the coders; with CODER, show one in detail.

    Each program is asked for its version, in parallel and for at most 3 seconds.
    """
    fleet = connect(config=config).loaded.fleet
    if name is not None:
        fleet.check_coder(name)
    known = _known([name] if name else fleet.coder_names(), fleet, probe=probe)
    if name is not None:
        return Result("coder", known[0], _one(known[0]))
    return Result("coders", known, Table(COLUMNS, [_row(each) for each in known]))


def _known(names: list[str], fleet: Fleet, *, probe: bool) -> list[dict[str, Any]]:
    from fleet.app import make_coder, probe_programs

    made: dict[str, Any] = {}
    for name in names:
        try:
            made[name] = make_coder(name, fleet)
        except Refused as error:  # one of another package that cannot be loaded
            made[name] = error
    working = [coder for coder in made.values() if not isinstance(coder, Refused)]
    programs = probe_programs(working, os.environ, ask=probe)
    return [_facts(name, coder, programs.get(name, {}), fleet) for name, coder in made.items()]


def _facts(name: str, coder: Any, program: dict[str, Any], fleet: Fleet) -> dict[str, Any]:
    from fleet.domain.fleet import CODERS

    if isinstance(coder, Refused):
        return {"name": name, "from": "package", "error": coder.message}
    record = getattr(coder, "abilities", None)
    declared = "settings" if name in fleet.own_coders else "package"
    return {
        "name": name,
        "from": "fleet" if name in CODERS else declared,
        **program,
        "resumes": coder.resumes,
        "words": record is not None and not record.words.startswith("No."),
        "costs": coder.costs,
        "estimates": bool(getattr(coder, "estimates", False)),
        "window": coder.window,
        "abilities": asdict(record) if record is not None else None,
    }


def _row(known: dict[str, Any]) -> list[Value]:
    if "error" in known:
        return [known["name"], Cell(known["error"], "red"), None, None, None, None, None]
    record = known["abilities"]
    missing = known["executable"] and not known["path"]
    path = Cell("not found", "dim") if missing else known["path"]
    return [
        known["name"],
        record["program"] if record else None,
        known["version"],
        *(("no", "yes")[known[what]] for what in ("resumes", "words", "costs")),
        path,
    ]


def _one(known: dict[str, Any]) -> Pairs:
    if "error" in known:
        return Pairs([("coder", known["name"]), ("error", Cell(known["error"], "red"))])
    record = known["abilities"] or {}
    program = " ".join(filter(None, (known["path"], known["version"])))
    facts = ": ".join(filter(None, (program, known["why"])))
    pairs: list[tuple[str, Value]] = [
        ("coder", known["name"]),
        ("program", record.get("program")),
        ("found", facts or ("not found" if known["executable"] else None)),
        ("from", known["from"]),
        ("context window", known["window"] or None),
    ]
    return Pairs([*pairs, *((label, record.get(key)) for key, label in SENTENCES.items())])
