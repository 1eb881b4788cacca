"""A store as the code before mail was a message left it: `stores/schema-2.sql`, in either dialect.

Its rows were written by that code: two tasks with runs, mail read and unread, two chats of which one
is half read, a post, three hand-offs, a memory, a claimed file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from fleet.adapters.stores import sqlite
from fleet.adapters.stores.migrations import migration
from fleet.adapters.stores.sql import split_script

ROWS = Path(__file__).with_name("stores") / "schema-2.sql"
BULK = """
INSERT INTO entry (seq, id, version, kind, team, key, owner, until, words, body)
VALUES ({n}, 'e-{n}', 1, 'mail', 'red', 'e-{n}', 'many', 0, '',
'{{"id":"e-{n}","kind":"mail","team":"red","key":"e-{n}","owner":"many","at":{n},"body":{{"sender":"ada","subject":"","text":"{n}"}}}}')
"""


def statements(dialect: dict[str, str], more: int) -> list[str]:
    """`more`: so many mails for `many` besides, e-1000 and on."""
    made = [s for n in (1, 2) for s in split_script(migration(n, dialect))]
    rows = [line.removesuffix(";") for line in ROWS.read_text("utf-8").splitlines()]
    return [*made, *rows, *(BULK.format(n=n) for n in range(1000, 1000 + more))]


def old_sqlite(path: Path, *, more: int = 0) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN")
        for statement in statements(sqlite.DIALECT, more):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {sqlite.APPLICATION}")
        db.execute("PRAGMA user_version = 2")
        db.execute("COMMIT")


def old_postgres(url: str, *, more: int = 0) -> None:
    import psycopg

    from fleet.adapters.stores.postgres.session import DIALECT

    with psycopg.connect(url) as db:
        db.execute("CREATE SCHEMA fleet")
        db.execute("SET search_path TO fleet")
        for statement in statements(DIALECT, more):
            db.execute(statement.encode())
        db.execute("INSERT INTO meta VALUES ('schema', '2')")
