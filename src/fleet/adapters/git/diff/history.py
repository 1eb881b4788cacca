"""How commits descend from each other: read once, so that no question about two of them needs a git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.git.repo import run_git, text_of
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.adapters.git.repo import Repo

HISTORY_SECONDS = 60.0  # for git to read the commits of all names


class Commit(NamedTuple):
    parents: tuple[str, ...]
    subject: str
    tree: str


class History:
    """The commits of some names, down to one that all of them have.

    A commit below that one is not among them, and every name descends from it.
    """

    def __init__(self, repo: Repo, names: Iterable[str]) -> None:
        self._repo = repo
        known = list(dict.fromkeys(name for name in names if name))
        commits = object_ids(repo, [f"{name}^{{commit}}" for name in known])
        self._ids = dict(zip(known, commits, strict=False))
        self._commits = _read(repo, list(dict.fromkeys(filter(None, commits))))
        self._ancestors: dict[str, set[str]] = {}

    def commit(self, name: str) -> str:
        """Empty: there is none of this name."""
        return self._ids.get(name, "")

    def tree(self, commit: str) -> str:
        """Empty: it was not read."""
        known = self._commits.get(commit)
        return known.tree if known else ""

    def is_ancestor(self, ancestor: str, of: str) -> bool:
        return ancestor == of or ancestor not in self._commits or ancestor in self._of(of)

    def merge_base(self, one: str, other: str) -> str:
        """Empty: they have nothing in common. Of several, the one that git takes."""
        bases = self.merge_bases(one, other)
        if len(bases) == 1:
            return bases[0]
        return self._repo.git("merge-base", one, other, check=False).out.strip()

    def merge_bases(self, one: str, other: str) -> list[str]:
        """All of them, as far as they were read; a commit that the other one has is the only one."""
        if self.is_ancestor(one, other):
            return [one]
        if self.is_ancestor(other, one):
            return [other]
        common = self._of(one) & self._of(other)
        newer = {parent for commit in common for parent in self._commits[commit].parents}
        return list(common - newer)

    def first_parents(self, head: str, others: Iterable[str]) -> list[Commit]:
        """The commits on the first-parent line that none of the others has, oldest first."""
        known = [self._of(other) for other in others if other]
        own = []
        while (commit := self._commits.get(head)) and not any(head in one for one in known):
            own.append(commit)
            head = commit.parents[0] if commit.parents else ""
        return own[::-1]

    def _of(self, commit: str) -> set[str]:
        """The commit and its ancestors."""
        if commit not in self._ancestors:
            seen, queue = set[str](), [commit]
            while queue:
                name = queue.pop()
                if name not in seen and name in self._commits:
                    seen.add(name)
                    queue += self._commits[name].parents
            self._ancestors[commit] = seen
        return self._ancestors[commit]


def object_ids(repo: Repo, names: Sequence[str]) -> list[str]:
    """Their ids, by one git; empty where there is none."""
    stdin = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    words = ("cat-file", "--batch-check=%(objectname)", "--buffer")
    done = run_git(repo.top, *words, stdin=stdin, timeout=HISTORY_SECONDS)
    ids = ["" if " " in line else line for line in text_of(done.raw).splitlines()]
    if len(ids) != len(names):
        raise Unavailable(f"git could not read the objects: {done.words}", fix="Try again.")
    return ids


def _read(repo: Repo, heads: Sequence[str]) -> dict[str, Commit]:
    if not heads:
        return {}
    common = repo.git("merge-base", "--octopus", *heads, check=False).out.split()
    lines = "".join(f"{name}\n" for name in [*heads, *(f"^{name}^@" for name in common)])
    words = ("log", "--stdin", "--no-show-signature", "--format=%H%x00%P%x00%T%x00%s")
    done = run_git(repo.top, *words, stdin=lines.encode(), timeout=HISTORY_SECONDS)
    if done.status:
        raise Unavailable(f"git could not read the history: {done.words}", fix="Try again.")
    rows = (line.split("\0") for line in text_of(done.raw).split("\n") if line)
    return {name: Commit(tuple(parents.split()), text, tree) for name, parents, tree, text in rows}
