"""Pictures of working trees, byte for byte."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from tests.contract.checkouts import WHO


def files_of(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Every file below, but those of git: its kind and its bytes."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != ".git"]
        links = [f for f in folders if Path(folder, f).is_symlink()]
        for name in [*names, *links]:
            if name != ".git":
                path = Path(folder, name)
                found[os.fsencode(path.relative_to(root))] = _one(path)
    return found


def _one(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    executable = path.stat().st_mode & stat.S_IXUSR
    return ("executable" if executable else "file"), path.read_bytes()


def raw(where: Path, *args: str) -> bytes:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(["git", *WHO, *args], cwd=where, capture_output=True, check=True, env=env)
    return done.stdout


def state_of(root: Path) -> dict[str, object]:
    """All that a person who works here would notice."""
    return {
        "files": files_of(root),
        "index": raw(root, "ls-files", "--stage", "-z"),
        "status": raw(root, "status", "--porcelain", "-z", "--untracked-files=all"),
        "head": raw(root, "rev-parse", "--verify", "--quiet", "HEAD"),
    }
