"""How long the command takes to start, against `python -c pass` of the same environment.

Bytecode is cached and warm: without it every import costs two or three times as much, and
would say nothing about an installed program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from _bench import finish, process, race, verdict

TIMES = 20
FLEET = str(Path(sys.executable).with_name("fleet"))
SECONDS = "{:.4f} s"


def environment(home: Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))}
    return env | {"FLEET_HOME": str(home)}


def against_nothing(words: list[str], env: dict[str, str], *, at_most: float) -> bool:
    nothing = process([sys.executable, "-c", "pass"], env)
    ours, peer = race(process([FLEET, *words], env), nothing, TIMES)
    what = " ".join(["fleet", *words])
    return verdict(what, (SECONDS, ours), (f"python -c pass {SECONDS}", peer), at_most=at_most)


def add_tasks(env: dict[str, str], count: int) -> None:
    from fleet.client import connect
    from fleet.operations.tasks.change import AddTask

    os.environ["FLEET_HOME"] = env["FLEET_HOME"]
    client = connect(cwd=Path(env["FLEET_HOME"]))
    for number in range(count):
        client.call(AddTask(title=f"Task {number}", prompt="Do what the title says. " * 10))


def main() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder))
        add_tasks(env, 1000)
        finish(
            against_nothing(["--help"], env, at_most=6),
            against_nothing(["tasks", "--json"], env, at_most=8),
            against_nothing(["list"], env, at_most=8),
            against_nothing(["show", "t-1"], env, at_most=9),
            against_nothing(["status"], env, at_most=10),
        )


if __name__ == "__main__":
    main()
