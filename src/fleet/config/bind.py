"""Make a Fleet of merged settings: resolve every reference, or report it as a problem."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.config.bind_coders import bound as own_coders
from fleet.config.bind_coders import installed
from fleet.config.bind_models import Models, narrowed, no_node
from fleet.config.keys.kinds import size_bytes
from fleet.config.keys.table import PROJECT
from fleet.domain.errors import nearest
from fleet.domain.fleet import (
    CODERS,
    NODE_KINDS,
    Agent,
    Fleet,
    Gateway,
    McpServer,
    Model,
    Node,
    Otlp,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.config.files.problems import Problems, SettingPlace
    from fleet.config.keys.table import Path
    from fleet.config.layers import Layer
    from fleet.domain.routes import RouteRule


def bind(merged: Layer, problems: Problems, withheld: Iterable[Path] = ()) -> Fleet:
    """Return the fleet without what cannot be bound, which is added to `problems`.

    `withheld`: settings that are declared but not trusted.
    """
    return _Binder(merged, problems).fleet(frozenset(withheld))


class DeclaredEntries:
    """The entries that the layers declare, and where each part of them was written."""

    def __init__(self, merged: Layer, problems: Problems) -> None:
        self.merged, self.problems = merged, problems
        self.under: dict[Path, dict[str, Any]] = {}
        for path, leaf in merged.leaves.items():
            self.under.setdefault(path[:-1], {})[path[-1]] = leaf.value

    def section(self, section: str) -> list[tuple[str, dict[str, Any]]]:
        names = [name for kind, name in self.merged.entries if kind == section]
        return [(name, self.values(section, name)) for name in names]

    def values(self, *above: str) -> dict[str, Any]:
        return self.under.get(above, {})

    def place(self, *path: str) -> SettingPlace:
        leaf = self.merged.leaves.get(path)
        return leaf.origin.place if leaf else self.merged.entries[path[0], path[1]]

    def wrong(self, path: tuple[str, ...], message: str, fix: str = "") -> None:
        leaf = self.merged.leaves.get(path)
        written = leaf.written if leaf and leaf.written else ".".join(path)
        self.problems.add(self.place(*path), written, message, fix)

    def needs(self, section: str, name: str, field: str, fix: str) -> None:
        given = (section, name, field) in self.merged.leaves
        if not given and not self.problems.about(f"{section}.{name}.{field}"):
            origin = self.merged.entries[section, name]
            self.problems.add(origin, f"{section}.{name}", f"has no `{field}`.", fix)


class _Binder(DeclaredEntries):
    def fleet(self, withheld: frozenset[Path]) -> Fleet:
        coder, model = (self.merged.leaves[(name,)].value for name in ("coder", "model"))
        self.own = own_coders(self, withheld)
        self.untrusted = {path[1] for path in withheld if path[0] == "nodes" and path[2] in WHERE}
        self.check_coder(("coder",), coder)
        nodes = {n: self.node(n, declared) for n, declared in self.section("nodes")}
        models = Models(self, nodes).bound()
        agents = {
            n: self.agent(n, declared, models, coder, model)
            for n, declared in self.section("agents")
        }
        routes = self.routes(models, agents, coder)
        known = dict.fromkeys((*CODERS, *self.own, coder))
        coders = {n: _default_agent(n, models, coder, model) for n in known}
        observed = self.values("project", "observability")
        servers = {n: self.server(n, declared) for n, declared in self.section("mcp_servers")}
        return Fleet(
            name=self.merged.leaves["project", "name"].value,
            gateway=Gateway(**self.values("project", "gateway")),
            nodes=MappingProxyType(nodes),
            models=MappingProxyType(models),
            agents=MappingProxyType(agents),
            coders=MappingProxyType(coders),
            mcp_servers=MappingProxyType(servers),
            otlp=Otlp(observed["otlp"], observed.get("otlp_headers") or ""),
            own_coders=MappingProxyType(self.own),
            routes=routes,
            installed=installed,
        )

    def check_coder(self, path: Path, name: str) -> None:
        if name in CODERS or name in self.own or name in installed():
            return
        known = (*CODERS, *self.own, *installed())
        fix = nearest(name, known) or f"It may be {', '.join(known[:-1])} or {known[-1]}."
        self.wrong(path, f"'{name}' is not a valid value.", fix)

    def node(self, name: str, declared: Mapping[str, Any]) -> Node:
        from fleet.domain.nodes.kinds import kind_of  # noqa: PLC0415  # most homes name no node

        kind, provider = self.kind(name, declared)
        known = kind_of(kind)
        endpoint = declared.get("endpoint", "")
        kind_from = self.merged.leaves["nodes", name, "kind"].origin.layer
        if (
            name in self.untrusted
            and not endpoint
            and (known.needs_endpoint or kind_from == PROJECT)
        ):
            tags, most = declared["tags"], declared["max_parallel"]
            return Node(name, kind, "", provider, tags, most, trusted=False)
        if not endpoint and known.needs_endpoint:
            self.needs("nodes", name, "endpoint", "Add `endpoint: http://HOST:PORT`.")
        if kind == "hosted" and not provider:
            self.needs("nodes", name, "provider", "Add the gateway's name for the API.")
        ours = endpoint in {"", known.address}  # a default key goes to its own API and nowhere else
        return Node(
            name,
            kind,
            endpoint or known.address,
            provider,
            declared["tags"],
            declared["max_parallel"],
            declared.get("api_key") or (known.key if ours else ""),
            size_bytes(declared["memory"]) or 0,
            weight=declared["weight"],
            wake_on_lan=declared["wake_on_lan"],
            wake_address=declared["wake_address"],
            wake_seconds=declared["wake_seconds"],
        )

    def kind(self, name: str, declared: Mapping[str, Any]) -> tuple[str, str]:
        """Return the node's kind and provider; older files set only `provider`."""
        provider = str(declared.get("provider", ""))
        if self.merged.leaves["nodes", name, "kind"].origin.layer != "default" or not provider:
            return declared["kind"], provider
        guess = provider.lower().replace(".", "").replace("-", "").replace("_", "")
        if guess in NODE_KINDS:
            return guess, ""
        origin = self.place("nodes", name, "provider")
        if not declared.get("endpoint"):
            return "hosted", provider
        message = f"'{provider}' is taken as `kind: openai`, an OpenAI-compatible server."
        self.problems.warn(origin, f"nodes.{name}.provider", message)
        return "openai", ""

    def routes(
        self, models: dict[str, Model], agents: Mapping[str, Agent], coder: str
    ) -> tuple[RouteRule, ...]:
        if not self.section("routes"):
            return ()
        from fleet.config.bind_routes import RouteBinder  # noqa: PLC0415  # start-up time

        return RouteBinder(self, models, agents, coder).bound()

    def agent(
        self,
        name: str,
        declared: Mapping[str, Any],
        models: dict[str, Model],
        coder: str,
        model: str,
    ) -> Agent:
        named = declared.get("coder") or (name if name in CODERS or name in self.own else "")
        if declared.get("coder"):
            self.check_coder(("agents", name, "coder"), named)
        if not named:
            self.needs("agents", name, "model", "Add `model:` with a name under `models`.")
            self.needs("agents", name, "description", "Say in a sentence when to use it.")
        model_name = declared.get("model", "")
        bound = _find(models, model_name) if model_name else None
        if model_name and bound is None:
            self.unknown_model(name, model_name, models, free=bool(named))
        if not model_name and (named or coder) == coder:
            model_name, bound = model, _find(models, model)
        if bound is not None and declared["needs"]:
            bound = self.narrow(("agents", name, "needs"), bound, declared["needs"], models)
            model_name = bound.alias
        own = {k: declared[k] for k in OWN}
        if own["command"] and (named or coder) not in {"command", "acp"}:
            self.wrong(("agents", name, "command"), "is only for the coders command and acp.")
        description = declared.get("description", "")
        prompt = declared.get("prompt") or _prompt_of(name, description)
        return Agent(name, named or coder, bound, model_name, description, prompt, **own)

    def unknown_model(
        self, name: str, model_name: str, models: dict[str, Model], *, free: bool
    ) -> None:
        known = _names(models.values())
        near = nearest(model_name, known)
        if ("models", model_name) in self.merged.entries:
            return  # it is declared, and its own problem is reported already
        if not free:
            listed = near or (f"Models: {', '.join(known)}." if known else "Declare it first.")
            self.wrong(("agents", name, "model"), f"'{model_name}' is not under `models`.", listed)
        elif near:
            message = f"'{model_name}' is not under `models`, so it is passed to the coder unchanged. {near}"
            origin = self.place("agents", name, "model")
            self.problems.warn(origin, f"agents.{name}.model", message)

    def narrow(
        self, path: Path, model: Model, needs: tuple[str, ...], models: dict[str, Model]
    ) -> Model:
        """Return the model narrowed to nodes with these tags, and add it to `models`."""
        narrow = narrowed(model, needs)
        if narrow is None:
            self.wrong(path, *no_node(model.name, needs))
            return model
        for each in (narrow, *(narrowed(m, needs) for m in list(models.values()) if not m.of)):
            if each is None or models.setdefault(each.name, each).of:
                continue
            other = f"'{each.name}' is already the name of '{each.of}' on nodes with these tags."
            self.wrong(("models", each.name, "node"), other, "Choose another name.")
        return models[narrow.name]

    def server(self, name: str, declared: Mapping[str, Any]) -> McpServer:
        self.needs("mcp_servers", name, "command", "Add the program that serves it.")
        env = MappingProxyType(self.values("mcp_servers", name, "env"))
        return McpServer(name, declared.get("command", ""), declared.get("args", ()), env)


WHERE = ("endpoint", "kind", "provider")  # the settings that decide where requests are sent
OWN = ("tools", "permissions", "extra_args", "command", "priority", "role", "max_requests", "needs")


def _prompt_of(name: str, description: str) -> str:
    """Return the prompt of an agent that has only a description."""
    if not description:
        return ""
    from fleet.domain.generated.roles import role_prompt  # noqa: PLC0415  # start-up time

    return role_prompt(name, description)


def _default_agent(name: str, models: dict[str, Model], coder: str, model: str) -> Agent:
    model_name = model if name == coder else ""  # a model's name means something to one coder only
    return Agent(name, name, _find(models, model_name) if model_name else None, model_name)


def _names(models: Iterable[Model]) -> list[str]:
    return list(dict.fromkeys(name for model in models for name in model.names))


def _find(models: Mapping[str, Model], name: str) -> Model | None:
    if name in models:
        return models[name]
    return next((model for model in models.values() if model.alias == name), None)
