"""`fleet bd comment`, `comments` and `dep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.bd.frame import BdCommand, BdGroup, answer, bd_client
from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.render import Text
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from fleet.cli.terminal.render import Result

issue_argument = click.argument("issue", shell_complete=complete_tasks)


@click.command("comment", cls=BdCommand)
@issue_argument
@click.argument("text", nargs=-1, required=True)
def comment(issue: str, text: tuple[str, ...]) -> Result:
    """Write a comment on an issue."""
    from fleet.cli.bd.shapes import comment_of
    from fleet.operations.compat.issues import CommentRow
    from fleet.operations.messages.ask_answer_send import Comment

    note = bd_client().call(Comment(issue, " ".join(text)))
    row = CommentRow(note.id, note.author, note.text, note.at)
    return answer(comment_of(note.task, row), Text(f"Added the comment {note.id} to {note.task}."))


@click.group("comments", cls=BdGroup)
def comments() -> None:
    """Write and list comments."""


comments.add_command(comment, "add")


@comments.command("list")
@issue_argument
def comments_list(issue: str) -> Result:
    """List the comments of an issue."""
    from fleet.cli.bd.shapes import comment_of
    from fleet.cli.terminal.human import moment
    from fleet.operations.compat.issues import ListIssues

    (row,) = bd_client().call(ListIssues(tasks=(issue,)))
    lines = [f"{c.author}, {moment(c.at)}: {c.text}" for c in row.comments]
    data = [comment_of(row.id, c) for c in row.comments]
    return answer(data, Text("\n".join(lines) or "No comments."))


@click.group("dep", cls=BdGroup)
def dep() -> None:
    """Add and remove the issues that an issue waits for."""


@dep.command("add")
@issue_argument
@click.argument("depends_on", required=False, shell_complete=complete_tasks)
@click.option("--blocked-by", "--depends-on", "other", help="The same as the second argument.")
@click.option(
    "-t",
    "--type",
    "kind",
    type=click.Choice(["blocks"]),
    default="blocks",
    help="Only `blocks` is supported.",
)
def dep_add(issue: str, depends_on: str | None, other: str | None, kind: str) -> Result:
    """Make ISSUE wait for DEPENDS_ON."""
    from fleet.operations.tasks.dependencies import AddDependency

    return _depend(AddDependency, issue, depends_on or other, kind)


@dep.command("remove")
@issue_argument
@click.argument("depends_on", shell_complete=complete_tasks)
def dep_remove(issue: str, depends_on: str) -> Result:
    """Stop ISSUE from waiting for DEPENDS_ON."""
    from fleet.operations.tasks.dependencies import RemoveDependency

    return _depend(RemoveDependency, issue, depends_on, "blocks")


def _depend(request: Any, issue: str, needs: str | None, kind: str) -> Result:
    if not needs:
        raise BadInput("The issue to wait for is missing.", fix="fleet bd dep add ISSUE DEPENDS_ON")
    row = bd_client().call(request(issue, needs))
    added = request.__name__.startswith("Add")
    data = {"status": "added" if added else "removed", "issue_id": row.id, "depends_on_id": needs}
    words = "waits for" if added else "does not wait for"
    return answer(data | {"type": kind}, Text(f"{row.id} {words} {needs}."))
