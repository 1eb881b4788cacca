"""Ollama's own API: its models, those in its memory, and how to load one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.http import Asking, NoAnswer, OtherAnswer
from fleet.base.loose_json import integer, mapping, mappings, string
from fleet.domain.nodes.inventory import (
    Inventory,
    ModelShape,
    NodeModel,
    Resident,
    resident,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = 404
LOOK_SECONDS = 0.25  # seconds between looks at what is resident
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
            models = tuple(_model_of(each) for each in _models(asking.json("/api/tags")))
            return Inventory(
                self._kind, models, self._resident(asking), version, latency=asking.latency
            )

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Load the model with `keep_alive: -1` and the size of context that requests will use."""
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
                    message = f"{error.message}; run `ollama pull {upstream}` there"
                    raise OtherAnswer(message, MISSING) from None
                if not 400 <= error.status < 500:
                    raise
                asking.json(
                    "/api/chat", {**body, "messages": WORDS}
                )  # an older server needs a message
            while asking.left > 0:
                loaded = resident(Inventory(self._kind, resident=self._resident(asking)), upstream)
                if loaded is not None:
                    return loaded
                if self._is_elsewhere(asking, upstream):
                    return Resident(upstream)
                time.sleep(LOOK_SECONDS)
        raise NoAnswer(f"it did not report the model as resident within {within:g} s")

    def _is_elsewhere(self, asking: Asking, upstream: str) -> bool:
        """Whether Ollama passes its requests on to its cloud: such a model is never resident."""
        rows = _models(asking.json("/api/tags"))
        return any(row.get("remote_host") and _name(row) in _tags(upstream) for row in rows)

    def shape(self, upstream: str, *, within: float) -> ModelShape | None:
        """The facts from which its memory can be computed; None when the node gives none."""
        with self._asking(within) as asking:
            answer = mapping(asking.json("/api/show", {"model": upstream}))
            return shape_of(mapping(answer.get("model_info")))

    def thinks(self, upstream: str, *, within: float) -> bool:
        """Whether the model can think before it answers."""
        with self._asking(within) as asking:
            answer = mapping(asking.json("/api/show", {"model": upstream}))
            capabilities = answer.get("capabilities")
            return isinstance(capabilities, list) and "thinking" in capabilities

    def _asking(self, within: float) -> Asking:
        return Asking(self._endpoint, self._headers, within=within)

    def _resident(self, asking: Asking) -> tuple[Resident, ...] | None:
        try:
            return tuple(_loaded(each) for each in _models(asking.json("/api/ps")))
        except OtherAnswer:
            return None  # an old server has no such page


def _model_of(model: Mapping[str, Any]) -> NodeModel:
    family = string(mapping(model.get("details")).get("family"))
    return NodeModel(_name(model), integer(model.get("size")), family=family)


def _loaded(model: Mapping[str, Any]) -> Resident:
    memory, graphics, context = (
        integer(model.get(k)) for k in ("size", "size_vram", "context_length")
    )
    return Resident(_name(model), memory, graphics, context, string(model.get("expires_at")))


def _name(model: Mapping[str, Any]) -> str:
    return string(model.get("name")) or string(model.get("model"))


def _tags(upstream: str) -> tuple[str, str]:
    """Ollama lists `m` as `m:latest`."""
    return upstream, f"{upstream}:latest"


def _models(answer: Any) -> list[dict[str, Any]]:
    if not isinstance(mapping(answer).get("models"), list):
        raise OtherAnswer("its answer has no list of models")
    return mappings(answer["models"])
