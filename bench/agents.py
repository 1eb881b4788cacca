"""`create`, `fanout` and `list`, as they are typed, with the scripted program in real terminals.

Each stands beside the raw limit of the same run: `git worktree add` and `tmux new-session` with the
same program, one after the other, until the last of them is up; and `fanout 5` beside the
predecessor (`ai-fleet`), which is installed under `.cache`. `QUICK=1`: small counts.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from _bench import finish, verdict
from fleet.adapters.tmux.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
QUICK = os.environ.get("QUICK") == "1"
TIMES = int(os.environ.get("TIMES", "2" if QUICK else "5"))
BIN = Path(sys.executable).parent
CACHE = Path(__file__).parents[1] / ".cache" / "predecessor"
PROGRAM = [sys.executable, "-m", "fleet.testing.full_screen"]
PROMPT = "say Hi"
FIGURE = "{:.3f} s"


def wait(so, limit: float = 120) -> None:
    end = time.perf_counter() + limit
    while not so():
        if time.perf_counter() > end:
            raise TimeoutError
        time.sleep(0.002)


def rested(measure: Callable[[int], T], count: int) -> T:
    """Once the programs of what was measured before are gone: they end when their terminal does."""
    time.sleep(0.5)
    return measure(count)


class Place:
    """A home, a repository of so many files, and a server of terminals for the raw limit."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.repo = folder / "shop"
        self.repo.mkdir(parents=True)
        self.number = 0
        self.socket = f"fleet-bench-{os.getpid()}-{files}"
        self.env = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "FLEET_HOME": str(self.home),
            "FLEET_CODER": "scripted",
            "FLEET_WORKSPACE_POOL": "0",
            "LANG": "C.UTF-8",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{who}_NAME": "x", f"GIT_{who}_EMAIL": "x@localhost"}
        self.fill(files)

    def fill(self, files: int) -> None:
        for n in range(files):
            path = self.repo / f"d{n % 200}" / f"f{n}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{n}\n" * 20)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "x"]):
            allow = ["--allow-empty"] if words[0] == "commit" else []
            self.run(["git", *words, *allow])

    def run(self, argv: list[str], **given) -> str:
        done = subprocess.run(
            argv, cwd=self.repo, env=self.env | given.get("env", {}), check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def fleet(self, *words: str) -> tuple[float, str]:
        begun = time.perf_counter()
        said = self.run(["fleet", *words])
        return time.perf_counter() - begun, said

    def ours(self, count: int) -> float:
        """Until every one of them has begun with its prompt."""
        self.number += 1
        took, _ = self.fleet("fanout", str(count), f"n{self.number}", "-p", PROMPT)
        self.clear()
        return took

    def create(self) -> float:
        self.number += 1
        took, _ = self.fleet("create", f"n{self.number}", "-p", PROMPT)
        return took

    def clear(self) -> None:
        self.fleet("kill", "*", "--force", "--delete-branch")

    def raw(self, count: int) -> float:
        """Until every program is up, which its first hook says."""
        self.number += 1
        began = time.perf_counter()
        names = [f"r{self.number}-{n}" for n in range(count)]
        for name in names:
            place, said = self.folder / "raw" / name, self.folder / "said" / name
            said.mkdir(parents=True)
            self.run(["git", "worktree", "add", "--quiet", "-b", name, str(place)])
            argv = ["env", f"FLEET_RUN_DIR={said}", *PROGRAM]
            tmux = ["tmux", "-L", self.socket, "-f", "/dev/null", "new-session", "-d", "-s", name]
            self.run([*tmux, "-c", str(place), *argv])
        wait(lambda: all((self.folder / "said" / n / "transcript").exists() for n in names))
        took = time.perf_counter() - began
        self.run(["tmux", "-L", self.socket, "kill-server"])
        shutil.rmtree(self.folder / "raw")
        self.run(["git", "worktree", "prune"])
        self.run(["git", "branch", "-qD", *names])
        return took

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self.clear()
        for socket in (self.socket, Tmux(self.home).socket):
            subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, check=False)


