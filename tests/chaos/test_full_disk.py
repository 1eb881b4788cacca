"""A home, with its repository, on a real small disk that gets full while agents run.

What is refused is said with a way out; nothing that was acknowledged is lost; and once there is
room again everything goes on by itself.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time

import pytest
from field import Field
from holds import check_the_end
from named_steps import Arm, fill, named
from nursery import Nursery

SEED = int(os.environ.get("SEED", time.time_ns() % 100_000))
SIZE = "24m"
MOMENTS = [
    "before claiming",
    "before launching",
    "in the middle of a turn",
    "before it records the exit",
    *(
        pytest.param(moment, marks=pytest.mark.slow)
        for moment in (
            "before making a worktree",
            "before writing that it started",
            "between two lines",
            "before telling it words",
            "before launching its gate",
            "before settling a run",
            "before it takes the run",
            "before it starts the coder",
        )
    ),
]


@pytest.fixture(scope="module")
def nursery():
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def field(tmp_path, nursery):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small filesystem can only be mounted by root")
    made = Field(disk, nursery, SEED, settings={"TMPDIR": str(disk)}, log=tmp_path / "log")
    try:
        yield made
    finally:
        for filler in disk.glob("*.filler"):
            filler.unlink()
        made.close()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def full(field: Field) -> None:
    """What a person sees of it."""
    task = next(iter(field.kinds))
    for words in (["add", "Big", "--prompt", "x" * 9000], ["comment", task, "x" * 9000]):
        refused = field.yard.type(*words, TMPDIR="/tmp")
        assert refused.returncode == 3, refused
        assert "full" in refused.stderr or "No space left" in refused.stderr
        assert "Free some" in refused.stderr, refused.stderr
    for words in (["tasks"], ["show", task], ["run", "status"], ["questions"]):
        seen = field.yard.type(*words, "--json", TMPDIR="/tmp")
        assert seen.returncode in {0, 3}, seen
        assert "Traceback" not in seen.stderr
        assert json.loads(seen.stdout or seen.stderr)


def finish(field: Field) -> None:
    """By the supervisor that was there all the time."""
    field.touched = dict.fromkeys(field.kinds, "disk")
    field.loose |= {"asks", "gate"}  # its coder or its gate may not have been able to write
    field.wait_for(field.all_over, "the end of every task", timeout=60)
    field.wait_for(lambda: not field.yard.strays(), "the end of every process")
    assert field.nursery.status(field.pid) is None
    field.kill()
    field.check()
    check_the_end(field)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_disk_that_is_full_for_a_while_at_a_named_step_costs_nothing_but_time(field, moment):
    step = named(moment)
    tasks = field.add(step.kind)
    for kind in ("plain", "asks"):
        field.add(kind)
    token = field.yard.place / "token"
    arm = Arm(step.victim, step.at, str(token), 1, tuple(tasks), "fill")
    field.start(arm)
    field.wait_for(token.exists, "the moment")
    full(field)
    (field.yard.place / "token.filler").unlink()
    finish(field)


@pytest.mark.parametrize("room", [16, 24, 40, 56])
def test_a_disk_with_little_room_when_a_keeper_starts_spoils_none_that_starts_later(field, room):
    """Python writes down what it has compiled; what did not fit must not be loaded for ever."""
    (task,) = field.add("plain")
    token = field.yard.place / "token"
    arm = Arm("supervisor", "before launch", str(token), 1, (task,), "fill", room << 10)
    field.start(arm)
    field.wait_for(token.exists, "the moment")
    field.wait_for(lambda: field.yard.home.joinpath("runs", f"{task}.1").exists(), "a launch")
    time.sleep(0.5)
    (field.yard.place / "token.filler").unlink()
    field.add("plain")
    finish(field)


def test_a_disk_that_gets_full_and_free_again_at_any_time_loses_nothing(field):
    rng = random.Random(SEED)
    for kind in ("plain", "dependent", "gate", "asks", "words", "spawns", "lingers"):
        field.add(kind)
    field.start()
    filler = field.yard.place / "a.filler"
    for _ in range(8):
        time.sleep(rng.uniform(0.0, 0.5))
        fill(str(filler))
        time.sleep(rng.uniform(0.0, 0.4))
        filler.unlink()
    finish(field)
