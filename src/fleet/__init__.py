"""Fleet: queue work for coding agents, run them in parallel, land only what passes."""

from __future__ import annotations

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The client for programs, loaded when a program asks for it; its types are in the stub."""
    if name not in {"connect", "connect_async"}:
        raise AttributeError(f"module 'fleet' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415  # no command needs it

    value: object = getattr(import_module("fleet.api"), name)
    return value
