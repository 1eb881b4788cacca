"""Print each suite's time against its budget, and the branch coverage of each package."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

# Seconds of test time, summed over the workers: about three times what six workers on two cores
# need, so that a slow machine passes and tests that sleep do not.
BUDGETS = {
    "unit": 800,
    "contract": 1000,
    "integration": 4000,
    "e2e": 4000,
    "chaos": 900,
    "docs": 200,
    "other": 60,
}


# Percent of lines and branches that the whole run covers at least, in the processes of the tests
# themselves: programs that a test starts are not measured. The unit, contract and integration tests
# alone covered 70.2 when it was set. Raise it to one less than a whole run prints.
COVERAGE_FLOOR = 69


def suite_times(report: Path) -> dict[str, float]:
    times: dict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):
        # classname is the dotted path of the test module: tests.unit.test_task
        parts = case.get("classname", "").split(".")
        suite = parts[1] if len(parts) > 1 and parts[0] == "tests" else "other"
        times[suite if suite in BUDGETS else "other"] += float(case.get("time", "0"))
    return dict(times)


def coverage_by_package(report: Path) -> dict[str, tuple[int, int]]:
    """The covered and the countable lines and branches of each package of `fleet`."""
    sums: dict[str, tuple[int, int]] = {}
    for name, file in json.loads(report.read_text())["files"].items():
        rest = Path(name).parts[Path(name).parts.index("fleet") + 1 :]
        package = rest[0].removesuffix(".py")
        numbers = file["summary"]
        done, total = sums.get(package, (0, 0))
        done += numbers["covered_lines"] + numbers["covered_branches"]
        total += numbers["num_statements"] + numbers["num_branches"]
        sums[package] = done, total
    return sums


def main(tests: Path, coverage: Path, *, whole: bool) -> int:
    over, bare = [], False
    if tests.exists():
        for suite, seconds in sorted(suite_times(tests).items()):
            budget = BUDGETS[suite]
            over += [suite] if seconds > budget else []
            print(f"{suite:<12}{seconds:7.1f} s of {budget} s")
    if coverage.exists():
        sums = {p: s for p, s in coverage_by_package(coverage).items() if s[1]} or {"": (0, 0)}
        shares = [
            f"{package} {done / total:.0%}" for package, (done, total) in sorted(sums.items())
        ]
        done, total = (sum(column) for column in zip(*sums.values(), strict=True))
        covered = 100 * done / max(total, 1)
        print(f"coverage, lines and branches: {covered:.1f}%  ({', '.join(shares)})")
        bare = whole and covered < COVERAGE_FLOOR
    for suite in over:
        print(f"tests/{suite} took longer than its budget of {BUDGETS[suite]} s.", file=sys.stderr)
    if bare:
        print(f"Less is covered than {COVERAGE_FLOOR}%, the least that may be.", file=sys.stderr)
    return 1 if over or bare else 0


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--whole"]
    raise SystemExit(main(Path(words[0]), Path(words[1]), whole="--whole" in sys.argv))
