"""Numbered and additive within a major version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LATEST = 7


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
