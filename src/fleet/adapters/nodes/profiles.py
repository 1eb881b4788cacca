"""How the servers that speak OpenAI's words differ from each other, as data."""

from __future__ import annotations

from fleet.domain.data import NamedTuple


class Profile(NamedTuple):
    """Paths are after the address without its `/v1`; an empty one is nothing to ask."""

    health: str = ""  # answers with 200 once it can serve
    version: str = ""
    props: str = ""  # llama.cpp's: its slots and the context of each
    slots: str = ""  # llama.cpp's: which of them work
    metrics: str = ""  # Prometheus
    running: str = ""  # the metric that counts requests at work
    queued: str = ""
    states: str = ""  # LM Studio's own list, which says what is loaded
    always: bool = False  # what it lists is in memory
    hosted: bool = False  # somebody else's: there is nothing to load
    key_header: str = ""  # instead of `Authorization: Bearer`
    more_headers: tuple[tuple[str, str], ...] = ()


PROFILES = {
    "vllm": Profile(
        health="/health",
        version="/version",
        metrics="/metrics",
        running="vllm:num_requests_running",
        queued="vllm:num_requests_waiting",
        always=True,
    ),
    "llamacpp": Profile(health="/health", props="/props", slots="/slots", always=True),
    "lmstudio": Profile(states="/api/v0/models"),
    "openai": Profile(),
    "openrouter": Profile(hosted=True),
    "anthropic": Profile(
        hosted=True,
        key_header="x-api-key",
        more_headers=(("anthropic-version", "2023-06-01"),),
    ),
}
# A node whose kind nobody said is known by its host, or by whom it names as owner of its models.
HOSTS = {"openrouter.ai": "openrouter", "api.anthropic.com": "anthropic"}
OWNERS = {"vllm": "vllm", "llamacpp": "llamacpp"}
