"""What the branches of many tasks would bring, and what they would conflict with now."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.diff.forecast import forecast
from fleet.adapters.git.diff.span import DIFF_SECONDS, Wanted, start_of
from fleet.adapters.git.repo import QUIET, Repo, run_git, text_of
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.ports import Fit, Outlook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fleet.adapters.git.diff.forecast import Pair
    from fleet.ports import Finished

MOST_PAIRS = 500  # of branches that changed the same file, and whose merge is tried
KNOWN = 10_000  # results that are remembered


class Size(NamedTuple):
    """How much a task changed itself, and in which files."""

    files: frozenset[str]
    added: int
    removed: int


_SIZES: dict[tuple[str, str, str], Size] = {}  # by task, tip and target


def outlook(repository: str, works: Sequence[Finished]) -> dict[str, Outlook]:
    """By task; without those that are on their branch already, or of which nothing is left."""
    repo = Repo.at(Path(repository))
    works = [work for work in works if work.onto]
    heads = _heads(repo, works)
    away = {w.task: w for w in works if heads.get(w.task) and heads.get(f" {w.onto}")}
    away = {t: w for t, w in away.items() if not repo.is_ancestor(heads[t], heads[f" {w.onto}"])}
    sizes = _sizes(repo, list(away.values()), heads)
    pairs = {task: (heads[f" {work.onto}"], heads[task]) for task, work in away.items()}
    clashes = _in_common(away.values(), sizes)
    between = {pair: (heads[pair[0]], heads[pair[1]]) for pair in clashes}
    conflicts = forecast(repo, [*pairs.values(), *between.values()])
    rivals: dict[str, list[str]] = {task: [] for task in away}
    for (one, other), pair in between.items():
        if conflicts.get(pair):
            rivals[one].append(other)
            rivals[other].append(one)
    trees = _trees(repo, list(away), heads)
    return {
        task: Outlook(
            len(sizes[task].files), sizes[task].added, sizes[task].removed,
            conflicts.get(pairs[task], ()), tuple(rivals[task]), trees.get(task, ""),
        )
        for task in away
    }  # fmt: skip


def compare(repo: Repo, before: str, tips: Mapping[str, str]) -> dict[str, Fit]:
    """How much each changed since it departed from `before`, and which others it conflicts with."""
    bases = [repo.git("merge-base", before, tip, check=False).out.strip() for tip in tips.values()]
    trees = _objects(repo, [f"{name or 'none'}^{{tree}}" for name in (*bases, *tips.values())])
    spans = zip(tips, trees[: len(tips)], trees[len(tips) :], strict=True)
    none = Size(frozenset(), 0, 0)
    sizes = dict.fromkeys(tips, none) | dict(_measured(repo, [s for s in spans if s[1] and s[2]]))
    common = [p for p in combinations(tips, 2) if sizes[p[0]].files & sizes[p[1]].files]
    conflicts = forecast(repo, [(tips[one], tips[other]) for one, other in common])
    rivals: dict[str, list[str]] = {name: [] for name in tips}
    for one, other in common:
        if conflicts[tips[one], tips[other]]:
            rivals[one].append(other)
            rivals[other].append(one)
    return {n: Fit(size.added + size.removed, tuple(rivals[n])) for n, size in sizes.items()}


def _objects(repo: Repo, names: Sequence[str]) -> list[str]:
    """Their ids, by one git; empty where there is none."""
    stdin = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    words = ("cat-file", "--batch-check=%(objectname)", "--buffer")
    lines = text_of(run_git(repo.top, *words, stdin=stdin, timeout=DIFF_SECONDS).raw).splitlines()
    return ["" if " " in line else line for line in lines]


def _heads(repo: Repo, works: Sequence[Finished]) -> dict[str, str]:
    """By task its newest commit, and by ` BRANCH` that of the branch where it is to land."""
    targets = sorted({work.onto for work in works})
    names = [f"refs/heads/{onto}^{{commit}}" for onto in targets]
    for work in works:
        names += [f"{work.tip or 'none'}^{{commit}}", f"refs/heads/{work.branch}^{{commit}}"]
    ids = _objects(repo, names)
    heads = {f" {onto}": ids[n] for n, onto in enumerate(targets)}
    rest = iter(ids[len(targets) :])
    for work, tip, branch in zip(works, rest, rest, strict=False):
        newer = bool(branch) and branch != tip and (not tip or repo.is_ancestor(tip, branch))
        heads[work.task] = branch if newer else tip
    return heads


def _trees(repo: Repo, tasks: Sequence[str], heads: dict[str, str]) -> dict[str, str]:
    ids = _objects(repo, [f"{heads[task]}^{{tree}}" for task in tasks])
    return dict(zip(tasks, ids, strict=False))


def _sizes(repo: Repo, works: Sequence[Finished], heads: dict[str, str]) -> dict[str, Size]:
    if len(_SIZES) > KNOWN:
        _SIZES.clear()
    keys = {work.task: (work.task, heads[work.task], heads[f" {work.onto}"]) for work in works}
    fresh = [work for work in works if keys[work.task] not in _SIZES]
    starts = [_start(repo, work, heads[work.task]) for work in fresh]
    trees = _objects(repo, [f"{start}^{{tree}}" for start in starts])
    ends = _trees(repo, [work.task for work in fresh], heads)
    spans = [(work.task, tree, ends[work.task]) for work, tree in zip(fresh, trees, strict=False)]
    for task, size in _measured(repo, [span for span in spans if span[1] and span[2]]):
        _SIZES[keys[task]] = size
    none = Size(frozenset(), 0, 0)
    return {task: _SIZES.get(key, none) for task, key in keys.items()}


def _start(repo: Repo, work: Finished, head: str) -> str:
    wanted = Wanted(work.task, brought=work.brought)
    with suppress(FleetError):
        return start_of(repo, work.base, work.onto, wanted, head)
    return work.base


def _measured(repo: Repo, spans: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, Size]]:
    """By one git for all of them: a line with the two trees comes before the changes of each."""
    if not spans:
        return
    pairs = dict.fromkeys(f"{start} {end}\n" for _, start, end in spans)  # tasks may share a commit
    stdin = "".join(pairs).encode()
    words = ("diff-tree", "--stdin", "-r", "--find-renames", "--numstat")
    out = run_git(repo.top, *QUIET, *words, stdin=stdin, timeout=DIFF_SECONDS).out
    changes: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in out.splitlines():
        if "\t" in line:
            current.append(line.split("\t", 2))
        else:
            current = changes.setdefault(line, [])
    for task, start, end in spans:
        rows = changes.get(f"{start} {end}", [])
        added = sum(int(row[0]) for row in rows if row[0].isdigit())
        removed = sum(int(row[1]) for row in rows if row[1].isdigit())
        yield task, Size(frozenset(row[2] for row in rows), added, removed)


def _in_common(works: Iterable[Finished], sizes: dict[str, Size]) -> list[Pair]:
    """The pairs of tasks for one branch that changed the same file, unless one starts from the other."""
    pairs: list[Pair] = []
    for one, other in combinations(works, 2):
        apart = one.onto != other.onto or one.task in other.brings or other.task in one.brings
        if not apart and sizes[one.task].files & sizes[other.task].files:
            pairs.append((one.task, other.task))
        if len(pairs) >= MOST_PAIRS:
            break
    return pairs
