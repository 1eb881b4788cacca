"""The relay's only clock: the event loop's, so that a test can replace it."""

from __future__ import annotations

import asyncio


def now() -> float:
    """Seconds; only differences mean anything."""
    return asyncio.get_running_loop().time()
