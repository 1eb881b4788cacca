"""Figures that other programs collect, and how Prometheus reads them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3600.0)


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""  # `_sum`, `_count`, `_bucket` of a histogram


class Metric(NamedTuple):
    """`kind`: counter, gauge or histogram."""

    name: str
    kind: str
    about: str
    samples: tuple[Sample, ...]


class Histogram:
    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self, labels: Mapping[str, str] | None = None) -> Iterator[Sample]:
        own = labels or {}
        below = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            below += count
            yield Sample({**own, "le": _number(bound)}, below, "_bucket")
        yield Sample(own, self._sum, "_sum")
        yield Sample(own, below, "_count")


def exposition(metrics: Iterable[Metric]) -> str:
    """The text format of Prometheus, version 0.0.4."""
    lines = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.about}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [_line(metric.name, sample) for sample in metric.samples]
    return "\n".join(lines) + "\n"


def as_rows(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Each figure with its labels; of a histogram how many, and their sum."""
    return [
        {"name": metric.name + s.suffix, "labels": dict(s.labels), "value": s.value}
        for metric in metrics
        for s in metric.samples
        if s.suffix != "_bucket"
    ]


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in sample.labels.items())
    braced = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{braced} {_number(sample.value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
