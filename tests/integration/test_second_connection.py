"""Several connections of one process to one database, and other processes that come and go."""

from __future__ import annotations

import subprocess
import sys

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.entry import Entry, EntryKind
from fleet.ports import Put

WRITES = """
import sys
from pathlib import Path
from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from tests.integration.test_second_connection import written
store = SqlStore(Sqlite(Path(sys.argv[1])))
written(store, sys.argv[2])
store.close()
"""


def written(store: SqlStore, name: str) -> None:
    entry = Entry(store.new_id("e"), 0, EntryKind.MEMORY, "t", name, "o", store.now())
    store.commit([Put(entry)], [])


def test_a_second_connection_leaves_the_first_one_its_locks(tmp_path):
    """A process that leaves must not take the log away that others still read and write."""
    path = tmp_path / "fleet.db"
    first = SqlStore(Sqlite(path))
    written(first, "first")
    SqlStore(Sqlite(path)).close()
    for name in ("second", "third"):
        subprocess.run([sys.executable, "-c", WRITES, str(path), name], check=True)
        assert first.entry(EntryKind.MEMORY, "t", name) is not None
    written(first, "fourth")
    first.close()
    again = SqlStore(Sqlite(path))
    names = ("first", "second", "third", "fourth")
    assert all(again.entry(EntryKind.MEMORY, "t", name) for name in names)
    again.close()
