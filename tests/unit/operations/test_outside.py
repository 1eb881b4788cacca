"""What runs programs of this host is not done in the server's one writer, nor with another thread's store."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fleet.operations
from tests.unit.operations.samples import DECLARED

ROOT, ROOM = Path(fleet.operations.__file__).parent, "fleet.operations."
PROGRAMS = {"trees", "machines"}  # of `Context`: they run git, ask forges and nodes, and read files


def _module(path: Path) -> str:
    return ROOM + ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _read(path: Path) -> tuple[dict[str, ast.AST], dict[str, tuple[str, str]]]:
    """What a module defines, and what it takes from other operations."""
    tree = ast.parse(path.read_text())
    taken = {
        name.asname or name.name: (node.module, name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM[:-1])
        for name in node.names
    }
    made = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return made, taken


MODULES = {_module(path): _read(path) for path in ROOT.rglob("*.py")}


def programs_of(module: str, name: str, seen: set[tuple[str, str]]) -> set[str]:
    """Where this function, or what it calls, reaches for programs."""
    if (module, name) in seen or module not in MODULES:
        return set()
    seen.add((module, name))
    made, taken = MODULES[module]
    if name not in made:
        return programs_of(*taken[name], seen) if name in taken else set()
    found = set()
    for node in ast.walk(made[name]):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[]) if attr in PROGRAMS:
                found.add(f"{module.removeprefix(ROOM)}:{node.lineno} {attr}()")
            case ast.Attribute(value=ast.Name(id=alias), attr=attr) if alias in taken:
                found |= programs_of(".".join(taken[alias]), attr, seen)
            case ast.Name(id=called) if called in made:
                found |= programs_of(module, called, seen)
            case ast.Name(id=called) if called in taken:
                found |= programs_of(*taken[called], seen)
    return found


@pytest.mark.parametrize("name", DECLARED)
def test_an_operation_that_runs_programs_says_so(name):
    """Else the server calls it in its writer, where git would hold up everybody who writes."""
    operation = DECLARED[name]
    handler = operation.handler
    found = programs_of(handler.__module__, handler.__name__, set())
    assert operation.outside or not found, found


def test_what_an_operation_calls_is_followed():
    assert programs_of("fleet.operations.landing.review", "submit", set())
    assert programs_of("fleet.operations.tasks.fork", "fork", set())
    assert not programs_of("fleet.operations.tasks.list", "list_tasks", set())
