"""What a stand-in node says about itself, without a model at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.nodes.kinds import MODELS, kind_of

if TYPE_CHECKING:
    from fleet.testing.fake_node.manner import FakeModel, Manner

KEPT = "2318-11-02T10:00:00Z"  # what Ollama says of a model that is kept for ever


def pages(
    kind: str, models: dict[str, FakeModel], manner: Manner, resident: dict[str, int], busy: int
) -> dict[str, Any]:
    """By path: what GET answers, for a server of this kind."""
    row, first = kind_of(kind), next(iter(models.values()))
    waiting = max(0, busy - manner.slots)
    props = {"model_alias": first.name, "total_slots": manner.slots}
    bodies: dict[str, Any] = {
        row.health: {"status": "ok"},
        MODELS: _openai(kind, models),
        row.pages.version: {"version": manner.version},
        row.pages.props: props | {"default_generation_settings": {"n_ctx": first.context}},
        row.pages.slots: [{"id": n, "is_processing": n < busy} for n in range(manner.slots)],
        row.pages.metrics: f"{row.pages.running} {busy - waiting}\n{row.pages.queued} {waiting}\n",
        row.pages.states: _lmstudio(models, resident),
    } | (_ollama(models, manner, resident) if row.is_ollama else {})
    return {path: page for path, page in bodies.items() if path}


def _ollama(
    models: dict[str, FakeModel], manner: Manner, resident: dict[str, int]
) -> dict[str, Any]:
    return {
        "/": "Ollama is running",
        "/api/version": {"version": manner.version},
        "/api/tags": {"models": [_tag(model) for model in models.values()]},
        "/api/ps": {"models": [_loaded(models[name], size) for name, size in resident.items()]},
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


def _tag(model: FakeModel) -> dict[str, Any]:
    return {
        "name": model.name, "model": model.name, "modified_at": "2026-10-01T00:00:00Z",
        "size": model.size, "digest": "0" * 64, "details": _details(model),
    }  # fmt: skip


def _loaded(model: FakeModel, context: int) -> dict[str, Any]:
    return {
        "name": model.name, "model": model.name, "size": model.size + context * 57_344,
        "size_vram": model.size + context * 57_344, "context_length": context,
        "expires_at": KEPT, "digest": "0" * 64, "details": _details(model),
    }  # fmt: skip


def _openai(kind: str, models: dict[str, FakeModel]) -> dict[str, Any]:
    listed = []
    for model in models.values():
        row: dict[str, Any] = {
            "id": model.name,
            "object": "model",
            "owned_by": kind_of(kind).owner or kind,
        }
        if kind == "vllm":
            row["max_model_len"] = model.context
        elif kind == "llamacpp":
            row["meta"] = {"n_ctx_train": model.context, "n_params": model.parameters}
        elif kind == "openrouter":
            row["context_length"] = model.context
        listed.append(row)
    return {"object": "list", "data": listed}


def _lmstudio(models: dict[str, FakeModel], resident: dict[str, int]) -> dict[str, Any]:
    listed = []
    for model in models.values():
        row: dict[str, Any] = {"id": model.name, "object": "model", "type": "llm"}
        row |= {"max_context_length": model.context, "state": "not-loaded"}
        if model.name in resident:
            row |= {"state": "loaded", "loaded_context_length": model.context}
        listed.append(row)
    return {"object": "list", "data": listed}
