"""Ollama's own API: what it has, what is in its memory, and how to load a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.http import Asking, NoAnswer, OtherAnswer
from fleet.base.loose_json import integer, mapping, mappings, string
from fleet.domain.nodes.inventory import Held, Inventory, Resident, Shape, resident, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = 404
EVERY = 0.25  # seconds between looks at what is resident
WORDS = [{"role": "user", "content": "Reply with ok."}]


class Ollama:
    def __init__(self, endpoint: str, key: str = "", kind: str = "ollama") -> None:
        self._kind = kind
        self._endpoint = endpoint.removesuffix("/v1")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def look(self, *, within: float) -> Inventory:
        with self._asking(within) as asking:
            version = string(mapping(asking.json("/api/version")).get("version"))
            if not version:
                raise OtherAnswer("it answers, but not as Ollama does")
            held = tuple(_held(each) for each in _models(asking.json("/api/tags")))
            return Inventory(
                self._kind, held, self._resident(asking), version, latency=asking.latency
            )

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """With `keep_alive: -1` and the size of context that requests will use."""
        body = {
            "model": upstream,
            "messages": [],
            "stream": False,
            "keep_alive": -1,
            "options": {"num_ctx": context},
        }
        with self._asking(within) as asking:
            try:
                asking.json("/api/chat", body)
            except OtherAnswer as error:
                if error.status == MISSING:
                    said = f"{error.message}; run `ollama pull {upstream}` there"
                    raise OtherAnswer(said, MISSING) from None
                if not 400 <= error.status < 500:
                    raise
                asking.json("/api/chat", {**body, "messages": WORDS})  # older ones want words
            while asking.left > 0:
                found = resident(Inventory(self._kind, resident=self._resident(asking)), upstream)
                if found is not None:
                    return found
                time.sleep(EVERY)
        raise NoAnswer(f"it does not say that the model is resident, after {within:g} s")

    def shape(self, upstream: str, *, within: float) -> Shape | None:
        """What its memory can be computed from; None when it does not say."""
        with self._asking(within) as asking:
            said = mapping(asking.json("/api/show", {"model": upstream}))
            return shape_of(mapping(said.get("model_info")))

    def _asking(self, within: float) -> Asking:
        return Asking(self._endpoint, self._headers, within=within)

    def _resident(self, asking: Asking) -> tuple[Resident, ...] | None:
        try:
            return tuple(_loaded(each) for each in _models(asking.json("/api/ps")))
        except OtherAnswer:
            return None  # an old one has no such page


def _held(said: Mapping[str, Any]) -> Held:
    family = string(mapping(said.get("details")).get("family"))
    return Held(_name(said), integer(said.get("size")), family=family)


def _loaded(said: Mapping[str, Any]) -> Resident:
    memory, graphics, context = (
        integer(said.get(k)) for k in ("size", "size_vram", "context_length")
    )
    return Resident(_name(said), memory, graphics, context, string(said.get("expires_at")))


def _name(said: Mapping[str, Any]) -> str:
    return string(said.get("name")) or string(said.get("model"))


def _models(said: Any) -> list[dict[str, Any]]:
    if not isinstance(mapping(said).get("models"), list):
        raise OtherAnswer("its answer has no list of models")
    return mappings(said["models"])
