"""`fleet skills` and `fleet plugins`: what teaches assistants to use Fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.app.coders import assistants
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.human import counted
from fleet.cli.terminal.view import Cell, Column, Result, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.cli.terminal.view import Style, View
    from fleet.domain.generated.files import WritePlan

TARGETS, BUNDLES = assistants(), assistants("plugin")
NAMES = ("subagent-fleet-bootstrap", "subagent-fleet-setup", "subagent-fleet-operations")
ALL = "all"
STYLES: dict[str, Style] = {"installed": "green", "older": "yellow"}
OUT = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write them to this directory. Default: the top of this checkout, else the current directory.",
)
FORCE = click.option("--force", is_flag=True, help="Also overwrite files that were edited.")


@group()
def skills() -> None:
    """List and install the skills that teach assistants to use Fleet."""


@skills.command("list")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Look in this directory."
)
def list_(*, out: Path | None) -> Result:
    """List the skills, the assistants they can be installed for, and what is installed here."""
    from fleet.app.skills import FOLDERS, shipped, standing

    known = shipped()
    installed = standing(_top(out), known)
    data = {
        "skills": [
            {
                "name": skill.name,
                "description": skill.description,
                "installed": {target: installed.get((skill.name, target)) for target in FOLDERS},
            }
            for skill in known
        ],
        "targets": [{"name": name, "folder": folder} for name, folder in FOLDERS.items()],
    }
    rows = [[s.name, *(_cell(installed.get((s.name, t))) for t in FOLDERS)] for s in known]
    parts: list[tuple[str, View]] = [
        ("", Table(("SKILL", *(name.upper() for name in FOLDERS)), rows)),
        ("", Table(("TARGET", Column("FOLDER", flexible=True)), list(FOLDERS.items()))),
        ("", Text("\n".join(f"{s.name}: {s.description}" for s in known))),
    ]
    return Result("skills", data, Stack(parts))


@skills.command()
@click.option("-t", "--target", "targets", multiple=True, type=click.Choice((ALL, *TARGETS)),
              help="Only for this assistant. May be repeated.")  # fmt: skip
@click.option("-s", "--skill", "names", multiple=True, type=click.Choice((ALL, *NAMES)),
              help="Only this skill. May be repeated.")  # fmt: skip
@OUT
@FORCE
def install(
    *, targets: tuple[str, ...], names: tuple[str, ...], out: Path | None, force: bool
) -> Result:
    """Install the skills into the directories where the assistants read them.

    Files of an older Fleet are updated. If a file was edited, or was not written by Fleet, nothing
    is written without --force. `fleet clean` removes the files that were not edited.
    """
    from fleet.app.skills import install_skills, shipped

    wanted = _chosen(names, NAMES)
    known = [skill for skill in shipped() if skill.name in wanted]
    planned = install_skills(_top(out), known, _chosen(targets, TARGETS), force=force)
    steps = ["", "Restart a running assistant to load them."]
    return _installed("skills", planned, steps)


@group()
def plugins() -> None:
    """Make a plugin marketplace of Fleet's skills."""


@plugins.command("install")
@click.option("-t", "--target", "targets", multiple=True, type=click.Choice((ALL, *BUNDLES)),
              help="Only for this assistant. May be repeated.")  # fmt: skip
@OUT
@FORCE
def install_plugins(*, targets: tuple[str, ...], out: Path | None, force: bool) -> Result:
    """Make a directory a marketplace, from which Claude Code and Codex install the plugin.

    If a file was edited, or was not written by Fleet, nothing is written without --force.
    """
    from fleet.app.skills import install_plugins as install_into

    chosen = _chosen(targets, BUNDLES)
    top = _top(out)
    planned = install_into(top, chosen, force=force)
    return _installed("plugins", planned, ["", "Next:", *_steps(top, chosen)])


def _steps(top: Path, targets: Sequence[str]) -> Iterable[str]:
    import shlex

    from fleet.app.skills import plugin_of

    directory = shlex.quote(str(top))
    for target in targets:
        yield f"  {plugin_of(target).install.format(place=directory)}"


def _chosen(given: Sequence[str], every: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in every if not given or name in given or ALL in given)


def _top(out: Path | None) -> Path:
    from fleet.config.places import checkout_top

    cwd = Path.cwd()
    return out.absolute() if out is not None else checkout_top(cwd) or cwd


def _cell(state: str | None) -> Cell | None:
    if state is None:
        return None
    return Cell(state, STYLES.get(state, "red"))


def _installed(kind: str, planned: WritePlan, more: Sequence[str]) -> Result:
    lines = []
    if planned.write:
        lines += ["Installed:", *(f"  {file.path}" for file in planned.write)]
    if planned.prune:
        lines += ["Removed:", *(f"  {path}" for path in planned.prune)]
    if planned.same:
        lines.append(f"Unchanged: {counted(len(planned.same), 'file')}.")
    data: dict[str, Any] = {
        "written": [file.path for file in planned.write],
        "same": list(planned.same),
        "removed": list(planned.prune),
    }
    return Result(kind, data, Text("\n".join([*lines, *more])))
