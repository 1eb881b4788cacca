"""Files and folders that are there whole, or not at all."""

from __future__ import annotations

import pytest

from fleet.base.files import make_folder, write_atomically, write_once


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_made_with_all_of_its_files(tmp_path):
    folder = tmp_path / "t-1" / "artifacts"
    assert make_folder(folder, {"a.md": "one", "b.md": "zwei ü"})
    assert (folder / "a.md").read_text() == "one"
    assert (folder / "b.md").read_bytes() == "zwei ü".encode()
    assert names(folder.parent) == ["artifacts"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "a.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_there_stays_as_it_is(tmp_path, kind):
    target = tmp_path / "artifacts"
    if kind == "folder":
        target.mkdir()
        (target / "mine.md").write_text("mine")
    else:
        target.write_text("mine")
    assert not make_folder(target, {"a.md": "one"})
    assert names(tmp_path) == ["artifacts"]
    assert (target / "mine.md" if kind == "folder" else target).read_text() == "mine"


def test_of_a_folder_that_could_not_be_written_nothing_is_left(tmp_path):
    with pytest.raises(OSError, match="missing"):
        make_folder(tmp_path / "artifacts", {"a.md": "one", "missing/b.md": "two"})
    assert names(tmp_path) == []


def test_a_large_file_is_written_whole_and_once(tmp_path):
    text = "x" * 5_000_000
    write_atomically(tmp_path / "a", text)
    assert write_once(tmp_path / "b", text)
    assert not write_once(tmp_path / "b", "other")
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == text
    assert names(tmp_path) == ["a", "b"]
