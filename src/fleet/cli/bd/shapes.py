"""A task as bd prints an issue: field names, times, and what is left out when it is empty."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleet.cli.tasks.views import status
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.render import Cell, Column, Pairs, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.terminal.view import View
    from fleet.operations.compat.issues import CommentRow, Issue

TYPE = "type:"  # a label; bd has a field
PLAIN = "task"


def type_of(labels: Sequence[str]) -> str:
    return next((name.removeprefix(TYPE) for name in labels if name.startswith(TYPE)), PLAIN)


def plain_labels(labels: Sequence[str]) -> list[str]:
    return [name for name in labels if not name.startswith(TYPE)]


def time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat().replace("+00:00", "Z")


def notes_of(issue: Issue) -> str:
    """The question that is open, else the newest note."""
    if issue.question:
        return f"QUESTION: {issue.question}"
    return issue.comments[-1].text if issue.comments else ""


def issue_of(issue: Issue) -> dict[str, Any]:
    """The issue as bd lists it, without the fields that bd leaves out when they are empty."""
    data: dict[str, Any] = {
        "id": issue.id,
        "title": issue.title,
        "description": issue.description,
        "notes": notes_of(issue),
        "status": issue.bd,
        "priority": issue.priority,
        "issue_type": type_of(issue.labels),
        "assignee": issue.assignee,
        "created_at": time(issue.created_at),
        "created_by": issue.author,
        "updated_at": time(issue.updated_at),
        "closed_at": time(issue.closed_at) if issue.closed_at else "",
        "close_reason": issue.why if issue.bd == "closed" else "",
        "labels": plain_labels(issue.labels),
        "parent": issue.parent,
    }
    optional = {"notes", "assignee", "closed_at", "close_reason", "labels", "parent"}
    data = {name: value for name, value in data.items() if value or name not in optional}
    return data | {
        "dependency_count": len(issue.after),
        "dependent_count": len(issue.needed_by),
        "comment_count": len(issue.comments),
        "fleet": _ours(issue),
    }


def _ours(issue: Issue) -> dict[str, str]:
    """The fields of Fleet that bd does not have."""
    names = ("status", "cwd", "coder", "model", "run")
    return {name: str(getattr(issue, name)) for name in names}


def full_of(issue: Issue, others: dict[str, Issue]) -> dict[str, Any]:
    """The issue as `bd show` prints it, with what it waits for, what waits for it, and its comments."""
    data = issue_of(issue)
    for name, ids in (("dependencies", issue.after), ("dependents", issue.needed_by)):
        known = [others[i] for i in ids if i in others]
        if known:
            data[name] = [issue_of(o) | {"dependency_type": "blocks"} for o in known]
    if issue.comments:
        data["comments"] = [comment_of(issue.id, c) for c in issue.comments]
    return data


def comment_of(task: str, comment: CommentRow) -> dict[str, Any]:
    number = comment.id.rpartition("-")[2]
    return {
        "id": int(number) if number.isdecimal() else 0,
        "issue_id": task,
        "author": comment.author,
        "text": comment.text,
        "created_at": time(comment.at),
    }


def issue_table(issues: Sequence[Issue], *, empty: str = "No issues found.") -> View:
    columns = (
        "issue",
        "status",
        "priority",
        "type",
        Column("assignee", flexible=True),
        Column("title", flexible=True, least=20),
        Column("cwd", flexible=True),
    )
    rows = [
        (
            i.id,
            _status(i),
            f"P{i.priority}",
            type_of(i.labels),
            i.assignee or None,
            i.title,
            Cell(i.cwd, "dim"),
        )
        for i in issues
    ]
    return Table(columns, rows, empty=empty)


def _status(issue: Issue) -> Cell:
    """The status in bd's word, in the colour of ours."""
    return Cell(issue.bd, status(issue.status).style)


def issue_view(issue: Issue) -> View:
    facts = [
        ("issue", issue.id),
        ("title", issue.title),
        ("status", f"{issue.bd} ({issue.status})"),
        ("priority", f"P{issue.priority}"),
        ("type", type_of(issue.labels)),
        ("assignee", issue.assignee),
        ("labels", ", ".join(plain_labels(issue.labels))),
        ("cwd", issue.cwd),
        ("coder", issue.coder),
        ("model", issue.model),
        ("parent", issue.parent),
        ("depends on", ", ".join(issue.after)),
        ("blocks", ", ".join(issue.needed_by)),
        ("created", f"{moment(issue.created_at)} by {issue.author}"),
        ("updated", moment(issue.updated_at)),
        ("closed", moment(issue.closed_at) if issue.closed_at else ""),
        ("reason", issue.why),
    ]
    parts: list[tuple[str, View]] = [("", Pairs([(n, v) for n, v in facts if v]))]
    if issue.question:
        parts.append(("Question", Text(issue.question)))
    if issue.description:
        parts.append(("Description", Text(issue.description)))
    if issue.comments:
        comments = [f"{c.author}, {moment(c.at)}: {c.text}" for c in issue.comments]
        parts.append(("Comments", Text("\n".join(comments))))
    return Stack(parts)
