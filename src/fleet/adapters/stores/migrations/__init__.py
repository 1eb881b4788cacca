"""Numbered and additive within a major version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LATEST = 3


def migration(number: int, *, key: str, serial: str) -> str:
    text = Path(__file__).with_name(f"{number:04}.sql").read_text("utf-8")
    return text.replace("{key}", key).replace("{serial}", serial)


def carry_over(number: int, dialect: str, execute: Callable[..., Any]) -> None:
    """What a migration does to the rows, in the transaction of its statements.

    `execute` takes a statement, and a dict for what is called `:name` in it; it returns a cursor.
    """
    if number == 3:
        from fleet.adapters.stores.migrations import speech  # noqa: PLC0415  # hardly ever needed

        speech.carry(execute)
        execute(speech.GUARD[dialect])
