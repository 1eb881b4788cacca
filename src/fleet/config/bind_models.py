"""The declared models, bound to their nodes and to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.errors import nearest
from fleet.domain.fleet import Model, Node, Serving, narrow_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.config.bind import DeclaredEntries


def has_tags(serving: Serving, needs: Iterable[str]) -> bool:
    return set(needs) <= set(serving.node.tags)


def no_node(model: str, needs: Iterable[str]) -> tuple[str, str]:
    tags = " and ".join(f"'{tag}'" for tag in dict.fromkeys(needs))
    fix = "Add them to the `tags` of one of its nodes, or take them out of `needs`."
    return f"no node that serves '{model}' has the tags {tags}.", fix


def narrowed(model: Model, needs: Iterable[str]) -> Model | None:
    """Return the model and its fallbacks on the nodes with all these tags; None without any."""
    servings = tuple(serving for serving in model.servings if has_tags(serving, needs))
    if not servings:
        return None
    name = narrow_name(model, needs)
    others = (narrowed(other, needs) for other in model.fallbacks)
    tags = tuple(sorted({*model.needs, *needs}))
    return Model(
        name,
        name,
        servings,
        tuple(other for other in others if other is not None),
        of=model.of or model.name,
        needs=tags,
    )


class Models:
    """Binds models. Keys with the same alias and upstream name are servings of one Model."""

    def __init__(self, declared: DeclaredEntries, nodes: dict[str, Node]) -> None:
        self.declared, self.nodes, self.problems = declared, nodes, declared.problems
        self.declared_models = dict(declared.section("models"))
        self.servings = {
            name: self.serve(name, values) for name, values in self.declared_models.items()
        }
        self.groups = self.grouped()
        self.group_of = {key: keys[0] for keys in self.groups for key in keys}
        self.done: dict[str, Model] = {}

    def bound(self) -> dict[str, Model]:
        """Return the models by key; keys that are servings of one model share it."""
        for keys in self.groups:
            if all(not self.servings[key] for key in keys):
                continue
            self.model(keys, ())
        for node in self.nodes.values():
            self.warn_of_idle_slots(node)
        return {key: self.done[g] for key, g in self.group_of.items() if g in self.done}

    def alias(self, key: str) -> str:
        return str(self.declared_models[key].get("alias") or key)

    def serve(self, name: str, values: Mapping[str, Any]) -> list[Serving]:
        pairs = self.declared.values("models", name, "servings")
        limits = (values["context"], values["timeout"], values["max_parallel"], values["thinking"])
        servings = []
        for path, node, upstream in self.pairs(name, values, pairs):
            if node in self.nodes:
                servings.append(Serving(self.nodes[node], upstream, *limits))
            else:
                known = f"Nodes: {', '.join(self.nodes)}." if self.nodes else "Declare it first."
                fix = nearest(node, self.nodes) or known
                self.declared.wrong(path, f"'{node}' is not a node.", fix)
        fit = [serving for serving in servings if has_tags(serving, values["needs"])]
        if servings and not fit:
            self.declared.wrong(("models", name, "needs"), *no_node(name, values["needs"]))
        return fit

    def pairs(
        self, name: str, values: Mapping[str, Any], pairs: Mapping[str, str]
    ) -> list[tuple[tuple[str, ...], str, str]]:
        """Return the path at which each node is named, the node, and its name for the model."""
        single = [field for field in ("node", "upstream") if field in values]
        if pairs:
            if single:
                path = ("models", name, single[0])
                self.declared.wrong(path, "is given beside `servings`.", "Keep one of them.")
            return [(("models", name, "servings", node), node, up) for node, up in pairs.items()]
        for field, older in (("node", "node"), ("upstream", "ollama_model")):
            if not self.problems.about(f"models.{name}.{older}"):
                fix = "Add `node:` and `upstream:`, or `servings:`."
                self.declared.needs("models", name, field, fix)
        if "node" not in values:
            return []
        return [(("models", name, "node"), values["node"], values.get("upstream", ""))]

    def grouped(self) -> list[list[str]]:
        groups: dict[tuple[str, ...], list[str]] = {}
        first: dict[str, str] = {}
        for key in self.declared_models:
            alias = self.alias(key)
            upstream = sorted({serving.upstream for serving in self.servings[key]})
            shared = groups.setdefault((alias, *upstream), [])
            shared.append(key)
            self.collide(key, alias, first.setdefault(alias, shared[0]), shared[0])
        return list(groups.values())

    def collide(self, key: str, alias: str, first: str, group: str) -> None:
        if alias != key and alias in self.declared_models and alias != group:
            other = f"the model '{alias}': a request for '{alias}' goes to that one."
            message = f"'{alias}' is also the name of {other}"
        elif first != group:
            message = f"'{alias}' is also the alias of '{first}', which serves another model; "
            message += f"a request for '{alias}' goes to '{first}'."
        else:
            return
        field = "alias" if ("models", key, "alias") in self.declared.merged.leaves else "node"
        origin = self.declared.place("models", key, field)
        self.problems.warn(origin, f"models.{key}.alias", message)

    def model(self, keys: list[str], above: tuple[str, ...]) -> Model | None:
        name = keys[0]
        if name in self.done:
            return self.done[name]
        fallbacks = []
        for key in keys:
            for other in self.declared_models[key]["fallbacks"]:
                model = self.fallback(key, other, (*above, name))
                if model is not None and model not in fallbacks:
                    fallbacks.append(model)
        servings = tuple(serving for key in keys for serving in self.servings[key])
        if not servings:
            return None
        self.done[name] = Model(name, self.alias(name), servings, tuple(fallbacks), tuple(keys[1:]))
        self.warn_of_smaller(self.done[name])
        return self.done[name]

    def warn_of_smaller(self, model: Model) -> None:
        for other in model.fallbacks:
            if other.context < model.context:
                origin = self.declared.place("models", model.name, "fallbacks")
                message = f"'{other.name}' holds {other.context} tokens and this model "
                message += f"{model.context}: longer prompts are refused when it has to answer."
                self.problems.warn(origin, f"models.{model.name}.fallbacks", message)

    def warn_of_idle_slots(self, node: Node) -> None:
        """Warn when a node's `max_parallel` exceeds the sum of its models', so has no effect."""
        slots = {
            keys[0]: serving.slots
            for keys in self.groups
            for key in keys
            for serving in self.servings[key]
            if serving.node is node
        }
        if not slots or node.max_parallel <= sum(slots.values()):
            return
        names = " and ".join(f"models.{name}" for name in slots)
        self.problems.warn(
            self.declared.place("nodes", node.name, "max_parallel"),
            f"nodes.{node.name}.max_parallel",
            f"is {node.max_parallel}, but {names} may send it only {sum(slots.values())} at once: "
            "give them `max_parallel`, too.",
        )

    def fallback(self, key: str, other: str, above: tuple[str, ...]) -> Model | None:
        target = self.target(other)
        path = ("models", key, "fallbacks")
        if target is None:
            known = list(
                dict.fromkeys([*self.declared_models, *map(self.alias, self.declared_models)])
            )
            fix = nearest(other, known) or f"Models: {', '.join(self.declared_models)}."
            self.declared.wrong(path, f"'{other}' is not a model.", fix)
            return None
        if target == above[-1] and other != key and other in self.group_of:
            return None  # another key of the same model: already one of its servings
        if target in above:
            ring = " -> ".join((*above[above.index(target) :], target))
            self.declared.wrong(
                path, f"the fallbacks go round in a circle: {ring}.", "Take one of them out."
            )
            return None
        keys = next(keys for keys in self.groups if keys[0] == target)
        return self.model(keys, above)

    def target(self, name: str) -> str | None:
        if name in self.group_of:
            return self.group_of[name]
        return next(
            (self.group_of[key] for key in self.declared_models if self.alias(key) == name), None
        )
