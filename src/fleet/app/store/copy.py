"""`fleet store copy`: all that one store has, into another one of any kind."""

from __future__ import annotations

import os
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fleet.adapters.stores.rows import seq_of
from fleet.adapters.stores.transfer import (
    EVENT,
    Begin,
    Finish,
    Load,
    Recount,
    TableTally,
    batches,
    tallies,
)
from fleet.app.server_process import serving_pid
from fleet.app.store.open import open_store
from fleet.config.keys.kinds import Wrong, take
from fleet.config.keys.table import KEYS
from fleet.config.keys.values import final
from fleet.config.stores import files_of
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, BadStore, NotFound, Refused
from fleet.domain.hosts.state import UP, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.adapters.stores.sql import Holder, Queries
    from fleet.app.app import App

FORCE = "or copy it as it is now: --force"


@dataclass(frozen=True, slots=True)
class Copied:
    """How many rows each table has, and a digest over all of them; the same in both stores."""

    counts: dict[str, int]
    digest: str
    missed: int = 0  # events that the source got meanwhile


def copy_between(
    app: App, source: str, target: str, *, force: bool, progress: Callable[[str, int], None]
) -> Copied:
    """Copy a store to another one; both by addresses as a person types them."""
    schema = app.loaded.settings.store.schema
    from_url, to_url = _address(app, "FROM", source), _address(app, "TO", target)
    if from_url == to_url:
        raise BadInput("FROM and TO are the same store.", fix="Name another store as TO.")
    if (file := next(iter(files_of(from_url)), "")) and not Path(file).exists():
        raise NotFound(f"There is no store at {file}.", fix="`fleet config get store.url`")
    if not force and from_url == app.loaded.settings.store.url:
        _refuse_own_programs(app)
    with TemporaryDirectory(prefix="fleet-copy-") as scratch:
        folders = (Path(scratch, str(n)) for n in count())

        def opens() -> Queries:
            """Open the service itself, not the copy that this machine has of it."""
            return open_store(to_url, copies=next(folders), copying=True, schema=schema)  # type: ignore[return-value]  # every kind is

        with closing(open_store(from_url, copies=app.home.path / "copies", schema=schema)) as old:
            return copy_store(old, opens, force=force, progress=progress)  # type: ignore[arg-type]  # as above


def _address(app: App, name: str, typed: str) -> str:
    try:
        key = next(key for key in KEYS if key.path == "store.url")
        url: str = final(key, take(key, typed), base=app.cwd, home=app.home.path, env=app.env)
    except Wrong as wrong:
        raise BadInput(f"{name}: {wrong.message}", fix=wrong.fix) from None
    return url


def _refuse_own_programs(app: App) -> None:
    if app.home.supervisor_pid():
        raise Refused(
            "This home's supervisor is running.",
            fix=f"Stop it first (fleet run stop), {FORCE}.",
            code="source_busy",
        )
    if serving_pid(app.home.path):
        raise Refused(
            "This home's server is running.",
            fix=f"Stop it first (fleet serve --stop), {FORCE}.",
            code="source_busy",
        )


def copy_store(
    source: Queries,
    opens: Callable[[], Queries],
    *,
    force: bool = False,
    progress: Callable[[str, int], None] = lambda _table, _rows: None,
) -> Copied:
    """`opens` opens the target anew, as another machine would. Raise `Refused` or `BadStore`."""
    if not force:
        _refuse_work(source)
    mark = os.urandom(8).hex()
    target = opens()
    try:
        target.transfer(Begin(mark))
        with source.one_moment() as db:
            tallied, last = _fill(db, target, mark, progress)
        _compare(tallied, opens)
        missed = len([e for e in source.events(limit=1000, newest=True) if e.number > last])
        if missed and not force:
            raise Refused(
                "Something was written to the source while it was copied; the target stays half-copied.",
                fix=f"Stop what uses the source and copy it again, {FORCE}.",
                code="source_busy",
            )
        target.transfer(Finish(mark))
    finally:
        target.close()
    return Copied({name: tally.rows for name, tally in tallied.items()}, _digest(tallied), missed)


def _refuse_work(source: Queries) -> None:
    now = source.now()
    awake = [
        host.name or host.id for host in source.hosts().values() if state_of(host, now=now) in UP
    ]
    runs = source.live_runs()
    if not awake and not runs:
        return
    names = ", ".join(sorted(awake))  # one that has just ended looks the same
    by = f"the supervisor of {names} was at work less than a minute ago" if awake else ""
    work = f"{len(runs)} {'run is' if len(runs) == 1 else 'runs are'} at work" if runs else ""
    raise Refused(
        f"The source may be in use: {' and '.join(filter(None, (work, by)))}.",
        fix=f"Stop what runs (fleet run stop, fleet kill) and try again in a minute, {FORCE}.",
        code="source_busy",
    )


def _fill(
    db: Holder, target: Queries, mark: str, progress: Callable[[str, int], None]
) -> tuple[dict[str, TableTally], int]:
    """What the source tallied, and the number of its last event."""
    tallied: dict[str, TableTally] = {}
    pages: list[tuple[int, int]] = []
    last = 0
    for table, rows in batches(db):
        target.transfer(Load(mark, table, rows))
        tallied[table] = tallied.get(table, TableTally()).plus(rows)
        if table == "task":
            pages.append((seq_of(rows[0][0]), seq_of(rows[-1][0])))
        if table == EVENT:
            last = rows[-1][0]
        progress(table, tallied[table].rows)
    for first, end in pages:
        target.transfer(Recount(mark, first, end))
    return tallied, last


def _compare(tallied: Mapping[str, TableTally], opens: Callable[[], Queries]) -> None:
    """Read the target once more, and from the service itself."""
    other = opens()
    try:
        with other.one_moment() as db:
            copied = tallies(db)
    finally:
        other.close()
    wrong = sorted(name for name in {*tallied, *copied} if tallied.get(name) != copied.get(name))
    if wrong:
        raise BadStore(
            f"The copy differs from the source: {_differences(wrong, tallied, copied)}.",
            fix="It stays half-copied, and the source is as it was. Run the command again.",
        )


def _differences(
    names: Sequence[str], tallied: Mapping[str, TableTally], copied: Mapping[str, TableTally]
) -> str:
    def count(tallies: Mapping[str, TableTally], name: str) -> int:
        return tallies.get(name, TableTally()).rows

    return ", ".join(f"{n} ({count(tallied, n)} rows, {count(copied, n)} there)" for n in names)


def _digest(tallied: Mapping[str, TableTally]) -> str:
    from hashlib import sha256

    text = "\n".join(
        f"{name} {tally.rows} {tally.digest:x}" for name, tally in sorted(tallied.items())
    )
    return sha256(text.encode()).hexdigest()
