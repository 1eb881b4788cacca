"""The dashboard in a real Chromium: how long a person waits, beside what is promised.

bench/web.py                        every row, with a minute of changes
bench/web.py paint                  first paint, first rows of 1,000 tasks, bytes of the first screen
bench/web.py storm                  1,000 tasks, 50 changes 20 times a second for a minute
bench/web.py storm --seconds 600    the same for ten minutes
bench/web.py transcript diff        50,000 lines; 301 files with a lock file of 2 MB
bench/web.py live stopwatch machines
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BARS = "tests/web/test_bars.py"
ROWS = {
    "paint": f"{BARS}::test_a_thousand_tasks_are_shown_at_once",
    "storm": f"{BARS}::test_minutes_of_changes_keep_the_page_quick_and_small",
    "transcript": f"{BARS}::test_a_transcript_of_50_000_lines_opens_at_its_end",
    "diff": f"{BARS}::test_a_diff_of_300_files_opens_and_a_lock_file_is_folded",
    "live": "tests/web/test_live.py",
    "stopwatch": "tests/web/test_stopwatch.py",
    "machines": "tests/web/test_machines.py",
}


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--seconds", type=float, default=60, help="of the storm")
    given = parser.parse_args()
    if unknown := {*given.rows} - {*ROWS}:
        parser.error(f"there is no row {min(unknown)}")
    subprocess.run([ROOT / "scripts" / "browser"], check=True, stdout=subprocess.DEVNULL)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    status = measure([ROWS[name] for name in given.rows or ROWS], given.seconds)
    print(f"load after: {os.getloadavg()[0]:.1f}", flush=True)
    return status


def measure(tests: list[str], seconds: float) -> int:
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "--tb=no",
        "-m",
        "real",
    ]
    env = {**os.environ, "FLEET_WEB_SLACK": "1", "FLEET_STORM": str(seconds)}
    run = subprocess.Popen([*argv, *tests], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for line in run.stdout:
        if (
            "(bar: " in line
            or "(no bar)" in line
            or line.startswith(("FAILED", "ERROR", "SKIPPED"))
        ):
            print(line.strip(), flush=True)
    return run.wait()


if __name__ == "__main__":
    sys.exit(main())
