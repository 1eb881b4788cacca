from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleet.adapters.home.task_files import MAX_FILES, task_files


@pytest.fixture
def folder(tmp_path):
    here = tmp_path / "tasks" / "t-1"
    (here / "artifacts" / "notes").mkdir(parents=True)
    (here / "log.jsonl").write_text('{"type": "task.added"}\n')
    (here / "mcp.json").write_text('{"token": "of its run"}')
    (here / "artifacts" / "PLAN.md").write_text("# Plan\n" + "x" * 100)
    (here / "artifacts" / "notes" / "a.txt").write_text("deep")
    (tmp_path / "runs" / "t-1.1").mkdir(parents=True)
    (tmp_path / "runs" / "t-1.1" / "stderr").write_text("it said sk-proj4Q8xL2mN6pR1sT5vW9 aloud\n")
    return here


def names(folder, *, wanted="", tail=1000):
    run = folder.parent.parent / "runs" / "t-1.1"
    return {file.name: file for file in task_files(folder, [("t-1.1", run)], wanted, tail)}


def test_the_logs_what_agents_left_and_their_complaints_are_listed_without_their_text(folder):
    files = names(folder)
    assert [*files] == ["log.jsonl", "t-1.1/stderr", "artifacts/PLAN.md", "artifacts/notes/a.txt"]
    assert {file.text for file in files.values()} == {""}
    assert files["artifacts/notes/a.txt"].size == 4


def test_one_file_is_read_from_its_end_and_secrets_in_it_are_hidden(folder):
    assert names(folder, wanted="artifacts/PLAN.md", tail=5)["artifacts/PLAN.md"].text == "xxxxx"
    said = names(folder, wanted="t-1.1/stderr")["t-1.1/stderr"].text
    assert "sk-proj4Q8x" not in said
    assert "it said" in said


@pytest.mark.parametrize("wanted", ["mcp.json", "../t-2/log.jsonl", "/etc/passwd", "artifacts"])
def test_nothing_else_is_read(folder, wanted):
    assert names(folder, wanted=wanted) == {}


def test_what_an_agent_links_to_is_not_followed_and_a_pipe_does_not_stop_us(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (folder / "artifacts" / "link.txt").symlink_to(tmp_path / "secret")
    (folder / "artifacts" / "all").symlink_to(tmp_path)
    os.mkfifo(folder / "artifacts" / "pipe")
    assert "artifacts/link.txt" not in names(folder)
    assert not [name for name in names(folder) if name.startswith("artifacts/all")]
    assert names(folder, wanted="artifacts/link.txt") == {}
    assert "artifacts/pipe" not in names(folder)


def test_of_very_many_files_some_are_listed_and_no_file_stays_open(folder):
    for number in range(MAX_FILES + 50):
        (folder / "artifacts" / f"{number:04}").write_text("x")
    before = open_files()
    assert MAX_FILES <= len(names(folder)) <= MAX_FILES + 2
    assert open_files() == before


def open_files() -> int:
    here = Path("/proc/self/fd")
    return len([*here.iterdir()]) if here.exists() else 0
