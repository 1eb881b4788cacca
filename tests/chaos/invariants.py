"""What must hold while processes die, and once everything is over: nothing lost, twice or stuck."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.pool import PARKED
from fleet.domain.message import MessageKind, MessageState
from fleet.domain.run import RunState
from fleet.domain.task import TaskState
from fleet.ports import TaskQuery
from tests.contract.checkouts import git

if TYPE_CHECKING:
    from tests.chaos.crashing_home import CrashingHome

TEXTS = {
    "plain": ["begun", "line 1", "line 2", "line 3", "bye"],
    "spawns": ["begun", "bye"],
    "gate": ["begun"],
    "lingers": ["begun"],
    "asks": ["begun", "It is blue."],
    "words": ["begun", "Heard: words for {task}", "bye"],
    "cancelled": ["begun"],
}
ENDINGS = {"asks": ["asked", "succeeded"], "cancelled": ["cancelled"]}
COSTS = {  # how a run may end whose victim was killed; a keeper that never was one did not start
    "keeper": {"lost", "failed"},
    "coder": {"failed"},
    "gate's keeper": {"lost"},
    "gate": {"failed"},
}


def check_now(crashing: CrashingHome) -> None:
    """What holds at every moment, whoever has just died."""
    with _at_one_moment(crashing):
        tasks = crashing.store.tasks(TaskQuery(limit=1000))
        runs = {t.id: crashing.store.runs(t.id) for t in tasks}
        slots = crashing.store.slots().values()
        events = crashing.store.events(limit=100_000)
    live = {r.id: r for rs in runs.values() for r in rs if r.live}
    for task in tasks:
        ours = [r.id for r in runs[task.id] if r.live]
        wanted = [task.run_id] if task.state is TaskState.RUNNING else []
        assert ours == wanted, f"{task.id} is {task.state} with live runs {ours}"
    for row in slots:
        assert len(set(row.holders)) == len(row.holders), f"{row.id}: {row.holders}"
        stray = [h for h in row.holders if h not in live or row.id not in live[h].slots]
        assert not stray, f"{row.id} is held by {stray}"
    once = Counter((e.type, e.run, e.data.get("message")) for e in events if e.run)
    assert not [what for what, count in once.items() if count > 1], once.most_common(3)
    assert len({e.number for e in events}) == len(events)
    _check_coders(crashing)


@contextmanager
def _at_one_moment(crashing: CrashingHome):
    """Of the store, though a supervisor may be writing to it; and it is whole."""
    db = crashing.store._db._db
    if not isinstance(db, sqlite3.Connection):
        yield
        return
    assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _check_coders(crashing: CrashingHome) -> None:
    """No task has two coders. Looked at twice: a look takes longer than some processes live."""
    twice = _twice(crashing)
    assert not twice or not (twice & _twice(crashing)), f"two coders at once: {twice}"


def _twice(crashing: CrashingHome) -> set[str]:
    marks = {}
    for file in crashing.supervised.home.glob("runs/*/keeper.json"):
        with suppress(FileNotFoundError, ValueError):
            marks[json.loads(file.read_text()).get("mark", "")] = file.parent.name
    runs = {marks[m] for m in living_marks() if m in marks}
    count = Counter(r.split(".")[0] for r in runs if not r.endswith(".gate"))
    return {task for task, number in count.items() if number > 1}


def check_the_end(crashing: CrashingHome) -> Counter:
    """What holds once everything is over; how the runs have ended."""
    for task, kind in crashing.kinds.items():
        _check_task(crashing, task, kind)
    for row in crashing.store.slots().values():
        assert row.holders == (), row
    runs = [r for task in crashing.kinds for r in crashing.store.runs(task)]
    assert all(r.state is RunState.ENDED and r.outcome.gone for r in runs)
    _check_worktrees(crashing, runs)
    return Counter(str(r.outcome.ending) for r in runs)


def _check_task(crashing: CrashingHome, task: str, kind: str) -> None:
    wanted = TaskState.CANCELLED if kind == "cancelled" else TaskState.DONE
    assert crashing.store.task(task).state is wanted, crashing.supervised.story(task)
    texts = [text.format(task=task) for text in TEXTS[kind]]
    said, endings = _texts(crashing, task), ENDINGS.get(kind, ["succeeded"])
    if task in crashing.touched:
        _check_cost(crashing, task, endings)
        missing = [text for text in texts if text not in said and kind not in crashing.loose]
        assert not missing, f"{task} ({kind}) never said {missing}: {said}"
    else:
        assert crashing.supervised.endings(task) == endings, task
        assert said == texts, f"{task} ({kind}): {said}\n{crashing.supervised.story(task)}"
    _check_lines(crashing, task)
    _check_words(crashing, task)
    if kind != "cancelled":
        _check_commits(crashing, task)
    if kind == "gate":
        passed = (crashing.folder(task) / "gate").read_text().splitlines()
        enough = passed or kind in crashing.loose
        assert len(passed) == 1 or (task in crashing.touched and enough), f"{task}: {passed}"


def _check_cost(crashing: CrashingHome, task: str, wanted: list[str]) -> None:
    """A kill costs at most the run that it hit."""
    found = crashing.supervised.endings(task)
    assert found[-1] == wanted[-1], f"{task}: {found}"
    more = Counter(found) - Counter(wanted)
    costs = COSTS.get(crashing.touched[task])
    if costs is not None:
        assert more.total() <= 1, f"{task}: {found}"
        assert set(more) <= costs, f"{task}: {found}"


def _texts(crashing: CrashingHome, task: str) -> list[str]:
    said = [s for run in crashing.store.runs(task) for s in _said(crashing, run.id)]
    return [s["text"] for s in said if s.get("kind") == "text"]


def _said(crashing: CrashingHome, run: str) -> list[dict]:
    """A line that was torn by the coder's death is none."""
    found = []
    with suppress(FileNotFoundError):
        for line in (
            (crashing.supervised.home / "runs" / run / "transcript").read_text().splitlines()
        ):
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def _check_lines(crashing: CrashingHome, task: str) -> None:
    """What a coder has said is in its transcript, and in the folder of its task, once."""
    folder = crashing.folder(task)
    for run in crashing.store.runs(task):
        with suppress(FileNotFoundError):
            ledger = (folder / f"ledger {run.id}").read_text().split("\n")[:-1]
            kept = (
                (crashing.supervised.home / "runs" / run.id / "transcript").read_text().splitlines()
            )
            assert kept[: len(ledger)] == ledger, f"lines of {run.id} are lost"
    with suppress(FileNotFoundError):
        lines = (folder / "events.jsonl").read_text().splitlines()
        entries = [e for e in map(json.loads, lines) if "line" in e]
        once = Counter((e["run"], e["line"], e.get("index", 0)) for e in entries)
        assert not [k for k, n in once.items() if n > 1], f"{task}: a line is written twice"
        shown = [e["text"] for e in entries if e["kind"] == "text" and e["text"][:1] != "{"]
        assert shown == _texts(crashing, task), f"{task}: events.jsonl differs"
    numbers = [json.loads(line)["number"] for line in _log(crashing, folder)]
    assert numbers == sorted(set(numbers)), f"{task}: log.jsonl has an event twice"


