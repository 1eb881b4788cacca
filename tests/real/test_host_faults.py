"""Three machines, 300 tasks that wait for each other, and every fault that we know of.

Each machine has a home, a clone and a line to PostgreSQL of its own; mount namespaces put each clone
at the project's one path. Whether a task was ever worked on twice at once is judged by what its
programs wrote, not by what we recorded.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from fleet.app import open_store
from fleet.base import machine
from fleet.domain.event import Kind
from fleet.domain.run import Ending
from fleet.domain.task import TaskState
from tests.real.cluster import Cluster, Line
from tests.real.several_hosts import LEASE, RealHost
from tests.wait import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can give a process a mount of its own"),
]

TASKS = int(os.environ.get("FLEET_FAULT_TASKS", "300"))
AWAY = LEASE + 10  # how long a fault lasts, so that others take over
LIMIT = 1200  # seconds for everything
REACTION = 2  # a machine that was stopped finds out, and ends what is no longer its own

WORKER = """\
import os, sys, time
log, seconds, *needed = sys.argv[1:]
line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def beat():
    os.write(line, f"{os.environ['FLEET_RUN_ID']} {time.monotonic():.3f}\\n".encode())
missing = [name for name in needed if not os.path.exists(name)]
if missing:
    sys.exit(f"the work of others is not here: {missing}")
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    beat()
    time.sleep(0.25)
