"""What the branches of many tasks would bring, and what they would conflict with now."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.diff.apart import conflicting
from fleet.adapters.git.diff.forecast import forecast, unknown
from fleet.adapters.git.diff.history import History, object_ids
from fleet.adapters.git.diff.span import WantedDiff, needed, start_in
from fleet.adapters.git.repo import DIFF_SECONDS, QUIET, Repo, run_git
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, Unavailable
from fleet.ports import Fit, Outlook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fleet.adapters.git.diff.forecast import Pair
    from fleet.ports import Finished

MOST_PAIRS = 500  # of branches that changed the same file, and whose merge is tried
KNOWN = 10_000  # results that are remembered


class OwnChange(NamedTuple):
    """How much a task changed itself, and in which files."""

    files: frozenset[str]
    added: int
    removed: int


_SIZES: dict[tuple[str, str, str], OwnChange] = {}  # by task, tip and target


def outlook(repository: str, works: Sequence[Finished]) -> dict[str, Outlook | None]:
    """By task; without those that are on their branch already, or of which nothing is left.

    None: there is no branch of that name any more.
    """
    repo = Repo.at(Path(repository))
    works = [work for work in works if work.onto]
    history = History(repo, [name for work in works for name in _names(work)])
    heads = _heads(repo, history, works)
    away = {w.task: w for w in works if heads.get(w.task) and heads.get(f" {w.onto}")}
    away = {t: w for t, w in away.items() if not history.is_ancestor(heads[t], heads[f" {w.onto}"])}
    sizes = _sizes(repo, history, list(away.values()), heads)
    pairs = {task: (heads[f" {work.onto}"], heads[task]) for task, work in away.items()}
    clashes = _in_common(away.values(), sizes)
    between = {pair: (heads[pair[0]], heads[pair[1]]) for pair in clashes}
    conflicts = _forecast(repo, history, [*pairs.values(), *between.values()])
    rivals: dict[str, list[str]] = {task: [] for task in away}
    for (one, other), pair in between.items():
        if conflicts.get(pair):
            rivals[one].append(other)
            rivals[other].append(one)
    trees = _trees(repo, history, [heads[task] for task in away])
    lost = {w.task: None for w in works if heads.get(w.task) and not heads.get(f" {w.onto}")}
    return lost | {
        task: Outlook(
            len(sizes[task].files), sizes[task].added, sizes[task].removed,
            conflicts.get(pairs[task], ()), tuple(rivals[task]), trees[heads[task]],
        )
        for task in away
    }  # fmt: skip


def compare(repo: Repo, before: str, tips: Mapping[str, str]) -> dict[str, Fit]:
    """How much each changed since it departed from `before`, and which others it conflicts with."""
    history = History(repo, [before, *tips.values()])
    bases = [history.merge_base(before, tip) for tip in tips.values()]
    trees = _trees(repo, history, [*bases, *tips.values()])
    spans = ((name, trees[base], trees[tips[name]]) for name, base in zip(tips, bases, strict=True))
    none = OwnChange(frozenset(), 0, 0)
    sizes = dict.fromkeys(tips, none) | dict(_measured(repo, [s for s in spans if s[1] and s[2]]))
    common = [p for p in combinations(tips, 2) if sizes[p[0]].files & sizes[p[1]].files]
    conflicts = _forecast(repo, history, [(tips[one], tips[other]) for one, other in common])
    rivals: dict[str, list[str]] = {name: [] for name in tips}
    for one, other in common:
        if conflicts[tips[one], tips[other]]:
            rivals[one].append(other)
            rivals[other].append(one)
    return {n: Fit(size.added + size.removed, tuple(rivals[n])) for n, size in sizes.items()}


def _names(work: Finished) -> list[str]:
    """All that is asked of a history about this work."""
    wanted = WantedDiff(work.task, brought=work.brought)
    return [work.tip, f"refs/heads/{work.branch}", *needed(work.base, work.onto, wanted)]


def _heads(repo: Repo, history: History, works: Sequence[Finished]) -> dict[str, str]:
    """By task its newest commit, and by ` BRANCH` that of the branch where it is to land."""
    heads = {}
    for work in works:
        heads[f" {work.onto}"] = history.commit(f"refs/heads/{work.onto}")
        tip, branch = history.commit(work.tip), history.commit(f"refs/heads/{work.branch}")
        newer = bool(branch) and (not tip or history.is_ancestor(tip, branch))
        if branch and not newer:  # a person may have rewritten it
            newer = repo.was_at(work.branch, tip)
        heads[work.task] = branch if newer else tip
    return heads


def _forecast(repo: Repo, history: History, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
    """Most branches changed other files than their target since: only the others are tried."""
    fresh = unknown(pairs)
    return forecast(repo, pairs, set(fresh).difference(conflicting(repo, history, fresh)))


def _trees(repo: Repo, history: History, commits: Iterable[str]) -> dict[str, str]:
    """By commit, or tree, its tree; empty: there is none. Most were read with the history."""
    trees = {commit: history.tree(commit) for commit in commits}
    if missing := [commit for commit, tree in trees.items() if not tree]:
        ids = object_ids(repo, [f"{commit or 'none'}^{{tree}}" for commit in missing])
        trees.update(zip(missing, ids, strict=True))
    return trees


def _sizes(
    repo: Repo, history: History, works: Sequence[Finished], heads: dict[str, str]
) -> dict[str, OwnChange]:
    if len(_SIZES) > KNOWN:
        _SIZES.clear()
    keys = {work.task: (work.task, heads[work.task], heads[f" {work.onto}"]) for work in works}
    fresh = [work for work in works if keys[work.task] not in _SIZES]
    starts = {w.task: _start(repo, history, w, heads[w.task]) for w in fresh}
    ends = {work.task: heads[work.task] for work in fresh}
    trees = _trees(repo, history, [*starts.values(), *ends.values()])
    spans = [(task, trees[start], trees[ends[task]]) for task, start in starts.items()]
    for task, size in _measured(repo, [span for span in spans if span[1] and span[2]]):
        _SIZES[keys[task]] = size
    none = OwnChange(frozenset(), 0, 0)
    return {task: _SIZES.get(key, none) for task, key in keys.items()}


def _start(repo: Repo, history: History, work: Finished, head: str) -> str:
    wanted = WantedDiff(work.task, brought=work.brought)
    with suppress(FleetError):
        return start_in(history, repo, (work.base, work.onto), wanted, head)
    return work.base


def _measured(repo: Repo, spans: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, OwnChange]]:
    """By one git for all of them: a line with the two trees comes before the changes of each."""
    if not spans:
        return
    pairs = dict.fromkeys(f"{start} {end}\n" for _, start, end in spans)  # tasks may share a commit
    stdin = "".join(pairs).encode()
    words = ("diff-tree", "--stdin", "-r", "--find-renames", "--numstat")
    done = run_git(repo.top, *QUIET, *words, stdin=stdin, timeout=DIFF_SECONDS)
    if done.status:
        raise Unavailable(f"git could not read the changes: {done.words}", fix="Try again.")
    changes: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in done.out.splitlines():
        if "\t" in line:
            current.append(line.split("\t", 2))
        else:
            current = changes.setdefault(line, [])
    for task, start, end in spans:
        rows = changes.get(f"{start} {end}", [])
        added = sum(int(row[0]) for row in rows if row[0].isdigit())
        removed = sum(int(row[1]) for row in rows if row[1].isdigit())
        yield task, OwnChange(frozenset(row[2] for row in rows), added, removed)


def _in_common(works: Iterable[Finished], sizes: dict[str, OwnChange]) -> list[Pair]:
    """The pairs of tasks for one branch that changed the same file, unless one starts from the other."""
    pairs: list[Pair] = []
    for one, other in combinations(works, 2):
        apart = one.onto != other.onto or one.task in other.brings or other.task in one.brings
        if not apart and sizes[one.task].files & sizes[other.task].files:
            pairs.append((one.task, other.task))
        if len(pairs) >= MOST_PAIRS:
            break
    return pairs
