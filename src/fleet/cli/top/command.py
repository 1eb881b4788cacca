"""`fleet top`: a live view of the work, in the whole terminal."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.frame import command
from fleet.domain.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from pathlib import Path


@command(json=False, config=True)
@click.option("--everywhere", is_flag=True, help="Show the tasks of every project.")
def top(*, everywhere: bool, config: Path | None) -> int:
    """Watch the work and act on it: answer, prompt, review, land, attach and end with a key.

    `?` shows the keys. It needs the extra `top`: pip install 'agent-fleet[top]'
    """
    from fleet.cli.terminal.output import is_terminal
    from fleet.client import connect, is_away

    if not is_terminal(sys.stdout) or not sys.stdin.isatty():
        raise BadInput("`fleet top` needs a terminal.", fix="fleet status --watch")
    check_extra()
    from fleet.cli.top.app import Top

    client = connect(config=config)
    scope_name = client.server_url if is_away() else client.project_or_cwd.rpartition("/")[2]
    app = Top(partial(connect, config=config), scope_name=scope_name, away=is_away())
    app.reader.everywhere = everywhere
    app.run()
    return app.return_code or 0


def check_extra() -> None:
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise Unavailable(
            "`fleet top` needs Textual, which is not installed.",
            fix="pip install 'agent-fleet[top]', or use: fleet status --watch",
            code="no_textual",
        )
