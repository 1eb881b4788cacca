"""Numbered and additive within a major version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

COPYING = "copying"  # the row of `meta` with the mark
LATEST = 8
# A fleet that knows only an older schema may still use this one, if it knows at least these. Lower
# them, or leave them, when a migration only adds what such a fleet does not look at.
WRITES = 7
READS = 7
UPGRADE = "Upgrade fleet on this machine: fleet update"


def ranges() -> dict[str, str]:
    """What `meta` says of it; what is not there is the schema itself."""
    ours = {"writes": WRITES, "reads": READS}
    return {name: str(number) for name, number in ours.items() if number < LATEST}


def may_write(name: str, schema: int, meta: Mapping[str, str]) -> bool:
    """Whether this fleet may write the store; raise `BadStore` when it may not even read it."""
    if max(schema, 0) <= LATEST or int(meta.get("writes", schema)) <= LATEST:
        return True
    if int(meta.get("reads", schema)) <= LATEST:
        return False
    raise BadStore(
        f"{name} was written by a newer fleet (schema {schema}; this one knows {LATEST}). "
        "Nothing was changed.",
        fix=UPGRADE,
    )


def only_readable(name: str) -> BadStore:
    return BadStore(
        f"{name} was upgraded by a newer fleet: this one may still read it, but not write.",
        fix=UPGRADE,
        code="read_only_store",
    )


def migration(number: int, dialect: Mapping[str, str]) -> str:
    """`dialect`: what stands for {key}, {serial} and so on."""
    text = Path(__file__).with_name(f"{number:04}.sql").read_text("utf-8")
    for name, words in dialect.items():
        text = text.replace(f"{{{name}}}", words)
    return text


def carry_over(number: int, dialect: str, execute: Callable[..., Any]) -> None:
    """What a migration does to the rows, in the transaction of its statements.

    `execute` takes a statement, and a dict for what is called `:name` in it; it returns a cursor.
    """
    if number == 3:
        from fleet.adapters.stores.migrations import speech  # noqa: PLC0415  # hardly ever needed

        speech.carry(execute)
        execute(speech.GUARD[dialect])
    if number == 4:
        from fleet.adapters.stores.migrations import found_by  # noqa: PLC0415  # as above

        found_by.fill(execute)
        execute(found_by.GUARD[dialect])
    if number == 8:
        from fleet.adapters.stores.migrations import asks  # noqa: PLC0415  # as above

        asks.keep(execute, dialect)


def refuse_half_copied(meta: Mapping[str, str], name: str) -> None:
    if COPYING in meta:
        raise BadStore(
            f"{name} is half-copied: `fleet store copy` to it was interrupted, or still goes on.",
            fix="Run the same `fleet store copy FROM TO` again: it starts afresh.",
            code="half_copied",
        )
