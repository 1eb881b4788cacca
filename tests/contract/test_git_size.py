"""How many lines an agent's worktree has changed, as `fleet list` shows it while it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from fleet.adapters.git.diff.size import LiveLines, WorkSpan
from fleet.domain.run import Workspace


def git(where, *words):
    done = subprocess.run(["git", *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def work(tmp_path):
    """A worktree with one line more, and the span of its task."""
    repo, root = tmp_path / "repo", tmp_path / "tree"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "a").write_text("one\n")
    git(repo, "add", ".")
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")
    git(repo, "worktree", "add", "-q", "-b", "t", str(root))
    (root / "a").write_text("one\ntwo\n")
    space = Workspace(
        path=str(root), root=str(root), branch="t", base=git(repo, "rev-parse", "HEAD")
    )
    return root, WorkSpan("t-1", space)


def test_lines_that_nobody_has_committed_count(work):
    _, span = work
    assert LiveLines({"t-1.1": span}).result() == {"t-1.1": (1, 0)}


def test_a_worktree_costs_one_process(work, tmp_path, monkeypatch):
    _, span = work
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    program = folder / "git"
    program.write_text(f'#!/bin/sh\necho x >>"{log}"\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    assert LiveLines({"t-1.1": span}).result() == {"t-1.1": (1, 0)}
    assert log.read_text() == "x\n"  # every `fleet list`, and the dashboard, looks at all of them


def test_a_list_does_not_wait_for_git_to_go_on(work, tmp_path, monkeypatch):
    _, span = work
    folder, go = tmp_path / "bin", tmp_path / "go"
    folder.mkdir()
    os.mkfifo(go)
    program = folder / "git"
    program.write_text(f'#!/bin/sh\nread -r _ <"{go}"\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    lines = LiveLines({"t-1.1": span})
    go.write_text("\n")  # git is held until now
    assert lines.result() == {"t-1.1": (1, 0)}


def test_counting_lines_loads_no_pool_of_threads():
    script = "import sys, fleet.adapters.git.diff.size; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    slow = {"concurrent.futures", "logging", "tempfile", "fleet.adapters.git.diff.span"}
    assert not slow & set(done.stdout.split())


def test_a_folder_that_is_no_worktree_any_more_counts_no_repository_around_it(work):
    root, span = work
    git(root.parent, "init", "-q", ".")
    shutil.rmtree(root)
    root.mkdir()
    assert LiveLines({"t-1.1": span}).result() == {}
