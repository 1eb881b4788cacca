"""Where supervisors come from: one process that has loaded everything forks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.chaos.named_steps import HERE, ROOT
from tests.wait import LIMIT


class SupervisorForker:
    """Forks supervisors; see `named_supervisor`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "named_supervisor.py")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def start(self, spec: dict[str, object]) -> int:
        return int(self._ask({"start": spec})["pid"])

    def status(self, pid: int) -> int | None:
        return self._ask({"ask": pid})["status"]

    def _ask(self, what: dict[str, object]) -> dict:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(LIMIT)
