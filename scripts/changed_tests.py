"""Print the unit tests of what changed since the branch left main, a file a line.

A test belongs to a module that it imports, itself or through a helper, and to the module whose
place in `src/fleet` its own place in `tests/unit` mirrors.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
UNIT = TOP / "tests" / "unit"


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def changed() -> list[Path]:
    """What is committed here and not in main, what is not committed, and what git does not know."""
    bases = (git("merge-base", "HEAD", main).strip() for main in ("origin/main", "main"))
    base = next(filter(None, bases), "HEAD")
    listed = git("diff", "--name-only", "-z", base)
    listed += git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({TOP / name for name in listed.split("\0") if name})


def dotted(path: Path) -> str:
    """As it is imported: fleet.domain.task, tests.unit.operations.samples."""
    inside = path.relative_to(TOP / "src" if path.is_relative_to(TOP / "src") else TOP)
    return ".".join(inside.with_suffix("").parts).removesuffix(".__init__")


@cache
def needs(path: Path) -> frozenset[str]:
    """Every module that a file of tests imports, itself or through a helper."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    helpers = [TOP / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")]
    return frozenset(names).union(*(needs(helper) for helper in helpers if helper.exists()))


def fixtures(test: Path) -> list[Path]:
    folders = [folder for folder in test.parents if folder.is_relative_to(UNIT)]
    return [folder / "conftest.py" for folder in folders if (folder / "conftest.py").exists()]


def is_about(test: Path, module: Path) -> bool:
    if test == module or module in fixtures(test):
        return True
    if module.is_relative_to(TOP / "src" / "fleet"):
        mirrored = UNIT / module.relative_to(TOP / "src" / "fleet").parent
        if test.parent == mirrored and test.stem.startswith(f"test_{module.stem}"):
            return True
    known = needs(test).union(*(needs(file) for file in fixtures(test)))
    return dotted(module) in known


def main() -> None:
    modules = [path for path in changed() if path.suffix == ".py" and path.is_relative_to(TOP)]
    if sys.argv[1:] == ["--files"]:
        print(*(path.relative_to(TOP) for path in changed() if path.exists()), sep="\n")
        return
    tests = sorted(UNIT.rglob("test_*.py"))
    found = [t for t in tests if any(is_about(t, m) for m in modules if m.exists() or m == t)]
    print(*(test.relative_to(TOP) for test in found), sep="\n")


if __name__ == "__main__":
    main()
