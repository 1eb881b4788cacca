"""A scratch home, a git repository, and the `fleet` command as a person types it there."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.wait import LIMIT, until
from tests.warm import start_fleet, type_fleet

BIN = Path(sys.executable).parent
FLEET = str(BIN / "fleet")


class Scratch:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.repo = root / "shop"
        self.repo.mkdir(parents=True)
        self.env = {
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(root),
            "LOGNAME": "ada",
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "FLEET_HOME": str(self.home),
            "FLEET_CODER": "scripted",
            "FLEET_RUN_BACKOFF": "0.1",
            "FLEET_CI_MARK": os.environ.get("FLEET_CI_MARK", ""),
        }
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "Begin")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        who = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
        argv = ["git", *who, *words]
        return subprocess.run(
            argv, cwd=cwd or self.repo, env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def type(self, *words, cwd: Path | None = None, stdin: bytes = b"", env=None, timeout=LIMIT):
        """Run `fleet` with these words; its output is text."""
        given = {"cwd": cwd or self.repo, "env": self.env | (env or {})}
        done = type_fleet(words, stdin=stdin, timeout=timeout, **given)
        said = (done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        return subprocess.CompletedProcess(done.args, done.returncode, *said)

    def __call__(self, *words, **given) -> str:
        """It succeeds; what it printed on stdout."""
        done = self.type(*words, **given)
        assert done.returncode == 0, f"$ fleet {words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *words, status: int, **given) -> str:
        """It fails with this status and says why, on stderr alone."""
        done = self.type(*words, **given)
        shown = f"$ fleet {words}\n{done.stdout}{done.stderr}"
        assert (done.returncode, done.stdout) == (status, ""), shown
        assert "Traceback" not in done.stderr, shown
        return done.stderr

    def document(self, *words, **given):
        """The one JSON document that it prints, at a width at which text would be cut."""
        narrow = {**given.pop("env", {}), "COLUMNS": "20"}
        document = json.loads(self(*words, "--json", env=narrow, **given))
        assert document["fleet"] == 1
        assert document.keys() - {"notes"} == {"fleet", "kind", "data"}
        return document

    def data(self, *words, **given):
        return self.document(*words, **given)["data"]

    def add(self, title: str = "Fix the login", *words: str, script: str = "say Done.") -> str:
        return self.data("add", title, "--prompt", script, *words)["id"]

    def status(self, task: str) -> str:
        return self.data("show", task)["task"]["status"]

    def ask(self, task: str, text: str = "Which way?", *words: str) -> str:
        """An open question, for which nobody waits."""
        self.fails("ask", text, "--task", task, "--timeout", "0", *words, status=3)
        return self.data("questions")[-1]["id"]

    def work(self, *words: str, **env: str) -> str:
        """The supervisor, until there is nothing left to do; what it said."""
        done = self.type("run", "--once", *words, env=env)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def start(self, *words: str, env=None) -> subprocess.Popen:
        return start_fleet(words, cwd=self.repo, env=self.env | (env or {}))

    @contextmanager
    def supervisor(self, *words: str):
        """`fleet run` in the background; what still runs at the end is cancelled."""
        process = self.start("run", *words)
        try:
            yield process
        finally:
            for task in self.data("tasks", "--status", "running"):
                self("cancel", task["id"])
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=LIMIT)

    def wait_for(self, task: str, *statuses: str) -> None:
        until(lambda: self.status(task) in statuses, f"{task} to be {statuses}")

    def facts(self) -> list:
        """All that the store holds, to see that nothing has changed."""
        with suppress(sqlite3.OperationalError):
            db = sqlite3.connect(f"file:{self.home}/fleet.db?mode=ro", uri=True)
            try:
                tables = ("event", "task", "run", "message")
                return [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
            finally:
                db.close()
        return []
