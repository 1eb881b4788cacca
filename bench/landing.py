"""What landing costs: a candidate, the forecast of conflicts, and a task that lands on an idle main."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from _bench import finish, verdict

sys.path.insert(0, str(Path(__file__).parent.parent))
from fleet.adapters.git.diff.forecast import try_merges
from fleet.adapters.git.diff.merge_preview import outlook
from fleet.adapters.git.landing.branches import GitBranches
from fleet.adapters.git.repo import Repo
from fleet.app import App
from fleet.app.supervisor_parts import make_lander
from fleet.domain.landing.landing import LandingWish, Train, new_landing, train_id
from fleet.domain.run import Checkpoint
from fleet.domain.task import Tally, Task, TaskState
from fleet.ports import Finished, MemberWork, Put
from fleet.supervisor.landing.gates import known_result
from tests.unit.domain.landing.test_train import ChangeWorld
from tests.unit.domain.landing.test_train import run as simulate

SIZES = {2_000: 0.150, 50_000: 1.0}  # files, and the seconds that a candidate may take
BRANCHES = 100
FORECAST = 0.100  # seconds for all of them
LANDED = 0.5  # seconds from the wish to the branch
TIMES = int(os.environ.get("TIMES", "9"))


def git(where: Path, *words: str, stdin: str = "") -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    argv = ["git", *who, *words]
    done = subprocess.run(argv, cwd=where, check=True, capture_output=True, text=True, input=stdin)
    return done.stdout.strip()


def make_repo(where: Path, files: int, branches: int) -> list[str]:
    """The tips of branches of one commit each; main has gone on by one, too."""
    where.mkdir(parents=True)
    git(where, "init", "--quiet", "--initial-branch=main")
    who = "committer x <x@localhost> 1700000000 +0000\ndata 1\nx\n"
    orders = [f"commit refs/heads/main\nmark :1\n{who}"]
    orders += [f"M 100644 inline d{n % 200}/f{n}\ndata 20\n{n:019}\n" for n in range(files)]
    orders += [f"\ncommit refs/heads/main\n{who}from :1\nM 100644 inline main.txt\ndata 2\nm\n\n"]
    for n in range(branches):
        orders += [f"\ncommit refs/heads/b{n}\n{who}from :1\n"]
        orders += [f"M 100644 inline d{n % 200}/f{n}\ndata 2\n{n % 10}\n\n"]
    git(where, "fast-import", "--quiet", stdin="".join(orders))
    git(where, "symbolic-ref", "HEAD", "refs/heads/none")  # nobody has main checked out
    git(where, "repack", "-adq")
    return git(where, "rev-parse", *(f"refs/heads/b{n}" for n in range(branches))).split()


def median(act, times: int = TIMES) -> float:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def candidate(folder: Path, files: int, limit: float) -> bool:
    (tip,) = make_repo(folder, files, 1)
    branches, main = GitBranches(Repo.at(folder / ".git")), git(folder, "rev-parse", "main")

    def raw() -> None:
        tree = git(folder, "merge-tree", "--write-tree", main, tip)
        git(folder, "commit-tree", tree, "-p", main, "-p", tip, "-m", "x")

    ours = median(lambda: branches.build(main, MemberWork(tip, "x")))
    print(f"a candidate of {files} files by git alone: {median(raw) * 1000:.0f} ms")
    name = f"a candidate of {files} files"
    return verdict(name, ("{:.3f} s", ours), ("{:.3f} s allowed", limit), at_most=1.0)


def forecast(folder: Path) -> bool:
    tips = make_repo(folder, 2_000, BRANCHES)
    repo, main = Repo.at(folder / ".git"), git(folder, "rev-parse", "main")
    pairs = [(main, tip) for tip in tips]
    lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs)

    def raw() -> None:
        git(folder, "merge-tree", "--write-tree", "--stdin", "--name-only", stdin=lines)

    ours, alone = median(lambda: list(try_merges(repo, pairs))), median(raw)
    print(f"the conflicts of {BRANCHES} branches by git alone: {alone * 1000:.0f} ms")
    base = git(folder, "rev-parse", "main~1")
    works = [Finished(f"t-{n}", f"b{n}", base, "main", tip) for n, tip in enumerate(tips)]
    at_first = statistics.median(new_outlook(folder, works) for _ in range(TIMES))
    known = median(lambda: outlook(f"{folder}/.git", works))
    print(f"fleet land forecast of {BRANCHES} branches: {at_first * 1000:.0f} ms when main has moved,"
          f" {known * 1000:.0f} ms when it has not")  # fmt: skip
    git(folder, "update-ref", "refs/heads/main", same_files(folder))
    again = statistics.median(new_outlook(folder, works) for _ in range(TIMES))
    print(f"the same when main has changed the file of each: {again * 1000:.0f} ms")
    allowed, name = ("{:.3f} s allowed", FORECAST), f"the conflicts of {BRANCHES} branches"
    verdicts = [
        verdict(name, ("{:.3f} s", ours), allowed, at_most=1.0),
        verdict(f"{name}, with all else", ("{:.3f} s", at_first), allowed, at_most=1.0),
        verdict(f"{name}, all with main", ("{:.3f} s", again), allowed, at_most=1.0),
    ]
    return all(verdicts)


def same_files(folder: Path) -> str:
    """A commit on main that changes the file of every branch: each of them conflicts."""
    files = "".join(f"M 100644 inline d{n % 200}/f{n}\ndata 2\nx\n" for n in range(BRANCHES))
    head = "commit refs/heads/same\ncommitter x <x@localhost> 1700000000 +0000\ndata 1\nx\n"
    git(folder, "fast-import", "--quiet", stdin=f"{head}from refs/heads/main^0\n{files}\n")
    return git(folder, "rev-parse", "refs/heads/same")


def new_outlook(folder: Path, works: list[Finished]) -> float:
    """Seconds for a forecast of which nothing is known: main has moved."""
    words = ("commit-tree", "main^{tree}", "-p", "main", "-m", "x")
    git(folder, "update-ref", "refs/heads/main", git(folder, *words))
    begun = time.perf_counter()
    outlook(f"{folder}/.git", works)
    return time.perf_counter() - begun


class Shop:
    """A repository with a lander, to whose main work is brought under this gate."""

    def __init__(self, folder: Path, gate: str, *, slots: int = 2) -> None:
        self.path = folder / "shop"
        self._gate = gate
        self._folder, self._slots = folder, slots

    def open(self) -> None:
        folder, repository = self._folder, str(self.path / ".git")
        git(self.path, "update-ref", "--no-deref", "HEAD", "main")  # git adds worktrees only then
        env = {"HOME": str(folder), "FLEET_HOME": str(folder / "home"), "LOGNAME": "ada",
               "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
               "FLEET_LAND_GATE": self._gate, "FLEET_LAND_SLOTS": str(self._slots)}  # fmt: skip
        self.app = App(self.path, env, listening=True)
        self._supervisor = self.app.supervisor()
        self._lander = make_lander(self.app, self._supervisor)
        self._train = Train(train_id(repository, "main"), 0, repository, "main")
        self.app.store.commit([Put(self._train)], [])

    def passed(self, commit: str) -> None:
        """The gate has passed the files of this commit already."""
        tree = git(self.path, "rev-parse", f"{commit}^{{tree}}")
        result = known_result(self._supervisor.parts, tree, self._gate, str(self.path))
        self.app.store.commit([Put(replace(result, passed=1, at=1))], [])

    def land(self, *works: tuple[int, str]) -> float:
        """Seconds from the wish to the branch, for all of these together."""
        store, names = self.app.store, [f"t-{number}" for number, _ in works]
        self._lander.step()
        begun = time.perf_counter()
        for number, tip in works:
            task = Task(
                f"t-{number}", 0, TaskState.DONE, f"Task {number}", "x", str(self.path), "ada", 1,
                tally=Tally(runs=1, checkpoint=Checkpoint(commit=tip), landing=f"l-{number}"),
            )  # fmt: skip
            where = self._train.repository
            landing = new_landing(f"l-{number}", task, where, "main", LandingWish("ada"), at=1)
            store.commit([Put(task), Put(landing)], [])
        while not all(task.tally.landed for task in store.tasks_by_id(names).values()):
            self._lander.step()
            time.sleep(0.01)
        return time.perf_counter() - begun

    @property
    def gates(self) -> int:
        return len(list((self._folder / "home").glob("runs/land-*")))


def chained(where: Path, tip: str, count: int) -> list[str]:
    """Commits of which each has the one before it: main does not move away from any."""
    tips = []
    for number in range(count):
        tree = git(where, "rev-parse", f"{tip}^{{tree}}")
        blob = git(where, "hash-object", "-w", "--stdin", stdin=f"{number}\n")
        listing = git(where, "ls-tree", tree) + f"\n100644 blob {blob}\tnew{number}\n"
        made = git(where, "mktree", stdin=listing)
        tip = git(where, "commit-tree", made, "-p", tip, "-m", f"Task {number}")
        tips.append(tip)
    return tips


def idle_main(folder: Path) -> bool:
    """Each task's tree has passed its gate already, and main has not moved: no gate runs."""
    shop = Shop(folder, "sleep 30")
    make_repo(shop.path, 2_000, 1)
    shop.open()
    tips = chained(shop.path, git(shop.path, "rev-parse", "main"), TIMES)
    took = []
    for number, tip in enumerate(tips, 1):
        shop.passed(tip)
        took.append(shop.land((number, tip)))
    assert shop.gates == 0, "a gate ran though its result was known"
    name = "a done task on an idle main, whose gate has passed"
    median_ = statistics.median(took)
    return verdict(name, ("{:.3f} s", median_), ("{:.3f} s allowed", LANDED), at_most=1.0)


