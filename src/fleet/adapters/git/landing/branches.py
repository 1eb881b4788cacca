"""Landing: merges made in the object store, and branches moved by compare-and-swap."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.adapters.git.diff.contenders import overlay, read_changed
from fleet.adapters.git.diff.merge_preview import compare
from fleet.adapters.git.landing.follow import finish_move, follow
from fleet.adapters.git.landing.merge_and_push import (
    NETWORK,
    checked_out,
    merged_tree,
    public,
    refuse_dirty,
)
from fleet.adapters.git.repo import (
    QUIET,
    identity,
    is_locked,
    names_of,
    run_git,
    text_of,
    unlock,
)
from fleet.domain.errors import Conflict, FleetError, NotFound, Refused, Unavailable
from fleet.domain.landing.landing import SQUASH
from fleet.ports import Built, Target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.adapters.git.repo import Repo
    from fleet.adapters.git.tree import Tree
    from fleet.adapters.processes.run import Done
    from fleet.domain.landing.changes import FileChange
    from fleet.ports import Arrival, Fit, MemberWork

TRAIN_REFS = "refs/fleet/train/"  # commits that a train may still land
UNDO_REFS = f"{TRAIN_REFS}undo/"  # of those, commits that take landed work out again
LANDED_REFS = "refs/fleet/landed/"  # the commits of work that landed as one commit
FRESH_SECONDS = 10.0  # between two questions to a remote about where its branch is
MAX_SQUASHED = 200  # files of work, and commits of a branch, that are compared as a whole
MAX_DIFF = 20_000  # characters of the other side of a conflict


class GitBranches:
    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._options: list[str] | None = None

    def _ref(self, onto: str) -> str:
        return f"refs/heads/{onto}"

    def target(self, onto: str) -> Target:
        commit = f"{self._ref(onto)}^{{commit}}"
        done = self._repo.git("rev-parse", "--verify", "--quiet", commit, check=False)
        if done.status:
            raise NotFound(
                f"There is no branch '{onto}' in {self._repo.checkout}.",
                fix=f"Make it first (git branch {onto}), or name another: --onto BRANCH",
            )
        return Target(done.out.strip())

    def build(self, before: str, work: MemberWork) -> Built:
        repo, tip = self._repo, self._tip(work)
        if repo.is_ancestor(tip, before):
            return Built(before, self._tree(before), tip=tip)
        if work.how != SQUASH and repo.is_ancestor(before, tip):
            return Built(tip, self._tree(tip), tip=tip)
        tree, conflicts = merged_tree(repo, before, tip)
        if conflicts:
            return Built(conflicts=tuple(conflicts), tip=tip)
        parents = ("-p", before) if work.how == SQUASH else ("-p", before, "-p", tip)
        return Built(self._commit(tree, parents, work.message), tree, tip=tip)

    def tips(self, works: Mapping[str, MemberWork]) -> Mapping[str, str]:
        """One git tells of all whose branch is at the recorded commit, as most are."""
        refs = {name: f"refs/heads/{work.branch}" for name, work in works.items() if work.branch}
        heads: dict[str, str] = {}
        if refs:
            how = ("for-each-ref", "--format=%(refname) %(objectname)")
            lines = text_of(self._repo.git(*how, *refs.values()).raw).splitlines()
            heads = dict(line.rsplit(" ", 1) for line in lines)
        return {
            name: work.tip
            if heads.get(refs.get(name, ""), work.tip) == work.tip
            else self._tip(work)
            for name, work in works.items()
        }

    def compare(self, before: str, works: Mapping[str, MemberWork]) -> Mapping[str, Fit]:
        return compare(self._repo, before, {name: self._tip(work) for name, work in works.items()})

    def _commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Make a commit in the object store alone: no branch or file changes."""
        if self._options is None:
            self._options = identity(self._repo.top)
        words = ("commit-tree", tree, *parents, "-m", message)
        made = run_git(self._repo.top, *self._options, *words)
        if made.status:
            raise Refused(f"git could not commit the merge: {made.words}")
        return made.out.strip()

    def _tip(self, work: MemberWork) -> str:
        ref = f"refs/heads/{work.branch}"
        if not work.branch or not self._repo.has_ref(ref):
            return work.tip
        if self._repo.is_ancestor(work.tip, ref) or self._was_rewritten(work):
            return self._repo.commit(ref)
        return work.tip

    def _was_rewritten(self, work: MemberWork) -> bool:
        """Whether its branch was at the recorded commit once, and somebody took that out since.

        An agent that worked on a branch of its own has left the task's branch where it was.
        """
        is_there = self._repo.is_ancestor(work.tip, f"refs/heads/{work.branch}")
        return not is_there and self._repo.was_at(work.branch, work.tip)

    def _tree(self, commit: str) -> str:
        return self._repo.git("rev-parse", f"{commit}^{{tree}}").out.strip()

    def move(self, onto: str, after: str, before: str) -> str:
        with self._repo.alone():
            checkout = checked_out(self._repo, onto)
            if checkout is not None:
                finish_move(checkout)
            tip = self.target(onto).commit
            if tip not in {before, after}:
                raise Conflict(f"{onto} has moved.")
            if tip == after:
                pass  # it was on its way when somebody was killed
            elif checkout is None:
                self._move_ref(onto, after, before)
            else:
                self._follow(checkout, onto, after, before)
            self._check(onto, after)
            return str(checkout.root) if checkout else ""

    def _move_ref(self, onto: str, after: str, before: str) -> None:
        ref = f"refs/heads/{onto}"
        words = ("update-ref", "-m", "fleet land", ref, after, before)
        done = self._repo.git(*words, check=False)
        if is_locked(done):
            unlock(self._repo.common / f"{ref}.lock")
            done = self._repo.git(*words, check=False)
        if done.status and self.target(onto).commit != before:
            raise Conflict(f"{onto} has moved.")
        if done.status:
            raise Unavailable(f"git could not move {onto}: {done.words}")

    def _follow(self, checkout: Tree, onto: str, after: str, before: str) -> None:
        refuse_dirty(checkout, onto)
        try:
            follow(checkout, onto, after, before)
        except Refused:
            if self.target(onto).commit != before:
                raise Conflict(f"{onto} has moved.") from None
            raise

    def _check(self, onto: str, after: str) -> None:
        """Read it back: what was tested is what is there, perhaps with a commit that somebody added."""
        target = self.target(onto)
        if target.commit != after and not self._repo.is_ancestor(after, target.commit):
            raise Refused(
                f"{onto} is at {target.commit[:12]}, which does not contain the tested commit"
                f" {after[:12]}.",
                fix=f"Look at `git log {onto}` before anything else lands.",
                code="wrong_tree",
            )

    def publish(self, work: MemberWork, branch: str, built: str) -> str:
        del work, built
        raise Refused(f"{branch} has no remote to be pushed to.", code="no_remote")

    def has(self, onto: str, commits: Sequence[str]) -> bool:
        tip = self.target(onto).commit
        return all(self._repo.is_ancestor(commit, tip) for commit in commits)

    def within(self, commit: str, commits: Sequence[str]) -> set[str]:
        words = ("rev-list", "--stdin")
        names = "\n".join([*commits, f"^{commit}"]) + "\n"
        done = run_git(self._repo.top, *words, stdin=names.encode())
        if done.status:  # one of them is not here
            return {one for one in commits if self._repo.is_ancestor(one, commit)}
        return set(commits) - set(done.out.split())

    def check_home(self, onto: str, arrivals: Mapping[str, Arrival]) -> None:
        for landing, arrival in arrivals.items():
            if arrival.how == SQUASH:
                self._repo.git("update-ref", f"{LANDED_REFS}{landing}", arrival.tip)
            if not self._has_come(onto, arrival):
                raise Refused(
                    f"{onto} was moved, and does not have {arrival.tip[:12]} ({landing}).",
                    fix=f"Look at `git log {onto}` before anything else lands.",
                    code="wrong_tree",
                )

    def _has_come(self, onto: str, arrival: Arrival) -> bool:
        if arrival.how != SQUASH:
            return self._repo.is_ancestor(arrival.tip, self._ref(onto))
        tree, conflicts = merged_tree(self._repo, arrival.before, arrival.tip)
        is_whole = not conflicts and tree == self._tree(arrival.commit)
        return is_whole and self._repo.is_ancestor(arrival.commit, self._ref(onto))

    def came_home(self, onto: str, tip: str) -> bool:
        ref = self._ref(onto)
        if self._repo.is_ancestor(tip, ref):
            return True
        done = self._repo.git("cherry", ref, tip, check=False)
        lines = done.out.splitlines()
        if done.status or not lines:
            return False
        return all(line.startswith("-") for line in lines) or self._was_squashed(ref, tip)

    def _was_squashed(self, ref: str, tip: str) -> bool:
        """Whether one commit of the branch changes all that these do together."""
        base = self._repo.git("merge-base", ref, tip, check=False).out.strip()
        if not base:
            return False
        plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        files = names_of(self._repo.git("diff", "-z", "--name-only", *plain, base, tip).raw)
        whole = self._patch_ids(self._repo.git("diff", *plain, base, tip).raw)
        if not files or len(files) > MAX_SQUASHED or not whole:
            return False
        how = ("--no-merges", "--format=commit %H", "--patch", "--full-diff", *plain)
        limit = f"--max-count={MAX_SQUASHED}"
        paths = [f":(literal){name}" for name in files]
        log = self._repo.git("log", limit, *how, f"{base}..{ref}", "--", *paths, check=False)
        return bool(whole & self._patch_ids(log.raw))

    def _patch_ids(self, patches: bytes) -> set[str]:
        done = run_git(self._repo.top, "patch-id", "--stable", stdin=patches)
        return {line.split()[0] for line in done.out.splitlines()}

    def hold(self, name: str, commit: str) -> None:
        self._repo.git("update-ref", f"{TRAIN_REFS}{name}", commit)

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            self._repo.git("update-ref", "-d", f"{TRAIN_REFS}{name}", check=False)

    def release_landed(self, onto: str) -> None:
        how = ("for-each-ref", f"--merged={self._ref(onto)}", "--format=%(refname)")
        for ref in self._repo.git(*how, UNDO_REFS).out.split():
            self._repo.git("update-ref", "-d", ref, check=False)

    def reverted(self, onto: str, before: str, after: str, message: str) -> Built:
        """The branch without what came from `before` to `after`; or the files that conflict."""
        tip = self.target(onto).commit
        old = self._bare_commit(after)
        tree, conflicts = merged_tree(
            self._repo, self._bare_commit(tip, old), self._bare_commit(before, old)
        )
        if conflicts:
            return Built(conflicts=tuple(conflicts))
        if tree == self._tree(tip):
            raise Refused(f"Nothing of {after[:12]} is left on {onto}.", code="not_landed")
        return Built(self._commit(tree, ("-p", tip), message), tree)

    def _bare_commit(self, like: str, parent: str = "") -> str:
        """With the files of another, but other parents: what git merges from is ours to choose."""
        return self._commit(self._tree(like), ("-p", parent) if parent else (), "x")

    def tree(self, commit: str) -> str:
        return self._tree(commit)

    def changed(self, before: str, after: str) -> tuple[list[FileChange], str]:
        return read_changed(self._repo, before, after)

    def patch(self, before: str, after: str, *, most: int) -> str:
        words = ("diff", "--no-color", "--no-ext-diff", "--no-renames", before, after)
        return self._repo.git(*words, check=False).out[:most]

    def overlay(self, commit: str, source: str, paths: Sequence[str]) -> Built:
        return overlay(self._repo, commit, source, paths)

    def mainline(self, before: str, tip: str, files: Sequence[str]) -> list[tuple[str, bool]]:
        words = ("log", "--first-parent", "-m", "--format=%H", f"{tip}..{before}", "--")
        paths = [f":(literal){name}" for name in files]
        touching = set(self._repo.git(*words, *paths, check=False).out.split())
        commits = self._repo.git(*words, check=False).out.split()
        return [(commit, commit in touching) for commit in commits]

    def sides(self, before: str, tip: str, files: Sequence[str]) -> str:
        words = ("diff", "--no-color", "--no-ext-diff", f"{tip}...{before}", "--")
        done = self._repo.git(*words, *(f":(literal){name}" for name in files), check=False)
        return done.out[:MAX_DIFF]


