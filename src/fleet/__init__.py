"""Fleet: queue work for coding agents, run them in parallel, land only what passes."""

from __future__ import annotations

__version__ = "0.1.0"
