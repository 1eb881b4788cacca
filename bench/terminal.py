"""Agents in terminals: how soon one is ready, and how soon what is sent to it is received."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from _bench import finish, verdict
from fleet.adapters.processes.keepers import Keepers
from fleet.adapters.tmux.terminals import Terminals
from fleet.adapters.tmux.tmux import Tmux
from fleet.ports import Launch

TIMES = 10
PROMPTS = 100
ENV = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
PROGRAM = (sys.executable, "-m", "fleet.testing.full_screen", "--plain")


def wait(so, pause: float = 0.001) -> float:
    begun = time.perf_counter()
    while not so():
        time.sleep(pause)
        if time.perf_counter() - begun > 60:
            raise TimeoutError
    return time.perf_counter()


class Bench:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.tmux = Tmux(place)
        self.terminals = Terminals(place / "runs", self.tmux)
        self.keepers = Keepers(place / "runs", terminals=self.terminals)

    def transcript(self, run: str) -> bytes:
        with suppress(FileNotFoundError):
            return (self.place / "runs" / run / "transcript").read_bytes()
        return b""

    def ours(self, run: str) -> float:
        """From the launch until its screen says that it takes a prompt."""
        begun = time.perf_counter()
        self.keepers.launch(run, Launch(PROGRAM, "/", ENV, terminal=True))
        return wait(lambda: self.terminals.is_ready(run), pause=0.01) - begun

    def raw(self, run: str) -> float:
        """The same program in the same tmux, with nobody around it; its first hook says it is up."""
        folder = self.place / "runs" / run
        folder.mkdir(parents=True)
        begun = time.perf_counter()
        argv = ["env", f"FLEET_RUN_DIR={folder}", *PROGRAM]
        base = ["tmux", "-L", self.tmux.socket, "new-session", "-d", "-s", run.replace(".", "-")]
        subprocess.run([*base, "-x", "200", "-y", "50", *argv], check=True)
        return wait(lambda: b"session" in self.transcript(run)) - begun

    def prompt(self, run: str, text: str) -> float:
        """From the call until the program's hook has said that it took exactly this."""
        taken = json.dumps({"kind": "turn", "text": text}).encode()
        begun = time.perf_counter()
        self.terminals.paste(run, text)
        return wait(lambda: taken in self.transcript(run)) - begun

    def raw_prompt(self, run: str, text: str) -> float:
        """`load-buffer`, `paste-buffer` and `send-keys Enter`, without a look at the screen."""
        taken = json.dumps({"kind": "turn", "text": text}).encode()
        pane = next(p.id for p in self.tmux.panes() if p.run == run)
        base = ["tmux", "-L", self.tmux.socket]
        begun = time.perf_counter()
        subprocess.run(
            [
                *base,
                "load-buffer",
                "-b",
                "x",
                "-",
                ";",
                "paste-buffer",
                "-prd",
                "-b",
                "x",
                "-t",
                pane,
            ],
            input=text.encode(),
            check=True,
        )
        subprocess.run([*base, "send-keys", "-t", pane, "Enter"], check=True)
        return wait(lambda: taken in self.transcript(run)) - begun


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place))
        try:
            verdicts = measure(bench)
        finally:
            for run in sorted((Path(place) / "runs").iterdir()):
                while (run / "launch.json").exists() and not bench.keepers.end(run.name):
                    time.sleep(0.05)
            argv = ["tmux", "-L", bench.tmux.socket, "kill-server"]
            subprocess.run(argv, capture_output=True, check=False)
            Path(f"/tmp/tmux-{os.getuid()}", bench.tmux.socket).unlink(missing_ok=True)
    finish(*verdicts)


def measure(bench: Bench) -> list[bool]:
    bench.ours("t-0.1")
    bench.raw("r-0.1")
    ours, raw = [], []
    for number in range(1, TIMES + 1):
        ours.append(bench.ours(f"t-{number}.1"))
        raw.append(bench.raw(f"r-{number}.1"))
    sent = [bench.prompt("t-1.1", f"prompt {n}: 'quoted'\nin two lines") for n in range(PROMPTS)]
    alone = [
        bench.raw_prompt("t-2.1", f"prompt {n}: 'quoted'\nin two lines") for n in range(PROMPTS)
    ]
    long = bench.prompt("t-1.1", "a long line " * 8500)
    print(f"paste to received, 100 KB: {long * 1e3:.0f} ms")
    ms = "{:.3f} s"
    return [
        verdict(
            "start to ready, scripted interface",
            (ms, statistics.median(ours)),
            (f"{ms} (raw tmux new-session)", statistics.median(raw)),
            at_most=3.0,
        ),
        verdict(
            "paste to received",
            (ms, statistics.median(sent)),
            (f"{ms} (raw paste-buffer and Enter)", statistics.median(alone)),
            at_most=4.0,
        ),
    ]


if __name__ == "__main__":
    main()
