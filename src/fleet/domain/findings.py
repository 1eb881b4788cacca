"""The findings of `fleet doctor`, and those of its checks that read nothing themselves."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.fleet import EVERYWHERE
from fleet.domain.nodes.inventory import absent, resident
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fleet.domain.fleet import Fleet, Gateway, Node
    from fleet.domain.nodes.inventory import SeenNode

OK, WARNING, BAD, SKIPPED = "ok", "warning", "bad", "skipped"
WEAK = frozenset(
    {"", "sk-1234", "sk-local-dev"}
)  # keys in documentation: the first that an attacker tries
BATCH = 8  # requests at once that are a safe suggestion for a server that batches
SHORTEST_KEY = 16  # characters; a key that is shorter can be guessed
HOST = re.compile(r"[a-z]+://(?:[^@/]*@)?(\[[^\]]+\]|[^:/]+)")
TAILNET = ipaddress.ip_network("100.64.0.0/10")  # carrier-grade NAT, also used by Tailscale


class Finding(NamedTuple):
    """`fix` is the next step: a command where there is one."""

    check: str
    state: str
    said: str
    fix: str = ""


def is_old(version: str, least: str) -> bool:
    """Compare by the numbers only: `3.5a` counts as `3.5`."""
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def is_weak(key: str) -> bool:
    return key in WEAK or len(key) < SHORTEST_KEY


def is_wide(host: str) -> bool:
    """Whether a server that listens on this host can be reached from other machines."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return True


def exposed_gateway(gateway: Gateway, key: str) -> Finding:
    """`key`: the gateway's key in the environment; empty: our generated key, which is random."""
    where = "everywhere" if gateway.host in EVERYWHERE - {"localhost"} else gateway.host
    if not is_wide(gateway.host):
        return Finding("exposure", OK, "The gateway answers only to this machine.")
    if key and is_weak(key):
        return Finding(
            "exposure",
            BAD,
            f"The gateway listens on {where}, and its key in ${gateway.master_key_env} is weak.",
            f"unset {gateway.master_key_env}",
        )
    return Finding("exposure", OK, f"The gateway listens on {where}, and its key is long enough.")


def exposed_nodes(nodes: Iterable[Node]) -> Iterator[Finding]:
    """Nodes that other machines can reach and that ask for no key."""
    open_ones = [node for node in nodes if node.endpoint and not node.api_key]
    public = [node for node in open_ones if _reach(node) == "public"]
    for node in public:
        yield Finding(
            "exposure",
            BAD,
            f"The node {node.name} ({node.endpoint}) is on the Internet and needs no key: "
            "anyone who finds it can use it.",
            "Put it behind a firewall, Tailscale or WireGuard and use its address there; or give "
            f"it a key, and name it: nodes.{node.name}.api_key=os.environ/NAME.",
        )
    near = [node.name for node in open_ones if _reach(node) == "network"]
    if near:
        yield Finding(
            "exposure",
            WARNING,
            f"These nodes need no key, so your whole network can use them: {', '.join(near)}.",
            "Keep that network private: a firewall, Tailscale or WireGuard.",
        )


def _reach(node: Node) -> str:
    """`machine`, `network` or `public`. A host name counts as `network`, though it may be public."""
    match = HOST.match(node.endpoint)
    host = match[1].strip("[]") if match else ""
    if host == "localhost":
        return "machine"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "network"
    if address.is_loopback:
        return "machine"
    return "public" if address.is_global and address not in TAILNET else "network"


def judged_nodes(fleet: Fleet, seen: Sequence[SeenNode]) -> Iterator[Finding]:
    for each in seen:
        if each.up is False:
            node = fleet.nodes[each.node]
            yield Finding(
                "nodes",
                BAD,
                f"{each.node} ({node.endpoint}) does not answer: {each.why}."
                if node.endpoint
                else f"{each.node} cannot be used: {each.why}.",
                "Start it there. If it runs already, check its address, its firewall and its key.",
            )
    missing = absent(fleet, seen)
    kinds = {each.node: each.inventory.kind for each in seen if each.inventory is not None}
    for name, serving in missing:
        pull = f"ollama pull {serving.upstream}"
        ollama = kind_of(kinds[serving.node.name]).is_ollama
        yield Finding(
            "nodes",
            BAD,
            f"{serving.node.name} has no {serving.upstream}, which models.{name} names.",
            f"On {serving.node.name}: {pull}"
            if ollama
            else "Load it there, or name another model.",
        )
    up = [each.node for each in seen if each.up]
    if up:
        yield Finding("nodes", OK, f"Answering: {', '.join(up)}.")


def judged_contexts(fleet: Fleet, seen: Sequence[SeenNode]) -> Iterator[Finding]:
    """Loaded models whose context is not as configured: a request would reload or be cut off."""
    known = {each.node: each.inventory for each in seen if each.inventory is not None}
    right = 0
    for model in fleet.own_models:
        for serving in model.servings:
            inventory = known.get(serving.node.name)
            loaded = resident(inventory, serving.upstream) if inventory else None
            if inventory is None or loaded is None or not loaded.context:
                continue
            ollama = kind_of(inventory.kind).is_ollama
            if loaded.context == serving.context or (
                not ollama and loaded.context > serving.context
            ):
                right += 1
                continue
            yield Finding(
                "context",
                BAD,
                f"{serving.upstream} on {serving.node.name} is resident with a context of "
                f"{loaded.context}; models.{model.name}.context is {serving.context}.",
                f"fleet warmup --model {model.name}"
                if ollama
                else f"fleet config set --project models.{model.name}.context={loaded.context}",
            )
    if right:
        yield Finding("context", OK, f"Resident models have the configured context ({right}).")


def judged_slots(fleet: Fleet, seen: Sequence[SeenNode]) -> Iterator[Finding]:
    """Models whose `max_parallel` is above the server's slots, or is 1 on a server that batches."""
    known = {each.node: each.inventory for each in seen if each.inventory is not None}
    for model in dict.fromkeys(fleet.models.values()):
        for serving in model.servings:
            inventory, setting = known.get(serving.node.name), f"models.{model.name}.max_parallel"
            if inventory is None:
                continue
            if inventory.slots and serving.slots > inventory.slots:
                yield Finding(
                    "slots",
                    WARNING,
                    f"{serving.node.name} works on {inventory.slots} at once; "
                    f"{setting} is {serving.slots}, so the rest wait there unseen.",
                    f"fleet config set --project {setting}={inventory.slots}",
                )
            elif serving.slots == 1 and kind_of(inventory.kind).batches:
                yield Finding(
                    "slots",
                    WARNING,
                    f"{serving.node.name} works on many requests at once with little loss; "
                    f"{setting} is 1, so it gets one after the other.",
                    f"fleet config set --project {setting}={BATCH}",
                )
