"""A foreign program is waited for as long as was said, whatever that is."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from fleet.adapters.processes import run as process
from fleet.adapters.processes.threads import side_by_side
from fleet.domain.errors import Unavailable


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("timeout", [5, 3_000_000, 1e12])
def test_its_end_is_seen_and_what_it_said(tmp_path, timeout, in_memory):
    argv = ["sh", "-c", "cat; echo oops >&2; exit 3"]
    done = process.run(
        argv, tmp_path, env=os.environ, timeout=timeout, stdin=b"hello\n", in_memory=in_memory
    )
    assert (done.status, done.out, done.err, done.raw) == (3, "hello\n", "oops\n", b"hello\n")


@pytest.mark.parametrize("timeout", [0.05, 0, -1])
def test_one_that_takes_longer_is_ended(tmp_path, timeout):
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="sleep 30 took more than"):
        process.run(["sleep", "30"], tmp_path, env=os.environ, timeout=timeout)
    assert time.monotonic() - begun < 20


def test_what_it_leaves_behind_is_not_waited_for(tmp_path):
    begun = time.monotonic()
    argv = ["sh", "-c", "sleep 30 & echo $!"]
    done = process.run(argv, tmp_path, env=os.environ, timeout=20)
    os.kill(int(done.out), 9)
    assert time.monotonic() - begun < 20


class Interrupt(BaseException):
    pass


@pytest.fixture
def interrupted():
    """In a moment, as a Ctrl-C would."""

    def interrupt(_number, _frame):
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    yield
    timer.cancel()
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("ends", [True, False])
def test_when_we_are_interrupted_it_goes_on_only_if_it_may(tmp_path, interrupted, ends):
    pid = tmp_path / "pid"
    argv = ["sh", "-c", f"echo $$ > {pid}; exec sleep 30"]
    with pytest.raises(Interrupt):
        process.run(argv, tmp_path, env=os.environ, timeout=60, ends_with_us=ends)
    number = int(pid.read_text())
    alive = Path(f"/proc/{number}").exists()
    assert alive is not ends
    if alive:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def test_acts_side_by_side_are_not_waited_for_when_we_are_interrupted(interrupted):
    begun, done = time.monotonic(), []

    def act():
        time.sleep(3)
        done.append(1)

    with pytest.raises(Interrupt):
        side_by_side([act] * 20)
    assert time.monotonic() - begun < 3
    time.sleep(4)
    assert len(done) < 20  # none was begun after it


def test_acts_side_by_side_give_what_each_returns_in_their_order():
    assert side_by_side([lambda n=n: time.sleep(0.01 * (n % 3)) or n for n in range(30)]) == [
        *range(30)
    ]
    assert side_by_side([]) == []
    with pytest.raises(ValueError, match="odd"):
        side_by_side([lambda: 1, lambda: int("odd")])
