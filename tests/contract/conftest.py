from __future__ import annotations

from pathlib import Path

import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.testing.memory_store import MemoryStore
from tests.contract.checkouts import checkout_in, make_repo, prepared, site


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def store(request, tmp_path):
    """Each kind of store; `parametrize("store", […], indirect=True)` asks for some of them."""
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = SqlStore(Sqlite(tmp_path / "fleet.db"))
    else:
        from fleet.adapters.stores.postgres import Postgres

        made = SqlStore(Postgres(request.getfixturevalue("postgres_url")))
    yield made
    made.close()


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
