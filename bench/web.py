"""The dashboard in a real Chromium: how long a person waits, beside what is promised."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUITES = (
    "tests/web/test_live.py",
    "tests/web/test_bars.py",
    "tests/web/test_stopwatch.py",
    "tests/web/test_machines.py",
)


def main() -> int:
    subprocess.run([ROOT / "scripts" / "browser"], check=True, stdout=subprocess.DEVNULL)
    slow = ["-m", "real"]  # with a minute of changes; SLOW=1 also ten
    slow += [] if os.environ.get("SLOW") else ["-k", "not ten_minutes"]
    argv = [sys.executable, "-m", "pytest", "-q", "-s", "-n", "0", "-p", "no:randomly", *slow]
    env = {**os.environ, "FLEET_WEB_SLACK": "1"}
    run = subprocess.Popen([*argv, *SUITES], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for line in run.stdout:
        if "(bar: " in line or line.startswith(("FAILED", "ERROR", "SKIPPED")):
            print(line.strip(), flush=True)
    return run.wait()


if __name__ == "__main__":
    sys.exit(main())
