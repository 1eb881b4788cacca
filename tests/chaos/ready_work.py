"""A repository with branches that are ready to land: some break together, some conflict."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from fleet.app import App
from fleet.domain.landing.landing import LandingWish, Train, new_landing, train_id
from fleet.domain.run import Checkpoint
from fleet.domain.task import Tally, Task, TaskState
from fleet.ports import LandingQuery, Put
from tests.contract.checkouts import git, make_repo

# Both halves of a pair break it; so does chance, `flakes` times in 256.
GATE = (
    'for a in pair*-a; do if test -e "$a" && test -e "${{a%-a}}-b"; then exit 1; fi; done; '
    'test "$(od -An -N1 -tu1 /dev/urandom)" -ge {flakes}'
)


class ReadyWork:
    """`count` tasks that are done, each with a commit on its own branch, all queued for main."""

    def __init__(
        self, folder: Path, count: int, *, seed: int, flakes: int = 5, store: str = ""
    ) -> None:
        self.folder = folder
        self.repo = make_repo(folder / "shop")
        self.onto = git(self.repo, "symbolic-ref", "--short", "HEAD")
        self.gate = GATE.format(flakes=flakes)
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LOGNAME": "ada",
            "FLEET_HOME": str(folder / "home"),
            "FLEET_LAND_GATE": self.gate,
            "FLEET_LAND_TRIES": "0",
            "FLEET_LAND_SLOTS": "3",
            **({"FLEET_STORE_URL": store} if store else {}),
        }
        self.base = git(self.repo, "rev-parse", "HEAD")
        self.store = App(self.repo, self.env).store
        self.by_hand: set[str] = set()
        self._dice = random.Random(seed)
        self.files: list[tuple[str, str]] = []
        self.tips: list[str] = []
        repository = str(self.repo / ".git")
        train = Train(train_id(repository, self.onto), 0, repository, self.onto)
        self.store.commit([Put(train)], [])
        self.add(count)

    def add(self, count: int) -> None:
        """So many more, which go as well or as badly together as those before."""
        first = len(self.files)
        fresh = self._files(count, first)
        self._dice.shuffle(fresh)
        self.files += fresh
        self.tips += self._branches(first)
        self._queue(first)

    def _files(self, count: int, first: int) -> list[tuple[str, str]]:
        """By task: the file that it writes, and what it writes there."""
        odd = max(1, count // 20)
        numbers = range(first, first + odd)
        pairs = [(f"pair{n}-{half}", "x") for n in numbers for half in "ab"]
        texts = [(f"text{n}", half) for n in numbers for half in "ab"]
        plain = [(f"plain{n}", "x") for n in range(first, first + count - 4 * odd)]
        return plain + pairs + texts

    def _branches(self, first: int) -> list[str]:
        orders = []
        for number, (name, text) in enumerate(self.files[first:], first + 1):
            orders.append(
                f"commit refs/heads/fleet/t-{number}\n"
                f"committer Ada <ada@example.com> {1_700_000_000 + number} +0000\n"
                f"data <<END\nTask {number}\nEND\nfrom {self.base}\n"
                f"M 100644 inline {name}\ndata <<END\n{text}\nEND\n"
            )
        subprocess.run(
            ["git", "fast-import", "--quiet"], cwd=self.repo, input="\n".join(orders), text=True,
            check=True,
        )  # fmt: skip
        names = [f"refs/heads/fleet/t-{n}" for n in range(first + 1, len(self.files) + 1)]
        return git(self.repo, "rev-parse", *names).split()

    def _queue(self, first: int) -> None:
        repository = str(self.repo / ".git")
        for number, tip in enumerate(self.tips[first:], first + 1):
            task = Task(
                f"t-{number}", 0, TaskState.DONE, f"Task {number}", "Do it", str(self.repo), "ada", 1,
                tally=Tally(runs=1, checkpoint=Checkpoint(commit=tip), landing=f"l-{number}"),
            )  # fmt: skip
            landing = new_landing(
                f"l-{number}", task, repository, self.onto, LandingWish("ada"), at=1
            )
            self.store.commit([Put(task), Put(landing)], [])

    def lean_back(self) -> None:
        """Nobody has the branch checked out."""
        git(self.repo, "checkout", "-q", "--detach")

    def move_by_hand(self) -> None:
        """As a person with a checkout of their own does. Lose the race: nothing happens."""
        before = git(self.repo, "rev-parse", self.onto)
        number = len(self.by_hand)
        blob = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=self.repo, input=f"{number}\n", text=True,
            capture_output=True, check=True,
        ).stdout.strip()  # fmt: skip
        listing = git(self.repo, "ls-tree", before) + f"\n100644 blob {blob}\tby-hand{number}\n"
        tree = subprocess.run(
            ["git", "mktree"], cwd=self.repo, input=listing, text=True, capture_output=True, check=True
        ).stdout.strip()  # fmt: skip
        words = ("commit-tree", tree, "-p", before, "-m", f"By hand {number}")
        commit = git(self.repo, "-c", "user.name=Ada", "-c", "user.email=a@example.com", *words)
        done = subprocess.run(
            ["git", "update-ref", f"refs/heads/{self.onto}", commit, before], cwd=self.repo,
            check=False,
        )  # fmt: skip
        if done.returncode == 0:
            self.by_hand.add(commit)

    def states(self) -> dict[str, str]:
        rows = self.store.landings(LandingQuery(limit=len(self.files) + 1))
        return {row.task: str(row.state) for row in rows}

    def check(self) -> set[str]:
        """Raise when something is lost, doubled or broken; the tasks that landed."""
        states = self.states()
        assert set(states.values()) <= {"landed", "held"}, states
        landed = {task for task, state in states.items() if state == "landed"}
        self._check_every_position()
        inside = set(git(self.repo, "rev-list", self.onto).split())
        for number, tip in enumerate(self.tips, 1):
            assert (tip in inside) == (f"t-{number}" in landed), f"t-{number}"
        events = [e for e in self._events() if e.type == "task.landed"]
        assert sorted(e.task for e in events) == sorted(landed)
        assert git(self.repo, "fsck", "--no-dangling", "--no-progress") == ""
        assert git(self.repo, "status", "--porcelain") == ""
        self._check_who_landed(landed)
        return landed

    def _events(self):
        after, found = 0, []
        while page := self.store.events(after=after, limit=1000):
            found += page
            after = page[-1].number
        return found

    def _check_every_position(self) -> None:
        """After every move of the branch its tree had passed, and the next one has all of it."""
        log = git(self.repo, "reflog", "show", "--format=%H", f"refs/heads/{self.onto}").split()
        moves = [commit for commit in log if commit not in self.by_hand | {self.base}]
        assert moves
        for new, old in pairwise(log):
            git(self.repo, "merge-base", "--is-ancestor", old, new)
        trees = git(self.repo, "rev-parse", *(f"{c}^{{tree}}" for c in moves)).split()
        results = {key.split()[0]: r for key, r in self._results(trees).items()}
        assert {t for t in trees if t not in results or not results[t].passed} == set()
        for commit in moves:
            names = set(git(self.repo, "ls-tree", "--name-only", commit).splitlines())
            assert not [n for n in names if n.endswith("-a") and f"{n[:-2]}-b" in names], commit

    def _results(self, trees: list[str]):
        from fleet.domain.landing.landing import result_id

        system = os.uname()
        where = (system.sysname, system.machine)
        names = [result_id(tree, self.gate, (), where) for tree in trees]
        found = {}
        for n in range(0, len(names), 100):
            found |= self.store.gate_results(names[n : n + 100])
        return found

    def _check_who_landed(self, landed: set[str]) -> None:
        """One of each two that do not go together; all others, but for who was unlucky twice."""
        kinds = {f"t-{n}": name for n, (name, _) in enumerate(self.files, 1)}
        groups: dict[str, set[str]] = {}
        for task, name in kinds.items():
            groups.setdefault(name.removesuffix("-a").removesuffix("-b"), set()).add(task)
        unlucky = 0
        for name, tasks in groups.items():
            assert len(tasks & landed) <= 1, name
            unlucky += not tasks & landed
        assert unlucky <= 1 + len(self.files) // 100
