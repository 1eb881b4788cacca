"""Trace the requests that LiteLLM itself refuses. LiteLLM runs this file from beside its settings.

The relay only records requests that reach it. Those with a prompt that LiteLLM finds too long, an
unknown name or a wrong key do not. LiteLLM's environment has no fleet package, so this file imports
nothing of it. It never writes the text of an exception, which may quote the prompt.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any
from urllib.parse import unquote

TRACES, PROJECT = "FLEET_TRACES", "FLEET_TRACED_PROJECT"  # variables: the file, and the project
LONGEST_NAME = 200  # characters of a name
CALLS = 2_000  # calls to the relay that are remembered
UNKNOWN_MODEL = ("ProxyModelNotFoundError", "NotFoundError", "RouterRateLimitErrorBasic")

UNKNOWN_TEXTS = ("invalid model name", "you passed in model=")


def _logger() -> Any:
    """LiteLLM's base class; without LiteLLM there is nothing to listen to."""
    try:
        return importlib.import_module("litellm.integrations.custom_logger").CustomLogger
    except ImportError:
        return object


Logger: Any = _logger()


class Refusals(Logger):  # type: ignore[misc]  # LiteLLM has no types here
    def __init__(self) -> None:
        super().__init__()
        self._sent: deque[str] = deque(maxlen=CALLS)  # requests that went to the relay

    def log_pre_api_call(self, model: str, messages: Any, kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        if (kwargs.get("additional_args") or {}).get("api_base"):  # else it only logs its refusal
            self._sent.append(str(kwargs.get("litellm_call_id")))

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        *_: Any,
        **__: Any,
    ) -> None:
        if request_data.get("litellm_call_id") not in self._sent:
            record(refusal(request_data, original_exception))


def record(fields: dict[str, Any]) -> None:
    path = os.environ.get(TRACES)
    if path:
        with Path(path).open("ab") as file:
            file.write(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def refusal(request: dict[str, Any], error: Exception) -> dict[str, Any]:
    """A line of the traces; `fleet.domain.nodes.trace.read` reads it."""
    model = _name(request.get("model"))
    sent = request.get("proxy_server_request")
    headers = (sent.get("headers") if isinstance(sent, dict) else None) or {}
    headers = {str(key).lower(): value for key, value in headers.items()}
    agent = _name(headers.get("x-fleet-agent")) or model.removeprefix("fleet-") * (
        model.startswith("fleet-")
    )
    status = status_of(error)
    return {
        "at": time.time_ns() // 1000,
        "agent": agent,
        "session": _name(headers.get("x-fleet-session") or headers.get("x-claude-code-session-id")),
        "model": model,
        "wire": "gateway",
        "outcome": "refused",
        "status": status,
        "why": {"error": why(error, status, model)},
        "run": _name(headers.get("x-fleet-run")),
        "project": unquote(_name(headers.get("x-fleet-project"))) or os.environ.get(PROJECT, ""),
    }


def status_of(error: Exception) -> int:
    """Exceptions of LiteLLM have a status, those of its web framework and proxy a code.

    Without a database LiteLLM answers a wrong key with 400, and a missing one with 500.
    """
    if is_wrong_key(error):
        return 401
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if str(value).isdigit():
            return int(value)  # type: ignore[arg-type]  # it is digits
    return 500


def is_wrong_key(error: Exception) -> bool:
    return "no connected db" in str(error).lower()  # its words for it


def why(error: Exception, status: int, model: str) -> str:
    kind = type(error).__name__
    if kind == "ContextWindowExceededError" or "context window" in str(error).lower():
        return f"The gateway refused it: the prompt is too long for the context of {model}."
    if status in {401, 403}:
        return "The gateway refused it: the key is wrong or missing."
    if kind in UNKNOWN_MODEL or any(text in str(error).lower() for text in UNKNOWN_TEXTS):
        return f"The gateway refused it: it knows no model '{model}'."
    return f"The gateway refused it: {kind}, status {status}."


def _name(value: object) -> str:
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


log = Refusals()
