"""Wake a node's machine over the network, and wait until the node answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.fleet import Node

AGAIN = 5.0  # seconds between two packets: one may be lost
LOOK_EVERY = 0.5
DISCARD = 9  # the port that wake-on-LAN uses when none is named


def magic_packet(mac: str) -> bytes:
    """Six bytes of ones, then the hardware address sixteen times."""
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "").replace("-", "")) * 16


def send_packet(node: Node) -> None:
    """Send a magic packet; an error is ignored, as callers wait for the node anyway."""
    import socket  # noqa: PLC0415  # start-up time

    host, _, port = node.wake_address.rpartition(":") if ":" in node.wake_address else (
        node.wake_address, "", ""
    )  # fmt: skip
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            sender.sendto(magic_packet(node.wake_on_lan), (host, int(port or DISCARD)))
        except OSError:
            return  # no such network now


def wake(node: Node, is_up: Callable[[], bool]) -> bool:
    """Return when the node answers, or False when its `wake_seconds` are over."""
    until = time.monotonic() + node.wake_seconds
    next_packet = 0.0
    while not is_up():
        now = time.monotonic()
        if now >= until:
            return False
        if now >= next_packet:
            send_packet(node)
            next_packet = now + AGAIN
        time.sleep(LOOK_EVERY)
    return True


def slept_on(node: Node) -> str:
    return f"it did not wake up within {node.wake_seconds:g} s"


class Waker:
    """Sends packets to nodes that tasks wait for, until one answers or its `wake_seconds` are over."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # by endpoint: when it was first found asleep
        self._sent: dict[str, float] = {}

    def note(self, node: Node, *, up: bool) -> str:
        """Note whether a node is up; return what is done to wake it, empty if nothing."""
        if up or not node.wake_on_lan:
            self._since.pop(node.endpoint, None)
            return ""
        now = time.monotonic()
        since = self._since.setdefault(node.endpoint, now)
        if now - since > node.wake_seconds:
            return slept_on(node)
        if now - self._sent.get(node.endpoint, -AGAIN) >= AGAIN:
            self._sent[node.endpoint] = now
            send_packet(node)
        return "it is being woken"
