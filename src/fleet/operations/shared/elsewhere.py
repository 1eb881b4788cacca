"""A run whose files and terminal are on another host: what is known here, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import moment
from fleet.domain.errors import Unavailable
from fleet.domain.hosts.state import UP, state_of

if TYPE_CHECKING:
    from fleet.domain.run import Host, Run
    from fleet.operations.catalogue import Context


ELSEWHERE = "elsewhere"  # the code of that error, for who can ask there


def must_be_here(context: Context, run: Run, what: str, command: str) -> None:
    """Raise `Unavailable` when it is another host's, with what the store knows of it.

    `what`: is there and not here. `command`: shows it, typed there.
    """
    agents = context.agents()
    if not agents.shared or run.host == agents.host:
        return
    store = context.store
    progress, host = store.progress([run.id]).get(run.id), store.hosts().get(run.host)
    known = ""
    if progress is not None and progress.lines:
        lines = "1 line" if progress.lines == 1 else f"{progress.lines} lines"
        known = f" It had printed {lines} at {_time(progress.at)}"
        known += f", the last: {progress.last}" if progress.last else "."
    error = Unavailable(
        f"{run.id} {'is' if run.live else 'was'} on {run.host}{_heard(host, store.now())}, "
        f"and {what} there.{known}",
        fix=f"On {run.host}: {command}",
        code="elsewhere",
    )
    error.about = {"host": run.host}  # who is linked to that host can ask there
    raise error


def _heard(host: Host | None, now: int) -> str:
    if host is None or host.forgotten:
        return ", which was removed"
    state = state_of(host, now=now)
    return "" if state in UP else f" ({state}, last heard of at {_time(host.renewed_at)})"


def _time(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S} UTC"
