"""`fleet edit`: change what a task asks for, with options or in an editor."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_agents, complete_coders, complete_tasks
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import Result, Text
from fleet.domain.errors import BadInput, FleetError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.client import Client
    from fleet.operations.tasks.edit import EditTask
    from fleet.operations.tasks.show import TaskDetail

ENDED = frozenset({"done", "failed", "cancelled"})  # whose row shows who did it last


@command(config=True)
@click.argument("task", shell_complete=complete_tasks)
@click.option("--title", help="The new title.")
@click.option("-p", "--prompt", help="The new prompt. Empty: the title.")
@click.option("--prompt-file", metavar="FILE", help="Read the prompt from FILE; `-` is stdin.")
@click.option("--priority", type=int, help="0 is first, 4 is last.")
@click.option(
    "-a", "--agent", shell_complete=complete_agents, help="The agent (role) for the task."
)
@click.option("--coder", shell_complete=complete_coders, help="The coder for the task.")
@click.option("--model", help="The model for the task.")
@click.option("--base", help="The commit to start from. Only before its first run.")
@click.option("--gate", metavar="COMMAND", help="A command that must pass before it is done.")
@click.option(
    "--after",
    multiple=True,
    metavar="TASK",
    shell_complete=complete_tasks,
    help="A task to wait for, instead of those before. May be repeated.",
)
@click.option("--label", multiple=True, help="A label, instead of those before. May be repeated.")
@click.option(
    "--budget",
    multiple=True,
    metavar="AMOUNT",
    help="A limit for all its runs: `$5`, `200k tokens`, `90m`. May be repeated.",
)
@click.option("--attempts", type=click.IntRange(0, 100), help="How many runs it gets.")
@click.option("--time-limit", type=click.IntRange(min=0), help="Seconds that one run may take.")
@click.option("--review/--no-review", default=None, help="Wait for your review before it is done.")
@click.option(
    "--file",
    "file",
    metavar="FILE",
    help="Read the edited text from FILE instead of opening an editor; `-` is stdin.",
)
def edit(task: str, file: str | None, config: Path | None, **given: Any) -> Result:
    """Change what TASK asks for. Without options, edit it as text in $EDITOR.

    An empty value (`--base ""`) takes what the settings say. A running task keeps its agent, base,
    gate and limits: end its run first. A new prompt counts from its next run on.
    """
    from fleet.operations.tasks.show import ShowTask

    client = connect(config=config)
    before = client.call(ShowTask(task))
    options = _options(given)
    if options and file is not None:
        raise BadInput("--file cannot be used with another option.", fix="Give one of them.")
    return _change(client, before, options) if options else _by_text(client, before, file)


def _change(client: Client, before: TaskDetail, wanted: Mapping[str, Any]) -> Result:
    from fleet.operations.tasks.edit import EditTask

    wish = EditTask(before.task.id, **wanted)
    if wish.base and not client.is_remote:
        client.this_machine("Editing").check_base(before.task.cwd, wish.base)
    row = client.call(wish)
    who = "/".join(dict.fromkeys(filter(None, (row.agent, row.coder, row.model))))
    how = ([] if row.state in ENDED else [who]) + [f"priority {row.priority}", row.status]
    text = f"Changed {row.id}: {row.title}  [{', '.join(how)}]"
    return Result("task", row, Text(text), notes=_notes(client, before, wish))


def _notes(client: Client, before: TaskDetail, wish: EditTask) -> tuple[str, ...]:
    from fleet.operations.tasks.show import ShowTask

    state = before.task.state
    if state == "running" and wish.prompt is not None:
        words = "The current run keeps the old prompt; the next run gets the new one."
        return (f"{words} Tell it now: fleet send {before.task.id} TEXT",)
    if state in ENDED:
        who = "/".join(dict.fromkeys(filter(None, (wish.agent, wish.coder, wish.model))))
        again = f" with {who}" if who else ""
        return (f"It is {state}: `fleet retry {before.task.id}` queues it again{again}.",)
    after = client.call(ShowTask(before.task.id))
    if after.task.status == "paused":
        step = next((w.fix for w in after.waits if w.code == "paused"), "")
        return (f"It is paused: `{step or f'fleet resume {after.task.id}'}` lets it start.",)
    return tuple(w.why for w in after.waits if w.code in {"after", "held"})


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given options, by the request's field names."""
    from fleet.cli.tasks.add import budget_of, read_text
    from fleet.operations.tasks.edit import FIELDS

    if given["prompt"] is not None and given["prompt_file"] is not None:
        raise BadInput(
            "--prompt and --prompt-file cannot be used together.", fix="Give one of them."
        )
    options = {name: given["label" if name == "labels" else name] for name in FIELDS}
    if given["prompt_file"] is not None:
        options["prompt"] = read_text(given["prompt_file"], "prompt")
    options = {
        name: tuple(filter(None, value)) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value not in (None, ())
    }
    if "budget" in options:
        options["budget"] = budget_of(options["budget"])
    return options


def _by_text(client: Client, before: TaskDetail, file: str | None) -> Result:
    from fleet.cli.tasks.add import read_text
    from fleet.cli.tasks.edit_text import as_text, changes

    text = as_text(before)
    if file is not None:
        return _change(client, before, changes(text, read_text(file, "text")))
    with _edited(before.task.id, text) as edited:
        wanted = changes(text, edited)
        if wanted:
            return _change(client, before, wanted)
    raise Refused(f"Nothing was changed, so {before.task.id} stays as it is.", code="unchanged")


@contextmanager
def _edited(task: str, text: str) -> Iterator[str]:
    """The changes made in the person's editor; if they are refused, the text is kept in a file."""
    from fleet.cli.terminal.editor import chosen_editor, edit_file

    if not chosen_editor() and not sys.stdin.isatty():
        raise BadInput(
            "Name what to change: there is no terminal for an editor.",
            fix=f"fleet edit {task} --title TEXT; `fleet edit --help` lists the options.",
        )
    fd, name = tempfile.mkstemp(prefix=f"fleet-{task}-", suffix=".yaml")
    os.close(fd)
    file = Path(name)
    try:
        file.write_text(text, encoding="utf-8")
        edit_file(file)
        yield file.read_text(encoding="utf-8", errors="surrogateescape")
    except FleetError as error:
        error.fix = f"{error.fix} Your text is still there: fleet edit {task} --file {file}".strip()
        raise
    file.unlink()
