"""`log.stderr` of a task: what its coders wrote to stderr, run after run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.adapters.home.append import LineFile
from fleet.adapters.home.event_log import moment
from fleet.base.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.adapters.home.append import AppendLimits
    from fleet.domain.redaction import Redactor
    from fleet.domain.run import Run

NAME = "log.stderr"
MOST_OF_A_RUN = 1_000_000  # last bytes; the run's own folder keeps all


class StderrLog:
    def __init__(
        self, folder: Callable[[str], Path], runs: Path, redactor: Redactor, limits: AppendLimits
    ) -> None:
        self._limits = limits
        self._folder = folder
        self._runs = runs
        self._redactor = redactor

    def ended(self, run: Run) -> None:
        ending = run.outcome.ending if run.outcome else "ended"
        name = f"=== {run.id} ({run.choice.coder}), claimed {moment(run.claimed_at)}:"
        with LineFile(self._folder(run.task) / NAME) as file:
            if file.last_with(name.encode()):
                return
            output = self._redactor.text(_tail(self._runs / run.id / "stderr"))
            ended = "" if not output or output.endswith("\n") else "\n"
            text = f"{name} {ending} ===\n{output}{ended}"
            file.add(text.encode("utf-8", "replace"), most=self._limits.file)


def _tail(path: Path) -> str:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            left_out = max(0, size - MOST_OF_A_RUN)
            file.seek(left_out)
            if left_out:
                left_out += len(file.readline())
            text = file.read(MOST_OF_A_RUN).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return (
        f"(the first {left_out} bytes are left out: {path} has them)\n{text}" if left_out else text
    )
