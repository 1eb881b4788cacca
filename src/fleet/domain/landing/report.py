"""What a test command reported of each test: JUnit XML or TAP. Without either, its exit status counts.

Both were written by the work that is judged, so whatever is wrong in them is no report.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
MOST_TESTS = 5_000  # beyond that, only the exit status counts
MOST_REPORT = 20_000_000  # characters
TAP_LINE = re.compile(
    r"^(not )?ok\b\s*(\d*)\s*-?\s*([^#]*?)\s*(#\s*(skip|todo)\b.*)?$", re.IGNORECASE
)
TAP_PLAN = re.compile(r"^1\.\.\d+\s*(#.*)?$")

Report: TypeAlias = "Mapping[str, str]"  # by the name of a test: passed, failed, skipped


def read_junit(text: str) -> dict[str, str]:
    """Empty when it is not JUnit's XML."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415  # start-up time; no DTD gets that far

    if len(text) > MOST_REPORT or "<!" in text.replace("<![CDATA[", ""):
        return {}  # neither a DTD nor entities
    try:
        root = ET.fromstring(text)  # noqa: S314  # nosec B314  # neither DTD nor entities
    except (ET.ParseError, ValueError):
        return {}
    report: dict[str, str] = {}
    for case in root.iter("testcase"):
        if len(report) >= MOST_TESTS:
            return {}
        name = f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("::")
        kinds = {child.tag for child in case}
        how = SKIPPED if "skipped" in kinds else FAILED if kinds & {"failure", "error"} else PASSED
        report[name] = worse(report.get(name, how), how)
    return report


def read_tap(text: str) -> dict[str, str]:
    """Empty unless there is a plan, such as 1..3: `ok` alone is a word like others."""
    lines = text[-MOST_REPORT:].splitlines()
    if not any(TAP_PLAN.match(line) for line in lines):
        return {}
    report: dict[str, str] = {}
    for match in filter(None, map(TAP_LINE.match, lines)):
        if len(report) >= MOST_TESTS:
            return {}
        failed, number, words, directive, _ = match.groups()
        how = SKIPPED if directive else FAILED if failed else PASSED
        name = words or f"test {number or len(report) + 1}"
        report[name] = worse(report.get(name, how), how)
    return report


def worse(one: str, other: str) -> str:
    order = (PASSED, SKIPPED, FAILED)
    return max(one, other, key=order.index)


def lost_tests(before: Report, after: Report) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tests of the base that no longer run, and those that are skipped now; nothing without reports."""
    if not before or not after:
        return (), ()
    gone = tuple(name for name in before if name not in after)
    skipped = (n for n, how in after.items() if how == SKIPPED and before.get(n, how) != SKIPPED)
    return gone, tuple(skipped)


def counted(base: Report, writer: Report) -> frozenset[str]:
    """The tests that a contender brought: they pass on its work, and not on the base."""
    return frozenset(n for n, how in writer.items() if how == PASSED and base.get(n) != PASSED)
