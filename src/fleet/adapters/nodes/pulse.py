"""Whether nodes and the gateway answer: a thread looks at each while the supervisor asks about it."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode, urlsplit

from fleet.adapters.nodes.wake import Waker
from fleet.adapters.processes.background import ServiceRecord, is_alive, read_record
from fleet.base.loose_json import Json, mapping
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import UNTRUSTED, url_of
from fleet.domain.nodes.breaker import shut_off
from fleet.domain.nodes.kinds import kind_of
from fleet.ports import GatewayPulse, Pulse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleet.domain.fleet import Gateway, Node
    from fleet.domain.nodes.trace import Trace

LOOK_SECONDS = 0.5  # seconds between looks: a task starts within a second of its node's return
PULSE_SECONDS = 2.0
FORGOTTEN = 10.0  # seconds without a question after which the thread stops looking
UNSEEN = "it has not answered yet"
ANOTHER_KEY = "it was started with another key than tasks are given now"
UNKNOWN = Pulse(None, UNSEEN)
TAIL = 1 << 20  # bytes of the traces in which a run's last request is looked for
SERVICES = ("gateway", "relay")
LARGEST_STATUS = 1 << 22  # bytes of the relay's status
NOTHING: Mapping[str, str] = MappingProxyType({})
Known = TypeVar("Known")


class NodePulses:
    """Watches nodes and gateways; calls `tell` when one has changed.

    `home`: where the gateways' records are. `key` returns the fingerprint of the key that tasks get
    for a gateway.
    """

    def __init__(
        self, tell: Callable[[], None], home: Path, key: Callable[[Gateway], str] | None = None
    ) -> None:
        self._tell, self._home, self._key_of = tell, home, key
        self._lock = threading.Lock()
        self._known: dict[str, object] = {}
        self._asked_at: dict[str, float] = {}
        self._waker = Waker()

    def pulse(self, node: Node) -> Pulse:
        if not node.trusted:
            return Pulse(up=False, why=UNTRUSTED)
        if not node.endpoint:
            return Pulse(up=True)  # a hosted API: the gateway knows its address
        if node.wake_on_lan:
            return self._latest(node.endpoint, partial(self._look_and_wake, node), UNKNOWN)
        return self._latest(node.endpoint, partial(look, node.endpoint, node.kind), UNKNOWN)

    def _look_and_wake(self, node: Node) -> Pulse:
        pulse = look(node.endpoint, node.kind)
        doing = self._waker.note(node, up=bool(pulse.up))
        return pulse._replace(why=f"{pulse.why}; {doing}") if doing else pulse

    def gateway(self, gateway: Gateway) -> GatewayPulse:
        records = self._records(gateway)
        key = f"gateway {url_of(gateway)}"  # a node may have the same address
        unseen = _NodeHealth({"gateway": Pulse(None, UNSEEN)})
        seen = self._latest(key, partial(self._look_at_gateway, gateway), unseen)
        latest, shut = (seen if seen.of == _processes(records) else unseen)[:2]
        if not records:  # Fleet did not start it, so what is behind it is not known
            latest, shut = {"gateway": latest["gateway"]}, {}
        dead = [n for n, record in records.items() if not is_alive(record.pid, record.born)]
        latest = {**latest, **dict.fromkeys(dead, Pulse(up=False, why="it has died"))}
        if "gateway" not in dead and self._has_another_key(gateway, records.get("gateway")):
            latest["gateway"] = Pulse(up=False, why=ANOTHER_KEY)
        why = "; ".join(f"the {name}: {p.why}" for name, p in latest.items() if not p.up)
        states = {pulse.up for pulse in latest.values()}
        up = False if False in states else None if None in states else True
        age = min((record.age for record in records.values()), default=None)
        return GatewayPulse(up, why, age, shut)

    def _has_another_key(self, gateway: Gateway, record: ServiceRecord | None) -> bool:
        if self._key_of is None or record is None or not record.key:
            return False
        return self._key_of(gateway) != record.key

    def _records(self, gateway: Gateway) -> dict[str, ServiceRecord]:
        """The records of the services that were started here and not stopped since."""
        folder = self._home / "gateway" / str(gateway.port)
        records = {name: read_record(folder / f"{name}.json", ServiceRecord) for name in SERVICES}
        return {name: record for name, record in records.items() if record}

    def _look_at_gateway(self, gateway: Gateway) -> _NodeHealth:
        of = _processes(self._records(gateway))
        pulse = look_at(url_of(gateway), "/health/liveliness")
        relay, status = _read(f"http://127.0.0.1:{gateway.port + 1}", "/relay/status")
        nodes = mapping(_decoded(status).get("nodes")).values()
        shut = {
            f"{upstream}@{node.get('endpoint')}": why
            for node in map(mapping, nodes)
            for upstream, why in shut_off(node)
        }
        return _NodeHealth({"gateway": pulse, "relay": relay}, shut, of)

    def last_request(self, gateway: Gateway, run_id: str, agent: str, since: int) -> Trace | None:
        from fleet.domain.nodes.trace import read  # noqa: PLC0415  # start-up time

        for line in [
            *self._unwritten(gateway, run_id, agent),
            *_newest_lines(self._home / "logs" / "traces.jsonl"),
        ]:
            trace = read(line)
            if trace is None:
                continue
            if trace.ended_at < since:
                return None
            if trace.is_of(run_id, agent):
                return trace
        return None

    def _unwritten(self, gateway: Gateway, run_id: str, agent: str) -> list[bytes]:
        """Return the run's traces that the relay could not write, as while the disk is full."""
        if "relay" not in self._records(gateway):
            return []
        path = f"/relay/unwritten?{urlencode({'run': run_id, 'agent': agent})}"
        return _read(f"http://127.0.0.1:{gateway.port + 1}", path)[1].splitlines()

    def _latest(self, key: str, ask: Callable[[], Known], unseen: Known) -> Known:
        with self._lock:
            watched = key in self._asked_at
            self._asked_at[key] = time.monotonic()
            known = self._known.get(key, unseen)
        if not watched:
            threading.Thread(target=self._watch, args=(key, ask), daemon=True).start()
        return known  # type: ignore[return-value]  # a key is always asked for in the same way

    def _watch(self, key: str, ask: Callable[[], object]) -> None:
        while True:
            answer = ask()
            with self._lock:
                changed = self._known.get(key) != answer
                self._known[key] = answer
                if time.monotonic() - self._asked_at[key] > FORGOTTEN:
                    del self._asked_at[key], self._known[key]
                    return
            if changed:
                self._tell()
            time.sleep(LOOK_SECONDS)


