"""What a node has: its models, which of them are in memory, and how much memory one would need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.fleet import Fleet, Serving


class NodeModel(NamedTuple):
    """A model that a node can serve; fields that the node does not report are 0 or empty."""

    name: str
    size: int = 0  # bytes on its disk
    context: int = 0  # its largest context, in tokens
    family: str = ""


class Resident(NamedTuple):
    """A model that is in a node's memory."""

    name: str
    memory: int = 0  # bytes, with its context
    graphics: int = 0  # bytes of these on a graphics card
    context: int = 0  # tokens that it was loaded with
    until: str = ""  # when the node will unload it, in the node's words


class Inventory(NamedTuple):
    """What a node has and does; a field is None if this kind of node does not report it."""

    kind: str
    held: tuple[NodeModel, ...] = ()
    resident: tuple[Resident, ...] | None = None
    version: str = ""
    latency: float = 0.0  # seconds to its first answer
    busy: int | None = None  # requests that it is processing
    waiting: int | None = None  # requests in its queue
    slots: int | None = None  # requests that it processes at once


class SeenNode(NamedTuple):
    """The result of one look at a node. `up` is None when the node was not asked; see `why`."""

    node: str
    up: bool | None
    why: str = ""
    inventory: Inventory | None = None

    @property
    def state(self) -> str:
        return {True: "online", False: "offline", None: "not asked"}[self.up]


class Warmth(NamedTuple):
    """How far the loading of one model on one node has come."""

    model: str
    node: str
    upstream: str
    context: int
    state: str = "waiting"  # then `loading`, and at last `ok` or `failed`
    why: str = ""
    resident: Resident | None = None
    seconds: float = 0.0


def plain_name(name: str) -> str:
    """`qwen` and `qwen:latest` are the same model."""
    return name.removesuffix(":latest")


def same_name(one: str, other: str) -> bool:
    return plain_name(one) == plain_name(other)


def holds(inventory: Inventory, upstream: str) -> bool:
    return any(same_name(model.name, upstream) for model in inventory.held)


def resident(inventory: Inventory, upstream: str) -> Resident | None:
    return next((r for r in inventory.resident or () if same_name(r.name, upstream)), None)


def absent(fleet: Fleet, seen: Sequence[SeenNode]) -> list[tuple[str, Serving]]:
    """The declared models, by name and serving, that are missing on a node that answered."""
    known = {each.node: each.inventory for each in seen if each.inventory is not None}
    models = fleet.own_models
    return [
        (model.name, serving)
        for model in models
        for serving in model.servings
        if (inventory := known.get(serving.node.name)) and not holds(inventory, serving.upstream)
    ]


SPARE = 768 << 20  # bytes that the server itself and the graphics driver use
BATCH = 512  # tokens of a prompt that are read at once
KV_BYTES = {"f16": 2.0, "q8_0": 1.0, "q4_0": 0.5}
# By architecture (n, window): every nth layer reads the whole context, the others only a window.
WINDOWED = {"gemma3": (6, 0), "gptoss": (2, 4096), "gpt-oss": (2, 4096)}


class ModelShape(NamedTuple):
    """The figures of a model that decide how much memory it needs, from `/api/show`."""

    kv_heads: tuple[int, ...]  # of every layer; 0 for a recurrent layer
    key_length: int
    value_length: int
    embedding: int = 0
    heads: int = 0
    vocabulary: int = 0
    window: int = 0
    whole_every: int = 1
    recurrent: int = 0  # numbers that one recurrent layer keeps


class Memory(NamedTuple):
    """Bytes, part by part, so that the total can be explained."""

    weights: int
    cache: int
    graph: int
    spare: int = SPARE

    @property
    def total(self) -> int:
        return sum(self)


MOST_LAYERS, MOST_COUNTED = 10_000, 1e9


def shape_of(info: Mapping[str, Any]) -> ModelShape | None:
    """Read `model_info`, whose keys begin with the architecture; None when figures are missing."""
    arch = str(info.get("general.architecture", ""))

    def number(key: str, otherwise: int = 0) -> int:
        return _counted(info.get(f"{arch}.{key}"), otherwise)

    layers, heads = number("block_count"), number("attention.head_count")
    embedding = number("embedding_length")
    each = embedding // heads if heads else 0
    key, value = (number(f"attention.{what}_length", each) for what in ("key", "value"))
    if not layers or not key or layers > MOST_LAYERS:
        return None
    every, window = WINDOWED.get(arch, (1, 0))
    inner, state = number("ssm.inner_size"), number("ssm.state_size")
    groups, conv = number("ssm.group_count"), number("ssm.conv_kernel")
    return ModelShape(
        _kv_heads(info.get(f"{arch}.attention.head_count_kv", heads), layers),
        key,
        value,
        embedding,
        heads,
        number("vocab_size"),
        number("attention.sliding_window", window) if every > 1 else 0,
        every,
        max(0, conv - 1) * (inner + 2 * groups * state) + state * inner,
    )


def _kv_heads(value: object, layers: int) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(_counted(heads) for heads in value)
    return (_counted(value),) * layers


def _counted(value: object, otherwise: int = 0) -> int:
    """The number that a node reported, if it is plausible for a model."""
    if not isinstance(value, (int, float)) or not 0 <= value < MOST_COUNTED:
        return otherwise
    return int(value)


def cache_bytes(shape: ModelShape, context: int, *, parallel: int = 1, kv: str = "f16") -> int:
    """Bytes for the keys and values of the whole context, for `parallel` requests at once."""
    total = 0.0
    for layer, heads in enumerate(shape.kv_heads):
        if not heads:
            total += 4 * shape.recurrent * parallel
            continue
        whole = not shape.window or (layer + 1) % shape.whole_every == 0
        tokens = context * parallel if whole else _windowed(shape, context, parallel)
        total += tokens * heads * (shape.key_length + shape.value_length) * KV_BYTES[kv]
    return int(total)


def _windowed(shape: ModelShape, context: int, parallel: int) -> int:
    return min(context * parallel, parallel * shape.window + BATCH)


def memory(
    weights: int, shape: ModelShape, context: int, *, parallel: int = 1, kv: str = "f16"
) -> Memory:
    """The memory that a model needs with this context; `weights` is its size on disk."""
    wide = shape.embedding + shape.vocabulary
    long = 1 + 2 * shape.embedding + context + context * shape.heads
    graph = 4 * BATCH * max(wide, long) if shape.embedding else 0
    return Memory(weights, cache_bytes(shape, context, parallel=parallel, kv=kv), graph)


def learned(model: NodeModel, loaded: Resident) -> float | None:
    """Measured bytes per token of context: better than a formula, once the model was loaded."""
    if not model.size or not loaded.context or loaded.memory <= model.size:
        return None
    return (loaded.memory - model.size) / loaded.context
