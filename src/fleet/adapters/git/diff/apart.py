"""Which merges cannot conflict, by the names of what each side changed: git need not try those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.git.repo import DIFF_SECONDS, QUIET, run_git, text_of
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.adapters.git.diff.forecast import Pair
    from fleet.adapters.git.diff.history import History
    from fleet.adapters.git.repo import Repo


class _Side(NamedTuple):
    """What one side changed since both parted, without looking for renames."""

    names: frozenset[str]
    folders: frozenset[str]  # that these are in
    has_new: bool
    may_rename: bool  # a rename shows as one name that came and another that went


def conflicting(repo: Repo, history: History, pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs whose merge may conflict; all of them where git cannot tell."""
    wanted = list(pairs)
    spans = {pair: _spans(history, pair) for pair in wanted}
    unread = dict.fromkeys(span for both in spans.values() for span in both or ())
    sides = _read(repo, list(unread))
    return [pair for pair in wanted if _may(spans[pair], sides)]


def _spans(history: History, pair: Pair) -> tuple[Pair, ...] | None:
    """The two trees of each side; none: one has all of the other. None: they did not part once."""
    bases = history.merge_bases(*pair)
    if bases[:1] in ([pair[0]], [pair[1]]):
        return ()
    trees = [history.tree(commit) for commit in (*bases, *pair)]
    if len(bases) != 1 or not all(trees):
        return None
    return (trees[0], trees[1]), (trees[0], trees[2])


def _may(spans: tuple[Pair, ...] | None, sides: dict[Pair, _Side]) -> bool:
    if spans is None:
        return True
    known = [sides.get(span) for span in spans]
    match known:
        case []:
            return False
        case [_Side() as one, _Side() as other]:
            return _meet(one, other)
    return True


def _meet(one: _Side, other: _Side) -> bool:
    """A folder that one side renamed may take along what the other one added there."""
    renames = (one.may_rename and other.has_new) or (other.may_rename and one.has_new)
    return bool(
        renames or one.names & other.names or one.names & other.folders or one.folders & other.names
    )


def _read(repo: Repo, spans: Sequence[Pair]) -> dict[Pair, _Side]:
    if not spans:
        return {}
    stdin = "".join(f"{start} {end}\n" for start, end in spans).encode()
    words = ("-c", "core.quotePath=false", "diff-tree", "--stdin", "-r")
    plain = ("--no-renames", "--name-status")
    done = run_git(repo.top, *QUIET, *words, *plain, stdin=stdin, timeout=DIFF_SECONDS)
    if done.status:
        return {}
    rows: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text_of(done.raw).split("\n"):
        kind, tab, name = line.partition("\t")
        if tab:
            current.append((kind, name.strip('"')))  # git quotes a name with a line feed in it
        else:
            current = rows.setdefault(line, [])
    return {(start, end): _side(rows.get(f"{start} {end}", [])) for start, end in spans}


def _side(rows: Sequence[tuple[str, str]]) -> _Side:
    names = frozenset(name for _, name in rows)
    kinds = {kind for kind, _ in rows}
    folders: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return _Side(names, frozenset(folders), "A" in kinds, {"A", "D"} <= kinds)
