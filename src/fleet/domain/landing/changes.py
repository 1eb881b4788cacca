"""What a contender changed, and what it did to the tests, read from git's own words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.landing.race import is_outside
from fleet.domain.redaction import has_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ADDED, DELETED = "A", "D"
TEST_FILE = re.compile(
    r"(^|/)(tests?|specs?|__tests__)/"
    r"|(^|/)(test_[^/]*|[^/]*_test|[^/]*[._-](test|spec)s?)\.[A-Za-z0-9]+$"
    r"|(^|/)[^/]*Tests?\.(java|kt|cs|scala|swift|php)$"
)
SKIP = re.compile(
    r"@(pytest\.mark\.)?(skip|skipif|xfail)\b|@unittest\.skip|\bpytest\.(skip|xfail)\(|\bself\.skipTest\("
    r"|\b(it|test|describe|context)\.(skip|todo)\b|\bx(it|describe|test)\(|\bt\.Skip(f|Now)?\("
    r"|#\[ignore|@(Disabled|Ignore)\b|\[(Fact|Theory)\(Skip|->markTestSkipped\("
)
NAMED = re.compile(
    r"^\s*(?:async\s+)?(?:def\s+(test\w*)|func\s+(?:\([^)]*\)\s*)?(Test\w+)|fn\s+(test\w*)"
    r"|(?:it|test)\(\s*['\"`](.+?)['\"`]|@test\s+['\"](.+?)['\"]|(test_\w+)\s*\(\))"
)


class FileChange(NamedTuple):
    """`status` as git's: A, M, D, T. `lines`: added and removed together; binary: 0."""

    path: str
    status: str
    lines: int


class Changes(NamedTuple):
    """`tests`: the test files that it added or changed, to be run on the others' work."""

    lines: int = 0
    files: int = 0
    tests: tuple[str, ...] = ()
    changed_tests: tuple[str, ...] = ()
    deleted_tests: tuple[str, ...] = ()
    skipped_tests: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()  # files with a key that was not there before


def is_test(path: str) -> bool:
    return TEST_FILE.search(path) is not None


def read_changes(
    files: Iterable[FileChange], patch: str, touches: Sequence[str] = (), *, whole: str = ""
) -> Changes:
    """`patch`: of the test files, without context. `whole`: of all files."""
    files = list(files)
    tests = [f for f in files if is_test(f.path)]
    gone, skipped = _lost_tests(patch)
    return Changes(
        lines=sum(f.lines for f in files),
        files=len(files),
        tests=tuple(f.path for f in tests if f.status != DELETED),
        changed_tests=tuple(f.path for f in tests if f.status not in {ADDED, DELETED}),
        deleted_tests=(*(f.path for f in tests if f.status == DELETED), *gone),
        skipped_tests=skipped,
        outside=tuple(f.path for f in files if is_outside(f.path, touches)),
        secrets=_new_secrets(whole),
    )


def _new_secrets(patch: str) -> tuple[str, ...]:
    """The files with a line that has a key, unless the same line was only moved."""
    added, removed = dict[str, list[str]](), set[str]()
    for path, sign, line in _lines(patch):
        if sign == "-":
            removed.add(line.strip())
        elif has_key(line):
            added.setdefault(path, []).append(line.strip())
    return tuple(path for path, lines in added.items() if not removed.issuperset(lines))


def _lost_tests(patch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The named tests that were removed and not added again anywhere, and the files with new skips."""
    minus, plus, skipped = dict[str, str](), set[str](), dict[str, None]()
    skips = dict[str, int]()
    for path, sign, line in _lines(patch):
        name = next((g for g in match.groups() if g), "") if (match := NAMED.match(line)) else ""
        if name and sign == "-":
            minus[name] = path
        elif name:
            plus.add(name)
        if SKIP.search(line):
            skips[path] = skips.get(path, 0) + (1 if sign == "+" else -1)
    skipped = {path: None for path, count in skips.items() if count > 0}
    gone = tuple(f"{path}: {name}" for name, path in minus.items() if name not in plus)
    return gone, tuple(skipped)


def _lines(patch: str) -> Iterator[tuple[str, str, str]]:
    """(file, + or -, line) of each line that differs; a file that was deleted as a whole is left out."""
    old, path, inside = "", "", False
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            old, path, inside = "", "", False
        elif line.startswith("@@"):
            inside = True
        elif not inside and line.startswith("--- "):
            old = line[4:].removeprefix("a/")
        elif not inside and line.startswith("+++ "):
            path = line[4:].removeprefix("b/")
        elif inside and path != "/dev/null" and line[:1] in {"+", "-"}:
            yield path or old, line[0], line[1:]
