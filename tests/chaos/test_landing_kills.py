"""A lander that is killed before and after each of its effects, with its git, and its gates."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fleet.domain.landing.landing import LandingState
from fleet.ports import LandingQuery, Put
from fleet.supervisor.landing.lander import MOST_WAITING
from tests.chaos.landing_process import LanderForker
from tests.chaos.ready_work import ReadyWork
from tests.wait import LIMIT, until
from tests.warm import start_fleet

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

EFFECTS = 60  # that one lander makes at most before it dies
MOST_BY_HAND = 25  # moves of the branch by a person in one test
GOES_ON = 2.0  # seconds within which the next lander does something
PARTS = 10  # of the slow forms: `make test-slow ARGS="-k 'kills and 3'"` runs one


@pytest.fixture
def forker():
    made = LanderForker()
    yield made
    made.close()


def processes_in(folder: Path) -> list[int]:
    """Whose working directory is there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(folder):
                    found.append(int(entry.name))
    return found


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(forker: LanderForker, pid: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while (status := forker.status(pid)) is None and time.monotonic() < until:
        time.sleep(0.005)
    return status


class Attack:
    """Landers are started and killed until so many have died; then one may finish."""

    def __init__(self, work: ReadyWork, forker: LanderForker, seed: int) -> None:
        self._work = work
        self._forker = forker
        self._dice = random.Random(seed)
        self.kills = 0

    def start(self, effects: int = 0, home: str = "home") -> int:
        log = str(self._work.folder / "lander.log")
        env = self._work.env | {"FLEET_HOME": str(self._work.folder / home)}
        return self._forker.start(repo=str(self._work.repo), env=env, log=log, effects=effects)

    def two_at_once(self) -> bool:
        """Two hosts, neither of which has said that it is there: both land the same train."""
        pids = [self.start(self._dice.randint(1, 4 * EFFECTS), home) for home in ("home", "other")]
        statuses = [wait_for(self._forker, pid, LIMIT) for pid in pids]
        assert set(statuses) <= {0, -signal.SIGKILL}, self.log
        self.kills += statuses.count(-signal.SIGKILL)
        return 0 in statuses

    def once(self, *, by_hand: bool) -> bool:
        """Whether there was nothing left to do."""
        if by_hand and self._dice.random() < 0.1:
            self._work.move_by_hand()
        way = self._dice.choice(["effect", "effect", "git", "gate"])
        pid = self.start(self._dice.randint(1, EFFECTS) if way == "effect" else 0)
        if way != "effect":
            self._kill_one_of(pid, self._gits if way == "git" else self._gates)
            time.sleep(self._dice.uniform(0, 0.3))
            kill(pid)
        status = wait_for(self._forker, pid, LIMIT)
        assert status in {0, -signal.SIGKILL}, self.log
        self.kills += status != 0
        return status == 0

    @property
    def log(self) -> str:
        return (self._work.folder / "lander.log").read_text()

    def _gates(self) -> list[int]:
        return processes_in(self._work.folder / "home" / "gates")

    def _gits(self) -> list[int]:
        return [pid for pid in processes_in(self._work.folder) if name_of(pid) == "git"]

    def _kill_one_of(self, lander: int, find: Callable[[], list[int]]) -> None:
        for _ in range(200):
            if at_work := find():
                kill(self._dice.choice(at_work))
                self.kills += 1
                return
            if self._forker.status(lander) is not None:
                return
            time.sleep(0.005)

    def land_beside_a_person(self) -> None:
        """One lander that is not killed, and a person who moves the branch while it works."""
        pid = self.start()
        status = None
        while status is None and len(self._work.by_hand) < MOST_BY_HAND:
            status = wait_for(self._forker, pid, self._dice.uniform(0.2, 1.5))
            self._work.move_by_hand()
        assert wait_for(self._forker, pid, 2 * LIMIT) == 0, self._work.states()

    def went_on(self) -> list[float]:
        """How many seconds each lander took from its start to its first effect, in order."""
        return sorted(float(line) for line in self._first_effects.read_text().split())

    @property
    def _first_effects(self) -> Path:
        return self._work.folder / "lander.log.began"

    def finish(self) -> None:
        pid = self.start()
        assert wait_for(self._forker, pid, 2 * LIMIT) == 0, f"{self._work.states()}\n{self.log}"


def pace(took: list[float]) -> str:
    return f"the next one went on after {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f} s"


def attack(
    tmp_path, forker, *, count: int, kills: int, seed: int, by_hand: bool
) -> tuple[ReadyWork, list[float]]:
    """Returns when so many were killed, and the rest has landed."""
    work = ReadyWork(tmp_path, count, seed=seed)
    if by_hand:
        work.lean_back()
    storm = Attack(work, forker, seed)
    while storm.kills < kills:
        if storm.once(by_hand=by_hand):
            work.add(count)
    storm.finish()
    landed, took = work.check(), storm.went_on()
    assert len(took) > kills / 2  # most of them die in the middle of their work
    print(
        f"{storm.kills} kills, {len(landed)} of {len(work.files)} landed,"
        f" {len(work.by_hand)} by hand; {pace(took)}"
    )
    return work, took


@pytest.mark.parametrize("by_hand", [False, True])
def test_nothing_is_lost_doubled_or_broken(tmp_path, forker, by_hand):
    attack(tmp_path, forker, count=30, kills=25, seed=7, by_hand=by_hand)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_doubled_or_broken_in_a_thousand_kills(tmp_path, forker, part):
    by_hand = bool(part % 2)
    work, took = attack(
        tmp_path, forker, count=120, kills=1000 // PARTS, seed=11 + part, by_hand=by_hand
    )
    assert len(work.files) >= 120
    late = [seconds for seconds in took if seconds >= GOES_ON]
    assert len(late) <= len(took) // 50, late  # a loaded machine may let one in fifty wait


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_branch_is_ever_broken_in_a_thousand_landings(tmp_path, forker, part):
    """Pairs that break together, texts that conflict, flaky gates, and a person who moves it, too."""
    work = ReadyWork(tmp_path, 112, seed=101 + part, flakes=10)
    work.lean_back()
    storm = Attack(work, forker, part)
    storm.land_beside_a_person()
    landed = work.check()
    assert len(work.by_hand) >= 5
    assert len(landed) >= 1000 // PARTS, "ten parts are to land a thousand"
    print(f"{len(landed)} of {len(work.files)} landed, {len(work.by_hand)} moves by hand")


@pytest.mark.real
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, PARTS))]
)
def test_two_hosts_on_one_store_land_each_work_once(tmp_path, forker, postgres_url, part):
    work = ReadyWork(tmp_path, 40, seed=3 + part, store=postgres_url)
    storm = Attack(work, forker, 3 + part)
    while storm.kills < 30:
        if storm.two_at_once():
            work.add(20)
    storm.finish()
    landed = work.check()
    print(f"{storm.kills} kills, {len(landed)} of {len(work.files)}; {pace(storm.went_on())}")
    work.store.close()


