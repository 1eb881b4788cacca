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

from tests.chaos.crashing_home import CrashingHome
from tests.chaos.invariants import check_the_end
from tests.chaos.named_steps import Arm, fill, named

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


@pytest.fixture
def crashing(tmp_path, forker):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small filesystem can only be mounted by root")
    made = CrashingHome(disk, forker, SEED, settings={"TMPDIR": str(disk)}, log=tmp_path / "log")
    try:
        yield made
    finally:
        for filler in disk.glob("*.fill*"):
            filler.unlink()
        made.close()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def full(crashing: CrashingHome) -> None:
    """What a person sees of it."""
    task = next(iter(crashing.kinds))
    for words in (["add", "Big", "--prompt", "x" * 9000], ["comment", task, "x" * 9000]):
        refused = crashing.supervised.type(*words, TMPDIR="/tmp")
        assert refused.returncode == 3, refused
        assert "full" in refused.stderr or "No space left" in refused.stderr
        assert "Free some" in refused.stderr, refused.stderr
    for words in (["tasks"], ["show", task], ["run", "status"], ["questions"]):
        seen = crashing.supervised.type(*words, "--json", TMPDIR="/tmp")
        assert seen.returncode in {0, 3}, seen
        assert "Traceback" not in seen.stderr
        assert json.loads(seen.stdout or seen.stderr)


def finish(crashing: CrashingHome) -> None:
    """By the supervisor that was there all the time."""
    crashing.touched = dict.fromkeys(crashing.kinds, "disk")
    crashing.loose |= {"asks", "gate"}  # its coder or its gate may not have been able to write
    crashing.wait_for(crashing.all_over, "the end of every task")
    crashing.wait_for(lambda: not crashing.supervised.strays(), "the end of every process")
    assert crashing.forker.status(crashing.pid) is None
    crashing.kill()
    crashing.check()
    check_the_end(crashing)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_disk_that_is_full_for_a_while_at_a_named_step_costs_nothing_but_time(crashing, moment):
    step = named(moment)
    tasks = crashing.add(step.kind)
    for kind in ("plain", "asks"):
        crashing.add(kind)
    token = crashing.supervised.place / "token"
    arm = Arm(step.victim, step.at, str(token), 1, tuple(tasks), "fill")
    crashing.start(arm)
    filler = token.with_suffix(".filler")
    crashing.wait_for(filler.exists, "the moment")
    full(crashing)
    filler.unlink()
    finish(crashing)


@pytest.mark.parametrize("room", [16, 24, 40, 56])
def test_a_disk_with_little_room_when_a_keeper_starts_spoils_none_that_starts_later(crashing, room):
    """Python writes down what it has compiled; what did not fit must not be loaded for ever."""
    (task,) = crashing.add("plain")
    token = crashing.supervised.place / "token"
    arm = Arm("supervisor", "before launch", str(token), 1, (task,), "fill", room << 10)
    crashing.start(arm)
    filler = token.with_suffix(".filler")
    crashing.wait_for(filler.exists, "the moment")
    crashing.wait_for(
        lambda: crashing.supervised.home.joinpath("runs", f"{task}.1").exists(), "a launch"
    )
    time.sleep(0.5)
    filler.unlink()
    crashing.add("plain")
    finish(crashing)


def test_a_disk_that_gets_full_and_free_again_at_any_time_loses_nothing(crashing):
    rng = random.Random(SEED)
    for kind in ("plain", "dependent", "gate", "asks", "words", "spawns", "lingers"):
        crashing.add(kind)
    crashing.start()
    # With a full disk it cannot open its store, and rightly refuses to start.
    crashing.wait_for(crashing.supervises, "the supervisor")
    filler = crashing.supervised.place / "a.filler"
    for _ in range(8):
        time.sleep(rng.uniform(0.0, 0.5))
        fill(str(filler))
        time.sleep(rng.uniform(0.0, 0.4))
        filler.unlink()
    finish(crashing)
