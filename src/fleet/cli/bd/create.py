"""`bd create`: what was typed, as a task of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.bd.shapes import PLAIN, TYPE
from fleet.cli.tasks.add import where_of
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput
from fleet.domain.limits.check import check
from fleet.domain.task import Spec
from fleet.operations.compat.issues import ListIssues
from fleet.operations.shared.choice import checked_choice
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.dependencies import AddDependency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.client import Client
    from fleet.operations.compat.issues import Issue

NEEDS = {"", "depends-on", "blocked-by"}
LOOSE = {"related", "discovered-from", "relates-to", "duplicates", "tracks", "caused-by"}
EPIC = "epic"


class TypedIssue(NamedTuple):
    title: str
    description: str = ""
    priority: int = 2
    type: str = PLAIN
    labels: tuple[str, ...] = ()
    deps: tuple[str, ...] = ()
    parent: str = ""
    assignee: str = ""
    coder: str = ""
    model: str = ""
    cwd: str = ""


class IssueLinks(NamedTuple):
    """`blocks` wait for the new task; `loose` ones only say where it comes from."""

    after: tuple[str, ...]
    blocks: tuple[str, ...]
    loose: tuple[str, ...]


def one_title(positional: str | None, named: str | None) -> str:
    if positional and named and positional != named:
        raise BadInput(
            f"The title is '{named}' or '{positional}', not both.",
            fix="Text with spaces needs quotes. Give one title.",
        )
    title = named or positional or ""
    if not title.strip():
        raise BadInput("The title is missing.", fix='fleet bd create "Fix the login"')
    return title


def listed(values: Sequence[str]) -> tuple[str, ...]:
    """`a,b` and repeated options, as one list."""
    parts = (part.strip() for value in values for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def priority(typed: str) -> int:
    """`0` to `4`, or `P0` to `P4`."""
    plain = typed.strip().upper().removeprefix("P")
    if plain not in set("01234"):
        raise BadInput(
            f"Priority '{typed}' is not between 0 (first) and 4 (last).",
            fix="The default is 2, also written P2.",
        )
    return int(plain)


def links(deps: Sequence[str]) -> IssueLinks:
    """Parse links. `ID`, `depends-on:ID`: the new task waits for ID. `blocks:ID`: ID waits for it."""
    after, blocks, loose = [], [], []
    for dep in deps:
        kind, _, task = dep.rpartition(":")
        if kind in NEEDS:
            after.append(task)
        elif kind == "blocks":
            blocks.append(task)
        elif kind in LOOSE:
            loose.append(dep)
        else:
            raise BadInput(
                f"'{kind}' is not a kind of dependency.",
                fix=f"Choose one of: depends-on, blocks, {', '.join(sorted(LOOSE))}.",
            )
    return IssueLinks(tuple(after), tuple(blocks), tuple(loose))


def create_issue(client: Client, typed: TypedIssue, *, dry_run: bool) -> Issue | Spec:
    """Add the task and return it; with `dry_run`, only check the request and return that."""
    idle = bool(typed.assignee) or typed.type == EPIC  # no agent works on it
    where = where_of(client, typed.cwd or None, in_place=idle)
    wanted = links(typed.deps)
    kind = (f"{TYPE}{typed.type}",) if typed.type != PLAIN else ()
    spec = Spec(
        coder=typed.coder,
        model=typed.model,
        priority=typed.priority,
        labels=(*kind, *typed.labels, *wanted.loose),
        cwd=str(where.cwd or ""),
        in_place=where.in_place and not idle,
        assignee=typed.assignee,
    )
    check(spec)
    checked_choice(spec, client.world(where.project))  # an unknown coder ends it here
    named = (*wanted.after, *wanted.blocks, *filter(None, [typed.parent]))
    if named:
        client.call(ListIssues(tasks=named))
    if dry_run:
        return spec
    join = "all" if typed.type == EPIC else ""
    row = client.call(
        AddTask(
            typed.title, typed.description, where.project, spec, wanted.after, typed.parent, join
        )
    )
    for blocked in wanted.blocks:
        client.call(AddDependency(blocked, row.id))
    return client.call(ListIssues(tasks=(row.id,)))[0]
