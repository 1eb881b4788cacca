"""The supervisor at work: how soon a task starts, what a line costs, what a keeper weighs."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import finish, verdict
from fleet.app import App
from fleet.client import LocalClient
from fleet.domain.task import Spec
from fleet.operations.tasks.change import AddTask

FLEET = str(Path(sys.executable).with_name("fleet"))
CONFIG = """
max_concurrent: 300
run: {{stall_limit: 0}}
agents:
  quick: {{coder: command, command: [sh, -c, "date +%s%6N >> {place}/started"]}}
  idle: {{coder: command, command: [sleep, "600"]}}
"""
MB = 1 << 20


class Bench:
    def __init__(self, folder: str) -> None:
        self.place = Path(folder)
        self.home = self.place / "home"
        self.work = self.place / "work"
        for path in (self.home, self.work):
            path.mkdir()
        text = CONFIG.format(place=self.place)
        (self.home / "config.yaml").write_text(text)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("FLEET", "PYTHON"))}
        self.env = keep | {"FLEET_HOME": str(self.home)}
        self.client = LocalClient(App(self.work, self.env))
        self.store = self.client.app.store
        self.supervisor: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Seconds until it supervises."""
        begun = time.monotonic()
        log = (self.place / "log").open("ab")
        self.supervisor = subprocess.Popen(
            [FLEET, "run"], cwd=self.work, env=self.env, stdout=log, stderr=log
        )
        held = {h.id: h.holder for h in self.store.hosts().values()}
        while {h.id: h.holder for h in self.store.hosts().values()} == held:
            time.sleep(0.005)
        return time.monotonic() - begun

    def add(self, agent: str, prompt: str = "") -> str:
        spec = Spec(agent=agent, cwd=str(self.work / os.urandom(4).hex()), in_place=True)
        Path(spec.cwd).mkdir()
        return self.client.call(
            AddTask(f"Be {agent}", prompt, project=str(self.work), spec=spec)
        ).id

    def until(self, so, timeout: float = 120) -> None:
        end = time.monotonic() + timeout
        while not so():
            assert time.monotonic() < end, (self.place / "log").read_text()[-2000:]
            time.sleep(0.01)

    def running(self) -> int:
        return sum(run.started_at > 0 for run in self.store.live_runs())

    def stop(self, number: int = signal.SIGTERM) -> None:
        assert self.supervisor is not None
        self.supervisor.send_signal(number)
        self.supervisor.wait(30)

    def close(self) -> None:
        for run in self.store.live_runs():
            self.client.app.keepers.stop(run.id, grace=0)
        self.until(lambda: not any(self._keeper(r.id) for r in self.store.live_runs()))
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.stop()

    def _keeper(self, run_id: str) -> bool:
        return str(self.client.app.keepers.look(run_id).presence) == "alive"


def ready_to_spawned(bench: Bench) -> bool:
    """From the moment at which `fleet add` has committed to the first step of the program."""
    bench.start()
    took = []
    for count in range(1, 41):
        bench.add("quick")
        added = time.time_ns() // 1000
        file = bench.place / "started"
        bench.until(lambda: file.exists() and len(file.read_text().split()) >= count)  # noqa: B023
        took.append((int(file.read_text().split()[-1]) - added) / 1000)
        time.sleep(0.05)
    bench.stop()
    figure = "{:.1f} ms"
    p50, p95 = statistics.median(took), sorted(took)[int(len(took) * 0.95)]
    bare = spawn()
    return verdict(
        f"ready to spawned, p50 (p95 {p95:.0f} ms; a bare process of the same {bare:.1f} ms)",
        (figure, p50), ("the limit " + figure, 50.0), at_most=1,
    )  # fmt: skip


def spawn() -> float:
    took = []
    for _ in range(20):
        begun = time.perf_counter()
        subprocess.run(["sh", "-c", "date +%s%6N > /dev/null"], check=True)
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took)


def streaming(bench: Bench, agents: int = 200) -> tuple[bool, bool, bool]:
    """All at once; a line that comes is written to the task's own files as well."""
    tasks = [bench.add("scripted", "speak 100 25") for _ in range(agents)]
    bench.start()
    assert bench.supervisor is not None
    pid = bench.supervisor.pid
    bench.until(lambda: bench.running() == agents)
    time.sleep(3)
    heard, cpu = lines(bench, tasks), seconds(pid)
    time.sleep(8)
    heard, cpu = lines(bench, tasks) - heard, seconds(pid) - cpu
    weight = memory(pid, "VmHWM:")
    bench.until(lambda: not bench.store.live_runs())
    said = heard_at_last = 0
    for task in tasks:
        text = (bench.home / "runs" / f"{task}.1" / "transcript").read_text().splitlines()
        said += len(text)
        assert f'"said {len(text) - 4}"' in text[-2], text[-2:]  # with session, turn and result
        heard_at_last += bench.store.progress([f"{task}.1"])[f"{task}.1"].lines
    bench.stop()
    return (
        verdict(f"{agents} agents: CPU of the supervisor a line, {heard / 8:.0f} lines/s",
                ("{:.1f} µs", cpu / heard * 1e6), ("the limit {:.0f} µs", 50.0), at_most=1),
        verdict("its memory at most", ("{:.0f} MB", weight / MB), ("the limit {:.0f} MB", 150.0),
                at_most=1),
        verdict("lines heard of those said", ("{:.0f}", heard_at_last), ("{:.0f}", said), at_least=1),
    )  # fmt: skip


def lines(bench: Bench, tasks: list[str]) -> int:
    found = bench.store.progress([f"{task}.1" for task in tasks])
    return sum(p.lines for p in found.values())


def seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pid: int, what: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what))


def adopting(bench: Bench, agents: int = 50) -> tuple[bool, bool]:
    for _ in range(agents):
        bench.add("idle")
    bench.start()
    bench.until(lambda: bench.running() == agents)
    weight = statistics.mean(
        pss(bench.client.app.keepers.folder(r.id)) for r in bench.store.live_runs()
    )
    bench.stop(signal.SIGKILL)
    before = {r.id for r in bench.store.live_runs()}
    begun = time.monotonic()
    bench.start()
    holder = next(iter(bench.store.hosts().values())).holder
    bench.until(lambda: all(r.holder == holder for r in bench.store.live_runs()))
    took = time.monotonic() - begun
    assert {r.id for r in bench.store.live_runs()} == before
    good = (
        verdict(f"{agents} keepers, PSS of one", ("{:.2f} MB", weight / MB),
                ("the limit {:.0f} MB", 6.0), at_most=1),
        verdict(f"restart with {agents} living agents, all adopted", ("{:.2f} s", took),
                ("the limit {:.0f} s", 2.0), at_most=1),
    )  # fmt: skip
    bench.close()
    return good


def pss(folder: Path) -> int:
    import json

    pid = json.loads((folder / "keeper.json").read_text())["pid"]
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))


def main() -> None:
    verdicts: list[bool] = []
    for measure in (ready_to_spawned, streaming, adopting):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Bench(folder))
            verdicts += found if isinstance(found, tuple) else (found,)
    finish(*verdicts)


if __name__ == "__main__":
    main()
