"""A row in its table is all that a new kind of store, and a new channel of notices, need in `app`."""

from __future__ import annotations

import pytest

from fleet.adapters.machine.notify import CHANNELS
from fleet.app import App
from fleet.app.supervisor_parts import notifiers
from fleet.client import LocalClient
from fleet.config.files.problems import InvalidConfig
from fleet.config.stores import KINDS, StoreKind
from fleet.domain.errors import BadInput
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.list import ListTasks
from fleet.ports import TaskQuery
from fleet.testing.memory_store import MemoryStore

OPENED: list[MemoryStore] = []


def open_ledger(_url, _bell, _taken, **_options) -> MemoryStore:
    OPENED.append(MemoryStore())
    return OPENED[-1]


def home(tmp_path, **env: str) -> App:
    return App(tmp_path, {"FLEET_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), **env})


@pytest.fixture
def ledger(monkeypatch):
    kind = StoreKind(f"{__name__}:open_ledger", like="ledger://NAME", shared=True, extra="ledger")
    monkeypatch.setitem(KINDS, "ledger", kind)


@pytest.mark.usefixtures("ledger")
def test_a_store_is_its_module_and_its_row(tmp_path):
    app = home(tmp_path, FLEET_STORE_URL="ledger://box", STORAGE_BACKEND="ledger")
    assert app.shared
    client = LocalClient(app)
    client.call(AddTask("Hello", "Say hello.", str(tmp_path)))
    assert [task.title for task in OPENED[-1].tasks(TaskQuery())] == ["Hello"]
    assert [row.title for row in client.call(ListTasks())] == ["Hello"]


@pytest.mark.usefixtures("ledger")
def test_settings_and_server_name_every_kind_of_store(tmp_path):
    with pytest.raises(InvalidConfig) as invalid:
        home(tmp_path, FLEET_STORE_URL="mysql://h/d").loaded  # noqa: B018  # it is read when asked for
    assert "postgresql://USER@HOST/NAME or " in invalid.value.fix
    assert " or ledger://NAME" in invalid.value.fix
    with pytest.raises(BadInput) as refused:
        home(tmp_path, FLEET_STORE_URL="ledger://box", STORAGE_BACKEND="dynamo").another_store()
    assert "ledger" in refused.value.fix
    with pytest.raises(BadInput, match="of another kind"):
        home(tmp_path, STORAGE_BACKEND="ledger").another_store()


def test_a_store_whose_driver_is_missing_names_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "ledger", StoreKind("no.such:driver", "ledger://NAME", extra="book"))
    with pytest.raises(BadInput) as refused:
        home(tmp_path, FLEET_STORE_URL="ledger://box").store  # noqa: B018  # it is opened when asked for
    assert refused.value.fix == "pip install 'agent-fleet[book]'"


class Pager:
    name = "pager"

    def __init__(self, number, env) -> None:
        self.number, self.env = number, env

    def send(self, notice) -> None: ...


def test_a_channel_is_its_class_its_row_and_its_setting(tmp_path, monkeypatch):
    address = "http://127.0.0.1:9/notices"
    app = home(tmp_path, FLEET_NOTIFY_WEBHOOK=address)
    monkeypatch.setitem(CHANNELS, "webhook", Pager)
    (pager,) = notifiers(app)
    assert (pager.name, pager.number) == ("pager", address)
    assert notifiers(home(tmp_path / "other")) == []
