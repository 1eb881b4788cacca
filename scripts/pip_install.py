"""`pip install` with a line that moves: pip_install.py "Installing Fleet" WORDS…

It runs in an environment that has nothing installed yet, so it uses only what needs no package.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from fleet.adapters.processes.pip import pip_install
from fleet.cli.terminal.progress import ProgressLine
from fleet.domain.errors import FleetError

WITHIN = 1800.0  # seconds


def main(doing: str, *words: str) -> int:
    try:
        with ProgressLine(doing, announced=True) as progress:
            pip_install(
                sys.executable,
                words,
                lambda what, count: progress.at(f"{count} packages so far, now {what}"),
                within=WITHIN,
            )
    except FleetError as error:
        print(f"setup: {error.message}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
