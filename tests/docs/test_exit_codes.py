"""Every code that a program can meet is on the page of exit codes, with its status."""

from __future__ import annotations

import ast
import re

from fleet.cli.agents.calls import BUSY
from fleet.domain import errors
from tests.docs.tree import TOP, files

PAGE = TOP / "docs" / "reference" / "exit-codes.md"
KINDS = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type)}


def raised() -> set[tuple[str, int]]:
    """Each code in the source, and the status that it comes with."""
    found = {(kind.code, kind.exit_status) for kind in KINDS.values()} - {("error", 1)}
    found |= {(doing, errors.Refused.exit_status) for doing in BUSY}
    for path in files("src/fleet/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in KINDS:
                status = KINDS[ast.unparse(node.func)].exit_status
                codes = [k.value for k in node.keywords if k.arg == "code"]
                found |= {(c.value, status) for c in codes if isinstance(c, ast.Constant)}
    return found - {("bug", 1)} | {("bug", 70)}


def on_the_page() -> set[tuple[str, int]]:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text("utf-8").splitlines() if "|" in line]
    found = set()
    for first, second, third in (row for row in rows if len(row) == 3):
        status, codes = (first, third) if first.strip().isdigit() else (second, first)
        for number in re.findall(r"\d+", status):
            found |= {(code, int(number)) for code in re.findall(r"`([a-z_-]+)`", codes)}
    return found


def test_the_page_has_every_code_of_the_source_and_no_other():
    assert on_the_page() == raised()