class RemoteBranches(GitBranches):
    """The branches of a remote. The local branch of the same name follows, when it can."""

    def __init__(self, repo: Repo, remote: str) -> None:
        super().__init__(repo)
        self._remote = remote
        self._fetched_at = -FRESH_SECONDS
        self._error: FleetError | None = None

    def _ref(self, onto: str) -> str:
        return f"refs/remotes/{self._remote}/{onto}"

    def target(self, onto: str) -> Target:
        if time.monotonic() - self._fetched_at >= FRESH_SECONDS:
            self._fetch(onto)
        elif self._error is not None:
            raise self._error
        return super().target(onto)

    def has(self, onto: str, commits: Sequence[str]) -> bool:
        """What was fetched a moment ago counts for a yes alone: a forge may have moved it since."""
        if super().has(onto, commits):
            return True
        self._fetched_at = -FRESH_SECONDS
        return super().has(onto, commits)

    def _fetch(self, onto: str) -> None:
        self._fetched_at, self._error = time.monotonic(), None
        try:
            self._do_fetch(onto)
        except FleetError as error:
            self._error = error
            raise

    def _do_fetch(self, onto: str) -> None:
        if not self._tip_there(onto):
            raise NotFound(
                f"There is no branch '{onto}' at {self._remote}.",
                fix=f"Push it first: git push {self._remote} {onto}",
            )
        refspec = f"+refs/heads/{onto}:{self._ref(onto)}"
        done = self._talk("fetch", "--quiet", "--no-tags", self._remote, refspec)
        if done.status:
            raise Unavailable(f"git fetch {self._remote} failed: {public(done.words)}")

    def _tip_there(self, onto: str) -> str:
        """The commit of the remote's branch; empty: it has none of that name."""
        self.check_remote()
        done = self._talk("ls-remote", self._remote, f"refs/heads/{onto}")
        if done.status:
            raise Unavailable(
                f"git could not ask {self._remote} where {onto} is: {public(done.words)}",
                fix=f"git ls-remote {self._remote}",
            )
        return done.out.partition("\t")[0].strip()

    def check_remote(self) -> None:
        """Raise `Refused` when the repository has no such remote."""
        if self._repo.git("remote", "get-url", "--", self._remote, check=False).status:
            raise Refused(
                f"{self._repo.checkout} has no remote '{self._remote}'.",
                fix=f"git remote add {self._remote} URL",
                code="no_remote",
            )

    def _talk(self, *words: str) -> Done:
        """Run git in the checkout: a remote's path, and what a hook does, may be relative to it."""
        return run_git(self._repo.checkout, *QUIET, *words, timeout=NETWORK)

    def move(self, onto: str, after: str, before: str) -> str:
        self._push(onto, after, before)
        self._fetched_at = -FRESH_SECONDS
        self._check(onto, after)
        with suppress(FleetError):  # it has commits or changes of its own: `git pull` is a person's
            local = GitBranches(self._repo)
            local_tip = local.target(onto).commit
            if self._repo.is_ancestor(local_tip, after):
                return local.move(onto, after, local_tip)
        return ""

    def _push(self, onto: str, after: str, before: str) -> None:
        """A compare-and-swap. `after` has `before` in it, so that nothing is ever overwritten."""
        if not self._repo.is_ancestor(before, after):
            raise Conflict(f"{after[:12]} was not built on {before[:12]}.")
        ref = f"refs/heads/{onto}"
        lease = f"--force-with-lease={ref}:{before}"
        done = self._talk("push", "--porcelain", lease, self._remote, f"{after}:{ref}")
        if done.status == 0:
            return
        remote_tip = self._tip_there(onto)
        if remote_tip not in {before, after}:
            self._fetched_at = -FRESH_SECONDS
            raise Conflict(f"{onto} has moved at {self._remote}.")
        if remote_tip != after:
            lines = [line for line in done.out.splitlines() if line.startswith("!")]
            why = public(" ".join([*lines, done.err]))
            raise Refused(
                f"{self._remote} did not take {onto}: {' '.join(why.split())[-300:]}",
                fix=f"See whether you may push there: git push --dry-run {self._remote} {onto}",
                code="push_refused",
            )

    def publish(self, work: MemberWork, branch: str, built: str) -> str:
        tip = self._tip(work)
        if not self._repo.is_ancestor(tip, built):
            raise Conflict(f"{branch} has moved since it was tested.")
        remote_tip = self._tip_there(branch)
        if remote_tip == tip:
            return tip
        done = self._talk("push", "--porcelain", self._remote, f"{tip}:refs/heads/{branch}")
        if done.status and "[rejected]" in done.out:
            raise Refused(
                f"{self._remote} has commits on {branch} that are not here, so git did not push.",
                fix=f"Merge {self._remote}/{branch} into the task's branch, or delete it there.",
                code="rejected",
            )
        if done.status:
            raise Unavailable(
                f"git push failed: {public(done.words)}", fix=f"git push {self._remote} {branch}"
            )
        return tip

    def _check(self, onto: str, after: str) -> None:
        """What was tested is what is there, perhaps with what others pushed on top of it."""
        remote_tip = self._tip_there(onto)
        if remote_tip != after:
            self._fetch(onto)
            if not self._repo.is_ancestor(after, self._ref(onto)):
                raise Refused(
                    f"{onto} at {self._remote} is at {remote_tip[:12]}, which does not contain the"
                    f" commit that was tested and pushed, {after[:12]}.",
                    fix=f"Look at `git log {self._remote}/{onto}` before anything else lands.",
                    code="wrong_tree",
                )
        else:
            self._repo.git("update-ref", self._ref(onto), after)
