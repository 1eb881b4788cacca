"""A task as bd prints an issue: field names, times, and what is left out when it is empty."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleet.cli.tasks.views import status
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


def issue_of(found: Issue) -> dict[str, Any]:
    """As in a list; what bd leaves out when it is empty is left out."""
    data: dict[str, Any] = {
        "id": found.id,
        "title": found.title,
        "description": found.description,
        "notes": notes_of(found),
        "status": found.bd,
        "priority": found.priority,
        "issue_type": type_of(found.labels),
        "assignee": found.assignee,
        "created_at": time(found.created_at),
        "created_by": found.author,
        "updated_at": time(found.updated_at),
        "closed_at": time(found.closed_at) if found.closed_at else "",
        "close_reason": found.why if found.bd == "closed" else "",
        "labels": plain_labels(found.labels),
        "parent": found.parent,
    }
    optional = {"notes", "assignee", "closed_at", "close_reason", "labels", "parent"}
    data = {name: value for name, value in data.items() if value or name not in optional}
    return data | {
        "dependency_count": len(found.after),
        "dependent_count": len(found.needed_by),
        "comment_count": len(found.comments),
        "fleet": _ours(found),
    }


def _ours(found: Issue) -> dict[str, str]:
    """What bd has no field for."""
    names = ("status", "cwd", "coder", "model", "run")
    return {name: str(getattr(found, name)) for name in names}


def full_of(found: Issue, others: dict[str, Issue]) -> dict[str, Any]:
    """As `bd show` has it, with what it waits for, what waits for it, and its comments."""
    data = issue_of(found)
    for name, ids in (("dependencies", found.after), ("dependents", found.needed_by)):
        known = [others[i] for i in ids if i in others]
        if known:
            data[name] = [issue_of(o) | {"dependency_type": "blocks"} for o in known]
    if found.comments:
        data["comments"] = [comment_of(found.id, c) for c in found.comments]
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


def issue_table(found: Sequence[Issue], *, empty: str = "No issues found.") -> View:
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
        for i in found
    ]
    return Table(columns, rows, empty=empty)


def _status(issue: Issue) -> Cell:
    """In bd's word, in the colour of ours."""
    return Cell(issue.bd, status(issue.status).style)


def issue_view(found: Issue) -> View:
    facts = [
        ("issue", found.id),
        ("title", found.title),
        ("status", f"{found.bd} ({found.status})"),
        ("priority", f"P{found.priority}"),
        ("type", type_of(found.labels)),
        ("assignee", found.assignee),
        ("labels", ", ".join(plain_labels(found.labels))),
        ("cwd", found.cwd),
        ("coder", found.coder),
        ("model", found.model),
        ("parent", found.parent),
        ("depends on", ", ".join(found.after)),
        ("blocks", ", ".join(found.needed_by)),
        ("created", f"{time(found.created_at)} by {found.author}"),
        ("updated", time(found.updated_at)),
        ("closed", time(found.closed_at) if found.closed_at else ""),
        ("reason", found.why),
    ]
    parts: list[tuple[str, View]] = [("", Pairs([(n, v) for n, v in facts if v]))]
    if found.question:
        parts.append(("Question", Text(found.question)))
    if found.description:
        parts.append(("Description", Text(found.description)))
    if found.comments:
        comments = [f"{c.author}, {time(c.at)}: {c.text}" for c in found.comments]
        parts.append(("Comments", Text("\n".join(comments))))
    return Stack(parts)
