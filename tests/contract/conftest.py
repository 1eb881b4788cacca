from __future__ import annotations

from pathlib import Path

import pytest

from fleet.adapters.stores.log.store import LogStore
from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.testing.folder_log import FolderLog
from fleet.testing.memory_store import MemoryStore
from tests import clouds
from tests.contract.checkouts import checkout_in, make_repo, prepared, site


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        "log",
        *(pytest.param(kind, marks=pytest.mark.real) for kind in ("postgres", *clouds.KINDS)),
    ]
)
def store(request, tmp_path):
    """Each kind of store; `parametrize("store", […], indirect=True)` asks for some of them."""
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = SqlStore(Sqlite(tmp_path / "fleet.db"))
    elif request.param == "log":
        made = LogStore(FolderLog(tmp_path / "log", most=1000), tmp_path / "replica.db")
    elif request.param in clouds.KINDS:
        made = request.getfixturevalue("cloud")(request.param, tmp_path / "copies")
    else:
        from fleet.adapters.stores.postgres.store import open_url

        made = open_url(request.getfixturevalue("postgres_url"), None, None)
    yield made
    made.close()


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    """`cloud("s3", copies)`: a new store in an emulator of that service."""
    with clouds.emulated(tmp_path_factory.mktemp("clouds")) as opens:
        yield opens


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop", README="hello\n", other="1\n")


@pytest.fixture
def checkout(tmp_path):
    return checkout_in(tmp_path)


@pytest.fixture
def place(repo, tmp_path):
    """A workspace in which a task of that repository works."""
    return prepared(checkout_in(tmp_path), site(repo))


@pytest.fixture
def root(place):
    return Path(place.root)
