"""Servers that speak OpenAI's words: vLLM, LM Studio, llama.cpp, hosted ones."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.http import Asking, NoAnswer, OtherAnswer
from fleet.base.loose_json import integer, mapping, mappings, string
from fleet.domain.nodes.inventory import Held, Inventory, Resident, holds, resident
from fleet.domain.nodes.kinds import MODELS, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY = 0.25  # seconds between looks at a server that is still loading
BUSY = 503
WORDS = [{"role": "user", "content": "Reply with ok."}]


class OpenAIShaped:
    def __init__(self, kind: str, endpoint: str, key: str = "") -> None:
        self._name, self._kind = kind, kind_of(kind)
        self._endpoint = endpoint.removesuffix("/v1")
        self._headers = self._kind.headers(key)

    def look(self, *, within: float) -> Inventory:
        with self._asking(within) as asking:
            found = self._listed(asking)
            return self._more(asking, found) if not self._kind.hosted else found

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """What is always resident is waited for; LM Studio loads what it is asked for."""
        with self._asking(within) as asking:
            self._wait_until_well(asking)
            found = self._more(asking, self._listed(asking))
            if not holds(found, upstream):
                raise OtherAnswer(f"it does not have {upstream}")
            if self._kind.pages.states and resident(found, upstream) is None:
                self._ask_to_load(asking, upstream, context)
                found = self._more(asking, found)
            there = resident(found, upstream)
        if there is not None:
            return there
        if self._kind.pages.states:
            raise NoAnswer("it does not say that the model is loaded")
        return Resident(upstream)  # it has no word for it: hosted, or a server that we do not know

    def _asking(self, within: float) -> Asking:
        return Asking(self._endpoint, self._headers, within=within)

    def _ask_to_load(self, asking: Asking, upstream: str, context: int) -> None:
        try:
            asking.json("/api/v1/models/load", {"model": upstream, "context_length": context})
        except OtherAnswer:  # an older one loads what it is asked to speak with
            said = {"model": upstream, "messages": WORDS, "max_tokens": 1}
            asking.json("/v1/chat/completions", said)

    def _wait_until_well(self, asking: Asking) -> None:
        while self._kind.health:
            try:
                asking.text(self._kind.health)
            except OtherAnswer as error:
                if error.status != BUSY or asking.left < EVERY:
                    raise
                time.sleep(EVERY)  # llama.cpp says 503 while it loads
            else:
                return

    def _listed(self, asking: Asking) -> Inventory:
        said = mapping(asking.json(MODELS)).get("data")
        if not isinstance(said, list):
            raise OtherAnswer("its answer has no list of models")
        held = tuple(_held(each) for each in mappings(said))
        return Inventory(self._name, held, latency=asking.latency)

    def _more(self, asking: Asking, found: Inventory) -> Inventory:
        """What it says besides; where it says nothing it is still up."""
        pages = self._kind.pages
        with suppress(OtherAnswer):
            if pages.version:
                said = mapping(asking.json(pages.version))
                found = found._replace(version=string(said.get("version")))
        context = 0
        with suppress(OtherAnswer):
            if pages.props:
                found, context = _props(found, mapping(asking.json(pages.props)))
        with suppress(OtherAnswer):
            if pages.slots:
                slots = mappings(asking.json(pages.slots))
                busy = sum(bool(each.get("is_processing")) for each in slots)
                found = found._replace(busy=busy, slots=len(slots))
        with suppress(OtherAnswer):
            if pages.metrics:
                found = self._counted(found, asking.text(pages.metrics))
        if self._kind.always_resident:
            loaded = [Resident(h.name, h.size, context=context or h.context) for h in found.held]
            found = found._replace(resident=tuple(loaded))
        with suppress(OtherAnswer):
            if pages.states:
                found = _states(found, mapping(asking.json(pages.states)))
        return found

    def _counted(self, found: Inventory, text: str) -> Inventory:
        pages = self._kind.pages
        values = dict.fromkeys((pages.running, pages.queued), 0.0)
        for line in text.splitlines():
            name = line.partition("{")[0].partition(" ")[0]
            if name in values:
                with suppress(ValueError):
                    values[name] += float(line.rpartition(" ")[2])
        return found._replace(busy=int(values[pages.running]), waiting=int(values[pages.queued]))


def _held(said: Mapping[str, Any]) -> Held:
    more = mapping(said.get("meta"))
    context = said.get("max_model_len") or said.get("context_length") or more.get("n_ctx_train")
    return Held(string(said.get("id")), integer(more.get("size")), integer(context))


def _props(found: Inventory, said: Mapping[str, Any]) -> tuple[Inventory, int]:
    context = integer(mapping(said.get("default_generation_settings")).get("n_ctx"))
    slots = integer(said.get("total_slots")) or None
    return found._replace(slots=slots, version=string(said.get("build_info"))), context


def _states(found: Inventory, said: Mapping[str, Any]) -> Inventory:
    models = mappings(said.get("data"))
    held = tuple(
        Held(string(m.get("id")), context=integer(m.get("max_context_length"))) for m in models
    )
    loaded = tuple(
        Resident(string(m.get("id")), context=integer(m.get("loaded_context_length")))
        for m in models
        if m.get("state") == "loaded"
    )
    return found._replace(held=held or found.held, resident=loaded)
