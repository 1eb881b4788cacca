"""A repository within a worktree: an agent wrote its settings, so Fleet's git believes none of them.

A setting such as `filter.NAME.clean` is a command, and Fleet's git runs outside of every isolation.
So git is given a folder with settings of ours, whose other entries are links to the repository's.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import run_git, text_of
from fleet.adapters.git.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Files that say what git is to do, or where the rest of the repository is.
_SETTINGS = ("config", "config.worktree", "commondir", "hooks", "HEAD")
# What a repository may say of itself: how it stores and writes files, never what to run.
_HARMLESS = frozenset({
    "core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode",
    "core.sparsecheckout", "core.sparsecheckoutcone", "core.symlinks", "index.sparse",
    "extensions.objectformat", "extensions.refstorage", "user.name", "user.email",
})  # fmt: skip


@contextmanager
def inner_tree(outer: Tree, path: Path) -> Iterator[Tree | None]:
    """The working tree at this path, for as long as the context lasts; None: it cannot be read so.

    Its repository must be within the outer tree, or a submodule's: a link to any other one would
    have Fleet copy that, out of an agent's reach, to where the agent can read it.
    """
    gitdir = _gitdir_of(path)
    if gitdir is not None and gitdir.parent == outer.common / "worktrees":
        yield Tree(path, gitdir)  # another worktree of the same repository, which has its settings
        return
    if gitdir is None or not _is_within(gitdir, outer) or (gitdir / "commondir").exists():
        yield None
        return
    with outer.scratch() as folder:
        yield _shadow(path, gitdir, folder)


def gitdir_of(inner: Tree) -> Path:
    """Where the repository itself is."""
    return (inner.gitdir / "objects").resolve().parent


def _gitdir_of(path: Path) -> Path | None:
    git = path / ".git"
    with suppress(OSError):
        if git.is_dir():
            return git
        kind, _, recorded = os.fsdecode(git.read_bytes()).rstrip("\n").partition(": ")
        return (path / recorded).resolve() if kind == "gitdir" else None
    return None


def _is_within(gitdir: Path, outer: Tree) -> bool:
    """Nor does a part of it lead elsewhere."""
    allowed = (outer.root.resolve(), (outer.gitdir / "modules").resolve())
    parts = [gitdir, *(gitdir / name for name in ("objects", "refs", "HEAD", "index", "config"))]
    real = [part.resolve() for part in parts]
    return all(any(part.is_relative_to(folder) for folder in allowed) for part in real)


def _shadow(path: Path, gitdir: Path, folder: Path) -> Tree | None:
    shadow = folder / "git"
    shadow.mkdir()
    try:
        for entry in gitdir.iterdir():
            if entry.name not in _SETTINGS:
                (shadow / entry.name).symlink_to(entry.resolve())
        (shadow / "HEAD").write_bytes((gitdir / "HEAD").read_bytes())
        lines = (gitdir / "config").read_bytes() if (gitdir / "config").is_file() else b""
    except OSError:
        return None
    (folder / "theirs").write_bytes(lines)
    _write_settings(shadow / "config", _settings(folder / "theirs"))
    return Tree(path, shadow, outside=folder)


def _settings(file: Path) -> dict[str, str]:
    """What the repository may say of itself; reading a file of settings runs none of them."""
    done = run_git(file.parent, "config", "--file", str(file), "--no-includes", "-z", "--list")
    settings = {}
    for entry in text_of(done.raw).split("\0"):
        name, equals, value = entry.partition("\n")
        if name in _HARMLESS and equals:
            settings[name] = value
    return settings


def _write_settings(file: Path, settings: dict[str, str]) -> None:
    file.write_text("[core]\n\trepositoryformatversion = 1\n\tbare = false\n")
    for name, value in settings.items():
        run_git(file.parent, "config", "--file", str(file), name, value)
