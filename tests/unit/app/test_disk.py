"""How much of its disk a home takes: measured a little in each round, told with its machine."""

from __future__ import annotations

import os

import pytest

from fleet.adapters.home.home import Home
from fleet.app import disk
from fleet.app.disk import DiskLook, sizes_below
from fleet.app.retention import OldKept
from fleet.domain.entry import EntryKind
from fleet.domain.hosts.disk import bytes_in_words, disk_use
from fleet.testing.memory_store import MemoryStore

MB = 1_000_000


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    home.ensure()
    return home


@pytest.fixture
def store():
    return MemoryStore()


def fill(path, size: int):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def look_at(home: Home, store: MemoryStore) -> DiskLook:
    return DiskLook(store, home, "box-1", OldKept(store, 30.0, home.worktrees))


def told(store: MemoryStore):
    entry = store.entry(EntryKind.DISK, "", "box-1")
    return entry and disk_use(entry.body)


def test_worktrees_the_pool_and_runs_are_told_apart(home, store):
    fill(home.worktrees / "t-1" / "src" / "a", 3 * MB)
    fill(home.path / "gates" / "ab" / "b", MB)
    fill(home.worktrees / "pool" / "ab" / "c", 5 * MB)
    fill(home.worktrees / "set-ups" / "ab" / "d", 2 * MB)
    fill(home.runs / "t-1.1" / "transcript", 2 * MB)
    (home.worktrees / "t-1" / "all").symlink_to("/")
    look_at(home, store).step()
    use = told(store)
    assert [round(each / MB) for each in (use.worktrees, use.pool, use.runs)] == [4, 7, 2]
    assert (use.kept, round(use.total / MB)) == (0, 13)
    assert use.free > 0


def test_a_file_that_worktrees_share_counts_once(home):
    first = fill(home.worktrees / "t-1" / "a", 4 * MB)
    (home.worktrees / "t-2").mkdir()
    os.link(first, home.worktrees / "t-2" / "a")
    assert round(sum(sizes_below(home.worktrees)) / MB) == 4


def test_what_others_remove_meanwhile_is_left_out(home):
    gone = fill(home.worktrees / "t-1" / "sub" / "a", 4 * MB)
    fill(home.worktrees / "t-2" / "b", MB)
    sizes = sizes_below(home.worktrees)
    next(sizes)  # what is at the top
    gone.unlink()
    gone.parent.rmdir()
    assert round(sum(sizes) / MB) == 1


def test_a_round_looks_at_a_few_files_and_the_next_ones_at_the_rest(home, store, monkeypatch):
    for number in range(5):
        fill(home.worktrees / f"t-{number}" / "a", MB)
    monkeypatch.setattr(disk, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(disk, "SHARE", 0)
    look = look_at(home, store)
    look.step()
    assert told(store) is None
    for _ in range(20):
        look.step()
    assert round(told(store).worktrees / MB) == 5


def test_it_is_measured_anew_only_after_a_while(home, store):
    look = look_at(home, store)
    look.step()
    version = store.entry(EntryKind.DISK, "", "box-1").version
    look.step()
    assert store.entry(EntryKind.DISK, "", "box-1").version == version


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 kB"), (4096, "4 kB"), (2_500_000, "2 MB"), (12_340_000_000, "12.3 GB")],
)
def test_bytes_are_said_in_words(count, words):
    assert bytes_in_words(count) == words
