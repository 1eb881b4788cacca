"""All kinds of nodes: one row for each kind, with everything that differs between them.

To add a kind, add a row here and its name to `fleet.domain.fleet.NODE_KINDS`. Pulses, inventory,
relay, benchmark and the stand-in `fleet.testing.fake_node` read the row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from fleet.domain.fleet import Node

OLLAMA, OPENAI, ANTHROPIC = "ollama", "openai", "anthropic"  # the wire formats
HOSTED = "hosted"  # the gateway itself calls this API, in whatever format it has
MODELS = "/v1/models"  # every kind lists its models there
HOST = r"[a-z]+://(?:[^@/]*@)?([^:/]+)"  # of an address
MOST_DRAG = 0.5  # of a server that batches


class Pages(NamedTuple):
    """Pages of a server besides its list of models."""

    version: str = ""
    props: str = ""  # llama.cpp's: its slots and the context of each
    slots: str = ""  # llama.cpp's: which of them work
    metrics: str = ""  # Prometheus
    running: str = ""  # the metric that counts requests at work
    queued: str = ""  # the metric that counts requests that wait
    load: str = ""  # SGLang's: the requests of each of its workers
    older_load: str = ""  # the same of an older SGLang
    instances: str = ""  # LM Studio's own list, which says what is loaded
    states: str = ""  # the same of an older LM Studio


class ModelFields(NamedTuple):
    """Fields in the list of models; `meta.size` is the field `size` inside `meta`."""

    context: str = ""
    parameters: str = ""
    size: str = ""


class NodeKind(NamedTuple):
    """One kind of node. Paths are appended to the address without `/v1`; empty: it has no such page."""

    wires: tuple[str, ...] = (OPENAI,)  # the formats it speaks; the gateway uses the first
    health: str = ""  # answers with 200 once it can serve
    pages: Pages = Pages()
    fields: ModelFields = ModelFields()
    sign: tuple[str, str] = ("", "")  # a path, and a field of its answer, that no other kind has
    owner: str = ""  # the `owned_by` of every model in its list, by which we recognize it
    exact: bool = False  # it can be told how many tokens to write, for comparable benchmarks
    always_resident: bool = False  # what it lists is in its memory
    drag: float = 1.0  # how much requests slow each other down, until that is measured
    counts_tokens: bool = True  # it answers /v1/messages/count_tokens where it speaks that wire
    hosted: bool = False  # a company's API: there is nothing to load
    address: str = ""  # of the company's API
    key: str = ""  # a reference to the key for that address
    key_header: str = ""  # instead of `Authorization: Bearer`
    more_headers: tuple[tuple[str, str], ...] = ()

    @property
    def quick(self) -> str:
        """The cheapest page that shows whether it is up."""
        return self.health or MODELS

    @property
    def batches(self) -> bool:
        """Whether it works on many requests at once, which hardly slow each other down."""
        return self.drag < MOST_DRAG

    @property
    def is_ollama(self) -> bool:
        """Whether it has Ollama's own API, by which models are pulled, loaded and unloaded."""
        return OLLAMA in self.wires

    @property
    def needs_endpoint(self) -> bool:
        return not (self.address or self.hosted)

    def headers(self, key: str) -> dict[str, str]:
        """The headers by which a node of this kind knows its clients."""
        named = {self.key_header: key} if self.key_header else {"authorization": f"Bearer {key}"}
        return dict(self.more_headers) | (named if key else {})


KINDS: dict[str, NodeKind] = {
    "ollama": NodeKind(
        wires=(OLLAMA, OPENAI, ANTHROPIC),
        health="/api/version",
        sign=("/api/version", "version"),
        counts_tokens=False,
    ),
    "vllm": NodeKind(
        wires=(OPENAI, ANTHROPIC),
        health="/health",
        pages=Pages(
            version="/version",
            metrics="/metrics",
            running="vllm:num_requests_running",
            queued="vllm:num_requests_waiting",
        ),
        fields=ModelFields(context="max_model_len"),
        owner="vllm",
        exact=True,
        always_resident=True,
        drag=0.2,
    ),
    "lmstudio": NodeKind(
        wires=(OPENAI, ANTHROPIC),
        pages=Pages(instances="/api/v1/models", states="/api/v0/models"),
        sign=("/api/v0/models", "data"),
    ),
    "llamacpp": NodeKind(
        wires=(OPENAI, ANTHROPIC),
        health="/health",
        pages=Pages(props="/props", slots="/slots"),
        fields=ModelFields("meta.n_ctx_train", "meta.n_params", "meta.size"),
        owner="llamacpp",
        exact=True,
        always_resident=True,
    ),
    "sglang": NodeKind(
        health="/health",
        pages=Pages(load="/v1/loads", older_load="/get_load"),
        fields=ModelFields(context="max_model_len"),
        owner="sglang",
        always_resident=True,
        drag=0.2,
    ),
    "openai": NodeKind(
        address="https://api.openai.com/v1",
        key="os.environ/OPENAI_API_KEY",
    ),
    "openrouter": NodeKind(
        hosted=True,
        fields=ModelFields(context="context_length"),
        drag=0.0,
        address="https://openrouter.ai/api/v1",
        key="os.environ/OPENROUTER_API_KEY",
    ),
    "anthropic": NodeKind(
        wires=(ANTHROPIC,),
        hosted=True,
        drag=0.0,
        address="https://api.anthropic.com",
        key="os.environ/ANTHROPIC_API_KEY",
        key_header="x-api-key",
        more_headers=(("anthropic-version", "2023-06-01"),),
    ),
    "hosted": NodeKind(hosted=True, drag=0.0),
}


def kind_of(name: str) -> NodeKind:
    """The row of this kind; an unknown kind is treated like `openai`."""
    return KINDS.get(name, KINDS["openai"])


def kind_at(host: str | None) -> str:
    """The kind of node whose API is at this host, such as `openai`; empty for other hosts."""
    hosts = {kind.address.split("/")[2]: name for name, kind in KINDS.items() if kind.address}
    return hosts.get(host or "", "")


def costs_money(node: Node) -> bool:
    """Whether the node is a company's API, which is paid for."""
    host = re.match(HOST, node.endpoint.lower())
    return not node.endpoint or kind_of(node.kind).hosted or bool(host and kind_at(host[1]))


def wire_of(node: Node) -> str:
    """The format in which the gateway speaks to it."""
    return kind_of(node.kind).wires[0] if node.endpoint or not node.trusted else HOSTED
