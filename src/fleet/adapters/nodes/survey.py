"""Look at all nodes in parallel: it takes as long as the slowest, at most until the deadline."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.adapters.nodes.http import CONNECT, Asking, NoAnswer, OtherAnswer
from fleet.adapters.nodes.key import key_of
from fleet.adapters.nodes.ollama import Ollama
from fleet.adapters.nodes.openai import OpenAIShaped
from fleet.base.loose_json import mapping, mappings, string
from fleet.domain.errors import Unavailable
from fleet.domain.fleet import UNTRUSTED
from fleet.domain.nodes.inventory import Inventory, SeenNode
from fleet.domain.nodes.kinds import KINDS, MODELS, OPENAI, kind_at, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from fleet.domain.fleet import Node
    from fleet.ports import Backend

LEAST = 0.05  # the least seconds for a further request after a slow reply
GRACE = 0.2  # seconds more for a look to report its own error
ELSEWHERE = "a hosted API, whose address the gateway knows"


class Prober:
    """Asks nodes. `unsaid`: those without a configured kind, which is detected instead."""

    def __init__(self, env: Mapping[str, str], base: Path, unsaid: Collection[str] = ()) -> None:
        self._env, self._base, self._unsaid = env, base, unsaid

    def backend(self, node: Node, kind: str = "") -> Backend:
        """Return the backend of a node; raise `Unavailable` when its key cannot be read."""
        key = key_of(node.api_key, self._env, self._base)
        return make_backend(kind or node.kind, node.endpoint, key)

    def speaking(self, node: Node) -> Backend:
        """Return the backend of the node's configured kind, or else of the detected kind."""
        if node.name not in self._unsaid:
            return self.backend(node)
        return self.backend(node, detect(node.endpoint, within=CONNECT) or node.kind)

    def survey(self, nodes: Sequence[Node], *, within: float) -> list[SeenNode]:
        """Look at all nodes in parallel; return one row for each, in their order."""
        local = [n for n in nodes if n.endpoint]
        acts = {n.name: _look(self, n, within) for n in local}
        late = f"no answer within {within:g} s"
        results = side_by_side(acts, within=within + GRACE)
        rows = {n.name: results.get(n.name, SeenNode(n.name, up=False, why=late)) for n in local}
        return [rows.get(n.name) or _unseen(n) for n in nodes]

    def look(self, node: Node, *, within: float) -> SeenNode:
        try:
            return SeenNode(node.name, up=True, inventory=self._inventory(node, within))
        except Unavailable as error:
            return SeenNode(node.name, up=False, why=error.message)

    def _inventory(self, node: Node, within: float) -> Inventory:
        until = time.monotonic() + within
        try:
            return self.backend(node).look(within=within)
        except OtherAnswer:
            if time.monotonic() >= until:  # the reply was cut off
                raise NoAnswer(f"no whole answer within {within:g} s") from None
            kind = detect(node.endpoint, within=until - time.monotonic())
            if kind in {"", node.kind}:
                raise
            if node.name not in self._unsaid:
                raise OtherAnswer(f"it answers as {kind} does, not as {node.kind}") from None
            return self.backend(node, kind).look(within=max(LEAST, until - time.monotonic()))


def _unseen(node: Node) -> SeenNode:
    return (
        SeenNode(node.name, None, ELSEWHERE)
        if node.trusted
        else SeenNode(node.name, False, UNTRUSTED)
    )


def _look(prober: Prober, node: Node, within: float) -> Callable[[], SeenNode]:
    return lambda: prober.look(node, within=within)


def make_backend(kind: str, endpoint: str, key: str = "") -> Backend:
    if kind_of(kind).is_ollama:
        return Ollama(endpoint, key, kind)
    return OpenAIShaped(kind if kind in KINDS else OPENAI, endpoint, key)


def detect(endpoint: str, *, within: float) -> str:
    """Return the kind of server at an address, empty for an unknown one. Sends no key."""
    if hosted := kind_at(urlsplit(endpoint).hostname):
        return hosted
    with Asking(endpoint.removesuffix("/v1"), {}, within=within) as asking:
        for name, kind in KINDS.items():
            path, field = kind.sign
            with suppress(OtherAnswer):
                if path and mapping(asking.json(path)).get(field) not in (None, ""):
                    return name
        with suppress(OtherAnswer):
            models = mapping(asking.json(MODELS))
            owners = {string(each.get("owned_by")) for each in mappings(models.get("data"))}
            known = [name for name, kind in KINDS.items() if kind.owner and kind.owner in owners]
            return known[0] if known else OPENAI if "data" in models else ""
    return ""


def side_by_side(
    acts: Mapping[str, Callable[[], SeenNode]], *, within: float
) -> dict[str, SeenNode]:
    """Call `acts` in threads; return the results of those that end in time, and ignore the rest."""
    results: dict[str, SeenNode] = {}
    threads = [
        threading.Thread(target=lambda n=name, a=act: results.update({n: a()}), daemon=True)
        for name, act in acts.items()
    ]
    until = time.monotonic() + within
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(results)
