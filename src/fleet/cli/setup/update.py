"""Is there a newer release, and how to get it."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect_here
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from fleet.app import App

FRESH = 24 * 3600  # seconds for which an answer of the index is good


@command()
@click.option("--check", is_flag=True, help="Only show whether there is a newer release.")
@click.option("--force", is_flag=True, help="Ask the package index even if it was asked today.")
def update(check: bool, force: bool) -> Result:  # noqa: FBT001  # click passes by name
    """Update Fleet to the newest release, with the tool that installed it."""
    from fleet import __version__
    from fleet.cli.terminal.progress import ProgressLine

    app = connect_here().app
    how = app.installation()
    with ProgressLine("Asking for the newest release"):
        newest = _newest(app, force=force)
    newer = app.is_newer(newest, __version__)
    data = {"installed": __version__, "newest": newest, "newer": newer, "method": how.method}
    if not newer:
        return Result("update", data, Text(f"fleet {__version__} is the newest release."))
    words = f"fleet {newest} is out; {__version__} is installed (by {how.method})."
    if check or not how.command:
        way = how.advice or " ".join(how.command)
        return Result("update", data, Text(f"{words}\nGet it: {way}"))
    try:
        with ProgressLine(f"Installing fleet {newest} with {how.method}"):
            done = subprocess.run(how.command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise Unavailable(
            f"{words} {how.command[0]} cannot be run: {error.strerror}.",
            fix=f"Where {how.command[0]} is on PATH: {' '.join(how.command)}",
        ) from error
    if done.returncode:
        last = " ".join((done.stderr or done.stdout).split())[-400:]
        raise Refused(
            f"{' '.join(how.command)} failed: {last}", fix="Run it yourself to see all of it."
        )
    return Result("update", data | {"updated": True}, Text(f"{words}\nInstalled it."))


def _newest(app: App, *, force: bool) -> str:
    file = app.home.path / "update.json"
    if not force:
        with suppress(OSError, ValueError, KeyError, TypeError):
            cached = json.loads(file.read_text())
            if 0 <= time.time() - float(cached["at"]) < FRESH:
                return str(cached["newest"])
    newest = app.newest_release()
    with suppress(OSError):
        app.home.ensure()
        file.write_text(json.dumps({"at": time.time(), "newest": newest}))
    return newest
