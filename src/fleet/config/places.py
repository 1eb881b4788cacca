"""Find the home, and the project of a directory, without running a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT_FILE = "fleet.yaml"
USER_FILE = "config.yaml"


def home(env: Mapping[str, str]) -> Path:
    """`$FLEET_HOME`, else `~/.fleet`; it need not exist."""
    named = env.get("FLEET_HOME", "")
    if not named:
        return user_home(env) / ".fleet"
    path = expand(named, env)
    if not path.is_absolute():
        raise BadInput(
            f"FLEET_HOME is '{named}', which depends on the directory you are in.",
            fix="Give it an absolute path.",
        )
    return path


def user_home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def expand(written: str, env: Mapping[str, str]) -> Path:
    """A path with a leading `~` replaced."""
    if written == "~" or written.startswith("~/"):
        return user_home(env) / written[2:]
    return Path(written).expanduser() if written.startswith("~") else Path(written)


def find_project(cwd: Path) -> Path | None:
    """The nearest directory upward with a fleet.yaml, else the top of the git checkout.

    The search ends at that top. Inside a linked worktree the answer is the same directory of the
    main checkout, so that a task's worktree belongs to the project that it was made from.
    """
    cwd = Path(cwd).absolute()
    top = checkout_top(cwd)
    main = main_checkout(top) if top is not None else None
    if top is not None and main is not None:
        cwd, top = main / cwd.relative_to(top), main
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
        if folder == top:
            return top
    return None


def checkout_top(cwd: Path) -> Path | None:
    """The top of the git checkout that a directory is in; an empty `.git` makes none."""
    for folder in (cwd, *cwd.parents):
        mark = folder / ".git"
        if mark.is_file() or (mark / "HEAD").exists():
            return folder
    return None


def in_repository(cwd: Path) -> bool:
    """Whether git can make worktrees for this directory: it is in a checkout, or a bare repository."""
    bare = (cwd / "HEAD").is_file() and (cwd / "objects").is_dir() and (cwd / "refs").is_dir()
    return bare or checkout_top(cwd) is not None


def outside_git(cwd: Path | str) -> BadInput:
    """Return the error for a directory outside of git, in which an agent would have no worktree."""
    return BadInput(
        f"{cwd} is not in a git repository, so the agent would work in that very directory.",
        fix="Make it a repository with a commit, or let it work there: fleet add --in-place",
        code="outside_git",
    )


def main_checkout(top: Path) -> Path | None:
    """The checkout that a linked worktree was made from; None for any other directory."""
    link = top / ".git"
    try:
        if not link.is_file():
            return None
        word, _, named = link.read_text(encoding="utf-8").partition(":")
        if word != "gitdir":
            return None
        private = top / named.strip()
        common = private / (private / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None  # a submodule has no commondir, and is a project of its own
    common = common.resolve()
    return common.parent if common.name == ".git" else None  # a bare repository has no checkout
