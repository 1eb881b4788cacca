"""Whether nodes answer: a thread looks at each node for as long as the supervisor asks about it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.domain.nodes.kinds import kind_of
from fleet.ports import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.fleet import Node

EVERY = 0.5  # seconds between looks: a task starts within a second of its node's return
PULSE_SECONDS = 2.0
FORGOTTEN = 10.0  # seconds without a question after which the thread stops looking
UNSEEN = Pulse(None, "it has not answered yet")


class NodePulses:
    """Calls `tell` when the state of a node has changed."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._known: dict[str, Pulse] = {}
        self._asked_at: dict[str, float] = {}

    def pulse(self, node: Node) -> Pulse:
        if not node.endpoint:
            return Pulse(up=True)  # a hosted API: the gateway knows its address
        with self._lock:
            watched = node.endpoint in self._asked_at
            self._asked_at[node.endpoint] = time.monotonic()
            known = self._known.get(node.endpoint, UNSEEN)
        if not watched:
            threading.Thread(target=self._watch, args=(node,), daemon=True).start()
        return known

    def _watch(self, node: Node) -> None:
        while True:
            pulse = look(node.endpoint, node.kind)
            with self._lock:
                changed = self._known.get(node.endpoint) != pulse
                self._known[node.endpoint] = pulse
                if time.monotonic() - self._asked_at[node.endpoint] > FORGOTTEN:
                    del self._asked_at[node.endpoint], self._known[node.endpoint]
                    return
            if changed:
                self._tell()
            time.sleep(EVERY)


def look(endpoint: str, kind: str) -> Pulse:
    """One request. Silence proves nothing; a refused connection proves that the node is down."""
    import http.client  # noqa: PLC0415  # many commands have no node to look at

    parts = urlsplit(endpoint)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=PULSE_SECONDS)
    try:
        connection.request("GET", parts.path.rstrip("/") + kind_of(kind).quick)
        status = connection.getresponse().status
    except TimeoutError:
        return Pulse(None, f"no answer in {PULSE_SECONDS:g} s")
    except (OSError, http.client.HTTPException) as error:
        return Pulse(up=False, why=str(getattr(error, "strerror", None) or error).lower())
    finally:
        connection.close()
    if status < http.client.INTERNAL_SERVER_ERROR:  # a node that wants a key is up, too
        return Pulse(up=True)
    return Pulse(None, f"it answers with status {status}")
