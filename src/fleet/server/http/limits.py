"""What a field may hold, for the description: the limits that the operations themselves keep."""

from __future__ import annotations

from typing import Any

from fleet.domain.access import Role
from fleet.domain.task import PRIORITIES, TaskState
from fleet.operations.messages.boards import TYPES
from fleet.operations.shared.names import PAGE
from fleet.operations.tasks.statuses import STATUSES

NUMBER = {"minimum": -(1 << 63), "maximum": (1 << 63) - 1}
NOT_EMPTY = {"minLength": 1, "pattern": r"\S"}
MARKS = ["open", "in_progress", "resolved", "blocked"]
SETTLED = ["pending", "accepted", "rejected"]
CHOICES: dict[tuple[str, str], list[str]] = {  # by type and field
    ("TaskRow", "status"): list(STATUSES),
    ("TaskRow", "state"): [str(state) for state in TaskState],
    ("AgentRow", "status"): list(STATUSES),
    ("SwarmRow", "state"): [str(state) for state in TaskState],
    ("PostRow", "type"): list(TYPES),
    ("PostRow", "priority"): list(PRIORITIES),
    ("CheckpointRow", "status"): SETTLED,
    ("MemberRow", "role"): [str(role) for role in Role],
    ("Post", "type"): list(TYPES),
    ("Post", "priority"): list(PRIORITIES),
    ("ReadBoard", "type"): ["", *TYPES],
    ("ReadBoard", "priority"): ["", *PRIORITIES],
    ("ListCheckpoints", "status"): ["", *SETTLED],
    ("MarkTask", "status"): MARKS,
    ("StatusBody", "status"): MARKS,
    ("PostBody", "messageType"): list(TYPES),
    ("PostBody", "priority"): list(PRIORITIES),
    ("BoardAsked", "messageType"): ["", *TYPES],
    ("BoardAsked", "priority"): ["", *PRIORITIES],
    ("CheckpointsAsked", "status"): ["", *SETTLED],
    ("TaskReply", "status"): MARKS,
}
PAGES = {"type": "integer", "minimum": 1, "maximum": PAGE}


def choose(components: dict[str, Any]) -> None:
    """Name the words of a field that has few."""
    for (kind, field), words in CHOICES.items():
        if (properties := components.get(kind, {}).get("properties", {})) and field in properties:
            properties[field]["enum"] = words


def bound(schema: dict[str, Any]) -> None:
    """Bound the fields of a request."""
    for name, field in schema["properties"].items():
        if name == "limit" and "before" in schema["properties"]:
            field.update(PAGES)
        elif field.get("type") == "integer":
            field.update({key: value for key, value in NUMBER.items() if key not in field})
        elif field.get("type") == "string" and name in schema.get("required", ()):
            field.update({} if "enum" in field else NOT_EMPTY)
