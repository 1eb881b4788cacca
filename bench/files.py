"""What it costs the supervisor to write down a line that an agent said, of all it may spend on it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from _bench import finish, verdict
from fleet.adapters.home.task_folder import FolderFiles
from fleet.adapters.processes.clock import SystemClock
from fleet.domain.run import Choice, Run, RunState
from fleet.domain.transcript import Said, SaidKind
from fleet.operations.messages import qa_file
from fleet.testing.memory_store import MemoryStore

RUNS, CHUNKS = 200, 20
ALLOWED = 50.0  # microseconds of CPU for everything that is done about a line
ENV = {"DEPLOY_TOKEN": "x" * 20, "OPENAI_API_KEY": "y" * 40}
SHORT = "All is well."
USUAL = "I have edited src/shop/login.py so that the name is kept, and all of its tests pass now. "


def cost(text: str, at_once: int) -> float:
    """Microseconds of CPU a line, when so many come at once from each of the runs."""
    with tempfile.TemporaryDirectory() as folder:
        clock = SystemClock()
        files = FolderFiles(Path(folder), MemoryStore(clock), clock, coder=str, qa=qa_file, env=ENV)
        runs = [
            Run(f"t-{n}.1", 1, f"t-{n}", RunState.RUNNING, Choice("a", "scripted"), "h", "h", 1)
            for n in range(RUNS)
        ]
        said = [Said(SaidKind.TEXT, f"{text} {n}") for n in range(at_once)]
        chunks = [list(enumerate(said, 1 + n * at_once)) for n in range(CHUNKS)]
        for run in runs:
            files.add_to_transcript(run, chunks[0])
        start = time.process_time()
        for chunk in chunks[1:]:
            for run in runs:
                files.add_to_transcript(run, chunk)
        spent = time.process_time() - start
        assert not files.trouble, files.trouble
        return spent / (RUNS * (CHUNKS - 1) * at_once) * 1e6


def main() -> None:
    figure = "{:.1f} µs a line"
    allowed = (figure, ALLOWED)
    finish(
        verdict("short lines, 10 at once", (figure, cost(SHORT, 10)), allowed, at_most=0.24),
        verdict("usual lines, 10 at once", (figure, cost(USUAL, 10)), allowed, at_most=0.24),
        verdict("usual lines, one by one", (figure, cost(USUAL, 1)), allowed, at_most=1),
    )


if __name__ == "__main__":
    main()
