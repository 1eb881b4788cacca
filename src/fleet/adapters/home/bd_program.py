"""`bd` for a run's PATH: a program in the home that is `fleet bd`, by this very interpreter."""

from __future__ import annotations

import shlex
import sys
import threading
from contextlib import suppress
from pathlib import Path

import fleet
from fleet.base.files import write_atomically

# -P and -E: neither the directory it is typed in nor the project's PYTHONPATH may be imported from.
CODE = (
    "import sys; sys.path[:0] = filter(None, [sys.argv.pop(1)]); "
    "from fleet.cli.main import main; sys.exit(main(['bd', *sys.argv[1:]]))"
)
INSTALLED = {"site-packages", "dist-packages"}
_ALONE = threading.Lock()  # runs are prepared side by side


def bd_folder(home: Path) -> Path:
    """The folder that it is in; it is written when it is missing, or is another installation's."""
    folder = home / "bin"
    program = folder / "bd"
    where = Path(fleet.__file__).parent.parent
    found = where.name in INSTALLED  # else it runs from its source, and must be named
    words = [sys.executable, "-P", "-E", "-c", CODE, "" if found else str(where)]
    text = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
    with _ALONE:
        with suppress(OSError, UnicodeDecodeError):
            if program.read_text("utf-8") == text:
                return folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(program, text, mode=0o700)
    return folder