beat()
"""


class Machine(RealHost):
    """`project` is the path that its clone has within its own mount namespace."""

    def __init__(self, root: Path, line: Line, project: Path, **env: str) -> None:
        super().__init__(root, line.url, clone=project)
        self.env |= env
        self.line = line
        self.project = project

    def supervise(self, *words: str) -> None:
        inside = 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"'
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, "sh"]
        argv += [
            str(self.repo),
            str(self.project),
            f"{Path(sys.executable).parent}/fleet",
            "run",
            *words,
        ]
        before = self.log.read_text().count("Supervising") if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until(lambda: self.log.read_text().count("Supervising") > before, why=self.log.read_text)

    def signal_all(self, number: int) -> None:
        """Everything on it: the supervisor, the keepers and their programs."""
        pids = {self.process.pid} if self.process else set()
        for file in self.home.glob("runs/*/keeper.json"):
            with suppress(OSError, ValueError, KeyError):
                record = json.loads(file.read_text())
                pids |= {record["pid"], *machine.marked(record["mark"])}
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def plan(folder: Path, log: Path) -> Path:
    """Each task waits for up to two of the twenty before it, and needs their files."""
    worker = folder / "worker.py"
    worker.write_text(WORKER)
    chance = random.Random(18)
    lines = ["tasks:"]
    for n in range(TASKS):
        needed = (
            sorted({chance.randrange(max(0, n - 20), n) for _ in range(chance.randrange(3))})
            if n
            else []
        )
        seconds = 45 if n % 25 == 7 else chance.uniform(2, 5)
        files = " ".join(f"f-{k}.txt" for k in needed)
        prompt = f"run env -u LD_PRELOAD {sys.executable} {worker} {log} {seconds:.1f} {files}\\nwrite f-{n}.txt x\\ncommit work {n}"
        lines += [f"  - name: n{n}", f"    title: Task {n}", f'    prompt: "{prompt}"']
        if needed:
            lines.append(f"    after: [{', '.join(f'n{k}' for k in needed)}]")
    file = folder / "tasks.yaml"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def fleet(tmp_path):
    cluster = Cluster()
    origin = RealHost(tmp_path / "project", cluster.url)
    skewed = skew(30)
    machines = [
        Machine(tmp_path / name, Line(tmp_path / name / "line", cluster), origin.repo, **env)
        for name, env in (("a", {}), ("b", {}), ("c", skewed))
    ]
    yield cluster, origin, machines
    for host in machines:
        host.line.mend()
        host.signal_all(signal.SIGCONT)
        host.end(signal.SIGKILL)
        host.kill_keepers()
        host.line.close()
    cluster.close()


def skew(seconds: int) -> dict[str, str]:
    """The environment of a machine whose clocks are fast by so much.

    All of them: where only the wall clock is, the library breaks `time.sleep`.
    """
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
    if not Path(library).exists():
        subprocess.run([Path(__file__).parents[2] / "scripts" / "debian", "faketime"], check=True)
    return {"LD_PRELOAD": library, "FAKETIME": f"+{seconds}s"}


def test_no_fault_of_three_machines_and_their_database_loses_or_doubles_a_task(fleet, tmp_path):
    cluster, origin, (a, b, c) = fleet
    log = tmp_path / "beats"
    origin("add", "--file", str(plan(tmp_path, log)))
    began = time.monotonic()
    for host in (a, b, c):
        host.supervise("--max", "4")
    thawed = faults(cluster, a, b, c)
    store = open_store(cluster.url)
    ids = [f"t-{n}" for n in range(1, TASKS + 1)]
    assert any(store.task(name).state is not TaskState.DONE for name in ids), "too few tasks"
    while any(task.state is not TaskState.DONE for task in store.tasks_by_id(ids).values()):
        logs = "\n".join(host.log.read_text()[-3000:] for host in (a, b, c))
        assert time.monotonic() - began < LIMIT, logs
        time.sleep(1)
    took = time.monotonic() - began
    runs = [run for name in ids for run in store.runs(name)]
    endings = defaultdict(int)
    for run in runs:
        endings[run.outcome.ending.value if run.outcome else "none"] += 1
    print(f"{TASKS} tasks, {len(runs)} runs in {took:.0f} s: {dict(endings)}")
    assert at_once_twice(log, thawed) == []
    assert set(endings) <= {"succeeded", "lost"}, [
        r for r in runs if r.outcome.ending is Ending.FAILED
    ]
    assert endings["succeeded"] == TASKS
    assert zombies(store, ids) == []
    store.close()


def test_a_database_that_is_away_for_two_minutes_ends_no_agent(fleet):
    cluster, origin, machines = fleet
    tasks = [origin.add(f"Long {n}", script="run sleep 140\nsay Done.") for n in range(6)]
    for host in machines:
        host.env["FLEET_STORE_LEASE"] = "300"  # the default
        host.supervise("--max", "2")
    store = open_store(cluster.url)
    until(lambda: sum(1 for run in store.live_runs() if run.started_at) == len(tasks))
    store.close()
    cluster.restart(away=120)
    store = open_store(cluster.url)
    began = time.monotonic()
    while any(task.state is not TaskState.DONE for task in store.tasks_by_id(tasks).values()):
        assert time.monotonic() - began < LIMIT, [store.task(task).tally for task in tasks]
        time.sleep(1)
    runs = [run for task in tasks for run in store.runs(task)]
    ends = [(run.id, run.host, run.outcome.ending.value, run.outcome.detail) for run in runs]
    assert len(runs) == len(tasks), ends
    store.close()


def faults(cluster: Cluster, a: Machine, b: Machine, c: Machine) -> float:
    """All of them, one after the other; when the machine that was stopped went on."""
    time.sleep(8)
    a.end(signal.SIGKILL)  # only the supervisor: its agents go on
    time.sleep(AWAY)
    a.supervise("--max", "4")
    b.signal_all(signal.SIGSTOP)
    time.sleep(AWAY)
    thawed = time.monotonic()
    b.signal_all(signal.SIGCONT)
    c.line.cut()
    time.sleep(AWAY)
    c.line.mend()
    time.sleep(5)
    cluster.restart()
    time.sleep(5)
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with psycopg.connect(cluster.url) as line:
        line.execute(others)
    time.sleep(5)
    cluster.promote()
    time.sleep(5)
    return thawed


def at_once_twice(log: Path, thawed: float) -> list[str]:
    """Beats of a run after the first of the next run of its task."""
    beats = defaultdict(list)
    for line in log.read_text().splitlines():
        run, at = line.split()
        beats[run].append(float(at))
    wrong = []
    for run, times in beats.items():
        task, _, number = run.rpartition(".")
        after = [
            min(t)
            for r, t in beats.items()
            if r.rpartition(".")[0] == task and int(r.rpartition(".")[2]) > int(number)
        ]
        late = [
            at
            for at in times
            if after and at > min(after) and not thawed <= at <= thawed + REACTION
        ]
        wrong += [f"{run} at {at}, the next since {min(after)}" for at in late]
    return wrong


def zombies(store, ids: list[str]) -> list[str]:
    """Facts about a run that were recorded after the next one was claimed."""
    wrong = []
    for name in ids:
        newest = 0
        for event in store.events(task=name, limit=10_000):
            if not event.run:
                continue
            number = int(event.run.rpartition(".")[2])
            if event.type == Kind.RUN_CLAIMED:
                newest = max(newest, number)
            elif number < newest:
                wrong.append(f"{event.type} of {event.run}")
    return wrong
