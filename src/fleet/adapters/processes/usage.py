"""What processes and their children use: one pass over /proc, without sleeping to measure.

Processor time is counted since the last sample, which a file keeps; at first, since the start.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
SIZE = os.sysconf("SC_PAGE_SIZE")
YOUNG = 0.2  # seconds: a share of a shorter time means nothing


class ProcessUsage(NamedTuple):
    """`cpu` is in percent of one core, None when it is not known yet; `memory` in bytes."""

    cpu: float | None
    memory: int
    processes: int


class _ProcessRow(NamedTuple):
    parent: int
    session: int
    seconds: float
    memory: int
    began: float


def used(roots: Mapping[str, int], samples: Path) -> dict[str, ProcessUsage]:
    """By name, what each existing process uses, with its descendants and its session."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0
    table = _table()
    below: dict[int, list[int]] = defaultdict(list)
    for pid, process in table.items():
        below[process.parent].append(pid)
        if process.session != pid:
            below[-process.session].append(pid)
    before, usage, sampled = _read(samples), {}, {}
    for name, root in roots.items():
        if root not in table:
            continue
        tree = [table[pid] for pid in _all_below(root, below)]
        seconds = sum(p.seconds for p in tree)
        sampled[name] = [now, seconds]
        then, seconds_then = before.get(name, (table[root].began, 0.0))
        share = (seconds - seconds_then) / (now - then) * 100 if now - then > YOUNG else None
        usage[name] = ProcessUsage(max(0.0, share) if share is not None else None,
                           sum(p.memory for p in tree), len(tree))  # fmt: skip
    with suppress(OSError):  # on a full disk the next figure covers a longer time
        write_atomically(samples, json.dumps(sampled))
    return usage


def _all_below(root: int, below: Mapping[int, list[int]]) -> set[int]:
    pids, todo = {root}, [root, -root]
    while todo:
        for pid in below.get(todo.pop(), ()):
            if pid not in pids:
                pids.add(pid)
                todo.append(pid)
    return pids


def _table() -> dict[int, _ProcessRow]:
    table = {}
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (PROC / entry.name / "stat").read_text().rpartition(")")[2].split()
                table[int(entry.name)] = _ProcessRow(
                    int(fields[1]),
                    int(fields[3]),
                    (int(fields[11]) + int(fields[12])) / TICK,
                    int(fields[21]) * SIZE,
                    int(fields[19]) / TICK,
                )
    return table


def _read(samples: Path) -> dict[str, tuple[float, float]]:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return {n: (float(at), float(s)) for n, (at, s) in json.loads(samples.read_text()).items()}
    return {}
