"""A scratch at which `fleet create` is killed, or interrupted, at a chosen effect that it has."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from fleet.adapters.tmux.tmux import Tmux
from tests.e2e.scratch import Scratch
from tests.wait import until

HOOK = Path(__file__).parent / "crashing"
PROMPT = "write note.txt new"
LONG = f"{PROMPT}\nsay {'x' * 125_000}"  # for an argument: it is pasted


class Picture(tuple):
    """What was there before, whoever made it."""

    __slots__ = ()


class CrashDesk(Scratch):
    """With an agent at work, a branch and a worktree of the user's own, and unsaved changes."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (self.repo / "README").write_text("hello\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Readme")
        self.theirs = root / "theirs"
        self.git("worktree", "add", "-q", "-b", "theirs", str(self.theirs))
        (self.theirs / "mine").write_text("by hand\n")
        (self.repo / "README").write_text("half done\n")
        self("create", "old", "--prompt", "write note.txt precious")
        (self.old,) = self.data("list")
        note = Path(self.old["path"], "note.txt")
        until(lambda: note.exists() and note.read_text() == "precious\n", "its first turn")
        self.before = self.picture()

    def close(self) -> None:
        self("list", "--repair")
        self.type("kill", "*", "--force")
        self.tmux("kill-server")

    def effects(self, *words: str) -> list[str]:
        """What `fleet` does with these words, in order, when nothing happens to it."""
        told = self.root / "effects"
        self(*words, env={"CRASH_LIST": str(told), "PYTHONPATH": str(HOOK)})
        return told.read_text().splitlines()

    def crash(self, at: str, by: str, *words: str) -> int:
        """Its exit status."""
        done = self.type(*words, env=self.armed(at, by))
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def armed(self, at: str, by: str) -> dict[str, str]:
        return {"CRASH_AT": at, "CRASH_BY": by, "PYTHONPATH": str(HOOK)}

    def let_time_pass(self) -> None:
        """As if the next line were typed so late that what was pasted in vain is pasted again."""
        with closing(sqlite3.connect(self.home / "fleet.db")) as db:
            db.execute("UPDATE event SET at = at - 20000000 WHERE type = 'message.typed'")
            db.commit()

    def tmux(self, *words: str) -> list[str]:
        argv = ["tmux", "-L", Tmux(self.home).socket, *words]
        done = subprocess.run(argv, capture_output=True, check=False, text=True)
        return done.stdout.split()

    def picture(self) -> Picture:
        places = (self.repo, self.theirs, Path(self.old["path"]))
        seen = [_files(place) for place in places]
        heads = [self.git("rev-parse", "HEAD", cwd=place) for place in places]
        status = [self.git("status", "--porcelain", cwd=place) for place in places]
        return Picture([*seen, *heads, *status])

    def worktrees(self) -> set[str]:
        """Those that git has, but the user's and the ones that wait in the pool."""
        listed = self.git("worktree", "list", "--porcelain").splitlines()
        paths = {line.partition(" ")[2] for line in listed if line.startswith("worktree ")}
        parked = {
            str(p).removesuffix(".parked") for p in self.home.glob("worktrees/pool/*/*.parked")
        }
        return paths - parked - {str(self.repo), str(self.theirs)}

    def branches(self) -> set[str]:
        named = self.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split()
        return set(named) - {"main", "theirs"}

    def directories(self) -> set[str]:
        """Also a file that says that one is being made or removed."""
        return {str(p) for p in self.home.glob("worktrees/shop-*/*")}

    def running(self) -> set[str]:
        """The runs that processes of this home are part of."""
        found = set()
        for file in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                env = file.read_bytes().split(b"\0")
                if f"FLEET_HOME={self.home}".encode() in env:
                    mine = [e for e in env if e.startswith(b"FLEET_RUN_ID=")]
                    found |= {os.fsdecode(e).partition("=")[2] for e in mine}
        return found

    def check(self) -> list[dict]:
        """All that is there is an agent's that is listed, and what was there before still is."""
        agents = self.data("list")
        assert {a["doing"] for a in agents} <= {"waiting", "idle", "working"}, agents
        paths = {a["path"] for a in agents}
        assert self.worktrees() == self.directories() == paths
        assert self.branches() == {a["branch"] for a in agents}
        assert set(self.tmux("list-panes", "-a", "-F", "#{@fleet_run}")) == {
            a["run"] for a in agents
        }
        assert self.running() == {a["run"] for a in agents}
        assert self.picture() == self.before
        return agents


def _files(place: Path) -> dict[str, bytes]:
    found = (p for p in place.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(p): p.read_bytes() for p in found}
