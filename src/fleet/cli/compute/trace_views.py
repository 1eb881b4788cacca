"""Traces, as people and as programs read them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.human import SECOND, moment, money, tokens
from fleet.cli.terminal.measure import fit, harmless, pad
from fleet.cli.terminal.view import Cell, Column
from fleet.operations.compute.traces import trace_row

if TYPE_CHECKING:
    from fleet.cli.terminal.view import Style, Value
    from fleet.domain.nodes.trace import Trace

STYLES: dict[str, Style] = {"ok": "green", "failed": "red", "refused": "red", "cancelled": "yellow"}
COLUMNS = (
    Column("when"),
    Column("agent"),
    Column("session", flexible=True, spare=2),
    Column("model", flexible=True),
    Column("node"),
    Column("in/out/cached", right=True),
    Column("wait", right=True, spare=1),
    Column("first", right=True),
    Column("total", right=True),
    Column("cost", right=True, spare=4),
    Column("retries", right=True, spare=3),
    Column("outcome"),
)
PROJECT = Column("project", flexible=True)  # the second, when there are several
ROOM = (8, 12, 12, 16, 12, 15, 7, 7, 7, 7, 2)  # of a line that comes, but for its outcome
NARROW = (8, 8, 0, 9, 8, 12, 0, 6, 6, 0, 0)  # without those that are spare
WHOLE = sum(ROOM) + 2 * len(ROOM) + 13  # with `refused (503)`
TERMS = ("wait", "load", "prefill", "decode")


def trace_data(trace: Trace) -> dict[str, Any]:
    """A trace as JSON, like the reply of `trace.list`: microseconds, and millionths of a dollar."""
    return asdict(trace_row(trace))


def cells(data: dict[str, Any]) -> list[Value]:
    outcome, status = data["outcome"], data["status"]
    words = outcome if outcome == "ok" or not status else f"{outcome} ({status})"
    return [
        _when(data["at"]),
        data["agent"] or None,
        data["session"] or None,
        data["model"],
        data["node"] or None,
        _tokens(data),
        *(_seconds(data[name]) for name in ("wait", "first", "total")),
        money(data["cost"]),
        data["retries"],
        Cell(words, STYLES.get(outcome, "")),
    ]


def line(data: dict[str, Any], *, explain: bool, room: int | None = None) -> Cell:
    """A trace as one line below earlier ones, so with fixed columns. `room`: the terminal's width."""
    *most, outcome = cells(data)
    assert isinstance(outcome, Cell)
    parts = []
    narrow = room is not None and room < WHOLE
    for cell, column, wide in zip(most, COLUMNS, NARROW if narrow else ROOM, strict=False):
        if not wide:
            continue
        text = harmless("-" if cell is None else str(cell))
        text = fit(text, wide) if column.title not in {"when", "node", "in/out/cached"} else text
        parts.append(pad(text, wide, right=column.right))
    joined = "  ".join([*parts, outcome.text])
    more = explained(data) if explain else []
    return Cell("\n".join([joined, *(f"    {each}" for each in more)]), outcome.style)


def explained(data: dict[str, Any]) -> list[str]:
    """Why the request went to its node, and what went wrong."""
    terms = [_terms(each, chosen=each["node"] == data["node"]) for each in data["estimates"]]
    if not terms and data["node"]:
        terms = [f"{data['node']}: no estimates were recorded"]
    terms += [f"failed before: {each}" for each in data["tried"]]
    return terms + ([f"error: {data['error']}"] if data["error"] else [])


def _terms(each: dict[str, Any], *, chosen: bool) -> str:
    terms = " + ".join(f"{term} {each[term] / SECOND:.2f}" for term in TERMS)
    cached = f"; it held {each['cached']} tokens" if each["cached"] else ""
    evict = f"; it would evict {each['evict'] / SECOND:.2f} s of others" if each["evict"] else ""
    cached += f"; its weight is {each['weight']:g}" if each["weight"] != 1 else ""
    mark = "chosen" if chosen else "else  "
    return f"{mark} {each['node']}: {each['total'] / SECOND:.2f} s = {terms}{cached}{evict}"


def _tokens(data: dict[str, Any]) -> str:
    """The tokens of the prompt, of the reply, and those of the prompt that were cached."""
    return "/".join(tokens(data[f"{what}_tokens"]) for what in ("prompt", "output", "cached"))


def _when(at: int) -> str:
    """The local time, with the day if it is before today."""
    day, _, time = moment(at).partition(" ")
    return time if day == moment(int(datetime.now(UTC).timestamp() * SECOND))[:10] else moment(at)


def _seconds(micros: int) -> str:
    return f"{micros / SECOND:.2f}s" if micros else "-"
