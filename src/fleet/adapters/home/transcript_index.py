"""Full-text search in transcripts: a database beside the store, made from `events.jsonl`.

It only has the index; the text is read from the file. It can be deleted: the next supervisor makes
it anew. When a database is full, the next one is begun, and all but the newest two are removed, so
that the index never exceeds a limit and loses the oldest text first.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from fleet.base.files import open_regular
from fleet.domain.search import stands_for_longer, words_of
from fleet.ports import Passage, SaidLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from fleet.domain.task import Task
    from fleet.ports import SaidQuery

NAMES = ("events.jsonl", "events.jsonl.1")
MOST_BYTES = 1_000_000_000  # of one database; two are kept
PIECE = 1 << 16  # bytes of a file that are one passage
AT_ONCE = 64  # passages that are added at once: 4 MB
TAIL = 1 << 20  # bytes at a transcript's end that are searched without the index
BUSY_SECONDS = 2.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS passage (
  id INTEGER PRIMARY KEY, task INTEGER NOT NULL, inode INTEGER NOT NULL, start INTEGER NOT NULL,
  end INTEGER NOT NULL, at INTEGER NOT NULL, team TEXT NOT NULL, project TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS passage_task ON passage (task, id);
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(
  words, content='', detail=none, tokenize='ascii'
);
"""
FIND = """
SELECT passage.task, inode, start, end FROM said JOIN passage ON passage.id = said.rowid
WHERE said MATCH :query AND at >= :since AND (:task = 0 OR passage.task = :task)
  AND (:team = '' OR team = :team) AND (:project = '' OR project = :project)
ORDER BY said.rowid DESC LIMIT :limit
"""


