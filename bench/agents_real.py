"""`fleet create` with the real Claude Code against a scripted model, until its first reply."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from _bench import finish, verdict

sys.path.insert(0, str(Path(__file__).parents[1]))

from fleet.testing.model_server import say
from tests.real.terminal_scratch import TerminalScratch

TIMES = int(os.environ.get("TIMES", "3"))
ALLOWED = 10.0  # seconds


def once(folder: Path, program: str) -> tuple[float, float]:
    """Seconds until the command returned, and until the reply was on the screen."""
    with TerminalScratch(program, folder, [say("Hello to you.")]) as scratch:
        begun = time.perf_counter()
        scratch("create", "seat", "--agent", "greeter", "--prompt", "Say hello.")
        created = time.perf_counter() - begun
        while "Hello to you." not in scratch.shown():
            time.sleep(0.02)
        return created, time.perf_counter() - begun


def main() -> None:
    took = []
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            took.append(once(Path(folder), "claude"))
    confirmed, replied = (max(times) for times in zip(*took, strict=True))
    figure = "{:.2f} s"
    limit = (figure, ALLOWED)
    finish(
        verdict("create, Claude Code, prompt confirmed", (figure, confirmed), limit, at_most=1),
        verdict("create, Claude Code, first reply", (figure, replied), limit, at_most=1),
    )


if __name__ == "__main__":
    main()
