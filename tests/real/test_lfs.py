"""Git LFS as it is: large files go the whole way from an agent to the remote, and none is lost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if shutil.which("git-lfs") is None:
        words = [str(ROOT / "scripts/debian"), "git-lfs"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            pytest.skip(f"git-lfs: {ran.stderr[-200:]}")


@pytest.fixture
def scratch(tmp_path):
    """A clone that has the names of its remote's large files, and the contents of those it needs."""
    made = Scratch(tmp_path)
    made.git("lfs", "install")
    made.git("lfs", "track", "*.bin")
    (made.repo / "old.bin").write_bytes(b"old" * 1000)
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "Large files")
    made.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "far.git"))
    made.git("remote", "add", "origin", f"file://{tmp_path}/far.git")
    made.git("push", "-q", "origin", "main")
    made.git("clone", "-q", f"file://{tmp_path}/far.git", str(tmp_path / "clone"))
    made.repo = tmp_path / "clone"
    return made


def is_pointer(scratch, name: str, branch: str = "main") -> bool:
    return scratch.git("show", f"{branch}:{name}").startswith("version https://git-lfs")


def test_large_files_are_tested_landed_and_undone_with_their_contents(scratch):
    gate = "grep -q old old.bin && cat *.bin | grep -q new"  # the contents, not the pointers
    tasks = [
        scratch.add(f"Write {name}", "--gate", gate, script=f"write {name} new\n{end}")
        for name, end in (("a.bin", "commit a.bin"), ("b.bin", ""))  # Fleet commits the second
    ]
    scratch.work()
    for task in tasks:
        assert f"{task} landed on main" in scratch("land", task, "--now")
    assert is_pointer(scratch, "a.bin")
    assert is_pointer(scratch, "b.bin")
    assert (scratch.repo / "b.bin").read_text() == "new\n"
    assert scratch.git("status", "--porcelain") == ""
    scratch("land", "undo", tasks[0])
    scratch.work()
    assert not (scratch.repo / "a.bin").exists()
    assert "OK" in scratch.git("lfs", "fsck")


def test_a_push_brings_the_contents_of_large_files_to_the_remote(scratch, tmp_path):
    task = scratch.add("Write", script="write a.bin new\ncommit a.bin")
    scratch.work()
    assert f"{task} landed on origin/main" in scratch("land", task, "--push", "--now")
    scratch.git("clone", "-q", f"file://{tmp_path}/far.git", str(tmp_path / "other"))
    assert (tmp_path / "other" / "a.bin").read_text() == "new\n"


def test_a_large_file_that_two_changed_goes_back_to_its_agent(scratch):
    first, second = (
        scratch.add("Change", script=f"write old.bin {n}\ncommit old.bin") for n in (1, 2)
    )
    scratch.work()
    scratch("land", first, "--now")
    done = scratch.type("land", second, "--now")
    assert done.returncode == 1, done.stdout
    assert "It conflicts with main in old.bin." in scratch("land", "show", second)
    assert scratch.git("status", "--porcelain") == ""