class TranscriptIndex:
    """The index. `folder` has its databases, `task_folder(id)` a task's files."""

    def __init__(
        self, folder: Path, task_folder: Callable[[str], Path], *, most: int = MOST_BYTES
    ) -> None:
        self._folder, self._task_folder, self._most = folder, task_folder, most
        self._own = threading.local()  # the connection of a thread: closing the last one takes long

    @property
    def is_whole(self) -> bool:
        """Whether transcripts from before the index existed are in it, too."""
        return bool(self._numbers()) and not self._building.exists()

    @property
    def _building(self) -> Path:
        return self._folder / "building"

    def build(self, tasks: Iterable[Task]) -> Iterator[None]:
        """Index these tasks' transcripts, newest first, in steps; stop early at the size limit."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._building.touch()
        for task in tasks:
            while not self.add(task):
                yield
            if len(self._numbers()) > 1:
                break
            yield
        self._building.unlink(missing_ok=True)

    def add(self, task: Task) -> bool:
        """Index new lines of a task's transcript; return False if there are more."""
        path = self._task_folder(task.id) / NAMES[0]
        try:
            with open_regular(path) as file:
                db = self._current()
                inode = os.fstat(file.fileno()).st_ino
                file.seek(self._indexed(number_of(task.id), inode))
                pieces = _pieces(file.read(AT_ONCE * PIECE), file.tell)
                self._insert(db, task, inode, pieces)
                return len(pieces) < AT_ONCE
        except FileNotFoundError:
            return True
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                self.forget()
            raise OSError(str(error)) from error

    def find(self, query: SaidQuery) -> Iterator[Passage]:
        """Return up to `query.limit` passages, newest first, whose text is still on the disk."""
        values = {
            "query": match_of(query.words),
            "since": query.since,
            "task": number_of(query.task) if query.task else 0,
            "team": query.team,
            "project": query.project,
            "limit": query.limit,
        }
        for number in reversed(self._numbers()):
            for task, inode, start, end in self._rows(number, values):
                passage = self._passage(f"t-{task}", inode, start, end)
                if passage.lines:
                    yield passage

    def newest(self, task_id: str) -> Passage:
        """Return the end of a task's transcript, which is not indexed yet."""
        with suppress(OSError, sqlite3.Error):
            with open_regular(self._task_folder(task_id) / NAMES[0]) as file:
                status = os.fstat(file.fileno())
            start = self._indexed(number_of(task_id), status.st_ino)
            start = max(start, status.st_size - TAIL)
            return self._passage(task_id, status.st_ino, start, status.st_size)
        return Passage(task_id, ())

    def forget(self) -> None:
        self._own = threading.local()
        for path in self._folder.glob("*.db*"):
            path.unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".db"]
        except OSError:
            return []
        return sorted(int(path.stem) for path in paths if path.stem.isdecimal())

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.db"

    def _current(self) -> sqlite3.Connection:
        """Open the newest database, or begin the next one when that is full."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        numbers = self._numbers()
        number = numbers[-1] if numbers else 1
        if numbers and self._path(number).stat().st_size > self._most:
            number += 1
            for old in numbers[:-1]:
                for end in ("", "-wal", "-shm"):
                    (self._folder / f"{old}.db{end}").unlink(missing_ok=True)
        path = self._path(number)
        if getattr(self._own, "path", None) != path or not path.exists():
            self._own.db, self._own.path = self._opened(path), path
        db: sqlite3.Connection = self._own.db
        return db

    def _opened(self, path: Path) -> sqlite3.Connection:
        mask = os.umask(0o077)
        try:
            db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        finally:
            os.umask(mask)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'said'").fetchall():
            db.executescript(SCHEMA)
        return db

    def _read_only(self, number: int) -> sqlite3.Connection:
        url = f"{self._path(number).as_uri()}?mode=ro"
        return sqlite3.connect(url, uri=True, timeout=BUSY_SECONDS)

    def _rows(self, number: int, values: dict[str, object]) -> list[tuple[int, ...]]:
        with suppress(sqlite3.Error), closing(self._read_only(number)) as db:
            return db.execute(FIND, values).fetchall()
        return []

    def _indexed(self, task: int, inode: int) -> int:
        """Return the position in the file up to which it is indexed."""
        ends = [0]
        for number in self._numbers():
            with suppress(sqlite3.OperationalError), closing(self._read_only(number)) as db:
                query = "SELECT coalesce(max(end), 0) FROM passage WHERE task = ? AND inode = ?"
                ends += [end for (end,) in db.execute(query, (task, inode))]
        return max(ends)

    def _insert(
        self, db: sqlite3.Connection, task: Task, inode: int, pieces: Sequence[tuple[int, bytes]]
    ) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            for start, data in pieces:
                lines = _lines(data)
                at = lines[-1].at if lines else 0
                values = (number_of(task.id), inode, start, start + len(data), at)
                cursor = db.execute(
                    "INSERT INTO passage (task, inode, start, end, at, team, project)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*values, _safe(task.team), _safe(task.project)),
                )
                words = " ".join(words_of("\n".join(line.text for line in lines)))
                if words:
                    db.execute(
                        "INSERT INTO said (rowid, words) VALUES (?, ?)", (cursor.lastrowid, words)
                    )
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    def _passage(self, task_id: str, inode: int, start: int, end: int) -> Passage:
        for name in NAMES:
            with suppress(OSError), open_regular(self._task_folder(task_id) / name) as file:
                if os.fstat(file.fileno()).st_ino == inode:
                    file.seek(start)
                    return Passage(task_id, tuple(_lines(file.read(end - start))))
        return Passage(task_id, ())


DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def number_of(task_id: str) -> int:
    return int(task_id.removeprefix("t-"))


def match_of(words: Sequence[str]) -> str:
    """Return the FTS5 query. Words are letters and digits, so they contain no operators."""
    return " ".join(f'"{word}"*' if stands_for_longer(word) else f'"{word}"' for word in words)


def _pieces(data: bytes, tell: Callable[[], int]) -> list[tuple[int, bytes]]:
    """Split data into pieces of whole lines, each with its position in the file."""
    position = tell() - len(data)
    pieces = []
    while data:
        cut = data.rfind(b"\n", 0, PIECE) + 1 or data.find(b"\n") + 1
        if not cut:
            break
        pieces.append((position, data[:cut]))
        data, position = data[cut:], position + cut
    return pieces


def _lines(data: bytes) -> list[SaidLine]:
    lines = []
    for line in data.split(b"\n"):
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            entry = json.loads(line)
            text = " ".join(
                filter(None, (entry.get("name"), entry.get("text") or entry.get("detail")))
            )
            if text:
                at = datetime.fromisoformat(entry["ts"]).timestamp()
                lines.append(SaidLine(entry["run"], round(at * 1_000_000), entry["kind"], text))
    return lines


def _safe(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
