"""Send spans to an OpenTelemetry collector over OTLP: in a thread, so that nobody waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.nodes.spans import TraceSpan

MOST_WAITING = 10_000  # spans; a collector that does not answer loses the newest
AT_ONCE = 512
SECONDS = 10.0  # for one export
MICRO = 1000  # nanoseconds


class Collector(NamedTuple):
    address: str
    headers: str = ""  # `NAME=VALUE`, several with commas


class Exporter:
    """Sends to one collector. `warn` is called once when it does not take them, until it does."""

    def __init__(self, collector: Collector, host: str, warn: Callable[[str], None]) -> None:
        self._send, self._warn = _sender(collector, host), warn
        self._address = collector.address
        self._waiting: queue.Queue[TraceSpan | None] = queue.Queue(MOST_WAITING)
        self._silent = False
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
        self._thread.start()

    def put(self, span: TraceSpan) -> None:
        try:
            self._waiting.put_nowait(span)
        except queue.Full:
            self._complain("it does not keep up, so spans are lost")

    def close(self, within: float) -> None:
        """Send what waits, for at most so many seconds."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=within)
            self._thread.join(within)
        if self._thread.is_alive():
            self._complain(f"it did not take the last within {within:g} s, so spans are lost")

    def _run(self) -> None:
        going = True
        while going:
            batch = [self._waiting.get()]
            while len(batch) < AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            going = None not in batch
            spans = [span for span in batch if span is not None]
            if spans and not self._send(spans):
                self._complain("it did not take them")
            elif spans:
                self._silent = False

    def _complain(self, why: str) -> None:
        if not self._silent:
            self._silent = True
            self._warn(f"Traces cannot be sent to {self._address}: {why}.")


def _sender(collector: Collector, host: str) -> Callable[[Sequence[TraceSpan]], bool]:
    """Raise `Refused` when the packages are not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - an extra
    except ImportError:
        raise Refused(
            "`observability.otlp` is set, and OpenTelemetry is not installed.",
            fix="Install it: pip install 'agent-fleet[otel]'",
            code="no_otel",
        ) from None
    # Its complaints of each try would be on the person's terminal; we have one sentence of our own.
    logging.getLogger(OTLPSpanExporter.__module__).setLevel(logging.CRITICAL + 1)
    address = collector.address.rstrip("/").removesuffix("/v1/traces")
    exporter = OTLPSpanExporter(
        endpoint=f"{address}/v1/traces", headers=_headers(collector.headers), timeout=SECONDS
    )
    resource = Resource({"service.name": "fleet", "host.name": host})

    def send(spans: Sequence[TraceSpan]) -> bool:
        done = exporter.export([_readable(span, resource) for span in spans])
        return bool(done is SpanExportResult.SUCCESS)

    return send


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _readable(span: TraceSpan, resource: Any) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.util.instrumentation import (  # noqa: PLC0415 - an extra
        InstrumentationScope,
    )
    from opentelemetry.trace import SpanKind  # noqa: PLC0415 - an extra
    from opentelemetry.trace.status import Status, StatusCode  # noqa: PLC0415 - an extra

    failed = {"error.type": span.error} if span.error else {}
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace, span.id),
        parent=_context(span.trace, span.parent) if span.parent else None,
        resource=resource,
        attributes={**span.attributes, **failed},
        kind=SpanKind.CLIENT if span.outgoing else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=span.begun * MICRO,
        end_time=span.ended * MICRO,
        instrumentation_scope=InstrumentationScope("fleet"),
    )


def _context(trace: str, name: str) -> Any:
    """The same ids from every process, so that spans of one task meet in one trace."""
    from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415 - an extra

    return SpanContext(
        _number(trace) >> 128,
        _number(f"{trace}\n{name}") >> 192,
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _number(text: str) -> int:
    import hashlib  # noqa: PLC0415 - only with a collector

    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") | 1 << 255
