"""`fleet doctor`: what is wrong here, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import Cell, Column, Result, Stack, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.findings import Finding

STYLES: dict[str, Style] = {"ok": "green", "warning": "yellow", "bad": "red", "skipped": "dim"}
WITHIN = 60.0  # seconds: a model that is not resident is loaded first


@command(config=True)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=3600),
    default=WITHIN,
    help="Seconds to wait for all checks together.",
)
def doctor(timeout: float, config: Path | None) -> Result:
    """Check everything that has to work, in parallel, and show how to fix what does not.

    While the gateway runs, doctor sends a long prompt with a tool to every model through it, and
    names the node that answered. It changes nothing.

    Exit status 1 if a check fails; a warning alone does not change it.
    """
    from fleet.app.doctor import Checkup
    from fleet.cli.terminal.progress import ProgressLine
    from fleet.client import connect_here
    from fleet.domain.findings import BAD

    with ProgressLine(f"Checking (at most {timeout:g} s)", announced=not wants_json()):
        findings = Checkup(connect_here(config=config).app, within=timeout).run()
    bad = sum(each.state == BAD for each in findings)
    data = {"ok": not bad, "findings": [each._asdict() for each in findings]}
    return Result("doctor", data, _view(findings, bad), exit_status=1 if bad else 0)


def _view(findings: list[Finding], bad: int) -> View:
    rows: list[list[Value]] = [
        [each.check, Cell(each.state, STYLES[each.state]), each.said] for each in findings
    ]
    table = Table(("check", "state", Column("what", flexible=True, least=40)), rows)
    todo = [each for each in findings if each.fix and each.state in {"bad", "warning", "skipped"}]
    fixes = "\n".join(f"{each.check}: {each.said}\n    {each.fix}" for each in todo)
    worst = f"{bad} thing{'s are' if bad > 1 else ' is'} wrong." if bad else "Nothing is wrong."
    return Stack([("", table), ("What to do:", Text(fixes)), ("", Text(worst))])
