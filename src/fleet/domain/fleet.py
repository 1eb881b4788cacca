"""The declared world: nodes, models and agents, with every reference bound."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fleet.domain.routes import RouteRule

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
NODE_KINDS = (  # what is known of each: `fleet.domain.nodes.kinds`
    "ollama",
    "vllm",
    "lmstudio",
    "llamacpp",
    "sglang",
    "openai",
    "openrouter",
    "anthropic",
    "hosted",
)
EVERYWHERE = frozenset({"", "0.0.0.0", "::", "localhost"})  # noqa: S104  # nosec B104  # compared, not bound
PERMISSIONS = ("read", "edit", "full")
RUN_ROLES = ("worker", "team-lead", "merger")  # of a run in its team; see `fleet.domain.access`
UNTRUSTED = "its address is not trusted: read `fleet trust --show`, then run `fleet trust`"
NONE: Mapping[str, Any] = MappingProxyType({})


class Node(NamedTuple):
    name: str
    kind: str
    endpoint: str  # empty for a hosted API whose address the gateway knows
    provider: str = ""  # the gateway's name for a `hosted` API
    tags: tuple[str, ...] = ()
    max_parallel: int = 0  # requests at once over all models; 0: no total
    api_key: str = ""  # where the key is, never the key itself
    memory: int = 0  # bytes that models may use; 0: unknown
    trusted: bool = True  # False: its address comes from an untrusted file, so it is left out
    weight: float = 1.0  # how much it is preferred: 2 as if it answered twice as fast
    wake_on_lan: str = ""  # the hardware address of its machine; empty: it is not woken
    wake_address: str = ""  # where the packet that wakes it is sent
    wake_seconds: float = 0  # how long it may take to wake up


class Serving(NamedTuple):
    node: Node
    upstream: str  # that node's own name for the model
    context: int
    timeout: float
    slots: int  # requests at once for this model on this node
    thinking: bool = False  # the model can reason before it answers, and takes a limit for that


class Model(NamedTuple):
    name: str
    alias: str
    servings: tuple[Serving, ...]  # best first
    fallbacks: tuple[Model, ...] = ()
    also: tuple[str, ...] = ()  # the other names in the file that mean this model
    of: str = ""  # the model that this one narrows to its nodes that have the tags `needs`
    needs: tuple[str, ...] = ()

    @property
    def context(self) -> int:
        """The context that fits on every node that serves it."""
        return min(serving.context for serving in self.servings)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.name, *self.also, self.alias)))

    @property
    def chain(self) -> tuple[Model, ...]:
        """The model, then its fallbacks, in the order in which they answer."""
        models: dict[str, Model] = {}
        waiting = [self]
        while waiting:
            model = waiting.pop(0)
            if model.name not in models:
                models[model.name] = model
                waiting += model.fallbacks
        return tuple(models.values())


class JsonSpot(NamedTuple):
    """The value at `path` of a JSON line, if the line has the values of `when` at their paths."""

    path: tuple[str, ...]
    when: tuple[tuple[tuple[str, ...], str], ...] = ()


class OwnCoder(NamedTuple):
    """A coder declared in the settings. `says`: where the fields of its JSON lines are."""

    name: str
    command: tuple[str, ...]  # empty: the project that declares it is not trusted
    resume: tuple[str, ...] = ()
    says: Mapping[str, JsonSpot] = NONE  # empty: it prints text, not JSON
    counts: str = "each"
    window: int = 128_000


class Agent(NamedTuple):
    """Without a `model` the coder is given `model_name` verbatim; empty: the coder's own default."""

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
    priority: int = 2  # of its requests where they wait; lower goes first
    role: str = "worker"  # what its runs may do in their team
    max_requests: int = 0  # of its requests that nodes may work on at once; 0: any number
    needs: tuple[str, ...] = ()  # tags that the node of its model must have


def narrow_name(model: Model, needs: Iterable[str]) -> str:
    """The name of the model narrowed to its nodes that have all these tags."""
    return "+".join((model.of or model.name, *sorted({*model.needs, *needs})))


def alias_of(agent: Agent) -> str:
    """The name that the agent uses at the gateway, so that requests name the agent.

    An agent without a model of ours uses its `model_name`.
    """
    return f"fleet-{agent.name}" if agent.model is not None else agent.model_name


def prompted(fleet: Fleet) -> list[Agent]:
    """The agents that work by a prompt; not those that are a command."""
    return [agent for agent in fleet.agents.values() if agent.coder != "command"]


class Gateway(NamedTuple):
    provider: str = "litellm"
    host: str = "127.0.0.1"
    port: int = 4000
    master_key_env: str = "LITELLM_MASTER_KEY"


def url_of(gateway: Gateway) -> str:
    """The address for this machine: a gateway that listens on all interfaces is at 127.0.0.1 too."""
    host = "127.0.0.1" if gateway.host in EVERYWHERE else gateway.host
    return f"http://{f'[{host}]' if ':' in host else host}:{gateway.port}"


class McpServer(NamedTuple):
    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = NONE


class Otlp(NamedTuple):
    """The OpenTelemetry collector that gets traces. `headers`: a reference to them, not their values."""

    address: str = ""
    headers: str = ""


def _none() -> tuple[str, ...]:
    return ()


class Fleet(NamedTuple):
    """What the settings declare. `coders`: each coder's name as an agent with defaults.

    `installed` returns the coders of other installed packages; it is slow, so it is called last.
    """

    name: str = ""
    gateway: Gateway = Gateway()
    nodes: Mapping[str, Node] = NONE
    models: Mapping[str, Model] = NONE
    agents: Mapping[str, Agent] = NONE
    coders: Mapping[str, Agent] = NONE
    mcp_servers: Mapping[str, McpServer] = NONE
    otlp: Otlp = Otlp()
    own_coders: Mapping[str, OwnCoder] = NONE
    routes: tuple[RouteRule, ...] = ()
    installed: Callable[[], tuple[str, ...]] = _none

    @property
    def own_models(self) -> list[Model]:
        """Each declared model once, without the narrowed ones."""
        return [model for model in dict.fromkeys(self.models.values()) if not model.of]

    def agent(self, name: str) -> Agent:
        """A declared agent, or a coder's name used as one; raise `NotFound` otherwise."""
        if name in self.agents:
            return self.agents[name]
        if self.has_coder(name):
            return self.coders.get(name) or Agent(name, coder=name)
        raise self._missing("agent", name, self.agents)

    def has_coder(self, name: str) -> bool:
        return name in CODERS or name in self.own_coders or name in self.installed()

    def coder_names(self) -> list[str]:
        """The built-in ones, then the declared, then the installed."""
        return list(dict.fromkeys((*CODERS, *self.own_coders, *self.installed())))

    def check_coder(self, name: str) -> None:
        """Raise `NotFound` when there is no such coder."""
        if not self.has_coder(name):
            raise self._missing("coder", name, ())

    def _missing(self, what: str, name: str, more: Iterable[str]) -> NotFound:
        known = list(dict.fromkeys((*sorted(more), *self.coder_names())))
        fix = nearest(name, known) or f"{what.capitalize()}s: {', '.join(known)}."
        return NotFound(f"There is no {what} '{name}'.", fix=fix)

    def model(self, name: str) -> Model | None:
        """The model of this key or alias; None means that the coder is given the name verbatim."""
        if name in self.models:
            return self.models[name]
        return next((model for model in self.models.values() if model.alias == name), None)
