"""`bd` for a run's PATH: a program in the home that runs `fleet bd` with this interpreter."""

from __future__ import annotations

import shlex
import sys
import threading
from contextlib import suppress
from pathlib import Path

import fleet
from fleet.base.files import write_atomically

# -P and -E: it must not import from the current directory or the project's PYTHONPATH.
CODE = (
    "import sys; sys.path[:0] = filter(None, [sys.argv.pop(1)]); "
    "from fleet.cli.main import main; sys.exit(main(['bd', *sys.argv[1:]]))"
)
INSTALLED = {"site-packages", "dist-packages"}
_ALONE = threading.Lock()  # runs are prepared side by side


def bd_folder(home: Path) -> Path:
    """The folder of the program, which is written when it is missing or another installation's."""
    folder = home / "bin"
    program = folder / "bd"
    root = Path(fleet.__file__).parent.parent
    installed = root.name in INSTALLED  # else it runs from its source, whose path the program needs
    words = [sys.executable, "-P", "-E", "-c", CODE, "" if installed else str(root)]
    text = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
    with _ALONE:
        with suppress(OSError, UnicodeDecodeError):
            if program.read_text("utf-8") == text:
                return folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(program, text, mode=0o700)
    return folder
