"""What a stand-in node says about itself, without a model at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.testing.fake_node.manner import FakeModel, Manner

KEPT = "2318-11-02T10:00:00Z"  # what Ollama says of a model that is kept for ever


def pages(
    kind: str, models: dict[str, FakeModel], manner: Manner, resident: dict[str, int], busy: int
) -> dict[str, Any]:
    """By path: what GET answers, for a server of this kind."""
    found: dict[str, Any] = {"/v1/models": _openai(kind, models)}
    if kind == "ollama":
        tags = [_tag(model) for model in models.values()]
        ps = [_loaded(models[name], context) for name, context in resident.items()]
        found |= {"/api/version": {"version": manner.version}, "/api/tags": {"models": tags}}
        found |= {"/": "Ollama is running", "/api/ps": {"models": ps}}
    elif kind == "llamacpp":
        slots = [{"id": n, "is_processing": n < busy} for n in range(manner.slots)]
        first = next(iter(models.values()))
        props = {"model_alias": first.name, "total_slots": manner.slots}
        props |= {"default_generation_settings": {"n_ctx": first.context}}
        found |= {"/health": {"status": "ok"}, "/slots": slots, "/props": props}
    elif kind == "vllm":
        waiting = max(0, busy - manner.slots)
        running = f"vllm:num_requests_running {busy - waiting}\n"
        metrics = f"{running}vllm:num_requests_waiting {waiting}\n"
        found |= {"/health": "", "/version": {"version": manner.version}, "/metrics": metrics}
    elif kind == "lmstudio":
        listed = [_lmstudio(model, model.name in resident) for model in models.values()]
        found |= {"/api/v0/models": {"object": "list", "data": listed}}
    return found


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
        row: dict[str, Any] = {"id": model.name, "object": "model", "owned_by": kind}
        if kind == "vllm":
            row["max_model_len"] = model.context
        elif kind == "llamacpp":
            row["meta"] = {"n_ctx_train": model.context, "n_params": model.parameters}
        elif kind == "openrouter":
            row["context_length"] = model.context
        listed.append(row)
    return {"object": "list", "data": listed}


def _lmstudio(model: FakeModel, loaded: bool) -> dict[str, Any]:  # noqa: FBT001  # one caller
    row = {"id": model.name, "object": "model", "type": "llm", "max_context_length": model.context}
    state = "loaded" if loaded else "not-loaded"
    return row | {"state": state} | ({"loaded_context_length": model.context} if loaded else {})
