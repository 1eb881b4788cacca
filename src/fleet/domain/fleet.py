"""The declared world: nodes, models and agents, with every reference bound."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet.domain.errors import NotFound, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

CODERS = (
    "claude",
    "codex",
    "opencode",
    "gemini",
    "agy",
    "aider",
    "acp",
    "command",
    "scripted",
)
NODE_KINDS = (
    "ollama",
    "vllm",
    "lmstudio",
    "llamacpp",
    "openai",
    "openrouter",
    "anthropic",
    "hosted",
)
PERMISSIONS = ("read", "edit", "full")
NONE: Mapping[str, Any] = MappingProxyType({})


class Node(NamedTuple):
    name: str
    kind: str
    endpoint: str  # empty for a hosted API whose address the gateway knows
    provider: str = ""  # the gateway's name for a `hosted` API
    tags: tuple[str, ...] = ()
    max_parallel: int = 0  # requests at once over all models; 0: no total
    api_key: str = ""  # a reference to the key, never the key


class Serving(NamedTuple):
    node: Node
    upstream: str  # that node's own name for the model
    context: int
    timeout: float
    slots: int  # requests at once for this model on this node


class Model(NamedTuple):
    name: str
    alias: str
    servings: tuple[Serving, ...]  # best first
    fallbacks: tuple[Model, ...] = ()
    also: tuple[str, ...] = ()  # the other names in the file that mean this model

    @property
    def context(self) -> int:
        """What fits wherever a request lands."""
        return min(serving.context for serving in self.servings)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.name, *self.also, self.alias)))


class Agent(NamedTuple):
    """`model` is None when the coder is told `model_name` as it stands ("": its own default)."""

    name: str
    coder: str
    model: Model | None = None
    model_name: str = ""
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    permissions: str = "edit"
    extra_args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # the program, for the coders `command` and `acp`


class Gateway(NamedTuple):
    provider: str = "litellm"
    host: str = "127.0.0.1"
    port: int = 4000
    master_key_env: str = "LITELLM_MASTER_KEY"


class McpServer(NamedTuple):
    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = NONE


class Fleet(NamedTuple):
    """`agents` are the declared roles; `coders` are the coders' names as roles with defaults."""

    name: str = ""
    gateway: Gateway = Gateway()
    nodes: Mapping[str, Node] = NONE
    models: Mapping[str, Model] = NONE
    agents: Mapping[str, Agent] = NONE
    coders: Mapping[str, Agent] = NONE
    mcp_servers: Mapping[str, McpServer] = NONE
    observability: tuple[str, ...] = ()

    def agent(self, name: str) -> Agent:
        """The declared role, or a coder's name taken as one; raise `NotFound` otherwise."""
        if name in self.agents:
            return self.agents[name]
        if name in CODERS:
            return self.coders.get(name) or Agent(name, coder=name)
        known = sorted({*self.agents, *CODERS})
        raise NotFound(
            f"There is no agent '{name}'.",
            fix=nearest(name, known) or f"Agents: {', '.join(known)}.",
        )

    def model(self, name: str) -> Model | None:
        """By its key or its alias; None means that a coder is told the name as it stands."""
        if name in self.models:
            return self.models[name]
        return next((model for model in self.models.values() if model.alias == name), None)