class _NodeHealth(NamedTuple):
    """What a look saw: the pulses, what the relay has shut off, and of which processes."""

    pulses: Mapping[str, Pulse]
    shut: Mapping[str, str] = NOTHING
    of: frozenset[tuple[int, str]] = frozenset()


def _processes(records: Mapping[str, ServiceRecord]) -> frozenset[tuple[int, str]]:
    """Identify the services' processes, to tell when a look is about earlier ones."""
    return frozenset((record.pid, record.born) for record in records.values())


def _decoded(text: bytes) -> Json:
    try:
        return mapping(json.loads(text or b"{}"))
    except (ValueError, RecursionError):
        return {}


def look(endpoint: str, kind: str) -> Pulse:
    return look_at(endpoint, kind_of(kind).quick)


def look_at(endpoint: str, path: str) -> Pulse:
    """Send one request. Silence proves nothing; a refused connection proves that it is down."""
    return _read(endpoint, path, most=0)[0]


def _read(endpoint: str, path: str, most: int = LARGEST_STATUS) -> tuple[Pulse, bytes]:
    """Return the pulse, and up to `most` bytes of the reply."""
    import http.client  # noqa: PLC0415  # many commands have no node to look at

    parts = urlsplit(endpoint)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=PULSE_SECONDS)
    try:
        connection.request("GET", parts.path.rstrip("/") + path)
        answer = connection.getresponse()
        status, body = answer.status, answer.read(most) if most else b""
    except TimeoutError:
        return Pulse(None, f"no answer in {PULSE_SECONDS:g} s"), b""
    except (OSError, http.client.HTTPException) as error:
        why = str(getattr(error, "strerror", None) or error).lower()
        return Pulse(up=False, why=why), b""
    finally:
        connection.close()
    if status < http.client.INTERNAL_SERVER_ERROR:  # a node that wants a key is up, too
        return Pulse(up=True), body
    return Pulse(None, f"it answers with status {status}"), b""


def _newest_lines(path: Path) -> list[bytes]:
    """The whole lines in the last so many bytes of the file, the newest first."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            lines = file.read(TAIL).split(b"\n")
    except OSError:
        return []
    return lines[1 if size > TAIL else 0 : -1][::-1]
