"""The person's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from fleet.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from pathlib import Path


def chosen_editor() -> str:
    """The command of the person's editor; empty when none is set."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def edit_file(file: Path) -> None:
    """Wait until the editor has ended; raise when it cannot be run, or failed."""
    chosen = chosen_editor()
    if not chosen and not sys.stdin.isatty():
        raise BadInput("There is no terminal for an editor.", fix=f"Change {file}, or set EDITOR.")
    ended = run_editor(chosen or "vi", file)
    if ended:
        raise Refused(f"The editor ended with status {ended}.", fix=f"Look at {file}.")


def run_editor(editor: str, path: Path, *, fix: str = "Set EDITOR.") -> int:
    """Run the editor and return its exit status."""
    try:
        return subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
    except FileNotFoundError:
        raise BadInput(f"The editor '{editor}' is not installed.", fix=fix) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"The editor '{editor}' cannot be run: {why}.", fix=fix) from None
