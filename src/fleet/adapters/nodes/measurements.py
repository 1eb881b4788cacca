"""Results of benchmarks, stored in the home by a node's address and its name for the model."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.nodes.benchmark import Key, Measured, data_of, key_of, row_of, together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "benchmarks.json"
VERSION = 1


class Measurements:
    def __init__(self, home: Path) -> None:
        self.file = home / NAME

    def read(self) -> dict[Key, Measured]:
        """Nothing for a missing or damaged file: the user can measure again."""
        try:
            record = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(record, dict) or record.get("version") != VERSION:
            return {}
        listed = record.get("measured")
        rows = [row_of(each) for each in listed or () if isinstance(each, dict)]
        return {key_of(row): row for row in rows if row is not None}

    def add(self, rows: Sequence[Measured]) -> None:
        """Safe while another process does the same."""
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.file.with_name(".benchmarks.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            measured = together(self.read(), rows)
            data = {"version": VERSION, "measured": [data_of(row) for row in measured.values()]}
            write_atomically(self.file, json.dumps(data, indent=1) + "\n")
        finally:
            os.close(lock)
