"""The same keepers with `/proc` hidden behind an empty directory, as on macOS."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wait import LIMIT

HERE = Path(__file__).parent
HIDE = 'mount -t tmpfs tmpfs /proc && exec "$0" "$@"'
# Whether a killed keeper's processes are gone cannot be told there; `without_proc` says so.
ELSEWHERE = "Real and not keeper_was_killed"


def test_keepers_start_look_tell_stop_and_sweep_without_proc():
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    hidden = subprocess.run(
        [*unshare, "sh", "-c", HIDE, "true"], capture_output=True, text=True, check=False
    )
    if hidden.returncode:
        pytest.skip(f"/proc cannot be hidden here: {hidden.stderr.strip()}")
    pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    selected = ["-k", f"({ELSEWHERE}) or without_proc", "--timeout", "60", "-rf"]
    files = [HERE / "without_proc.py", HERE / "test_launcher.py"]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [*unshare, "sh", "-c", HIDE, *pytest_, *selected, *files],
        cwd=HERE, env=env, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted, done.stdout
    assert int(counted[1]) >= 23, done.stdout  # fewer: the selection above lost some
