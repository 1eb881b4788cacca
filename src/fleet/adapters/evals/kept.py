"""Results of evals, kept in the home: a file each, the newest hundred."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.evals.result import data_of, evaluation_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.domain.evals.result import Evaluation

FOLDER = "evals"
MAX_KEPT = 100
ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")


class Evaluations:
    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    def add(self, evaluation: Evaluation) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / f"{evaluation.id}.json"
        write_atomically(path, json.dumps(data_of(evaluation), indent=1) + "\n")
        for old in self._files()[MAX_KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def newest(self) -> Iterator[Evaluation]:
        """The newest first; a damaged file is left out."""
        for path in self._files():
            evaluation = _read(path)
            if evaluation is not None:
                yield evaluation

    def find(self, evaluation_id: str) -> Evaluation | None:
        if not ID.fullmatch(evaluation_id):
            return None
        return _read(self.folder / f"{evaluation_id}.json")

    def _files(self) -> list[Path]:
        try:
            listed = [path for path in self.folder.iterdir() if ID.fullmatch(path.stem)]
        except OSError:
            return []
        return sorted(listed, reverse=True)


def _read(path: Path) -> Evaluation | None:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return evaluation_of(data) if isinstance(data, dict) else None
