"""The tools that agents see, and how one is run: as one or more of the declared operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.access import GRANTS, Role, allow
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, FleetError
from fleet.server.http.codec import ENCODER, named, outside, request_of
from fleet.server.mcp.tool_table import TOOLS, property_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.server.mcp.tool_steps import ToolCaller, ToolStep
    from fleet.server.mcp.tool_table import Tool

    Perform = Callable[[Operation, Actor, Any], Awaitable[Any]]

ABOUT = "Coordinate with the other agents and the people of your team."


class ToolReply(NamedTuple):
    """A tool's result, as JSON or, if it failed, as a sentence with its code in `data`."""

    text: str
    data: dict[str, str] | None = None
    failed: bool = False


async def run_tool(
    perform: Perform, who: ToolCaller, name: str, given: Mapping[str, Any]
) -> ToolReply:
    """Call the tool's operations; return their reply, or all replies by their keys."""
    replies: dict[str, Any] = {}
    try:
        for step in steps_of(name, who, given):
            operation = named(step.operation)
            request = request_of(operation, step.fields)
            reply = await perform(operation, who.actor, request)
            replies[step.key] = outside(reply, operation.reply)
    except FleetError as error:
        message = error.public or error.message
        text = f"{message} {error.fix}".strip()
        return ToolReply(text, {"code": error.code, "message": message}, failed=True)
    reply = replies[""] if list(replies) == [""] else replies
    return ToolReply(ENCODER.encode(reply).decode())


def shown_to(actor: Actor) -> list[Tool]:
    """Return the tools to list for a caller: those it may call, for workers without quiet ones."""
    granted = GRANTS[actor.role]
    few = actor.role is Role.WORKER
    return [
        tool
        for tool in TOOLS
        if tool.permissions() <= granted
        and (actor.run or not tool.for_runs)
        and not (few and tool.quiet)
    ]


def steps_of(name: str, who: ToolCaller, given: Mapping[str, Any]) -> list[ToolStep]:
    """Return the tool's steps; raise `BadInput` for an unknown tool or wrong arguments."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        raise BadInput(f"There is no tool '{name[:60]}'.", fix="List the tools.")
    for permission in sorted(tool.permissions()):
        allow(who.actor, permission)
    unknown = [key for key in given if key not in tool.takes]
    missing = [key for key in tool.needs if key not in given]
    if unknown or missing:
        what = f"has no '{unknown[0]}'" if unknown else f"needs '{missing[0]}'"
        raise BadInput(f"{name} {what}.", fix=f"It takes: {', '.join(tool.takes) or 'nothing'}.")
    for key, value in given.items():
        _check(name, key, property_of(tool.takes[key]), value)
    return tool.steps(who, given)


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "array": (list,), "object": (dict,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def _check(name: str, key: str, schema: dict[str, Any], value: Any) -> None:
    kind = schema.get("type", "")
    wrong = kind and (not isinstance(value, TYPES[kind]) or (kind != "boolean" and value is True))
    if wrong or (schema.get("enum") and value not in schema["enum"]):
        wanted = " or ".join(schema["enum"]) if schema.get("enum") else kind
        raise BadInput(f"{name}: '{key}' must be {wanted}.")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and not least <= value <= most:
        raise BadInput(f"{name}: '{key}' must be from {least} to {most}.")