def test_hundreds_that_a_person_holds_are_in_nobody_s_way(tmp_path, forker):
    work = ReadyWork(tmp_path, MOST_WAITING + 3, seed=1, flakes=0)
    store = work.store
    newest = store.landings(LandingQuery(limit=MOST_WAITING + 1))
    store.commit([Put(replace(one, state=LandingState.HELD)) for one in newest], [])
    storm = Attack(work, forker, 1)
    pid = storm.start()
    try:
        until(lambda: list(work.states().values()).count("landed") == 2, why=lambda: storm.log)
    finally:
        kill(pid)
        wait_for(forker, pid, LIMIT)


class Supervisors:
    """`fleet run` of two hosts on one store; each is killed and started again."""

    def __init__(self, work: ReadyWork, dice: random.Random) -> None:
        self._work, self._dice = work, dice
        self._hosts: dict[str, subprocess.Popen[str]] = {}
        self.kills = 0
        for home in ("home", "other"):
            self._start(home)

    def _start(self, home: str) -> None:
        env = self._work.env | {"FLEET_HOME": str(self._work.folder / home)}
        self._hosts[home] = start_fleet(("run",), cwd=self._work.repo, env=env)

    def kill_one(self) -> None:
        home = self._dice.choice(list(self._hosts))
        self._hosts[home].kill()
        self._hosts[home].communicate()
        self.kills += 1
        self._start(home)

    def close(self) -> None:
        for process in self._hosts.values():
            process.kill()
            process.communicate()


@pytest.mark.real
def test_two_whole_supervisors_on_one_store_land_each_work_once(tmp_path, postgres_url):
    work, dice = ReadyWork(tmp_path, 30, seed=5, store=postgres_url), random.Random(5)
    supervisors = Supervisors(work, dice)

    def settled() -> int:
        return sum(state in {"landed", "held"} for state in work.states().values())

    try:
        while supervisors.kills < 12:
            before = settled()
            until(lambda before=before: settled() > before, why=lambda: str(work.states()))
            supervisors.kill_one()
            if settled() > len(work.files) - 10:
                work.add(20)
        until(lambda: settled() == len(work.files), why=lambda: str(work.states()))
    finally:
        supervisors.close()
    print(f"{supervisors.kills} kills, {len(work.check())} of {len(work.files)} landed")
    work.store.close()
