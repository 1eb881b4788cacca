"""The benchmark of one model on one node, and which node is the fastest with it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.nodes.speed import Pace, Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class SpeedSample(NamedTuple):
    """One request: `first` is the seconds until the first part of its reply."""

    timing: Timing
    first: float


class Measured(NamedTuple):
    """Speeds in tokens per second, times in seconds, zero is unmeasured. `why`: why it failed."""

    node: str
    url: str
    model: str
    upstream: str
    at: int = 0  # microseconds, UTC
    load: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    ttft: float = 0.0  # of a prompt that no cache held
    ttft_cached: float = 0.0  # of the same prompt again
    prompt: int = 0  # tokens, as the node counted them
    output: int = 0
    requests: int = 0
    why: str = ""

    @property
    def pace(self) -> Pace:
        return Pace(self.prefill, self.decode, self.load)


Key = tuple[str, str]  # a node's address, and its own name for the model


def key_of(row: Measured) -> Key:
    return row.url, row.upstream


def summed(row: Measured, fresh: Sequence[SpeedSample], again: Sequence[SpeedSample]) -> Measured:
    """The row with the medians of these requests. `again`: requests whose prompt was cached."""
    timings = [sample.timing for sample in fresh]
    return row._replace(
        prefill=_middle(t.read / t.reading for t in timings if t.read and t.reading > 0),
        decode=_middle(t.written / t.writing for t in timings if t.written and t.writing > 0),
        ttft=_middle(sample.first for sample in fresh),
        ttft_cached=_middle(sample.first for sample in again),
        prompt=int(_middle(t.read for t in timings)),
        output=int(_middle(t.written for t in timings)),
        requests=len(fresh) + len(again),
    )


def _middle(numbers: Iterable[float]) -> float:
    values = list(numbers)
    return median(values) if values else 0.0


def seconds(pace: Pace, prompt: int, output: int) -> float:
    """Seconds for a request that waits for no other and finds nothing cached; 0: unknown."""
    if not pace.prefill or not pace.decode:
        return 0.0
    return prompt / pace.prefill + output / pace.decode


def ranked(rows: Iterable[Measured], prompt: int, output: int) -> list[tuple[int, Measured]]:
    """Each row with its rank among the nodes of its model (0: it failed); failures come last."""
    models: dict[str, list[Measured]] = {}
    for row in rows:
        models.setdefault(row.model, []).append(row)
    pairs = []
    for group in models.values():
        good = [row for row in group if not row.why]
        good.sort(key=lambda row: seconds(row.pace, prompt, output) or float("inf"))
        pairs += list(enumerate(good, 1)) + [(0, row) for row in group if row.why]
    return pairs


def together(known: Mapping[Key, Measured], rows: Iterable[Measured]) -> dict[Key, Measured]:
    """Merge new rows into the known ones; a failed row replaces nothing, a known load time is kept."""
    merged = dict(known)
    for row in rows:
        if not row.why:
            earlier = merged.get(key_of(row))
            load = row.load or (earlier.load if earlier else 0.0)
            merged[key_of(row)] = row._replace(load=load)
    return merged


def data_of(row: Measured) -> dict[str, Any]:
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in row._asdict().items()
    }


def row_of(data: Mapping[str, Any]) -> Measured | None:
    """The row in this data; None when it is damaged or not ours."""
    usual = Measured("", "", "", "")._asdict()
    given = {name: data.get(name, value) for name, value in usual.items()}
    good = all(
        isinstance(given[name], str if isinstance(value, str) else (int, float))
        for name, value in usual.items()
    )
    return Measured(**given) if good and given["url"] and given["upstream"] else None
