"""kill -9 of supervisors, keepers, coders and gates at every named step. Failures name their seed;

    SEED=1234 pytest tests/chaos/test_named_steps.py

plays it again. The long form kills at each step STEPS times (20), in WORKERS (2) homes at a time:

    STEPS=20 pytest -n 0 -m slow tests/chaos/test_named_steps.py

What came of it is also in `.cache/named_steps.txt`. HOME_NUMBER=7, beside the same SEED and STEPS,
plays one of its homes again.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.chaos.crashing_home import CrashingHome
from tests.chaos.forker import SupervisorForker
from tests.chaos.named_steps import HERE, STEPS, Arm, Step

if TYPE_CHECKING:
    from pathlib import Path

TOGETHER = int(os.environ.get("PYTEST_XDIST_TESTRUNUID", "0")[:8], 16)  # one seed for all workers
SEED = int(os.environ.get("SEED", (TOGETHER or time.time_ns()) % 100_000))
TIMES = int(os.environ.get("STEPS", "20"))
WORKERS = int(os.environ.get("WORKERS", "2"))
CHAIN = 12  # hits in one home
CACHE = HERE.parents[1] / ".cache"


class Chain(NamedTuple):
    """Hits in one home, one after the other; what is left undone ends with a healthy supervisor."""

    seed: int
    hits: tuple[tuple[Step, int], ...]


def chains(times: int, seed: int) -> list[Chain]:
    """Every step so often, in an order and at an occurrence that the seed says."""
    rng = random.Random(seed)
    hits = [(step, rng.randint(1, step.most)) for step in STEPS for _ in range(times)]
    rng.shuffle(hits)
    parts = [tuple(hits[n : n + CHAIN]) for n in range(0, len(hits), CHAIN)]
    return [Chain(seed + number, part) for number, part in enumerate(parts)]


def play(place: Path, forker: SupervisorForker, chain: Chain) -> list[tuple[str, str, Counter]]:
    """Of each hit its victim, its step and how the runs of its tasks ended."""
    crashing = CrashingHome(place, forker, chain.seed)
    try:
        for step, nth in chain.hits:
            crashing.hit(step, nth)
        crashing.finish()
        return [(h.victim, h.step, _endings(crashing, h.tasks)) for h in crashing.hits]
    except Exception as error:
        words = str(error) if "seed" in str(error) else f"{error}\n{crashing.story()}"
        raise AssertionError(f"SEED={SEED}: {words}") from None
    finally:
        crashing.close()


def _endings(crashing: CrashingHome, tasks: tuple[str, ...]) -> Counter:
    return Counter(ending for task in tasks for ending in crashing.supervised.endings(task))


@pytest.mark.parametrize("number", range(-(-len(STEPS) // CHAIN)))
def test_whoever_dies_at_whichever_step_nothing_is_lost_twice_or_stuck(number, tmp_path, forker):
    play(tmp_path, forker, chains(1, SEED)[number])


@pytest.mark.parametrize("at", ["before look", "after look", "before read", "after read lines"])
def test_a_supervisor_that_is_slow_between_two_looks_misses_nothing(at, tmp_path, forker):
    crashing = CrashingHome(tmp_path, forker, SEED)
    try:
        for kind in ("plain", "asks", "words"):
            crashing.add(kind)
        crashing.start(Arm("supervisor", at, "", act="nap"))
        crashing.wait_for(crashing.all_over, "the end of every task")
        crashing.kill()
        crashing.finish()
    finally:
        crashing.close()


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_the_same_many_times_over(tmp_path, capsys):
    begun = time.monotonic()
    todo = chains(TIMES, SEED)
    with capsys.disabled():
        print(f"\nSEED={SEED}: {sum(len(c.hits) for c in todo)} kills in {len(todo)} homes")
    done, failures = _play_all(tmp_path, todo, capsys)
    table = _table(done, time.monotonic() - begun)
    CACHE.mkdir(exist_ok=True)
    (CACHE / "named_steps.txt").write_text(table + "\n")
    with capsys.disabled():
        print(table)
    assert not failures, "\n\n".join(failures)
    hits = Counter((victim, step) for victim, step, _ in done)
    assert min(hits[s.victim, s.name] for s in STEPS) >= TIMES
    assert hits.total() >= min(1000, TIMES * len(STEPS))


@pytest.mark.skipif("HOME_NUMBER" not in os.environ, reason="HOME_NUMBER names what to play again")
def test_one_of_those_homes_again(tmp_path, forker):
    play(tmp_path, forker, chains(TIMES, SEED)[int(os.environ["HOME_NUMBER"])])


def _play_all(place: Path, todo: list[Chain], capsys) -> tuple[list, list[str]]:
    done: list[tuple[str, str, Counter]] = []
    failures: list[str] = []

    def work(share: list[Chain]) -> None:
        forker = SupervisorForker()
        for chain in share:
            where = place / str(chain.seed)
            where.mkdir()
            try:
                done.extend(play(where, forker, chain))
                shutil.rmtree(where)
            except AssertionError as error:
                failures.append(f"home {chain.seed - SEED}, {error}")
                with capsys.disabled():
                    print(f"FAILED: {failures[-1]}\n", flush=True)
            with capsys.disabled():
                print(f"{len(done)} hits, {len(failures)} homes failed", flush=True)
        forker.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, [todo[n::WORKERS] for n in range(WORKERS)]))
    return done, failures


def _table(done: list, took: float) -> str:
    hits: Counter = Counter()
    endings: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for victim, step, found in done:
        hits[victim, step] += 1
        endings[victim, step] += found
    lines = [f"{'victim':<14} {'step':<44} hits  endings of its tasks' runs"]
    for step in STEPS:
        key = (step.victim, step.name)
        shown = ", ".join(f"{k} {n}" for k, n in sorted(endings[key].items()))
        lines.append(f"{step.victim:<14} {step.name:<44} {hits[key]:>4}  {shown}")
    by_victim = dict(Counter(victim for victim, _, _ in done))
    lines.append(f"SEED={SEED}: {len(done)} kills {by_victim} in {took:.0f} s")
    return "\n".join(lines)
