"""`queue: beads`, with a supervisor that runs; `bd` is the stand-in, not the real program."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from fleet.adapters.beads import BdProgram
from fleet.adapters.machine.notify import NumberFile
from fleet.adapters.processes.threads import ThreadJobs
from fleet.domain.access import Actor, Role
from fleet.domain.errors import Unavailable
from fleet.operations.catalogue import perform
from fleet.operations.tasks.change import CancelTask
from fleet.supervisor.beads.exchange import Beads
from fleet.supervisor.beads.plan import bead_of
from tests.wait import until

STAND_IN = Path(__file__).parent / "bd_stand_in.py"
ACTOR = "fleet-box-1"


class Hive:
    """A home with a beads database, and everything that looks after it."""

    def __init__(self, supervised) -> None:
        self.supervised, self.app = supervised, supervised.client.app
        self.beads_dir = supervised.home / ".beads"
        self.beads_dir.mkdir(parents=True)
        folder = supervised.place / "bin"
        folder.mkdir()
        (folder / "bd").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
        (folder / "bd").chmod(0o755)
        self.env = supervised.env | {"PATH": f"{folder}:{supervised.env['PATH']}"}
        self.warned: list[str] = []
        self.supervisor = self.app.supervisor(max_concurrent=3)
        self.supervisor.start()
        self.beads = self.another()
        self.longest = 0.0

    def bd(self, actor: str = ACTOR, deadline: float = 30.0) -> BdProgram:
        return BdProgram(
            self.supervised.home, self.env, actor=actor, deadline=deadline,
            places=lambda cwd: {"project": str(cwd), "checkout": "yes"},
        )  # fmt: skip

    def another(self, deadline: float = 30.0) -> Beads:
        context = self.app.context._replace(actor=Actor(ACTOR, Role.COORDINATOR))
        return Beads(
            self.supervised.store, self.bd(deadline=deadline), name=ACTOR,
            call=lambda request: perform(context, request), jobs=ThreadJobs(self.app.bell),
            mark=NumberFile(self.supervised.home / "beads-told"), room=lambda: 3,
            warn=self.warned.append,
        )  # fmt: skip

    def type(self, *words: str, actor: str = "ada") -> None:
        done = self.bd(actor)._run(*words)
        assert done.status == 0, done

    def create(self, *script: str, where=None, **given: str) -> str:
        name = f"bd-{len(self.issues()) + 1}"
        folder = self.supervised.home / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.json").write_text(
            json.dumps({"cwd": str(where or self.supervised.repo)} | given)
        )
        self.type("create", f"Do {name}", "--description", "\n".join(script))
        return name

    def issues(self) -> dict:
        file = self.beads_dir / "issues.json"
        return {i["id"]: i for i in json.loads(file.read_text())} if file.exists() else {}

    def task(self, name: str):
        found = [t for t in self.supervised.store.tasks(_all()) if bead_of(t.spec.labels) == name]
        return found[0] if found else None

    def until(self, seen) -> None:
        """Steps as the loop takes them, until it is seen."""

        def stepped() -> bool:
            before = time.monotonic()
            self.beads.step(self.supervised.store.now())
            self.longest = max(self.longest, time.monotonic() - before)
            self.beads._next = min(self.beads._next, self.supervised.store.now() + 100_000)
            self.supervisor.step()
            return seen()

        if not seen():
            until(stepped, why=lambda: str((self.issues(), self.warned)))

    def is_(self, name: str, status: str):
        return lambda: self.issues()[name]["status"] == status


def _all():
    from fleet.ports import TaskQuery

    return TaskQuery(limit=1000)


@pytest.fixture
def hive(supervised):
    return Hive(supervised)


def test_an_issue_is_claimed_worked_on_and_closed(hive):
    name = hive.create("write LICENSE MIT", "commit Choose MIT")
    hive.until(hive.is_(name, "closed"))
    issue, task = hive.issues()[name], hive.task(name)
    assert issue["assignee"] == ACTOR
    assert issue["close_reason"] == task.tally.why
    assert hive.supervised.commits(f"fleet/{task.id}") == ["first", "Choose MIT"]
    calls = [json.loads(line) for line in (hive.beads_dir / "calls").read_text().splitlines()]
    words = [call[1] for call in calls if call[0] == ACTOR]
    assert words.index("update") < words.index("close")


def test_an_issue_of_somebody_else_is_left_to_them(hive):
    theirs = hive.create("say Done.")
    hive.type("update", theirs, "--claim", actor="eve")
    ours = hive.create("say Done.")
    hive.until(hive.is_(ours, "closed"))
    assert hive.issues()[theirs]["status"] == "in_progress"
    assert hive.task(theirs) is None


def test_a_failed_task_is_blocked_there_with_its_last_words(hive):
    name = hive.create("fail 9 No space left.")
    hive.until(hive.is_(name, "blocked"))
    issue = hive.issues()[name]
    assert "No space left." in issue["notes"]
    assert any("t-1.1 failed" in comment["text"] for comment in issue["comments"])


def test_a_question_is_a_comment_and_a_cancelled_task_is_let_go(hive):
    name = hive.create("ask Which licence?")
    hive.until(lambda: hive.issues()[name]["comments"])
    assert "Which licence?" in hive.issues()[name]["comments"][0]["text"]
    hive.supervised.client.call(CancelTask(hive.task(name).id))
    hive.until(hive.is_(name, "open"))
    assert hive.issues()[name]["assignee"] == ""


def test_a_bd_that_fails_ends_nothing_and_is_tried_again(hive):
    (hive.beads_dir / "broken").touch()
    hive.until(lambda: hive.warned)
    assert hive.warned == ["beads: bd list: Error: database is locked"]
    (hive.beads_dir / "broken").unlink()
    name = hive.create("say Done.")
    hive.until(hive.is_(name, "closed"))
    assert len(hive.warned) == 1


def test_a_bd_that_hangs_stalls_no_run(hive):
    name = hive.create("say One.", "sleep 1", "say Two.")
    hive.until(lambda: hive.task(name) is not None)
    hive.beads = hive.another(deadline=2.0)
    (hive.beads_dir / "slow").touch()
    task = hive.task(name).id
    hive.until(lambda: hive.supervised.state(task) == "done")
    hive.until(lambda: hive.warned)
    assert "took more than 2 s" in hive.warned[0]
    assert hive.longest < 1.0
    (hive.beads_dir / "slow").unlink()
    hive.until(hive.is_(name, "closed"))


def test_the_next_supervisor_tells_what_the_last_one_could_not(hive):
    name = hive.create("say Done.")
    hive.until(lambda: hive.task(name) is not None)
    task = hive.task(name).id
    until(lambda: hive.supervisor.step() or hive.supervised.state(task) == "done")
    hive.beads = hive.another()
    hive.until(hive.is_(name, "closed"))


def test_two_supervisors_cannot_both_win_one_issue(hive):
    name = hive.create("say Done.")
    assert hive.bd("fleet-a").claim(name)
    assert not hive.bd("fleet-b").claim(name)
    assert [b.id for b in hive.bd("fleet-a").held()] == [name]


def test_without_a_bd_or_a_database_it_says_what_is_missing(hive):
    (hive.supervised.place / "bin" / "bd").unlink()
    with pytest.raises(Unavailable, match="bd is not on PATH"):
        hive.bd().ready(3)
