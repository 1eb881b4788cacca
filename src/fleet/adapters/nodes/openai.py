"""Servers with OpenAI's API: vLLM, LM Studio, llama.cpp, hosted ones."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.http import Asking, NoAnswer, OtherAnswer
from fleet.base.loose_json import integer, mapping, mappings, string
from fleet.domain.nodes.inventory import Inventory, NodeModel, Resident, holds, resident
from fleet.domain.nodes.kinds import KINDS, MODELS, kind_of
from fleet.domain.nodes.occupancy import from_load, from_metrics, from_slots

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK_SECONDS = 0.25  # seconds between looks at a server that is still loading
BUSY = 503
WORDS = [{"role": "user", "content": "Reply with ok."}]


class OpenAIShaped:
    def __init__(self, kind: str, endpoint: str, key: str = "") -> None:
        self._name, self._kind = kind, kind_of(kind)
        self._endpoint = endpoint.removesuffix("/v1")
        self._headers = self._kind.headers(key)

    def look(self, *, within: float) -> Inventory:
        with self._asking(within) as asking:
            inventory = self._listed(asking)
            return self._more(asking, inventory) if not self._kind.hosted else inventory

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Waits for a server that is loading its model; LM Studio loads a model on request."""
        with self._asking(within) as asking:
            self._wait_until_well(asking)
            inventory = self._more(asking, self._listed(asking))
            if not holds(inventory, upstream):
                raise OtherAnswer(f"it does not have {upstream}")
            if self._kind.pages.states and resident(inventory, upstream) is None:
                self._ask_to_load(asking, upstream, context)
                inventory = self._more(asking, inventory)
            loaded = resident(inventory, upstream)
        if loaded is not None:
            return loaded
        if self._kind.pages.states:
            raise NoAnswer("it does not report the model as loaded")
        return Resident(upstream)  # hosted APIs and unknown servers do not tell

    def _asking(self, within: float) -> Asking:
        return Asking(self._endpoint, self._headers, within=within)

    def _ask_to_load(self, asking: Asking, upstream: str, context: int) -> None:
        try:
            asking.json("/api/v1/models/load", {"model": upstream, "context_length": context})
        except OtherAnswer:  # an older one loads the model that a chat names
            body = {"model": upstream, "messages": WORDS, "max_tokens": 1}
            asking.json("/v1/chat/completions", body)

    def _wait_until_well(self, asking: Asking) -> None:
        while self._kind.health:
            try:
                asking.text(self._kind.health)
            except OtherAnswer as error:
                if error.status != BUSY or asking.left < LOOK_SECONDS:
                    raise
                time.sleep(LOOK_SECONDS)  # llama.cpp says 503 while it loads
            else:
                return

    def _listed(self, asking: Asking) -> Inventory:
        rows = mapping(asking.json(MODELS)).get("data")
        if not isinstance(rows, list):
            raise OtherAnswer("its answer has no list of models")
        models = tuple(_model_of(each) for each in mappings(rows))
        return Inventory(self._name, models, latency=asking.latency)

    def _more(self, asking: Asking, inventory: Inventory) -> Inventory:
        """The inventory with the facts of the other pages; a node without these pages is still up."""
        pages = self._kind.pages
        with suppress(OtherAnswer):
            if pages.version:
                answer = mapping(asking.json(pages.version))
                inventory = inventory._replace(version=string(answer.get("version")))
        context = 0
        with suppress(OtherAnswer):
            if pages.props:
                inventory, context = _props(inventory, mapping(asking.json(pages.props)))
        with suppress(OtherAnswer):
            if pages.slots:
                occupancy = from_slots(asking.json(pages.slots))
                inventory = inventory._replace(busy=occupancy.busy, slots=occupancy.slots)
        with suppress(OtherAnswer):
            if pages.metrics:
                occupancy = from_metrics(pages, asking.text(pages.metrics))
                inventory = inventory._replace(busy=occupancy.busy, waiting=occupancy.waiting)
        for page in filter(None, (pages.older_load, pages.load)):
            with suppress(OtherAnswer):
                if load := from_load(asking.json(page)):
                    inventory = inventory._replace(busy=load.busy, waiting=load.waiting)
        if self._kind.always_resident:
            loaded = [
                Resident(h.name, h.size, context=context or h.context) for h in inventory.held
            ]
            inventory = inventory._replace(resident=tuple(loaded))
        with suppress(OtherAnswer):
            if pages.instances:
                return _instances(inventory, mapping(asking.json(pages.instances)))
        with suppress(OtherAnswer):
            if pages.states:
                inventory = _states(inventory, mapping(asking.json(pages.states)))
        return inventory


def _model_of(model: Mapping[str, Any]) -> NodeModel:
    """Read a model's fields by all kinds' names, as a proxy passes on the fields of any server."""
    fields = [kind.fields for kind in KINDS.values()]
    context = next(filter(None, (_number(model, each.context) for each in fields)), 0)
    size = next(filter(None, (_number(model, each.size) for each in fields)), 0)
    return NodeModel(string(model.get("id")), size, context)


def _number(model: Mapping[str, Any], path: str) -> int:
    *outer, last = path.split(".")
    for name in outer:
        model = mapping(model.get(name))
    return integer(model.get(last))


def _props(inventory: Inventory, props: Mapping[str, Any]) -> tuple[Inventory, int]:
    context = integer(mapping(props.get("default_generation_settings")).get("n_ctx"))
    slots = integer(props.get("total_slots")) or None
    return inventory._replace(slots=slots, version=string(props.get("build_info"))), context


def _instances(inventory: Inventory, answer: Mapping[str, Any]) -> Inventory:
    """Return the inventory with the loaded models, each with its instances' smallest context."""
    models = mappings(answer.get("models"))
    if not models:
        raise OtherAnswer("its answer has no list of models")
    on_disk, loaded = [], []
    for model in models:
        name = string(model.get("key"))
        on_disk.append(
            NodeModel(
                name, integer(model.get("size_bytes")), integer(model.get("max_context_length"))
            )
        )
        configs = [mapping(each.get("config")) for each in mappings(model.get("loaded_instances"))]
        if configs:
            context = min(integer(config.get("context_length")) for config in configs)
            loaded.append(Resident(name, context=context))
    return inventory._replace(held=tuple(on_disk), resident=tuple(loaded))


def _states(inventory: Inventory, answer: Mapping[str, Any]) -> Inventory:
    models = mappings(answer.get("data"))
    on_disk = tuple(
        NodeModel(string(m.get("id")), context=integer(m.get("max_context_length"))) for m in models
    )
    loaded = tuple(
        Resident(string(m.get("id")), context=integer(m.get("loaded_context_length")))
        for m in models
        if m.get("state") == "loaded"
    )
    return inventory._replace(held=on_disk or inventory.held, resident=loaded)
