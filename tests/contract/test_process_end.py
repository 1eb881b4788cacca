"""A foreign program is waited for as long as was said, whatever that is."""

from __future__ import annotations

import os
import time

import pytest

from fleet.adapters.host import process
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
