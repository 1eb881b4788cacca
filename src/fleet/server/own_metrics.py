"""The figures of the server itself: its connections, what it refused, and its process."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.server.prometheus import Metric, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

STAT = Path("/proc/self/stat")
FILES = "/proc/self/fd"
STARTED = time.time()  # of this module, where the kernel does not say


def server_figures(
    *, refusals: Mapping[str, int], dropped: int, connections: int, streams: Mapping[str, int],
    busiest: int, writing: int,
) -> tuple[Metric, ...]:  # fmt: skip
    """`writing`: requests that wait for the thread that writes."""
    refused = (Sample({"reason": code}, n) for code, n in sorted(refusals.items()))
    kinds = (Sample({"kind": kind}, n) for kind, n in streams.items())
    return (
        Metric("fleet_refusals_total", "counter", "Refused requests.", tuple(refused)),
        Metric("fleet_connections", "gauge", "Open connections.", (Sample({}, connections),)),
        Metric("fleet_streams", "gauge", "Open streams of events.", tuple(kinds)),
        Metric(
            "fleet_streams_of_one_member", "gauge",
            "Open streams of events of the member that has the most.", (Sample({}, busiest),),
        ),
        Metric(
            "fleet_writer_queue", "gauge", "Requests that wait to be written.",
            (Sample({}, writing),),
        ),
        Metric(
            "fleet_audit_dropped_total", "counter",
            "Records of the audit trail that could not be written.", (Sample({}, dropped),),
        ),
        *process_figures(),
    )  # fmt: skip


def process_figures() -> tuple[Metric, ...]:
    """Under the names that Prometheus's own clients use; what the system does not say is left out."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "process_cpu_seconds_total": used.ru_utime + used.ru_stime,
        "process_max_fds": _limit(),
        **_of_kernel(),
    }
    with suppress(OSError):
        figures["process_open_fds"] = len(os.listdir(FILES))  # noqa: PTH208  # half the time
    return tuple(
        Metric(name, kind, about, (Sample({}, figures[name]),))
        for name, kind, about in PROCESS
        if name in figures
    )


PROCESS = (
    ("process_cpu_seconds_total", "counter", "User and system CPU time."),
    ("process_resident_memory_bytes", "gauge", "Resident memory."),
    ("process_virtual_memory_bytes", "gauge", "Virtual memory."),
    ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970."),
    ("process_open_fds", "gauge", "Open files."),
    ("process_max_fds", "gauge", "Limit of open files."),
)


def _limit() -> float:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def _of_kernel() -> dict[str, float]:
    try:
        fields = STAT.read_text().rpartition(")")[2].split()  # the name may have spaces
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return {"process_start_time_seconds": STARTED}
    ticks = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return {
        "process_virtual_memory_bytes": int(fields[20]),
        "process_resident_memory_bytes": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        "process_start_time_seconds": time.time() - uptime + ticks,
    }
