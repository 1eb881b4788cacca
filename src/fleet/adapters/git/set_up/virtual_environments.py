"""Python's virtual environments keep absolute paths: of their programs, and of what is editable."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = "pyvenv.cfg"
BIGGEST = 1 << 20  # bytes of a script; a program is larger
_MADE_AT = re.compile(rb"^\s*(?:export )?VIRTUAL_ENV=['\"]?(/[^'\"\n]+?)['\"]?$", re.MULTILINE)


def relocate_all(root: Path) -> None:
    """Relocate the virtual environments of a moved worktree, in its top directory or one below."""
    for pattern in (f"*/{MARK}", f"*/*/{MARK}"):
        for mark in root.glob(pattern):
            relocate(mark.parent, root)


def relocate(folder: Path, root: Path) -> None:
    """Let a virtual environment in the worktree `root` work where it is now; others are left alone."""
    if not (folder / MARK).is_file():
        return
    old = _root_before(folder, root)
    new = os.fsencode(root)
    if old in {b"", new}:
        return
    for file in _with_paths(folder):
        content = file.read_bytes()
        if old in content:
            file.write_bytes(content.replace(old, new))


def _root_before(folder: Path, root: Path) -> bytes:
    """The worktree in which it was made, by its own record; empty when it has none."""
    activate = folder / "bin" / "activate"
    match = _MADE_AT.search(activate.read_bytes()) if activate.is_file() else None
    end = os.fsencode(f"/{folder.relative_to(root)}")
    return match[1].removesuffix(end) if match and match[1].endswith(end) else b""


def _with_paths(folder: Path) -> Iterator[Path]:
    """Its scripts, and the files by which Python finds what is installed in place."""
    patterns = ("bin/*", MARK, *(f"lib/python*/site-packages/{name}" for name in IN_PLACE))
    for pattern in patterns:
        for path in folder.glob(pattern):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < BIGGEST:
                yield path


IN_PLACE = ("*.pth", "*.egg-link", "__editable__*.py", "*.dist-info/direct_url.json")
