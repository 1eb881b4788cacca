"""What a workspace costs, beside git's own `worktree add` in the same run."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from _bench import finish, verdict
from fleet.adapters.git.checkout import GitCheckout, WorkspaceRules
from fleet.domain.run import Choice, Run, RunState
from fleet.domain.task import Spec, Task, TaskState
from fleet.ports import Site

FILES = int(os.environ.get("FILES", "20000"))
TIMES = int(os.environ.get("TIMES", "5"))
ALLOWED = 0.150  # seconds to take a used worktree again


def git(where: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    subprocess.run(["git", *who, *words], cwd=where, check=True, capture_output=True)


def make_repo(where: Path) -> Path:
    for n in range(FILES):
        path = where / f"d{n % 200}" / f"f{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{n}\n" * 20)
    git(where, "init", "--quiet", "--initial-branch=main")
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "-m", "first")
    return where


def site(repo: Path, number: int) -> Site:
    task = Task(
        id=f"t-{number}", version=1, state=TaskState.RUNNING, title="x", prompt="x",
        project=str(repo), author="x", created_at=1, spec=Spec(cwd=str(repo)),
    )  # fmt: skip
    run = Run(f"t-{number}.1", 1, task.id, RunState.CLAIMED, Choice("x", "x"), "h", "h", 1)
    return Site(task, run)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = make_repo(folder / "shop")
        self.number = 0

    def raw(self) -> float:
        self.number += 1
        place = self.folder / f"raw-{self.number}"
        begun = time.perf_counter()
        git(self.repo, "worktree", "add", "--quiet", "-b", place.name, str(place))
        took = time.perf_counter() - begun
        git(self.repo, "worktree", "remove", "--force", str(place))
        return took

    def ours(self, pool: int) -> tuple[float, float]:
        """Seconds to make one, and to remove or park it."""
        self.number += 1
        checkout = GitCheckout(self.folder / "worktrees", WorkspaceRules(pool=pool))
        wanted = site(self.repo, self.number)
        begun = time.perf_counter()
        place = checkout.plan(wanted)
        checkout.prepare(place, wanted)
        made = time.perf_counter()
        checkout.remove(place, task=wanted.task.id, delete_branch=True)
        return made - begun, time.perf_counter() - made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        bench.ours(1)  # the one that is parked
        raw, used, parking, fresh = [], [], [], []
        turns = [lambda: raw.append(bench.raw()), lambda: fresh.append(bench.ours(0)[0])]
        for _ in range(TIMES):
            made, removed = bench.ours(1)
            used.append(made)
            parking.append(removed)
            for turn in turns:
                turn()
            turns.reverse()  # a disk that is held back after many writes is so for the second one
    figure = "{:.3f} s"
    limit = (figure, min(raw))
    finish(
        verdict(f"new, {FILES} files", (figure, min(fresh)), limit, at_most=1.5),
        verdict(f"used again, {FILES} files", (figure, min(used)), limit, at_most=1),
        verdict(f"used again, {FILES} files", (figure, min(used)), (figure, ALLOWED), at_most=1),
        verdict(f"parked, {FILES} files", (figure, min(parking)), limit, at_most=3),
    )


if __name__ == "__main__":
    main()
