"""`fleet generate` and `fleet clean`: the files that programs read, made from fleet.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.app.coders import generate_targets
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import counted
from fleet.cli.terminal.render import can_ask, confirm
from fleet.cli.terminal.view import Raw, Result, Text
from fleet.domain.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.app.compute.generate import Generated
    from fleet.config import Loaded
    from fleet.domain.generated.files import File, WritePlan

SHORT_COMMAND = 37  # `source .env.subagent-fleet && opencode`


@command(config=True)
@click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    type=click.Choice(generate_targets()),
    help="Write only the files of this program. Repeatable.",
)
@click.option("--litellm-only", is_flag=True, help="The same as --target litellm.")
@click.option("--claude-only", is_flag=True, help="The same as --target claude.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the files to this directory.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@click.option("--diff", is_flag=True, help="Show what would change as a diff; write nothing.")
@click.option("--force", is_flag=True, help="Also overwrite files that were edited.")
def generate(
    *, targets: tuple[str, ...], litellm_only: bool, claude_only: bool, out: Path | None,
    dry_run: bool, diff: bool, force: bool, config: Path | None,
) -> Result:  # fmt: skip
    """Write the configuration files of the gateway and the coders.

    Fleet records a hash of each file it writes, so it only replaces or removes files that it wrote
    and that were not edited since.
    """
    from fleet.app.compute.generate import (
        Generated,
        files_of,
        next_steps,
        refuse,
        usual_targets,
        warnings_of,
    )

    loaded = _fleet(config)
    only = (*targets, *["litellm"] * litellm_only, *["claude"] * claude_only)
    chosen = tuple(dict.fromkeys(only)) or usual_targets(loaded.fleet)
    top = _top(loaded, config, out)
    files = files_of(loaded.fleet, chosen, _source(loaded), str(top))
    made = Generated(top)
    written = {known.target for known in made.known().values()} if not only else set()
    others = {
        target: [file.path for file in files_of(loaded.fleet, (target,), _source(loaded), str(top))]
        for target in written.difference(chosen)
    }
    planned = made.plan(files, chosen, force=force, others=others)
    notes = warnings_of(loaded.fleet, chosen)
    if diff:
        return Result("generate", _data(planned), Raw(_diff(made, planned, files)), notes=notes)
    if not dry_run:
        refuse(planned)
        _ensure_key(chosen)
        made.apply(files, planned)
    steps = [] if dry_run else list(next_steps(loaded.fleet, chosen))
    return Result("generate", _data(planned), Text(_story(planned, steps, dry_run)), notes=notes)


@command(config=True)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Look in this directory."
)
@click.option("--dry-run", is_flag=True, help="List the files; remove nothing.")
@click.option("-y", "--yes", "--force", is_flag=True, help="Remove the files without asking.")
def clean(*, out: Path | None, dry_run: bool, yes: bool, config: Path | None) -> Result:
    """Remove the files and skills that Fleet wrote here; edited ones stay."""
    from fleet.app.compute.generate import Generated

    made = Generated(_top(_load(config), config, out))
    paths, edited = made.ours()
    listed = "\n".join(f"  {path}" for path in paths)
    act = bool(paths) and not dry_run
    if act and not yes:
        act = can_ask() and confirm(f"{listed}\nRemove them?", otherwise="Use --yes.")
    if act:
        made.remove(paths)
    what = "Removed:" if act else "Generated (`fleet clean --yes` removes them):"
    lines = [what, listed] if paths else ["There are no generated files to remove."]
    if edited:
        lines.append(f"Edited since they were generated, so kept: {', '.join(edited)}.")
    data = {"removed": paths if act else [], "generated": paths, "edited": edited}
    return Result("clean", data, Text("\n".join(lines)))


def _load(config: Path | None) -> Loaded:
    from fleet.cli.setup.config import load_and_warn

    return load_and_warn(config)


def _fleet(config: Path | None) -> Loaded:
    loaded = _load(config)
    if loaded.project_file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    return loaded


def _top(loaded: Loaded, config: Path | None, out: Path | None) -> Path:
    """The output folder: beside the fleet.yaml that was found, or here if the file was named."""
    if out is not None:
        return out.absolute()
    if config is not None or loaded.project_file is None:
        return Path.cwd()
    return loaded.project_file.parent


def _source(loaded: Loaded) -> str:
    assert loaded.project_file is not None
    return loaded.project_file.name


def _ensure_key(targets: Sequence[str]) -> None:
    import os

    from fleet.app.compute.generate import ensure_key
    from fleet.config.places import home

    if {"env", "litellm"} & set(targets):
        ensure_key(home(os.environ))


def _data(planned: WritePlan) -> dict[str, Any]:
    others = {name: list(paths) for name, paths in planned._asdict().items() if name != "write"}
    return {"written": [file.path for file in planned.write], **others}


def _story(planned: WritePlan, steps: Sequence[tuple[str, str]], dry_run: bool) -> str:  # noqa: FBT001  # a flag as it came
    lines = []
    if planned.write:
        lines.append("Would generate:" if dry_run else "Generated:")
        lines += [f"  {file.path}" for file in planned.write]
    if planned.prune:
        lines.append(
            "Would remove, because nothing needs them any more:" if dry_run else "Removed:"
        )
        lines += [f"  {path}" for path in planned.prune]
    for name in ("edited", "foreign", "orphans"):
        if paths := getattr(planned, name):
            lines.append(f"{LEFT[name]} {', '.join(paths)}.")
    if planned.same:
        lines.append(f"Unchanged: {counted(len(planned.same), 'file')}.")
    if steps:
        lines += ["", "Next:", *(line for step in steps for line in _step(*step))]
    return "\n".join(lines)


def _step(words: str, why: str) -> list[str]:
    """On two lines if it is long: the first of them all should not stand far from its reason."""
    if len(words) <= SHORT_COMMAND:
        return [f"  {words:<{SHORT_COMMAND}}  # {why}"]
    return [f"  # {why}", f"  {words}"]


LEFT = {
    "edited": "Edited since Fleet wrote them; --force overwrites them:",
    "foreign": "Not written by Fleet; --force overwrites them:",
    "orphans": "No longer needed, but edited, so kept:",
}


def _diff(made: Generated, planned: WritePlan, files: Sequence[File]) -> str:
    from difflib import unified_diff

    changed = {file.path for file in planned.write} | {*planned.edited, *planned.foreign}
    texts = {file.path: file.text for file in files if file.path in changed}
    texts |= dict.fromkeys(planned.prune, "")
    parts: list[str] = []
    for path, text in texts.items():
        target = made.top / path
        before = target.read_text("utf-8", "replace") if target.exists() else ""
        parts += unified_diff(
            before.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"a/{path}" if before else "/dev/null",
            f"b/{path}" if text else "/dev/null",
        )
    return "".join(parts)
