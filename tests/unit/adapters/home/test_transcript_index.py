from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleet.adapters.home.transcript_index import PIECE, TranscriptIndex
from fleet.domain.task import Task, TaskState
from fleet.ports import SaidQuery


class Home:
    def __init__(self, root, **given) -> None:
        self.root = root
        self.index = TranscriptIndex(root / "search", lambda task: root / "tasks" / task, **given)

    def say(self, task: Task, *texts: str) -> None:
        folder = self.root / "tasks" / task.id
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "events.jsonl").open("a") as file:
            for text in texts:
                line = {"ts": "2026-01-31T17:05:00.000000Z", "run": f"{task.id}.1", "kind": "text"}
                file.write(json.dumps({**line, "text": text}) + "\n")

    def found(self, *words: str, **given) -> list[tuple[str, str]]:
        passages = self.index.find(SaidQuery(words, **given))
        return [(p.task, line.text) for p in passages for line in p.lines]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def a_task(number: int, **given) -> Task:
    return replace(Task(f"t-{number}", 1, TaskState.DONE, "x", "", "/p", "ada", 0), **given)


ONE, TWO = a_task(1), a_task(2, team="red", project="/q")


def test_what_was_said_is_found_by_its_words_and_each_is_indexed_once(home):
    home.say(ONE, "The cookie was refused.")
    assert home.index.add(ONE)
    home.say(ONE, "Another cookie.")
    assert home.index.newest("t-1").lines[0].text == "Another cookie."
    home.index.add(ONE)
    home.index.add(ONE)
    assert home.index.newest("t-1").lines == ()
    assert home.found("cookie") == [("t-1", "Another cookie."), ("t-1", "The cookie was refused.")]
    assert home.found("cook", "refus") == [("t-1", "The cookie was refused.")]
    assert home.found("zebra") == []


def test_a_search_is_narrowed_by_task_team_project_and_time(home):
    for task in (ONE, TWO):
        home.say(task, "A zebra.")
        home.index.add(task)
    assert [t for t, _ in home.found("zebra")] == ["t-2", "t-1"]
    assert [t for t, _ in home.found("zebra", task="t-1")] == ["t-1"]
    assert [t for t, _ in home.found("zebra", team="red")] == ["t-2"]
    assert [t for t, _ in home.found("zebra", project="/p")] == ["t-1"]
    assert home.found("zebra", since=1_800_000_000_000_000) == []
    assert len(home.found("zebra", limit=1)) == 1


def test_a_long_file_is_indexed_in_pieces_and_half_a_line_waits(home):
    home.say(ONE, *(f"w{n} " + "x" * 1000 for n in range(200)))
    path = home.root / "tasks" / "t-1" / "events.jsonl"
    with path.open("a") as file:
        file.write('{"half')
    while not home.index.add(ONE):
        pass
    assert path.stat().st_size > 3 * PIECE
    for n in (0, 99, 199):
        assert any(text.startswith(f"w{n} ") for _, text in home.found(f"w{n}"))


def test_a_file_that_was_rotated_is_still_read_and_one_that_is_gone_is_passed_over(home):
    home.say(ONE, "A zebra.")
    home.index.add(ONE)
    path = home.root / "tasks" / "t-1" / "events.jsonl"
    path.rename(path.with_name("events.jsonl.1"))
    home.say(ONE, "A newer zebra.")
    home.index.add(ONE)
    assert {text for _, text in home.found("zebra")} == {"A zebra.", "A newer zebra."}
    path.with_name("events.jsonl.1").unlink()
    assert {text for _, text in home.found("zebra")} == {"A newer zebra."}


def test_what_an_agent_links_to_is_not_indexed(home):
    """It may write in its task's folder, and not read what the server may."""
    home.say(TWO, "A zebra.")
    folder = home.root / "tasks" / "t-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").symlink_to(home.root / "tasks" / "t-2" / "events.jsonl")
    assert home.index.add(ONE)
    assert home.found("zebra") == []
    assert home.index.newest("t-1").lines == ()


def test_the_index_forgets_the_oldest_when_it_is_full(tmp_path):
    home = Home(tmp_path, most=1)
    for n in range(1, 5):
        task = a_task(n)
        home.say(task, "A zebra.")
        home.index.add(task)
    assert [t for t, _ in home.found("zebra")] == ["t-4", "t-3"]
    assert len(list((tmp_path / "search").glob("*.db"))) == 2


def test_a_damaged_index_is_made_anew(home):
    home.say(ONE, "A zebra.")
    home.index.add(ONE)
    for path in (home.root / "search").iterdir():
        path.write_bytes(b"nonsense" * 1000)
    assert home.found("zebra") == []
    with pytest.raises(OSError, match="not a database"):
        home.index.add(ONE)
    home.index.add(ONE)
    assert home.found("zebra") == [("t-1", "A zebra.")]


def test_what_was_said_before_there_was_an_index_is_indexed_newest_first(home):
    for task in (ONE, TWO):
        home.say(task, "A zebra.")
    assert not home.index.is_whole
    steps = home.index.build([TWO, ONE])
    next(steps)
    assert [t for t, _ in home.found("zebra")] == ["t-2"]
    assert not home.index.is_whole
    list(steps)
    assert {t for t, _ in home.found("zebra")} == {"t-1", "t-2"}
    assert home.index.is_whole


def test_only_its_owner_can_read_it(home):
    home.say(ONE, "A zebra.")
    home.index.add(ONE)
    assert (home.root / "search").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (home.root / "search").iterdir())