def _log(crashing: CrashingHome, folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return (folder / "log.jsonl").read_text().splitlines()
    return []


def _check_words(crashing: CrashingHome, task: str) -> None:
    for message in crashing.store.messages(task):
        if message.kind is MessageKind.QUESTION:
            continue
        assert message.state is MessageState.CLOSED, message
        told = 0
        for run in crashing.store.runs(task):
            with suppress(FileNotFoundError):
                lines = (
                    (crashing.supervised.home / "runs" / run.id / "input").read_text().splitlines()
                )
                told += sum(_tells(line, message.text) for line in lines)
        enough = told >= 1 if task in crashing.touched else told == 1
        assert enough, f"{message.id} of {task} was told {told} times"


def _check_commits(crashing: CrashingHome, task: str) -> None:
    """Its own, and those of what it waited for, each once."""
    numbers = {t: n for n, t in enumerate(crashing.kinds)}
    wanted = [task, *crashing.store.task(task).after]
    names = [f"{crashing.kinds[t]}-{numbers[t]}" for t in wanted]
    found = Counter(crashing.supervised.commits(crashing.supervised.run(task).workspace.branch))
    assert {n: found[n] for n in names} == dict.fromkeys(names, 1), f"{task}: {found}"


def _check_worktrees(crashing: CrashingHome, runs: list) -> None:
    """Each belongs to a run, or waits in its repository's pool with a record beside it.

    Beside one of a run there may be the note of whoever died when it began to remove one at this path
    that was made ahead: whoever removes this one goes on with that note.
    """
    worktrees = crashing.supervised.home / "worktrees"
    roots = {r.workspace.root for r in runs if r.workspace}
    owned = roots | {f"{root}.removing" for root in roots}
    there = {str(p) for p in worktrees.glob("*/*") if p.parent.name != "pool"}
    assert there <= owned, f"nobody owns {there - owned}"
    pooled = {str(p) for p in worktrees.glob("pool/*/*")}
    parked = {p.removesuffix(PARKED) for p in pooled if p.endswith(PARKED)}
    assert pooled == parked | {p + PARKED for p in parked}, f"nobody can take {pooled - parked}"
    listed = git(crashing.supervised.repo, "worktree", "list", "--porcelain").splitlines()
    trees = {line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")}
    assert trees - {str(crashing.supervised.repo)} == there | parked
    assert not [line for line in listed if line.startswith(("prunable", "locked"))]
    assert not [
        f for f in (crashing.supervised.repo / ".git").rglob("*.lock") if f.name != "fleet.lock"
    ]
    git(crashing.supervised.repo, "fsck", "--no-dangling", "--no-progress")


def _tells(line: str, text: str) -> bool:
    with suppress(ValueError):
        return text in json.loads(line).get("text", "")
    return False


def living_marks() -> set[str]:
    """Of every process there is, in one pass."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            held = (process / "environ").read_bytes().split(b"\0")
            found |= {v[15:].decode() for v in held if v.startswith(b"FLEET_RUN_MARK=")}
    return found
