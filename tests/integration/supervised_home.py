"""A home and a repository where `fleet run` is started, killed and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from fleet.app import App
from fleet.base import machine
from fleet.client import LocalClient
from fleet.domain.run import RunState
from fleet.domain.task import Limits, Spec
from fleet.operations.tasks.change import AddTask
from tests.contract.checkouts import git, make_repo
from tests.wait import LIMIT, until
from tests.warm import start_fleet, type_fleet

BIN = Path(sys.executable).parent
FLEET = str(BIN / "fleet")


class SupervisedHome:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place / "home"
        self.repo = make_repo(place / "shop")
        self.log = place / "supervisor.log"
        self.env = {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(place),
            "LOGNAME": "ada",
            "LANG": "C.UTF-8",
            "FLEET_HOME": str(self.home),
            "FLEET_CODER": "scripted",
            "FLEET_RUN_BACKOFF": "0.1",
            "FLEET_RUN_GRACE": "3",
        }
        self.client = LocalClient(App(self.repo, self.env))
        self.store = self.client.app.store
        self.supervisor: subprocess.Popen | None = None

    def add(self, *script: str, after=(), project: Path | None = None, **spec) -> str:
        """A task whose coder does this; its id."""
        where = str(project or self.repo)
        limits = {n: spec.pop(n) for n in ("attempts", "time_limit", "budget") if n in spec}
        wanted = AddTask(
            title=(script or ("Nothing",))[0][:80],
            prompt="\n".join(script),
            project=where,
            spec=Spec(**({"cwd": where, "limits": Limits(**limits)} | spec)),
            after=tuple(after),
        )
        return self.client.call(wanted).id

    def start(self, *words: str, **env: str) -> subprocess.Popen:
        """`fleet run`, once it has said that it supervises."""
        already = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            given = {"cwd": self.repo, "env": self.env | env, "stdout": log, "stderr": log}
            self.supervisor = start_fleet(("run", *words), **given)
        until(lambda: b"Supervising" in self.log.read_bytes()[already:], why=self.said)
        return self.supervisor

    def end(self, number: int = signal.SIGKILL) -> int:
        """Signal the supervisor and wait for its end; its status."""
        assert self.supervisor is not None
        self.supervisor.send_signal(number)
        status = self.supervisor.wait(LIMIT)
        self.supervisor = None
        return status

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def type(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess:
        done = type_fleet(words, cwd=cwd or self.repo, env=self.env | env, timeout=LIMIT)
        said = (done.stdout.decode(), done.stderr.decode())
        return subprocess.CompletedProcess(done.args, done.returncode, *said)

    def task(self, task: str):
        return self.store.task(task)

    def state(self, task: str) -> str:
        return str(self.store.task(task).state)

    def run(self, task: str, number: int = -1):
        runs = self.store.runs(task)
        return runs[number - 1 if number > 0 else number]

    def endings(self, task: str) -> list[str]:
        return [str(r.outcome.ending) if r.outcome else r.state for r in self.store.runs(task)]

    def wait(self, *tasks: str, state: str = "done") -> None:
        for task in tasks:
            seen, story = partial(self._is, task, state), partial(self.story, task)
            until(seen, why=story)

    def _is(self, task: str, state: str) -> bool:
        return self.state(task) == state

    def running(self, task: str, number: int = 0):
        """Its run, once a coder works in it."""

        def there():
            found = [r for r in self.store.runs(task) if r.state is RunState.RUNNING]
            return [r for r in found if not number or r.number == number]

        return until(there, why=lambda: self.story(task))[-1]

    def held(self) -> str:
        """What keeps a coder at work until `most_at_once` has seen enough of them."""
        return f'run sh -c "until test -e {self.place}/go; do sleep 0.05; done"'

    def most_at_once(self, tasks: list[str], *, at_least: int) -> int:
        """How many runs there were together, of tasks that are `held` until there are so many."""
        seen = []

        def over() -> bool:
            seen.append(len(self.store.live_runs()))
            if seen[-1] >= at_least:
                (self.place / "go").touch()
            return all(self.state(task) == "done" for task in tasks)

        until(over, why=self.said)
        return max(seen)

    def heard(self, task: str, words: str, number: int = -1) -> None:
        """Wait until a run has said so."""
        until(lambda: words in self.transcript(task, number), why=f"{words} from {task}")

    def transcript(self, task: str, number: int = -1) -> str:
        runs = self.store.runs(task)
        if not runs or number > len(runs):
            return ""
        run = runs[number - 1 if number > 0 else number]
        with suppress(FileNotFoundError):
            return (self.home / "runs" / run.id / "transcript").read_text()
        return ""

    def texts(self, task: str) -> list[str]:
        """All that the task's runs said as plain text, in order."""
        lines = []
        for run in self.store.runs(task):
            with suppress(FileNotFoundError):
                lines += (self.home / "runs" / run.id / "transcript").read_text().splitlines()
        said = [json.loads(line) for line in lines]
        return [s["text"] for s in said if s["kind"] == "text"]

    def keeper(self, run_id: str) -> int:
        return int(json.loads((self.home / "runs" / run_id / "keeper.json").read_text())["pid"])

    def coder(self, run_id: str) -> int:
        """The process that the keeper started."""
        keeper = self.keeper(run_id)
        return until(lambda: machine.children(keeper), why=f"a coder of {run_id}").pop()

    def marks(self) -> list[str]:
        found = []
        for file in self.home.glob("runs/*/keeper.json"):
            found.append(json.loads(file.read_text()).get("mark", ""))
        return [mark for mark in found if mark]

    def strays(self) -> list[int]:
        """Processes of any run that are alive."""
        return sorted(pid for mark in self.marks() for pid in machine.marked(mark))

    def commits(self, branch: str) -> list[str]:
        """Subjects, oldest first."""
        return git(self.repo, "log", "--reverse", "--format=%s", branch).splitlines()

    def story(self, task: str) -> str:
        """For whoever reads a failure."""
        with suppress(Exception):
            why = self.store.task(task).tally.why
            return f"{task} is {self.state(task)}, {self.endings(task)} ({why})\n{self.said()}"
        return task

    def close(self) -> None:
        if self.supervisor is not None:
            self.supervisor.kill()
            self.supervisor.wait()
        keepers = self.client.app.keepers
        for file in self.home.glob("runs/*/launch.json"):
            with suppress(AssertionError):
                until(lambda run=file.parent.name: keepers.end(run))
        self.store.close()
