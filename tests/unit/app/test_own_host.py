"""A home that came from another machine gets a host id of its own; a rebooted one keeps it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from fleet.adapters.home.home import Home
from fleet.adapters.home.host_identity import HostIdentity
from fleet.app.own_host import settle_host
from fleet.domain.run import Host
from fleet.ports import Put
from fleet.testing.memory_store import MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def supervise(home: Home, store: MemoryStore, holder: str) -> str:
    """What a supervisor does at its start; its host's id."""
    settle_host(home, store, sleep=lambda _: None)
    HostIdentity(home).note(holder)
    beat(home, store, holder)
    return home.host_id()


def beat(home: Home, store: MemoryStore, holder: str) -> None:
    row = store.hosts().get(home.host_id()) or Host(home.host_id(), 0, "box", "", "", 0, lease=20)
    store.commit([Put(replace(row, holder=holder))], [])


def reboot(home: Home) -> None:
    file = home.path / "host.machine"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"boot": "the one before"}))


def test_a_supervisor_that_crashed_and_comes_back_is_the_same_host_at_once(home, store):
    first = supervise(home, store, "one")
    HostIdentity(home).note("two")  # and it crashed before it wrote its row
    assert settle_host(home, store, sleep=pytest.fail) == ""
    assert supervise(home, store, "three") == first


def test_a_copied_home_gets_another_id_also_on_the_same_machine(home, store, tmp_path):
    first = supervise(home, store, "one")
    shutil.copytree(home.path, tmp_path / "copy")
    copy = Home(tmp_path / "copy")
    news = settle_host(copy, store)
    assert copy.host_id() != first
    assert first in news
    assert copy.host_id() in news
    assert home.host_id() == first
    assert settle_host(home, store, sleep=pytest.fail) == ""


def test_a_home_on_another_machine_gets_another_id(home, store, monkeypatch):
    first = supervise(home, store, "one")
    monkeypatch.setattr("fleet.base.machine.machine_id", lambda: "another")
    assert supervise(home, store, "two") != first
    second = home.host_id()
    assert supervise(home, store, "three") == second


def test_a_machine_that_was_rebooted_keeps_its_id(home, store):
    first = supervise(home, store, "one")
    reboot(home)
    waited = []
    assert settle_host(home, store, sleep=waited.append) == ""
    assert 1 < sum(waited) < 5
    assert supervise(home, store, "two") == first


def test_a_machine_that_was_shut_down_in_good_order_does_not_wait(home, store):
    supervise(home, store, "one")
    beat(home, store, "")
    reboot(home)
    assert settle_host(home, store, sleep=pytest.fail) == ""


def test_of_two_machines_made_from_one_image_the_second_gets_another_id(home, store):
    """They have the machine's id in common, and the image was made while the first was running."""
    first = supervise(home, store, "one")
    reboot(home)  # what the second has: all as on the first, but it was started later
    news = settle_host(home, store, sleep=lambda _: beat(home_of(home, first), store, "one"))
    assert first in news
    assert home.host_id() != first


def home_of(home: Home, host: str) -> Home:
    other = Home(home.path.with_name("first"))
    other.ensure()
    (other.path / "host").write_text(host)
    return other


def test_a_home_whose_row_another_machine_wrote_gets_another_id(home, store):
    """As after the supervisor has said that another machine uses its id."""
    first = supervise(home, store, "one")
    beat(home, store, "the twin's")
    assert supervise(home, store, "two") != first


def test_a_home_of_an_older_fleet_keeps_its_id(home, store):
    first = home.host_id()
    beat(home, store, "of an older fleet")
    assert supervise(home, store, "one") == first
