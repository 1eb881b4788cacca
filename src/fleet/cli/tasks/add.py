"""What `fleet add` was given, as the operation takes it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.measure import fit
from fleet.client import here
from fleet.config import in_repository, outside_git
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput
from fleet.domain.task import Budget, Limits, Spec
from fleet.operations.tasks.change import MOST_PROMPT, AddTask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.client import Client
    from fleet.operations.forges.tickets import AddTicket

PROMPTS = {"prompt": "--prompt", "prompt_file": "--prompt-file", "description": "--description"}
AMOUNT = re.compile(r"(\$?)\s*(\d+(?:\.\d+)?)\s*([a-z]*)")
UNITS = {
    **dict.fromkeys(("$", "usd", "dollar", "dollars"), ("cost", 1_000_000)),
    **dict.fromkeys(("tok", "token", "tokens"), ("tokens", 1)),
    **dict.fromkeys(("ktok", "ktokens"), ("tokens", 1_000)),
    **dict.fromkeys(("mtok", "mtokens"), ("tokens", 1_000_000)),
    **dict.fromkeys(("s", "sec", "seconds"), ("seconds", 1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), ("seconds", 60)),
    **dict.fromkeys(("h", "hour", "hours"), ("seconds", 3600)),
}
MOST_BYTES = 4 * MOST_PROMPT + 1  # more than the longest prompt can have


class TaskPlace(NamedTuple):
    """`cwd` is None when the directory is on another machine."""

    cwd: Path | None
    project: str
    in_place: bool


def request(title: str, given: Mapping[str, object], where: TaskPlace) -> AddTask:
    prompt = _prompt(given)
    if not prompt and len(lines := title.strip().splitlines()) > 1:  # a text, as a commit's is
        title, prompt = lines[0], title
    return AddTask(
        title=title,
        prompt=prompt,
        project=where.project,
        spec=_spec(given, where),
        after=_words(given["after"]),
        parent=str(given["swarm"]),
        team=str(given["team"]),
    )


def for_issue(order: AddTask, url: str) -> AddTicket:
    """The same for a ticket: it has the title, and its text comes after the prompt."""
    from fleet.operations.forges.tickets import AddTicket

    return AddTicket(
        url, order.prompt, order.project, order.spec, order.after, order.parent, order.team
    )


def directory(named: str | None) -> Path:
    """Where the task works: the directory that was named, or this one."""
    path = _path(named) if named else here()
    try:
        if path.is_dir():
            return path.resolve()
        why = "is not a directory"
    except OSError as error:
        why = f"cannot be used: {error.strerror}"
    name = fit(str(path), 100)
    raise BadInput(f"{name} {why}.", fix="Give --cwd a directory that exists.")


def settings_dir(named: str | None) -> Path | None:
    """The directory whose settings count: the named one if it exists here, else the current one."""
    path = _path(named) if named else None
    return path.resolve() if path is not None and _is_dir(path) else None


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def where_of(client: Client, named: str | None, *, in_place: bool) -> TaskPlace:
    """Where the task works. Raise `BadInput` outside a git repository, unless it is `in_place`.

    A server elsewhere has directories of its own, and knows best. Inside a run they are those of
    the run's own task: its worktree will be gone.
    """
    if client.is_remote:
        return TaskPlace(None, named or "", in_place)
    if client.actor.run and named is None:
        from fleet.operations.tasks.show import ShowTask

        own = client.call(ShowTask(""))
        cwd, project = directory(own.task.cwd), own.task.project
        in_place = in_place or own.spec.in_place
    else:
        cwd = directory(named)
        project = client.project or str(cwd)
    if not in_place and not in_repository(cwd):
        raise outside_git(cwd)
    return TaskPlace(cwd, project, in_place)


def _path(typed: str) -> Path:
    try:
        return Path(typed).expanduser()
    except RuntimeError:  # `~` of a user that is not there: a name like any other
        return Path(typed)


def _spec(given: Mapping[str, object], where: TaskPlace) -> Spec:
    """The spec from the options; an option sets the field of `Spec` that has its name."""
    same: dict[str, Any] = {name: given[name] for name in Spec.__match_args__ if name in given}
    limits = Limits(
        attempts=int(str(given["attempts"] or 0)),
        time_limit=int(str(given["time_limit"] or 0)),
        budget=budget_of(_words(given["budget"])),
        permissions=str(given["permissions"]),
        needs=_words(given["needs"]),
    )
    labels, cwd = _words(given["label"]), str(where.cwd or "")
    return Spec(
        **same | {"labels": labels, "cwd": cwd, "in_place": where.in_place, "limits": limits}
    )


def amounts(budget: Budget) -> list[str]:
    """The limits of a budget, as `budget_of` reads them."""
    dollars = f"{budget.cost / 1_000_000:.6f}".rstrip("0").rstrip(".")
    limits = (
        (budget.cost, f"${dollars}"),
        (budget.tokens, f"{budget.tokens} tokens"),
        (budget.seconds, f"{budget.seconds}s"),
    )
    return [text for amount, text in limits if amount]


def budget_of(given: tuple[str, ...]) -> Budget:
    """`$5`, `200k tokens`, `90m`: each limit once."""
    limits: dict[str, int] = {}
    for text in given:
        match = AMOUNT.fullmatch("".join(text.lower().split()))
        unit = UNITS.get(match[1] + match[3]) if match else None
        if match is None or unit is None or not float(match[2]):
            raise BadInput(
                f"'{fit(text, 40)}' is not a budget.",
                fix="Write dollars ($5), tokens (200k tokens) or time (90m, 2h).",
            )
        name, size = unit
        if name in limits:
            raise BadInput(f"The budget has two limits of {name}.", fix="Give one of them.")
        limits[name] = max(1, round(float(match[2]) * size))
    return Budget(**limits)


def _words(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return tuple(str(v) for v in value)


def _prompt(given: Mapping[str, object]) -> str:
    options = [name for name in PROMPTS if given[name] is not None]
    if len(options) > 1:
        names = " and ".join(PROMPTS[name] for name in options)
        raise BadInput(f"{names} cannot be used together.", fix="Give one of them.")
    if given["prompt_file"] is None:
        return str(given["prompt"] or given["description"] or "")
    return read_text(str(given["prompt_file"]), "prompt")


def read_text(name: str, what: str) -> str:
    """Read the text of this file; `-` is standard input."""
    where = "standard input" if name == "-" else name
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_BYTES)
        else:
            with _path(name).open("rb") as file:
                data = file.read(MOST_BYTES)
    except OSError as error:
        raise BadInput(
            f"The {what} cannot be read from {where}: {error.strerror or error}.",
            fix="Name a file of text, or `-` for standard input.",
        ) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} is not UTF-8 text.", fix="Convert it to UTF-8 first.") from error
