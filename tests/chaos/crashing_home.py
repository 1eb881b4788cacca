"""A home whose processes die at named steps, one after the other."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet.domain.message import MessageKind
from fleet.domain.task import ENDED
from fleet.operations.messages.ask_answer_send import Answer, SendWords
from fleet.operations.tasks.change import CancelTask
from fleet.ports import TaskQuery
from tests.chaos.invariants import check_now, check_the_end
from tests.chaos.named_steps import Arm, Step, named
from tests.contract.checkouts import git
from tests.integration.supervised_home import SupervisedHome
from tests.wait import until

if TYPE_CHECKING:
    from collections import Counter

    from tests.chaos.forker import SupervisorForker

HOOK = """#!/bin/sh
name=$(basename "$0")
[ -e "$FLEET_HOME/ask $name" ] || exit 0
rm -f "$FLEET_HOME/ask $name"
touch "$FLEET_HOME/in $name"
sleep 0.4
"""
GATE = """k="$FLEET_TASK_DIR/kill"
if [ -e "$k" ]; then touch "$(cat "$k")"; rm "$k"; kill -9 $$; fi
test -f {k}.txt && echo passed >>"$FLEET_TASK_DIR/gate"; sleep 0.1"""
SCRIPTS = {
    "plain": ("say begun", "lines 3", "write {k}.txt x", "commit {k}", "run sleep 0.1", "say bye"),
    "lingers": ("say begun", "write {k}.txt x", "commit {k}"),
    "spawns": ("spawn 60", "say begun", "write {k}.txt x", "commit {k}", "say bye"),
    "gate": ("say begun", "write {k}.txt x", "commit {k}"),
    "asks": ("say begun", "ask Which?", "say It is {{answer}}.", "write {k}.txt x", "commit {k}"),
    "words": ("say begun", "write {k}.txt x", "commit {k}", "hear 8", "say bye"),
    "cancelled": ("say begun", "sleep 60"),
}


class Hit(NamedTuple):
    """What came of one kill."""

    step: str
    victim: str
    nth: int
    tasks: tuple[str, ...]


class CrashingHome:
    def __init__(
        self,
        place: Path,
        forker: SupervisorForker,
        seed: int,
        *,
        settings=(),
        log: Path | None = None,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.supervised = SupervisedHome(place)
        self.supervised.log = log or self.supervised.log
        self.forker = forker
        self.pid = 0
        self.hits: list[Hit] = []
        self.kinds: dict[str, str] = {}
        self.touched: dict[str, str] = {}  # of whose runs something was killed: what that was
        self.loose = {"words"}  # kinds of tasks whose coders may say something else when touched
        self.to_tell: list[str] = []
        self.to_cancel: list[str] = []
        self.moved = place / "moved"
        self.supervised.home.mkdir(exist_ok=True)
        self.supervised.env |= {
            "FLEET_RUN_ATTEMPTS": "100",
            "FLEET_RUN_BACKOFF": "0.05",
            "FLEET_WORKSPACE_SETUP": self._hook("set-up", place),
            **dict(settings),
        }
        for name in ("post-checkout", "post-merge"):
            self._hook(name, self.supervised.repo / ".git" / "hooks")
        git(
            self.supervised.repo,
            "config",
            "filter.slow.clean",
            f"{self._hook('clean', place)}; cat",
        )
        (self.supervised.repo / ".git" / "info" / "attributes").write_text("*.txt filter=slow\n")
        self.store = self.supervised.store

    def _hook(self, name: str, folder: Path) -> str:
        file = folder / name
        file.write_text(HOOK)
        file.chmod(0o755)
        return str(file)

    def add(self, kind: str) -> list[str]:
        """The tasks of one kind: their ids, the one that matters last."""
        if kind == "dependent":
            (first,) = self.add("plain")
            return [first, *self._add("plain", after=[first])]
        return self._add(kind)

    def _add(self, kind: str, **more) -> list[str]:
        name = f"{kind}-{len(self.kinds)}"
        script = [line.format(k=name) for line in SCRIPTS[kind]]
        if kind == "gate":
            more["gate"] = GATE.format(k=name)
        task = self.supervised.add(*script, **more)
        self.kinds[task] = kind
        if kind == "lingers":
            (self.folder(task) / "lingers").touch()
        if kind == "words":
            self.to_tell.append(task)
        if kind == "cancelled":
            self.to_cancel.append(task)
        return [task]

    def folder(self, task: str) -> Path:
        return self.supervised.client.app.home.task_dir(task)

    def start(self, *arms: Arm, **more: object) -> int:
        self.pid = self.forker.start(
            {
                "repo": str(self.supervised.repo),
                "env": self.supervised.env,
                "log": str(self.supervised.log),
                "arms": [list(arm) for arm in arms],
                "moved": str(self.moved),
                **more,
            }
        )
        return self.pid

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            until(lambda: self.forker.status(self.pid) is not None, why="the supervisor's end")
            self.pid = 0

    def wait_for(self, what, why: str) -> None:
        """Meanwhile a person answers, sends words and cancels."""
        until(lambda: what() or self.mind(), why=lambda: f"{why}\n{self.story()}")

    def mind(self) -> None:
        call = self.supervised.client.call
        for question in self.store.open_messages(MessageKind.QUESTION):
            call(Answer(question.id, "blue"))
        for task in [t for t in self.to_tell if "begun" in self.supervised.transcript(t)]:
            call(SendWords(task, f"words for {task}"))
            self.to_tell.remove(task)
        for task in [t for t in self.to_cancel if "begun" in self.supervised.transcript(t)]:
            call(CancelTask(task))
            self.to_cancel.remove(task)

    def hit(self, step: Step, nth: int) -> None:
        """Somebody dies at this step, and nothing is broken at that moment."""
        tasks = self.add(step.kind)
        arms = [self._arm(step, nth, tasks)]
        if step.first == "running":
            self.start()
            self.wait_for(
                lambda: "begun" in self.supervised.transcript(tasks[-1]), "a coder at work"
            )
            self.kill()
        elif step.first:
            arms.append(self._arm(named(step.first), 1, tasks))
        for arm in arms:
            if arm.victim != "supervisor":
                self.touched |= dict.fromkeys(tasks, arm.victim)
        self.start(*arms)
        self.wait_for(lambda: self._died(step, arms[0]), f"a death {step.name} ({nth})")
        self.hits.append(Hit(step.name, step.victim, nth, tuple(tasks)))
        next_for_it = self.rng.choice(["dies", "is asked", "goes on"])
        if self.pid and next_for_it == "dies":
            self.kill()
        self.check()
        if self.pid and next_for_it == "goes on":
            self.wait_for(lambda: self._over(tasks), f"the end of {tasks}")
            self.check()
        self.kill()

    def _over(self, tasks: list[str]) -> bool:
        return all(t.state in ENDED for t in self.store.tasks_by_id(tasks).values())

    def _arm(self, step: Step, nth: int, tasks: list[str]) -> Arm:
        token = self.supervised.place / f"struck-{len(self.hits)}-{step.victim}"
        if step.victim == "gate":
            (self.folder(tasks[-1]) / "kill").write_text(str(token))
        return Arm(step.victim, step.at, str(token), nth, tuple(tasks))

    def _died(self, step: Step, arm: Arm) -> bool:
        status = self.forker.status(self.pid)
        struck = Path(arm.token).exists()
        if status is not None:
            assert (status, struck, step.victim) == (-9, True, "supervisor"), self.story()
            self.pid = 0
        return struck and (step.victim != "supervisor" or status is not None)

    def finish(self) -> Counter:
        """With a healthy supervisor everything ends, and all that must be there is, once."""
        self.start()
        self.wait_for(self.supervises, "a healthy supervisor")
        self.wait_for(self.all_over, "the end of every task")
        self.wait_for(lambda: not self.supervised.strays(), "the end of every process")
        os.kill(self.pid, signal.SIGTERM)
        self.wait_for(lambda: self.forker.status(self.pid) is not None, "its own end")
        assert self.forker.status(self.pid) == 0, self.story()
        self.pid = 0
        self.check()
        return check_the_end(self)

    def supervises(self) -> bool:
        found = self.supervised.client.app.daemon.running()
        return found is not None and found.supervising

    def all_over(self) -> bool:
        tasks = self.store.tasks(TaskQuery(limit=1000))
        return all(t.state in ENDED for t in tasks) and not self.store.live_runs()

    def check(self) -> None:
        check_now(self)

    def story(self, task: str = "") -> str:
        states = [
            self.supervised.story(t).partition("\n")[0] for t in ([task] if task else self.kinds)
        ]
        hits = ", ".join(f"{h.victim} {h.step} ({h.nth}, {h.tasks[-1]})" for h in self.hits)
        return "\n".join(
            [f"seed {self.seed}: {hits}", *states, *self.supervised.said().splitlines()[-30:]]
        )

    def close(self) -> None:
        if self.pid and self.forker.status(self.pid) is None:
            self.kill()
        self.supervised.close()
