"""What a stand-in node says about itself, without a model at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.nodes.kinds import MODELS, kind_of

if TYPE_CHECKING:
    from fleet.testing.fake_node.manner import FakeModel, Manner

KEPT = "2318-11-02T10:00:00Z"  # what Ollama says of a model that is kept for ever


def pages(
    kind: str,
    models: dict[str, FakeModel],
    manner: Manner,
    resident: dict[str, int],
    at_work: tuple[int, int],
) -> dict[str, Any]:
    """By path: what GET answers, for a server of this kind. `at_work`: how many, and who wait."""
    row, first = kind_of(kind), next(iter(models.values()))
    busy, waiting = at_work
    props = {"model_alias": first.name, "total_slots": manner.slots}
    bodies: dict[str, Any] = {
        row.health: {"status": "ok"},
        MODELS: _openai(kind, models),
        row.pages.version: {"version": manner.version},
        row.pages.props: props | {"default_generation_settings": {"n_ctx": first.context}},
        row.pages.slots: [{"id": n, "is_processing": n < busy} for n in range(manner.slots)],
        row.pages.metrics: f"{row.pages.running} {busy}\n{row.pages.queued} {waiting}\n",
        row.pages.states: _lmstudio(models, resident),
        row.pages.instances: _lmstudio_instances(models, resident),
        row.pages.load: _loads(busy, waiting),
    } | (_ollama(models, manner, resident) if row.is_ollama else {})
    return {path: page for path, page in bodies.items() if path}


def _loads(busy: int, waiting: int) -> dict[str, Any]:
    """As SGLang's pull request 16976 shows it (github.com/sgl-project/sglang), since January 2026."""
    load = {"dp_rank": 0, "num_running_reqs": busy, "num_waiting_reqs": waiting}
    return {"version": "0.5.8", "dp_rank_count": 1, "loads": [load | {"token_usage": 0.0}]}


def _ollama(
    models: dict[str, FakeModel], manner: Manner, resident: dict[str, int]
) -> dict[str, Any]:
    return {
        "/": "Ollama is running",
        "/api/version": {"version": manner.version},
        "/api/tags": {"models": [_tag(model) for model in models.values()]},
        "/api/ps": {
            "models": [
                _loaded(models[name], size)
                for name, size in resident.items()
                if not models[name].cloud
            ]
        },
    }


def show(model: FakeModel) -> dict[str, Any]:
    """Ollama's `/api/show`."""
    info: dict[str, Any] = {
        "general.architecture": "qwen2",
        "general.parameter_count": model.parameters,
        "qwen2.context_length": model.context,
        "qwen2.block_count": 28,
        "qwen2.embedding_length": 3584,
        "qwen2.attention.head_count": 28,
        "qwen2.attention.head_count_kv": 4,
    }
    return {
        "details": _details(model), "model_info": info,
        "capabilities": list(model.capabilities), "parameters": "", "template": "",
    }  # fmt: skip


def _details(model: FakeModel) -> dict[str, Any]:
    billions = f"{model.parameters / 1e9:.1f}B"
    return {
        "format": "gguf", "family": "qwen2", "families": ["qwen2"],
        "parameter_size": billions, "quantization_level": "Q4_K_M", "parent_model": "",
    }  # fmt: skip


def tagged(model: FakeModel) -> str:
    """Ollama lists `m` as `m:latest`."""
    return model.name if ":" in model.name else f"{model.name}:latest"


def _tag(model: FakeModel) -> dict[str, Any]:
    """`remote_*` as Ollama lists a model of its cloud: its docs/cloud.md and api/types.go."""
    away = {
        "remote_model": model.name.removesuffix("-cloud"),
        "remote_host": "https://ollama.com:443",
    }
    return (away if model.cloud else {}) | {
        "name": tagged(model), "model": tagged(model), "modified_at": "2026-10-01T00:00:00Z",
        "size": model.size, "digest": "0" * 64, "details": _details(model),
    }  # fmt: skip


def _loaded(model: FakeModel, context: int) -> dict[str, Any]:
    return {
        "name": tagged(model), "model": tagged(model), "size": model.size + context * 57_344,
        "size_vram": model.size + context * 57_344, "context_length": context,
        "expires_at": KEPT, "digest": "0" * 64, "details": _details(model),
    }  # fmt: skip


def _openai(kind: str, models: dict[str, FakeModel]) -> dict[str, Any]:
    row, listed = kind_of(kind), []
    for model in models.values():
        about: dict[str, Any] = {"id": model.name, "object": "model", "owned_by": row.owner or kind}
        for field, path in row.fields._asdict().items():
            _put(about, path, getattr(model, field))
        listed.append(about)
    return {"object": "list", "data": listed}


def _put(about: dict[str, Any], path: str, value: int) -> None:
    """`meta.size` is `size` in `meta`; an empty path is what this kind does not say."""
    if path:
        *outer, last = path.split(".")
        for name in outer:
            about = about.setdefault(name, {})
        about[last] = value


def _lmstudio_instances(models: dict[str, FakeModel], resident: dict[str, int]) -> dict[str, Any]:
    """As LM Studio's documentation shows it: developer/rest/list, since its release 0.4."""
    return {
        "models": [
            {
                "type": "llm", "publisher": "qwen", "key": model.name, "size_bytes": model.size,
                "display_name": model.name, "max_context_length": model.context, "format": "gguf",
                "loaded_instances": [
                    {"id": model.name, "config": {"context_length": model.context}}
                ] if model.name in resident else [],
            }
            for model in models.values()
        ]
    }  # fmt: skip


def _lmstudio(models: dict[str, FakeModel], resident: dict[str, int]) -> dict[str, Any]:
    listed = []
    for model in models.values():
        row: dict[str, Any] = {"id": model.name, "object": "model", "type": "llm"}
        row |= {"max_context_length": model.context, "state": "not-loaded"}
        if model.name in resident:
            row |= {"state": "loaded", "loaded_context_length": model.context}
        listed.append(row)
    return {"object": "list", "data": listed}
