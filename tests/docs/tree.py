"""The files of this repository, as git sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "src" / "fleet"


def files(*patterns: str) -> list[Path]:
    """What is tracked, or would be by `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = sorted({TOP / name for name in listed.split("\0") if name})
    return [path for path in found if path.is_file() and not path.is_symlink()]


def name(path: Path) -> str:
    return path.relative_to(TOP).as_posix()
