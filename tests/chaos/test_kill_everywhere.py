"""kill -9 of supervisors, keepers and coders while real tasks run. A failing seed is printed;

    SEED=1234 pytest tests/chaos/test_kill_everywhere.py

plays its choices again, and KILLS=500 makes the long form as long as that.
"""

import os
import random
import signal
import time
from collections import Counter

import pytest

from fleet.base import machine
from fleet.domain.run import RunState
from fleet.domain.task import MAX_LOSSES, TaskState
from tests.integration.supervised_home import SupervisedHome
from tests.wait import until

SEED = int(os.environ.get("SEED", time.time_ns() % 100_000))
VICTIMS = ("supervisor", "supervisor", "keeper", "coder")
NEEDS = {3: (0, 1), 5: (2,), 6: (3, 4), 8: (5,), 9: (6, 7, 8)}  # ten tasks, by number


class Chaos:
    def __init__(self, place, seed):
        self.supervised = SupervisedHome(place)
        self.supervised.env |= {"FLEET_RUN_ATTEMPTS": "100", "FLEET_RUN_BACKOFF": "0.05"}
        self.rng = random.Random(seed)
        self.seed = seed
        self.killed: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()  # keepers killed, by task
        self.tasks: list[str] = []
        self.steps: dict[str, list[str]] = {}

    def add_ten(self):
        ten = []
        for number in range(10):
            names = [f"{len(self.tasks) + number}-{step}" for step in "abc"]
            script = [f"say {names[0]}"]
            for name in names:
                script += [f"write {name}.txt {name}", f"commit {name}", "sleep 0.35"]
            if number % 3 == 0:
                script.insert(1, "spawn 60")
            after = [ten[need] for need in NEEDS.get(number, ())]
            ten.append(self.supervised.add(*script, after=after))
            self.steps[ten[-1]] = names
        self.tasks += ten

    def kill(self, times):
        """At random moments, as often as that, with always something left to do."""
        while self.killed.total() < times:
            time.sleep(self.rng.uniform(0.0, 0.35))
            if all(self.supervised.state(t) == TaskState.DONE for t in self.tasks):
                self.add_ten()
            victim = self.rng.choice(VICTIMS)
            if victim == "supervisor":
                self.supervised.end(signal.SIGKILL)
                time.sleep(self.rng.choice([0, 0, 0.3]))
                self.supervised.start("--max", "4")
                self.killed[victim] += 1
            elif run := self.some_run(victim):
                self.kill_of(run, victim)

    def some_run(self, victim):
        """A task survives only so many lost runs, and that is not what is tried here."""
        live = [r for r in self.supervised.store.live_runs() if r.state is RunState.RUNNING]
        if victim == "keeper":
            live = [r for r in live if self.lost[r.task] < MAX_LOSSES - 1]
        return self.rng.choice(live) if live else None

    def kill_of(self, run, victim):
        keeper = self.supervised.keeper(run.id)
        pids = [keeper] if victim == "keeper" else sorted(machine.children(keeper))
        if not pids or keeper not in machine.in_session(keeper):
            return
        try:
            os.kill(pids[0], signal.SIGKILL)
        except ProcessLookupError:
            return  # it has just ended by itself
        self.killed[victim] += 1
        self.lost[run.task] += victim == "keeper"

    def check(self):
        supervised = self.supervised
        supervised.wait(*self.tasks)
        until(lambda: not supervised.store.live_runs())
        runs = [r for t in self.tasks for r in supervised.store.runs(t)]
        assert all(r.state is RunState.ENDED for r in runs)
        ended = Counter(
            e.run for e in supervised.store.events(limit=100_000) if e.type == "run.ended"
        )
        assert ended == Counter(r.id for r in runs)
        assert [s for s in supervised.store.slots().values() if s.holders] == []
        until(lambda: not supervised.strays(), why=f"no process of any run: {supervised.strays()}")
        for task in self.tasks:
            self.check_commits(task)
        assert all(r.outcome.gone for r in runs)
        return Counter(str(r.outcome.ending) for r in runs)

    def check_commits(self, task):
        """Its own, and those of all it waited for, each exactly once."""
        wanted, todo = [], [task]
        while todo:
            one = todo.pop()
            wanted += self.steps[one]
            todo += [t for t in self.supervised.task(one).after if self.steps[t][0] not in wanted]
        found = Counter(self.supervised.commits(self.supervised.run(task).workspace.branch))
        assert {name: found[name] for name in wanted} == dict.fromkeys(wanted, 1), task


def run_chaos(place, times, capsys):
    chaos = Chaos(place, SEED)
    begun = time.monotonic()
    try:
        chaos.add_ten()
        chaos.supervised.start("--max", "4")
        chaos.kill(times)
        endings = chaos.check()
    except AssertionError as error:
        states = [chaos.supervised.story(t).partition("\n")[0] for t in chaos.tasks]
        raise AssertionError(f"SEED={SEED}: {error}\n" + "\n".join(states)) from error
    finally:
        chaos.supervised.close()
    with capsys.disabled():
        took = time.monotonic() - begun
        print(f"\nSEED={SEED}: {dict(chaos.killed)} killed in {took:.0f} s; {dict(endings)}")


def test_whatever_is_killed_every_task_is_done_and_every_commit_is_there_once(tmp_path, capsys):
    run_chaos(tmp_path, 40, capsys)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif("KILLS" not in os.environ, reason="KILLS says how many kills are wanted")
def test_the_same_for_as_long_as_it_is_wanted(tmp_path, capsys):
    run_chaos(tmp_path, int(os.environ["KILLS"]), capsys)
