"""Numbered and additive within a major version."""

from __future__ import annotations

from pathlib import Path

LATEST = 2


def migration(number: int, *, key: str, serial: str) -> str:
    text = Path(__file__).with_name(f"{number:04}.sql").read_text("utf-8")
    return text.replace("{key}", key).replace("{serial}", serial)
