"""Files and folders that are there whole, or not at all."""

from __future__ import annotations

import os
import threading

import pytest

from fleet.base import set_up_file
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


def test_a_link_under_the_name_of_the_temporary_file_leads_nowhere(tmp_path):
    """Its name can be guessed, and an agent may write in the folder."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / f".a.{os.getpid()}-{threading.get_ident():x}").symlink_to(other)
    write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert other.read_text() == "mine"
    assert not (tmp_path / "a").is_symlink()
    assert names(tmp_path) == ["a", "other"]


def test_a_link_in_place_of_the_note_of_a_set_up_is_replaced(tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / set_up_file.NAME).symlink_to(other)
    assert set_up_file.running(tmp_path) == ""
    set_up_file.begin(tmp_path, "make setup")
    assert set_up_file.running(tmp_path) == "make setup"
    assert other.read_text() == "mine"