REAL_CHANGES = 24
REAL_GATE = 1.0  # seconds that a real gate takes


def real_throughput(folder: Path) -> bool:
    """With git, keepers and gates as they are; every change is good, as most are."""
    train = Shop(folder / "train", f"sleep {REAL_GATE}", slots=SLOTS)
    alone = Shop(folder / "alone", f"sleep {REAL_GATE}", slots=1)
    took = {}
    for shop in (train, alone):
        works = list(enumerate(make_repo(shop.path, 2_000, REAL_CHANGES), 1))
        shop.open()
        together = shop is train
        took[shop] = shop.land(*works) if together else sum(shop.land(work) for work in works)
    print(f"{REAL_CHANGES} changes with real gates of {REAL_GATE} s: {took[train]:.1f} s and"
          f" {train.gates} gates, one by one {took[alone]:.1f} s and {alone.gates} gates")  # fmt: skip
    name = f"throughput of {SLOTS} slots, real gates"
    figures = ("{:.2f} x one by one", took[alone] / took[train]), ("{:.1f} x wanted", 4.0)
    return verdict(name, *figures, at_least=1.0)


WORLDS = {  # of changes, how many are bad alone, with a neighbour, and how often a gate flakes
    "3 %": ((0.03, 0.01, 0.02), 2.5),
    "1 %": ((0.01, 0.003, 0.005), 4.0),
    "0.2 %": ((0.002, 0.0005, 0.002), 10.0),
}
SLOTS = 4
CHANGES = 1000


def throughput() -> list[bool]:
    """Landings for each gate's time with four slots, beside one by one in the same world."""
    verdicts = []
    for name, (rates, times) in WORLDS.items():
        world, alone = ChangeWorld(rates, CHANGES, 1), ChangeWorld(rates, CHANGES, 1)
        train, single = simulate(world, CHANGES, SLOTS), simulate(alone, CHANGES, 1, ahead=1)
        print(f"the {name} world: {train:.2f} landings a gate's time, one by one {single:.2f};"
              f" gates for each landing {world.gates / len(world.landed):.2f},"
              f" one by one {alone.gates / len(alone.landed):.2f}")  # fmt: skip
        figures = ("{:.2f} x one by one", train / single), ("{:.1f} x wanted", times)
        verdicts.append(
            verdict(f"throughput of {SLOTS} slots, {name} world", *figures, at_least=1.0)
        )
    return verdicts


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        verdicts = [candidate(top / str(n), n, limit) for n, limit in SIZES.items()]
        verdicts += [*throughput(), real_throughput(top / "real")]
        finish(*verdicts, forecast(top / "forecast"), idle_main(top / "idle"))


if __name__ == "__main__":
    main()