class Predecessor:
    """The same program under `ai-fleet`; its own server of terminals is this run's alone."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.fleet = CACHE / "bin" / "fleet"
        self.number = 0
        self.tmp = place.folder / "tmux"
        self.tmp.mkdir()
        self.env = {"TMUX_TMPDIR": str(self.tmp), "PATH": f"{place.folder}/bin:{place.env['PATH']}"}
        program = place.folder / "bin" / "claude"
        program.parent.mkdir()
        said = place.folder / "heard"
        said.mkdir()
        program.write_text(
            f'#!/bin/sh\nFLEET_RUN_DIR={said}/$$; mkdir "$FLEET_RUN_DIR"; export FLEET_RUN_DIR\n'
            f'for prompt; do :; done; exec {" ".join(PROGRAM)} -- "$prompt"\n'
        )
        program.chmod(0o755)
        # It types into a login shell, which has a path of its own.
        (place.folder / ".profile").write_text(f"PATH={self.env['PATH']}\n")
        self.said = said
        asked = ["sh", "-c", f"echo y | {self.fleet} init --type minimal"]
        place.run(asked, env=self.env)

    def fanout(self, count: int) -> tuple[float, float]:
        """Until its command has returned, and until every program has begun with its prompt."""
        self.number += 1
        for said in self.said.iterdir():
            shutil.rmtree(said)
        began = time.perf_counter()
        words = ["fanout", str(count), f"p{self.number}", "-p", PROMPT, "--quick"]
        self.place.run([str(self.fleet), *words], env=self.env)
        returned = time.perf_counter() - began
        try:
            wait(lambda: self.begun() == count, 30)
            return returned, time.perf_counter() - began
        finally:
            self.clear()

    def begun(self) -> int:
        turn = json.dumps({"kind": "turn", "text": PROMPT})
        return sum(turn in said.read_text() for said in self.said.glob("*/transcript"))

    def clear(self) -> None:
        """Its own `kill` would do one after the other, with pauses."""
        self.place.run(["tmux", "kill-server"], env=self.env)
        listed = self.place.run(["git", "worktree", "list", "--porcelain"]).splitlines()
        for line in listed[1:]:
            if line.startswith("worktree "):
                self.place.run(["git", "worktree", "remove", "--force", line[9:]])
        branches = self.place.run(["git", "branch", "--list", "--format=%(refname:short)", "p*"])
        self.place.run(["git", "branch", "-qD", *branches.split()])
        (self.place.repo / ".aifleet" / "state.json").unlink()


def predecessor(place: Place) -> Predecessor | None:
    """None, and why, where it cannot be had."""
    if not (CACHE / "bin" / "fleet").exists():
        wanted = ["ai-fleet", "libtmux==0.46.2"]
        try:
            subprocess.run([sys.executable, "-m", "venv", str(CACHE)], check=True)
            argv = [str(CACHE / "bin" / "pip"), "install", "--quiet", *wanted]
            subprocess.run(argv, check=True, timeout=300)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"fanout 5: the predecessor could not be installed ({error})")
            shutil.rmtree(CACHE, ignore_errors=True)
            return None
    try:
        made = Predecessor(place)
        made.fanout(1)
    except subprocess.CalledProcessError as error:
        print(f"fanout 5: the predecessor does not run here: {error.stderr.strip()[-200:]}")
        return None
    return made


def small(place: Place) -> list[bool]:
    """`create` and `fanout 5` in a repository of next to nothing."""
    place.create()
    creating = min(place.create() for _ in range(TIMES))
    place.clear()
    good = [verdict("create", (FIGURE, creating), (f"{FIGURE} (bar)", 0.6), at_most=1)]
    old = predecessor(place)
    ours, raw, returned, up = [], [], [], []
    for _ in range(2 * TIMES):
        ours.append(rested(place.ours, 5))
        raw.append(rested(place.raw, 5))
        if old is not None:
            both = rested(old.fanout, 5)
            returned.append(both[0])
            up.append(both[1])
    good.append(verdict("fanout 5", (FIGURE, min(ours)), (f"{FIGURE} (raw)", min(raw)), at_most=4))
    if up:
        whole = (f"{FIGURE} (predecessor, until all have begun)", median(up))
        good.append(verdict("fanout 5, median", (FIGURE, median(ours)), whole, at_most=1))
        print(
            f"fanout 5: the predecessor's command, which waits for nothing: {min(returned):.3f} s"
        )
    return good


def many(place: Place, count: int, files: int) -> bool:
    ours, raw = [], []
    turns = [lambda: ours.append(place.ours(count)), lambda: raw.append(place.raw(count))]
    for _ in range(max(2, TIMES // 2)):
        for turn in turns:
            turn()
        turns.reverse()  # a disk that is held back after many writes is so for the second one
    limit = (f"{FIGURE} (raw)", min(raw))
    return verdict(f"fanout {count}, {files:,} files", (FIGURE, min(ours)), limit, at_most=1.5)


def listing(place: Place, count: int, bar: float) -> bool:
    """With the processor time and memory of every process of theirs."""
    for begin in range(0, count, 50):
        place.number += 1
        some = min(50, count - begin)
        place.fleet("fanout", str(some), f"n{place.number}", "-p", PROMPT, "--wait", "300")
    place.fleet("list")
    took = []
    for _ in range(TIMES):
        seconds, said = place.fleet("list", "--json")
        assert len(json.loads(said)["data"]) == count
        took.append(seconds)
    place.clear()
    return verdict(
        f"list, {count} agents", (FIGURE, min(took)), (f"{FIGURE} (bar)", bar), at_most=1
    )


def measure(folder: Path, files: int, *acts) -> list[bool]:
    place = Place(folder / str(files), files)
    try:
        return [good for act in acts for good in act(place)]
    finally:
        place.close()


def main() -> None:
    wide, deep, crowd = (10, 3, 20) if QUICK else (50, 10, 200)
    compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)  # as pip does it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        good = measure(folder, 3, small, lambda p: [listing(p, 5, 0.2)])
        good += measure(
            folder, 1000, lambda p: [many(p, wide, 1000)], lambda p: [listing(p, crowd, 0.4)]
        )
        good += measure(folder, 20_000, lambda p: [many(p, deep, 20_000)])
    finish(*good)


if __name__ == "__main__":
    main()
