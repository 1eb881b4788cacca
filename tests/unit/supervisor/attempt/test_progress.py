"""Progress is written about a run that is still ours, and about no other."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.run import Choice, Run, RunState
from fleet.domain.transcript import Conversation
from fleet.ports import Put
from fleet.supervisor.attempt.progress import ProgressWriter, write_together
from fleet.testing.memory_store import MemoryStore


def a_run(store) -> Run:
    run = Run("t-1.1", 0, "t-1", RunState.RUNNING, Choice("a", "c"), "h", "#1", 5)
    (run,) = store.commit([Put(run)], [])
    return run


def test_a_supervisor_whose_run_was_taken_over_writes_no_progress():
    store = MemoryStore()
    run = a_run(store)
    progress = ProgressWriter(store, run.id)
    progress.report(run, Conversation(lines=1, last="one"))
    assert store.progress([run.id])[run.id].last == "one"
    (taken,) = store.commit([Put(replace(run, holder="#2"))], [])
    progress.report(run, Conversation(lines=2, last="zombie"), last_time=True)
    progress.saved(run, "c0ffee", [])
    assert store.progress([run.id])[run.id].last == "one"
    assert store.progress([run.id])[run.id].commit == ""
    progress.report(taken, Conversation(lines=3, last="three"), last_time=True)
    assert store.progress([run.id])[run.id].last == "three"


def test_progress_is_written_every_two_seconds():
    store = MemoryStore()
    run = a_run(store)
    progress = ProgressWriter(store, run.id)
    texts = []
    for lines in range(1, 6):
        progress.report(run, Conversation(lines=lines, last=str(lines)))
        texts.append(store.progress([run.id])[run.id].last)
        store.clock.advance(1)
    assert texts == ["1", "1", "3", "3", "5"]


def test_progress_says_how_much_its_context_holds():
    store = MemoryStore()
    run = a_run(store)
    ProgressWriter(store, run.id).report(run, Conversation(lines=1), window=8000)
    assert store.progress([run.id])[run.id].window == 8000


class Counting(MemoryStore):
    commits = 0

    def commit(self, changes, events):
        self.commits += 1
        return super().commit(changes, events)


def several(store, count: int) -> list[tuple[Run, ProgressWriter]]:
    runs = []
    for n in range(1, count + 1):
        run = Run(f"t-{n}.1", 0, f"t-{n}", RunState.RUNNING, Choice("a", "c"), "h", "#1", 5)
        (run,) = store.commit([Put(run)], [])
        runs.append((run, ProgressWriter(store, run.id)))
    return runs


def note_all(runs, lines: int) -> None:
    for run, writer in runs:
        writer.note(run, Conversation(lines=lines, last=str(lines)))
    write_together(writer for _, writer in runs)


def test_the_progress_of_all_runs_of_a_host_is_one_commit_every_two_seconds():
    store = Counting()
    runs = several(store, 20)
    note_all(runs[:1], 1)
    store.clock.advance(1)
    store.commits = 0
    texts = []
    for lines in range(2, 8):
        note_all(runs, lines)
        texts.append([row.last for row in store.progress([r.id for r, _ in runs]).values()])
        store.clock.advance(1)
    assert store.commits == 3
    assert texts == [["2"] * 20, ["2"] * 20, ["4"] * 20, ["4"] * 20, ["6"] * 20, ["6"] * 20]


def test_a_run_that_was_taken_over_keeps_the_progress_of_no_other_run_back():
    store = MemoryStore()
    runs = several(store, 3)
    note_all(runs, 1)
    store.commit([Put(replace(runs[1][0], holder="#2"))], [])
    store.clock.advance(2)
    note_all(runs, 2)
    rows = store.progress([run.id for run, _ in runs])
    assert [rows[run.id].last for run, _ in runs] == ["2", "1", "2"]


def test_what_did_not_change_is_not_written():
    store = Counting()
    runs = several(store, 2)
    note_all(runs, 1)
    store.commits = 0
    store.clock.advance(9)
    note_all(runs, 1)
    assert store.commits == 0
