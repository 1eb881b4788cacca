"""A foreign program is waited for as long as was said, whatever that is."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.adapters.processes import run as process
from fleet.adapters.processes.threads import WIDTH, side_by_side
from fleet.domain.errors import Unavailable
from tests.contract.launching import is_alive
from tests.wait import LIMIT, until


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
def interrupt_once():
    """Interrupt this thread as a Ctrl-C would, once the given fact is so."""

    def interrupt(_number, _frame):
        raise Interrupt

    def when(fact):
        until(fact)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield lambda fact: threading.Thread(target=when, args=(fact,)).start()
    signal.signal(signal.SIGUSR1, before)


def is_waited_for(pid: str) -> bool:
    """Its start is over: we hold a descriptor of it."""
    for file in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):
            if f"Pid:\t{pid}\n" in file.read_text():
                return True
    return False


@pytest.mark.filterwarnings("ignore:subprocess .* is still running")  # as one of them may
@pytest.mark.parametrize("ends", [True, False])
def test_when_we_are_interrupted_it_goes_on_only_if_it_may(tmp_path, interrupt_once, ends):
    pid = tmp_path / "pid"
    interrupt_once(lambda: pid.exists() and is_waited_for(pid.read_text().strip()))
    argv = ["sh", "-c", f"echo $$ > {pid}; exec sleep {2 * LIMIT}"]
    with pytest.raises(Interrupt):
        process.run(argv, tmp_path, env=os.environ, timeout=2 * LIMIT, ends_with_us=ends)
    number = int(pid.read_text())
    if ends:
        until(lambda: not is_alive(number))
    else:
        assert is_alive(number)
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def test_acts_side_by_side_are_not_waited_for_when_we_are_interrupted(interrupt_once):
    begun, done, may_end = [], [], threading.Event()

    def act():
        begun.append(1)
        may_end.wait(LIMIT)
        done.append(1)

    interrupt_once(lambda: len(begun) == WIDTH)
    with pytest.raises(Interrupt):
        side_by_side([act] * (WIDTH + 4))
    assert done == []
    may_end.set()
    until(lambda: len(done) == WIDTH)
    assert len(begun) == WIDTH  # none was begun after it


def test_acts_side_by_side_give_what_each_returns_in_their_order():
    assert side_by_side([lambda n=n: time.sleep(0.01 * (n % 3)) or n for n in range(30)]) == [
        *range(30)
    ]
    assert side_by_side([]) == []
    with pytest.raises(ValueError, match="odd"):
        side_by_side([lambda: 1, lambda: int("odd")])
