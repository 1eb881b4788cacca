"""Refuse to show files or terminals of another host, with what the store knows of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import moment
from fleet.domain.errors import Unavailable
from fleet.domain.hosts.state import UP, state_of

if TYPE_CHECKING:
    from fleet.domain.run import Host, Run
    from fleet.operations.catalogue import Context


ELSEWHERE = "elsewhere"  # the code of that error; a client that can reach the host asks there


def must_be_here(context: Context, run: Run, what: str, command: str) -> None:
    """Raise `Unavailable` when the run is on another host, with what the store knows of it.

    `what`: what is only there, as in "its output is". `command`: shows it when typed on that host.
    """
    if not _is_elsewhere(context, run.host):
        return
    progress = context.store.progress([run.id]).get(run.id)
    printed = ""
    if progress is not None and progress.lines:
        lines = "1 line" if progress.lines == 1 else f"{progress.lines} lines"
        printed = f" It had printed {lines} at {_time(progress.at)}"
        printed += f", the last: {progress.last}" if progress.last else "."
    subject = f"{run.id} {'is' if run.live else 'was'}"
    try:
        must_be_on(context, run.host, subject, f"and {what} there.{printed}", command)
    except Unavailable as error:
        error.about = {**error.about, "run": run.id, "task": run.task}
        raise


def must_be_on(context: Context, host: str, subject: str, rest: str, command: str) -> None:
    """Raise `Unavailable`, as "`subject` on box-1, `rest`", unless this is the host."""
    if not _is_elsewhere(context, host):
        return
    heard = _heard(context.store.hosts().get(host), context.store.now())
    error = Unavailable(
        f"{subject} on {host}{heard}, {rest}", fix=f"On {host}: {command}", code="elsewhere"
    )
    error.about = {"host": host}  # who is linked to that host can ask there
    raise error


def _is_elsewhere(context: Context, host: str) -> bool:
    agents = context.agents()
    return agents.shared and host != agents.host


def _heard(host: Host | None, now: int) -> str:
    if host is None or host.forgotten:
        return ", which was removed"
    state = state_of(host, now=now)
    return "" if state in UP else f" ({state}, last heard of at {_time(host.renewed_at)})"


def _time(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S} UTC"
