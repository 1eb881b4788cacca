"""The three stand-in nodes of `fleet demo --compute`, and what their models say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from fleet.domain.data import NamedTuple
from fleet.testing.model_server import ModelServer, call, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.testing.model_server import Asked, Reply

FILE = "bill.py"
BUILD = (
    f"printf 'def total(prices):\\n    return sum(prices)\\n' > {FILE} && git add {FILE} && "
    "git -c user.name=demo -c user.email=demo@localhost commit -qm 'Add up a bill'"
)


class DemoRole(NamedTuple):
    """`prompt` is how its requests are told from others in a node's log."""

    agent: str
    node: str
    model: str
    prompt: str
    tools: str
    script: Callable[[Asked], Reply]


def _lead(request: Asked) -> Reply:
    """The leading agent's reply: it calls the other agents, one after the other."""
    done = len(request.results)
    if done == len(ROLES):
        return say("The bill is planned, built and reviewed.")
    agent = ROLES[done].agent
    words = f"You are the {agent} of the bill. Do your part."
    return call("Agent", description=f"The {agent}", prompt=words, subagent_type=agent)


def _planner(request: Asked) -> Reply:
    if not request.results:
        return call("Glob", pattern="*")
    return say(f"1. Write {FILE}. 2. Have it reviewed.")


def _implementer(request: Asked) -> Reply:
    if not request.results:
        return call("Bash", command=BUILD, description="Write and commit it")
    return say(f"I wrote {FILE}.")


def _reviewer(request: Asked) -> Reply:
    if not request.results:
        return call("Grep", pattern="def total")
    return say("No findings.")


ROLES = (
    DemoRole(
        "planner", "m4-mini-16gb", "qwen-coder:7b", "You plan the shop's work.",
        "Read, Grep, Glob", _planner,
    ),
    DemoRole(
        "implementer", "m4-mini-64gb", "qwen-coder:32b", "You build what the plan says.",
        "Read, Edit, Write, Bash", _implementer,
    ),
    DemoRole(
        "reviewer", "laptop", "qwen-coder:14b", "You review what was built.",
        "Read, Grep, Glob", _reviewer,
    ),
)  # fmt: skip
LEAD = DemoRole("lead", "m4-mini-64gb", "qwen-coder:32b", "You lead the shop's agents.", "", _lead)


class NodeRequest(NamedTuple):
    """One request, by the log of the node that it reached."""

    agent: str
    node: str
    model: str


class StandIns:
    """The stand-in nodes: they serve on loopback and log all requests."""

    def __init__(self) -> None:
        self._servers = {role.node: ModelServer(_reply, model=role.model) for role in ROLES}

    def __enter__(self) -> Self:
        for server in self._servers.values():
            server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        for server in self._servers.values():
            server.__exit__()

    def heard(self) -> list[NodeRequest]:
        return [
            NodeRequest(role.agent, node, turn.model)
            for node, server in self._servers.items()
            for turn in tuple(server.turns)
            if (role := _role(turn)) is not None
        ]

    def fleet_yaml(self, port: int) -> str:
        lines = ["project:", "  name: shop", "  gateway:", f"    port: {port}", "nodes:"]
        for name, server in self._servers.items():
            lines += [f"  {name}:", "    kind: openai", f"    endpoint: {server.url}"]
        lines.append("models:")
        for role in ROLES:
            lines += [f"  {role.node}-coder:", f"    node: {role.node}"]
            lines += [f"    upstream: {role.model}", "    context: 65536"]
        lines.append("agents:")
        for role in (*ROLES, LEAD):
            lines += [f"  {role.agent}:", f"    model: {role.node}-coder"]
            lines += [f"    description: The {role.agent}.", f"    prompt: {role.prompt}"]
            lines += [f"    tools: [{role.tools}]"] if role.tools else []
        return "\n".join(lines) + "\n"


def _role(request: Asked) -> DemoRole | None:
    """Who asks: an agent's prompt is in what the model is told."""
    return next((role for role in (*ROLES, LEAD) if role.prompt in request.system), None)


def _reply(request: Asked) -> Reply:
    role = _role(request)
    return role.script(request) if role else say("Yes.")
