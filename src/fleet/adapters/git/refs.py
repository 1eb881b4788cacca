"""Branches and HEAD read from git's files: running git costs a process each time."""

from __future__ import annotations

import os
import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
HEADS = "refs/heads/"


def in_files(common: Path) -> bool:
    """False: the refs are in another format, which only git can read."""
    return not (common / "reftable").exists()


def names_around(common: Path, branch: str) -> list[str]:
    """The branches of this name, above its path and below it."""
    parts = branch.split("/")
    above = ["/".join(parts[:n]) for n in range(1, len(parts))]
    heads = common / "refs" / "heads"
    names = {name for name in (*above, branch) if (heads / name).is_file()}
    if (heads / branch).is_dir():
        below = (Path(at, f) for at, _, files in os.walk(heads / branch) for f in files)
        names |= {str(f.relative_to(heads)) for f in below if f.suffix != ".lock"}
    wanted = {*above, branch}
    packed = (ref.removeprefix(HEADS) for ref in _packed(common) if ref.startswith(HEADS))
    names |= {name for name in packed if name in wanted or name.startswith(f"{branch}/")}
    return sorted(names)


def head_commit(top: Path, common: Path) -> str:
    """The commit that the checkout is at; empty: only git can tell."""
    folder = top / ".git"
    if not folder.is_dir() or not in_files(common):
        return ""
    try:
        head = (folder / "HEAD").read_text("utf-8").strip()
        if head.startswith(f"ref: {HEADS}"):
            ref = head.removeprefix("ref: ")
            loose = common / ref
            head = (
                loose.read_text("utf-8").strip()
                if loose.is_file()
                else _packed(common).get(ref, "")
            )
    except (OSError, ValueError):
        return ""
    return head if _COMMIT.fullmatch(head) else ""


def head_branch(top: Path) -> str | None:
    """The branch that the checkout is on, empty when it is on none; None: only git can tell."""
    try:
        head = (top / ".git" / "HEAD").read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return head.removeprefix(f"ref: {HEADS}") if head.startswith(f"ref: {HEADS}") else ""


def _packed(common: Path) -> dict[str, str]:
    try:
        lines = (common / "packed-refs").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(" ") for line in lines if line and line[0] not in "#^")
    return {ref: commit for commit, _, ref in pairs}
