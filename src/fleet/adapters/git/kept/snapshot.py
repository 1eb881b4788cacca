"""All work that is only in one working tree, as commits; index, HEAD and stash do not change.

A snapshot is one commit. Its tree is the files as they are, untracked ones included, ignored ones
not. Its parents are the commit of HEAD, a commit of the index, one of the sides of conflicts, one
of the files whose bytes git would have changed, and any other commit that only this tree has. Its
message says which is which.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fleet.adapters.git.inner import gitdir_of, inner_tree
from fleet.adapters.git.repo import identity, names_of, run_git
from fleet.adapters.git.tree import BIG_TREE_SECONDS, GITLINK, OURS, Tree, TreeEntry, TreeState
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

MARK = "Fleet-Kept: "
EPOCH = {
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_DATE": "@0 +0000",
}  # the same content gives the same commit
BATCH = 200  # names on one command line
_UNREADABLE = re.compile(r"""^error: (?:open|read|unable to \w+|short read)\W*["'(]*(.+?)["')]*:""")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the message of the commit holds. Names of commits are full, or empty."""

    branch: str = ""
    base: str = ""
    root: str = ""
    head: str = ""
    index: str = ""
    stages: str = ""  # a tree `1/…`, `2/…`, `3/…`: the sides of each conflict
    raw: str = ""  # files as they are on the disk where git would have stored other bytes
    uncommitted: bool = False
    nested: tuple[tuple[str, str], ...] = ()  # (path, its own snapshot)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # files that could not be read

    def message(self, title: str) -> str:
        notes = "".join(f"{note}\n" for note in self.notes)
        return f"{title}\n\n{notes}\n{MARK}{json.dumps(asdict(self))}\n"

    @staticmethod
    def of(message: str) -> Snapshot | None:
        lines = reversed(message.splitlines())  # the last: a file's name may look like one
        line = next((x for x in lines if x.startswith(MARK)), "")
        try:
            fields: dict[str, Any] = json.loads(line.removeprefix(MARK))
            fields["nested"] = tuple((path, sha) for path, sha in fields.get("nested", ()))
            fields["notes"] = tuple(fields.get("notes", ()))
            fields["missing"] = tuple(fields.get("missing", ()))
            return Snapshot(**fields)
        except (ValueError, TypeError):
            return None


class SnapshotTaking:
    """Takes one snapshot. `inner`: of a tree within a tree, whose branches are saved too."""

    def __init__(
        self,
        tree: Tree,
        *,
        branch: str = "",
        base: str = "",
        root: str = "",
        inner: bool = False,
    ) -> None:
        self._tree = tree
        self._root = root
        self._branch = branch
        self._base = base
        self._inner = inner
        self._notes: list[str] = []
        self._who: list[str] | None = None  # git is asked when the first commit is made

    def take(
        self, look: TreeState, saved: Mapping[str, bool] | None = None
    ) -> tuple[str, Snapshot, str] | None:
        """(tree, snapshot, parents); None when no work is only here.

        `saved`: of some commits, whether they are elsewhere, too.
        """
        tree, head = self._tree, look.head
        operations = tree.in_progress()
        changed = look.changed or bool(tree.filled())
        nested = self._take_nested() if not changed else ()
        tips = self._tips(look)
        if not (changed or operations or nested or self._unsaved(tips, saved or {})):
            return None
        if operations:
            self._notes.append(f"There was {' and '.join(operations)} in progress.")
        missing: tuple[str, ...] = ()
        stages = raw = ""
        if changed or operations or nested or not head:
            files, index, missing = self._files()
            nested = nested or self._take_nested(files)
            stages = self._stages()
            raw = self._raw(head, files)
        else:
            files = tree.git("rev-parse", f"{head}^{{tree}}").out.strip()
            index = self._commit(files, "The index")
        snapshot = Snapshot(
            branch=look.branch or self._branch, base=self._base, root=self._root,
            head=head, index=index, stages=stages, raw=raw, uncommitted=changed,
            nested=nested, notes=tuple(self._notes), missing=missing,
        )  # fmt: skip
        inner = [sha for _, sha in nested]
        parents = [head, index, stages, raw, *tips, *tree.pending_commits(), *inner]
        return files, snapshot, "\n".join(dict.fromkeys(p for p in parents if p))

    def _tips(self, look: TreeState) -> list[str]:
        tree, head = self._tree, look.head
        if not self._inner:
            known = not self._branch or (head and look.branch == self._branch)
            mine = head if known else tree.commit(f"refs/heads/{self._branch}")
            return [tip for tip in dict.fromkeys((head, mine)) if tip]
        refs = tree.git("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/stash").out
        return [tip for tip in dict.fromkeys((head, *refs.split())) if tip]

    def _unsaved(self, tips: Sequence[str], known: Mapping[str, bool]) -> bool:
        """Whether a commit is in no other branch, tag or remote, nor in the base."""
        tips = [tip for tip in tips if not known.get(tip) and (self._inner or tip != self._base)]
        if not tips or any(tip in known for tip in tips):
            return bool(tips)
        saved = ["--remotes"]
        if not self._inner:
            saved = [f"--exclude={_plain(self._branch)}", "--branches", "--tags"]
            saved += ["--remotes", *([self._base] if self._tree.commit(self._base) else [])]
        words = ("rev-list", "--max-count=1", *tips, "--not", *saved)
        return bool(self._tree.git(*words).out.strip())

    def _files(self) -> tuple[str, str, tuple[str, ...]]:
        """The tree of the files, the commit of the index, and the files that could not be read."""
        tree = self._tree
        with tree.private_index() as mine:
            index = self._commit(self._settled(mine), "The index")
        with tree.private_index() as mine:
            if flagged := tree.flagged():
                tree.unflag(mine, flagged)
            if filled := tree.filled():  # as files: git adds none below the path of a submodule
                feed(tree, mine, [], clear=filled)
                self._notes.append(f"There were files in submodules: {_some(filled)}.")
            done = tree.add_all(
                "--ignore-errors", index=mine, check=False, timeout=BIG_TREE_SECONDS
            )
            missing = _unread(done.err) if done.status else ()
            if done.status and not missing:
                raise Refused(f"git add failed in {tree.root}: {done.words}")
            for name in missing:
                self._notes.append(f"It could not be read, and is not here: {name}")
            return tree.git("write-tree", index=mine).out.strip(), index, missing

    def _settled(self, mine: Path) -> str:
        """The tree of the index; of a conflict our side, else theirs, else the common ancestor."""
        tree = self._tree
        sides: dict[bytes, TreeEntry] = {}
        for entry in tree.entries(mine, unmerged=True):
            best = {2: 0, 3: 1, 1: 2}
            if entry.path not in sides or best[entry.stage] < best[sides[entry.path].stage]:
                sides[entry.path] = entry
        if sides:
            self._notes.append(f"There were conflicts in {_some(sides)}.")
            feed(
                tree, mine, [(e.mode, e.sha, 0, e.path) for e in sides.values()], clear=list(sides)
            )
        return tree.git("write-tree", index=mine).out.strip()

    def _stages(self) -> str:
        tree = self._tree
        unmerged = tree.entries(unmerged=True)
        if not unmerged:
            return ""
        with tree.private_index(empty=True) as mine:
            entries = [(e.mode, e.sha, 0, b"%d/%s" % (e.stage, e.path)) for e in unmerged]
            feed(tree, mine, entries)
            return self._commit(tree.git("write-tree", index=mine).out.strip(), "Conflicts")

    def _raw(self, head: str, files: str) -> str:
        """The changed files whose stored bytes are not the ones on the disk."""
        tree = self._tree
        stored = {e.path: e for e in changed_entries(tree, head, files) if e.mode in _REGULAR}
        entries = []
        for path, sha in _hashes(tree, list(stored)):
            if sha != stored[path].sha:
                entries.append((stored[path].mode, sha, 0, path))
        if not entries:
            return ""
        with tree.private_index(empty=True) as mine:
            feed(tree, mine, entries)
            return self._commit(tree.git("write-tree", index=mine).out.strip(), "Bytes")

    def _take_nested(self, files: str = "") -> tuple[tuple[str, str], ...]:
        """Snapshots of submodules and clones within, fetched into this repository."""
        tree, snapshots = self._tree, []
        for path in _nested(tree, files):
            name = os.fsdecode(os.path.relpath(path, tree.root))
            with inner_tree(tree, path) as inner:
                if inner is None:
                    self._notes.append(f"{name} is a repository that is elsewhere, and not kept.")
                    continue
                sha = self._take_inner(inner, name)
            if sha:
                snapshots.append((name, sha))
        return tuple(snapshots)

    def _take_inner(self, inner: Tree, name: str) -> str:
        """Empty: nothing is only there."""
        taking = SnapshotTaking(inner, inner=True)
        taken = taking.take(inner.look())
        if taken is None:
            return ""
        sha = taking.write(taken, f"Kept of {name}")
        inner.git("update-ref", "refs/fleet/kept/inner", sha)
        bring = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--recurse-submodules=no",
        )
        source = (str(inner.gitdir), "refs/fleet/kept/inner")
        self._tree.git(*bring, *source, timeout=BIG_TREE_SECONDS)
        self._hand_over(inner, bring)
        state = "uncommitted changes" if taken[1].uncommitted else "commits of its own"
        self._notes.append(f"{name} is a repository with {state}: {sha}")
        return sha

    def _hand_over(self, inner: Tree, bring: Sequence[str]) -> None:
        """What an agent committed in a submodule goes into the repository's own copy of that, too.

        Work that landed may name such a commit, and no other copy has it yet.
        """
        with suppress(ValueError):  # a clone, and no submodule
            real = gitdir_of(inner)
            name = real.relative_to((self._tree.gitdir / "modules").resolve())
            copy = self._tree.common / "modules" / name
            if copy.is_dir():
                head = inner.commit("HEAD")
                refs = f"{head}:refs/fleet/kept/{head[:16]}"
                words = (*OURS, *bring, str(inner.gitdir), refs)
                run_git(copy, *words, timeout=BIG_TREE_SECONDS)

    def write(self, taken: tuple[str, Snapshot, str], title: str) -> str:
        files, snapshot, parents = taken
        dates = EPOCH if self._inner else {}
        return self._commit(files, snapshot.message(title), parents.split(), dates)

    def _commit(
        self,
        files: str,
        message: str,
        parents: Sequence[str] = (),
        dates: dict[str, str] = EPOCH,  # never changed
    ) -> str:
        options = [word for parent in parents for word in ("-p", parent)]
        if self._who is None:
            self._who = identity(self._tree.root)
        words = (*self._who, "commit-tree", *options, files)
        return self._tree.git(*words, env=dates, stdin=os.fsencode(message)).out.strip()


