"""Real repositories, and the sites that workspaces are wanted for."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from fleet.adapters.git.checkout import GitCheckout, WorkspaceRules
from fleet.domain.run import Choice, Run, RunState
from fleet.domain.task import Spec, Task, TaskState
from fleet.ports import Merge, Site

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("-c", "user.name=someone", "-c", "user.email=someone@localhost")


def git(where: Path, *args: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", *WHO, *args], cwd=where, capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repo(where: Path, **files: str) -> Path:
    where.mkdir(parents=True)
    git(where, "init", "--quiet", "--initial-branch=main")
    commit(where, "first", **(files or {"README": "hello\n"}))
    return where


def commit(where: Path, message: str, **files: str) -> str:
    """`a__b` is the file `b` in the directory `a`."""
    for name, text in files.items():
        path = where / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(where, "add", "-A")
    git(where, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(where, "rev-parse", "HEAD")


def site(project: Path | str, task_id: str = "t-1", number: int = 1, **more) -> Site:
    """`spec` and what else a Site has."""
    spec = more.pop("spec", None) or Spec(cwd=str(project))
    task = Task(
        id=task_id, version=1, state=TaskState.RUNNING, title="Do it", prompt="do it",
        project=str(project), author="someone", created_at=1, spec=spec,
    )  # fmt: skip
    run = Run(
        id=f"{task_id}.{number}", version=1, task=task_id, state=RunState.CLAIMED,
        choice=Choice("scripted", "scripted"), host="h", holder="x", claimed_at=1,
    )  # fmt: skip
    more["merges"] = tuple(m if isinstance(m, Merge) else Merge(m) for m in more.get("merges", ()))
    return Site(task, run, **more)


def prepared(checkout, wanted: Site):
    workspace = checkout.plan(wanted)
    checkout.prepare(workspace, wanted)
    return workspace


def picture(repo: Path) -> dict[str, str]:
    """All of a repository that a person would miss."""
    return {
        "branches": git(repo, "for-each-ref", "--format=%(refname) %(objectname)"),
        "head": git(repo, "rev-parse", "--abbrev-ref", "HEAD"),
        "status": git(repo, "status", "--porcelain", "--ignored"),
        "stash": git(repo, "stash", "list"),
        "worktrees": git(repo, "worktree", "list", "--porcelain"),
    }


def checkout_in(place: Path, **rules) -> GitCheckout:
    return GitCheckout(place / "worktrees", WorkspaceRules(**rules))
