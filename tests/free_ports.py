"""Ports for tests, below those that the system hands to whoever connects or binds to any."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def free_ports() -> int:
    """Two that nobody listens on, side by side; the first."""
    while True:
        port = random.randrange(20_000, 32_000, 2)
        with socket.socket() as one, socket.socket() as other, suppress(OSError):
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 1))
            return port
