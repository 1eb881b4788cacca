"""Keepers where `/proc` cannot be read. Not collected by itself: `test_without_proc` runs it."""

import os
import signal

import pytest

from fleet.base import machine
from fleet.ports import Presence
from tests.contract.launching import Rig, shell
from tests.wait import until

RUN = "t-1.1"


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_there_is_no_proc():
    assert not machine.has_proc()
    assert machine.boot_id() == ""
    assert machine.marked("0" * 32) == set()


def test_grandchildren_in_the_session_are_ended_with_the_coder(rig):
    rig.start(RUN, shell(f"sleep 61 & echo $! > {rig.note('pid')}; (sleep 61 &); exit 4"))
    grandchild = rig.pid("pid")
    assert rig.ended(RUN).code == 4
    assert not is_running(grandchild)


def test_of_a_killed_keeper_nothing_can_be_proven_and_nothing_is_signalled(rig):
    rig.start(RUN, shell(f"echo $$ > {rig.note('pid')}; exec sleep 61"))
    coder = rig.pid("pid")
    os.kill(rig.keeper(RUN), signal.SIGKILL)
    until(lambda: rig.keepers.look(RUN).presence is Presence.GONE)
    assert rig.keepers.end(RUN) is False
    assert is_running(coder)
    os.kill(coder, signal.SIGKILL)
