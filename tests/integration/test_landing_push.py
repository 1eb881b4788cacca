"""`fleet land --push`: work is built on the remote's branch, tested there, and pushed."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.contract.checkouts import git
from tests.integration.test_landing import done, gates, land, landed, main_branch
from tests.wait import LIMIT, until

if TYPE_CHECKING:
    from pathlib import Path


class Remote:
    """A bare repository that somebody else pushes to as well."""

    def __init__(self, supervised) -> None:
        self.main = main_branch(supervised)
        self.path = supervised.place / "remote.git"
        git(supervised.place, "clone", "-q", "--bare", str(supervised.repo), str(self.path))
        git(supervised.repo, "remote", "add", "origin", str(self.path))
        self.rival = supervised.place / "rival"
        git(supervised.place, "clone", "-q", str(self.path), str(self.rival))

    @property
    def tip(self) -> str:
        return git(self.path, "rev-parse", self.main)

    @property
    def files(self) -> set[str]:
        return set(git(self.path, "ls-tree", "-r", "--name-only", self.main).split())

    def push(self, name: str) -> None:
        subprocess.run(["sh", "-ec", self.script(name)], check=True)

    def script(self, name: str) -> str:
        who = "-c user.name=b -c user.email=b@c"
        return (
            f"cd {self.rival}; unset GIT_DIR GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY; git pull -q;"
            f" echo {name} > {name}; git add {name}; git {who} commit -qm {name}; git push -q"
        )


@pytest.fixture
def remote(supervised) -> Remote:
    return Remote(supervised)


def hook(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_a_remote_it_is_refused_and_not_queued(supervised):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    for words in (["--push"], ["--pr"]):
        refused = land(supervised, task, *words, status=1)
        assert "has no remote 'origin'" in refused
        assert "git remote add origin URL" in refused
    assert "Nothing waits to land." in land(supervised, "list")


def test_work_is_built_on_the_tip_of_the_remote_and_pushed(supervised, remote):
    task = supervised.add("write a.txt x", gate="test -e a.txt")
    done(supervised, task)
    remote.push("theirs")
    said = land(supervised, task, "--push", "--now")
    assert said == f"{task} landed on origin/{remote.main} ({remote.tip[:12]}).\n"
    assert {"a.txt", "theirs"} <= remote.files
    assert len(gates(supervised)) == 1  # the merged tree was tested, not the task's own
    assert git(supervised.repo, "rev-parse", "HEAD") == remote.tip
    assert (supervised.repo / "a.txt").exists()


def test_without_push_nothing_leaves_this_machine(supervised, remote):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    land(supervised, task, "--now")
    assert "a.txt" not in remote.files


def test_a_race_that_was_lost_during_the_push_is_built_again(supervised, remote):
    task = supervised.add("write a.txt x", gate="test -e a.txt")
    done(supervised, task)
    once = supervised.place / "once"
    rival = f"test -e {once} || {{ touch {once}; {remote.script('theirs')}; }}"
    hook(supervised.repo / ".git/hooks/pre-push", rival)
    land(supervised, task, "--push", "--now")
    assert once.exists()
    assert {"a.txt", "theirs"} <= remote.files
    assert len(gates(supervised)) == 1  # of the second merge
    assert git(supervised.repo, "fsck", "--no-dangling") == ""


def test_a_supervisor_that_is_killed_after_the_push_has_landed_it_once(supervised, remote):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    once = supervised.place / "once"
    pid = supervised.supervisor.pid
    hook(remote.path / "hooks/post-receive", f"echo x >> {once}; kill -9 {pid}")
    land(supervised, task, "--push")
    assert supervised.supervisor.wait(LIMIT) == -signal.SIGKILL
    tip = remote.tip
    assert supervised.task(task).tally.landed == ""
    supervised.start()
    landed(supervised, task)
    assert supervised.task(task).tally.landed == tip == remote.tip
    assert once.read_text() == "x\n"


def test_a_local_branch_with_work_of_its_own_stays_as_it_is(supervised, remote):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    (supervised.repo / "mine").write_text("x\n")
    git(supervised.repo, "add", "mine")
    git(supervised.repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Mine")
    mine = git(supervised.repo, "rev-parse", "HEAD")
    land(supervised, task, "--push", "--now")
    assert "a.txt" in remote.files
    assert "mine" not in remote.files
    assert git(supervised.repo, "rev-parse", "HEAD") == mine


def test_a_remote_that_does_not_take_it_is_said_and_nothing_lands(supervised, remote):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    hook(remote.path / "hooks/pre-receive", "echo main is protected >&2; exit 1")
    said = land(supervised, task, "--push", "--now", status=1)
    assert "origin did not take" in said
    assert "declined" in said
    assert supervised.task(task).tally.landed == ""
    (remote.path / "hooks/pre-receive").unlink()
    landed(supervised, task)


@pytest.mark.parametrize("wrong", ["remote", "branch"])
def test_what_the_remote_does_not_have_is_said(supervised, remote, wrong):
    task = supervised.add("write a.txt x")
    done(supervised, task, **({"FLEET_LAND_REMOTE": "nowhere"} if wrong == "remote" else {}))
    env = {"FLEET_LAND_REMOTE": "nowhere"} if wrong == "remote" else {}
    more = [] if wrong == "remote" else ["--onto", "release"]
    said = land(supervised, task, "--push", "--now", *more, status=1, **env)
    assert {"remote": "no remote 'nowhere'", "branch": "no branch 'release' at origin"}[
        wrong
    ] in said


def test_with_land_push_and_land_auto_work_is_pushed_as_soon_as_it_is_done(supervised, remote):
    task = supervised.add("write a.txt x")
    done(supervised, task, FLEET_LAND_AUTO="true", FLEET_LAND_PUSH="true")
    landed(supervised, task)
    until(lambda: "a.txt" in remote.files)
    assert "origin" in land(supervised, "list", "--all")
