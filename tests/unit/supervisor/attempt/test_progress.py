"""Progress is written about a run that is still ours, and about no other."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.run import Choice, Run, RunState
from fleet.domain.transcript import Conversation
from fleet.ports import Put
from fleet.supervisor.attempt.progress import ProgressWriter
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