_REGULAR = ("100644", "100755")


def feed(
    tree: Tree,
    index: Path,
    entries: Sequence[tuple[str, str, int, bytes]],
    clear: Sequence[bytes] = (),
) -> None:
    """Put these into an index, after clearing all stages of some paths."""
    lines = [b"0 %s\t%s" % (b"0" * 40, path) for path in clear]
    lines += [b"%s %s %d\t%s" % (m.encode(), s.encode(), n, path) for m, s, n, path in entries]
    tree.git("update-index", "-z", "--index-info", index=index, stdin=b"\0".join([*lines, b""]))


def changed_entries(tree: Tree, old: str, new: str) -> list[TreeEntry]:
    """The entries of the newer tree that differ; a deleted path has the mode 000000."""
    old = old or tree.git("hash-object", "-t", "tree", "/dev/null").out.strip()
    words = ("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none", old, new)
    parts = tree.git(*words).raw.split(b"\0")
    entries = []
    for facts, path in zip(parts[::2], parts[1::2], strict=False):
        _, mode, _, sha, _ = facts.decode("ascii").lstrip(":").split(" ")
        entries.append(TreeEntry(mode, sha, 0, path))
    return entries


def _hashes(tree: Tree, paths: list[bytes]) -> list[tuple[bytes, str]]:
    """Store the bytes on the disk as blobs; return the hash of each path."""
    hashes: list[tuple[bytes, str]] = []
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        words = ("hash-object", "-w", "--no-filters", "--", *map(os.fsdecode, batch))
        done = tree.git(*words, check=False, timeout=BIG_TREE_SECONDS)
        if done.status == 0:
            hashes += zip(batch, done.out.split(), strict=True)
            continue
        for path in batch:  # one of them has gone, or cannot be read
            one = tree.git(*words[:4], os.fsdecode(path), check=False, timeout=BIG_TREE_SECONDS)
            if one.status == 0:
                hashes.append((path, one.out.strip()))
    return hashes


def _nested(tree: Tree, files: str) -> list[Path]:
    if not files:
        return tree.nested()
    listed = names_of(tree.git("ls-tree", "-r", "-z", files).raw)
    paths = [tree.root / x.partition("\t")[2] for x in listed if x.startswith(GITLINK)]
    return [path for path in paths if os.path.lexists(path / ".git")]


def _unread(errors: str) -> tuple[str, ...]:
    matches = (_UNREADABLE.match(line) for line in errors.splitlines())
    return tuple(dict.fromkeys(m[1] for m in matches if m))


def _some(paths: Collection[bytes]) -> str:
    names = [os.fsdecode(p) for p in list(paths)[:10]]
    return ", ".join(names) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")


def _plain(branch: str) -> str:
    """A pattern that matches this name alone."""
    return re.sub(r"([*?\[\\])", r"\\\1", branch)
