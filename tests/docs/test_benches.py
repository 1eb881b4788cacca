"""No suite runs the benches and scripts whole; what they take from Fleet must be there all the same."""

from __future__ import annotations

import ast
from importlib import import_module

import pytest

from tests.docs.tree import TOP, name

PROGRAMS = [*sorted((TOP / "bench").glob("*.py")), *sorted((TOP / "scripts").glob("*.py"))]


def missing(tree: ast.AST) -> list[str]:
    """The names that a program imports from Fleet and that are not there."""
    wanted = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fleet"
        for alias in node.names
    ]
    return [f"{module}: {one}" for module, one in wanted if not _has(module, one)]


def _has(module: str, one: str) -> bool:
    if hasattr(import_module(module), one):
        return True
    try:
        import_module(f"{module}.{one}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_a_program_beside_the_package_imports_what_is_there(path):
    assert missing(ast.parse(path.read_text("utf-8"))) == []


def test_a_name_that_has_moved_is_seen():
    text = "from fleet.domain.task import Task, Gone\nfrom fleet import domain"
    assert missing(ast.parse(text)) == ["fleet.domain.task: Gone"]
