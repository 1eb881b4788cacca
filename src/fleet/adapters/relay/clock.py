"""The relay's only clock: that of the loop it runs in, so that a test can give it another."""

from __future__ import annotations

import asyncio


def now() -> float:
    """Seconds; only differences mean anything."""
    return asyncio.get_running_loop().time()
