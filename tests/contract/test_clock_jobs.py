"""What every Clock and every Jobs promise."""

import subprocess
import sys
import threading
import time

import pytest

from fleet.adapters.home.bell import Bell
from fleet.adapters.processes.clock import SystemClock
from fleet.adapters.processes.threads import WIDTH, ThreadJobs
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import InlineJobs
from tests.wait import LIMIT, until


@pytest.fixture(params=["real", "fake"])
def clock(request):
    """A clock, and how to let a moment pass."""
    if request.param == "real":
        return SystemClock(), time.sleep
    fake = FakeClock()
    return fake, fake.advance


def test_a_clock_counts_whole_microseconds_of_utc(clock):
    clock, _ = clock
    assert isinstance(clock.now(), int)
    assert clock.now() > 1_700_000_000_000_000


def test_both_hands_of_a_clock_go_on_together(clock):
    clock, let_pass = clock
    now, booted = clock.now(), clock.since_boot()
    let_pass(0.05)
    assert 45_000 <= clock.now() - now < 2_000_000
    assert 0.045 <= clock.since_boot() - booted < 2
    assert abs((clock.now() - now) / 1e6 - (clock.since_boot() - booted)) < 0.5


@pytest.fixture(params=["real", "fake"])
def jobs(request, tmp_path):
    bell = Bell(tmp_path / "bell")
    bell.listen()
    yield ThreadJobs(bell) if request.param == "real" else InlineJobs()
    bell.close()


def test_a_job_is_done_once_it_was_begun(jobs):
    did = []
    job = jobs.begin(lambda: did.append(1))
    until(job.done)
    assert job.result() is None
    assert did == [1]


def test_what_a_job_raised_is_raised_for_whoever_asks_and_as_often(jobs):
    def fail():
        raise ValueError("no luck")

    job = jobs.begin(fail)
    until(job.done)
    for _ in range(2):
        with pytest.raises(ValueError, match="no luck"):
            job.result()


def test_more_jobs_than_there_is_room_for_all_get_done(jobs):
    did = []
    begun = [jobs.begin(lambda n=n: did.append(n)) for n in range(5 * WIDTH)]
    until(lambda: all(job.done() for job in begun))
    assert sorted(did) == list(range(5 * WIDTH))


def test_jobs_go_on_beside_each_other_and_ring_when_they_are_done(tmp_path):
    bell = Bell(tmp_path / "bell")
    bell.listen()
    jobs, gate, inside = ThreadJobs(bell), threading.Event(), threading.Semaphore(0)

    def wait():
        inside.release()
        gate.wait(LIMIT)

    begun = [jobs.begin(wait) for _ in range(WIDTH + 1)]
    for _ in range(WIDTH):
        assert inside.acquire(timeout=LIMIT)
    assert not inside.acquire(timeout=0.1)  # one too many waits for its turn
    assert not any(job.done() for job in begun)
    assert not bell.wait(0)
    gate.set()
    assert bell.wait(LIMIT)
    until(lambda: all(job.done() for job in begun))
    bell.close()


ENDS = """
import sys, time
from pathlib import Path
from fleet.adapters.home.bell import Bell
from fleet.adapters.processes.threads import ThreadJobs
ThreadJobs(Bell(Path(sys.argv[1]))).begin(lambda: time.sleep(30))
print("ended")
"""


def test_whoever_ends_does_not_wait_for_a_job(tmp_path):
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", ENDS, tmp_path / "bell"],
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"ended\n", b"")
    assert time.monotonic() - begun < 25


def test_ringing_a_bell_that_nobody_hears_costs_nothing(tmp_path):
    Bell(tmp_path / "nowhere" / "bell").ring()
    deaf = Bell(tmp_path / "bell")
    deaf.ring()
    listener = Bell(tmp_path / "bell")
    listener.listen()
    begun = time.monotonic()
    assert not listener.wait(0.05)
    for _ in range(100_000 // 50):
        deaf.ring()
    assert listener.wait(LIMIT)
    assert not listener.wait(0)
    assert time.monotonic() - begun < 25
    listener.close()
