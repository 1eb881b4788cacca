"""Settings that an agent wrote, each of which is a command: Fleet's own git carries out none of them."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.adapters.git import commit as committing
from fleet.adapters.git.checkout import WorkspaceRules
from fleet.adapters.git.diff.read import read
from fleet.adapters.git.diff.size import LiveLines, WorkSpan
from fleet.adapters.git.diff.span import WantedDiff, span
from fleet.adapters.git.kept.refs import keep
from fleet.adapters.git.landing.gate_worktrees import GitGateWorktrees
from fleet.adapters.git.landing.merge_and_push import merge
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import FleetError
from fleet.domain.task import Spec
from tests.contract.checkouts import checkout_in, commit, git, make_repo, prepared, site

PRIVATE = "the text of another repository"


class Canary:
    """Each setting's command writes the setting's name there."""

    def __init__(self, place: Path) -> None:
        self._file = place / "carried-out"
        self._programs = place / "programs"
        self._programs.mkdir()

    def program(self, name: str, rest: str = "cat") -> str:
        path = self._programs / name
        path.write_text(f"#!/bin/sh\necho {name} >> {self._file}\n{rest}\n")
        path.chmod(0o755)
        return str(path)

    def poison(self, gitdir: Path) -> None:
        """Every setting of git that names a command."""
        hooks = self._programs / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "pre-commit", "post-commit",
                     "reference-transaction", "prepare-commit-msg", "post-merge", "pre-push"):  # fmt: skip
            shutil.copy(self.program(f"hook-{name}", "exit 0"), hooks / name)
            shutil.copy(hooks / name, gitdir / "hooks" / name)
        more = gitdir / "more-settings"
        more.write_text(f'[filter "more"]\n\tclean = {self.program("included-clean")}\n')
        settings = {
            "filter.evil.clean": self.program("clean"),
            "filter.evil.smudge": self.program("smudge"),
            "filter.long.process": self.program("process", "exit 1"),
            "core.fsmonitor": self.program("fsmonitor", "exit 1"),
            "core.hooksPath": str(hooks),
            "core.sshCommand": self.program("ssh", "exit 1"),
            "core.editor": self.program("editor", "exit 0"),
            "core.pager": self.program("pager"),
            "credential.helper": f"!{self.program('credential', 'exit 0')}",
            "diff.evil.command": self.program("diff-command", "exit 0"),
            "diff.evil.textconv": self.program("textconv", "exit 0"),
            "diff.external": self.program("external-diff", "exit 0"),
            "merge.evil.driver": self.program("merge-driver", "exit 0"),
            "gpg.program": self.program("gpg", "exit 1"),
            "commit.gpgSign": "true",
            "uploadpack.packObjectsHook": self.program("pack-objects", "exit 1"),
            "protocol.ext.allow": "always",
            "remote.origin.url": f"ext::{self.program('remote', 'exit 1')}",
            "remote.origin.uploadpack": self.program("upload-pack", "exit 1"),
            "remote.origin.promisor": "true",
            "include.path": str(more),
            "alias.status": f"!{self.program('alias', 'exit 0')}",
        }  # fmt: skip
        for name, value in settings.items():
            git(self._programs, "config", "--file", str(gitdir / "config"), name, value)

    def carried_out(self) -> set[str]:
        with suppress(FileNotFoundError):
            return set(self._file.read_text().split())
        return set()


@pytest.fixture
def canary(tmp_path):
    return Canary(tmp_path)


def hostile_clone(path: Path, canary: Canary, gitdir: Path | None = None) -> None:
    """A repository of its own, whose changed files git would read through its filters."""
    make_repo(path, a="1\n", b="1\n", c="1\n")
    attributes = "a filter=evil diff=evil merge=evil\nb filter=more\nc filter=long\n"
    commit(path, "attributes", **{".gitattributes": attributes})
    if gitdir is not None:
        gitdir.parent.mkdir(parents=True, exist_ok=True)
        (path / ".git").rename(gitdir)
        (path / ".git").write_text(f"gitdir: {gitdir}\n")
    for name in "abc":
        (path / name).write_text("2\n")
    canary.poison(gitdir or path / ".git")


def as_clone(root: Path, canary: Canary) -> None:
    hostile_clone(root / "lib", canary)


def as_added_clone(root: Path, canary: Canary) -> None:
    make_repo(root / "lib", a="1\n")
    git(root, "add", "lib")
    shutil.rmtree(root / "lib")
    hostile_clone(root / "lib", canary)


def as_submodule(root: Path, canary: Canary) -> None:
    own = Path(git(root, "rev-parse", "--absolute-git-dir"))
    hostile_clone(root / "lib", canary, own / "modules" / "lib")
    head = git(root / "lib", "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    text = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n\tignore = none\n'
    (root / ".gitmodules").write_text(text)


def as_clone_in_a_clone(root: Path, canary: Canary) -> None:
    make_repo(root / "outer", a="1\n")
    hostile_clone(root / "outer" / "lib", canary)
    (root / "outer" / "lib" / ".git" / "config").rename(root / "settings")
    git(root / "outer", "add", "lib")
    git(root, "add", "outer")
    (root / "settings").rename(root / "outer" / "lib" / ".git" / "config")


def as_redirected(root: Path, canary: Canary) -> None:
    """The agent of another worktree of the same repository wrote where this one's settings are."""
    own = Path(git(root, "rev-parse", "--absolute-git-dir"))
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    (root / ".gitattributes").write_text("a filter=evil\n")
    (root / "a").write_text("2\n")
    shutil.copytree(common, root.parent / "theirs", symlinks=True)
    canary.poison(root.parent / "theirs")
    (own / "commondir").write_text(f"{root.parent / 'theirs'}\n")


WAYS = (as_clone, as_added_clone, as_submodule, as_clone_in_a_clone, as_redirected)


class Work:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.repo = make_repo(place / "shop", a="1\n")
        self.checkout = checkout_in(place, pool=1)
        self.site = site(self.repo)
        self.workspace = prepared(self.checkout, self.site)
        self.root = Path(self.workspace.root)

    def status(self) -> None:
        committing.status("t-1", self.workspace, str(self.repo))

    def commit(self) -> None:
        committing.commit("t-1", self.workspace, str(self.repo), "Work")

    def finish(self) -> None:
        self.checkout.finish(self.workspace, self.site, gather=True)
        self.checkout.finish(self.workspace, self.site, gather=True)

    def fork(self) -> None:
        committing.work_commit("t-1", self.workspace, private=())

    def count_lines(self) -> None:
        LiveLines({"t-1.1": WorkSpan("t-1", self.workspace)}).result()

    def diff(self) -> None:
        read("t-1", span(self.workspace, str(self.repo), WantedDiff("t-1")))

    def keep(self) -> None:
        keep(self.workspace, "t-1")

    def merge(self) -> None:
        merge(self.workspace, str(self.repo), "main")

    def continue_there(self) -> None:
        self.checkout.prepare(self.workspace, site(self.repo, number=2, previous=self.workspace))

    def remove_and_start_the_next(self) -> None:
        self.checkout.remove(self.workspace, task="t-1", project=str(self.repo))
        prepared(self.checkout, site(self.repo, "t-2"))

    def start_another(self) -> None:
        commit(self.repo, "more", more="1\n")
        prepared(self.checkout, site(self.repo, "t-3"))


ACTS = ("status", "commit", "finish", "fork", "count_lines", "diff", "keep", "merge",
        "continue_there", "remove_and_start_the_next", "start_another")  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("act", ACTS)
def test_a_command_in_an_agents_settings_is_not_carried_out(tmp_path, canary, way, act):
    work = Work(tmp_path)
    way(work.root, canary)
    before = canary.carried_out()
    with suppress(FleetError):
        getattr(work, act)()
    assert canary.carried_out() == before


def test_those_commands_would_be_carried_out_by_git_alone(tmp_path, canary):
    work = Work(tmp_path)
    as_added_clone(work.root, canary)
    git(work.root, "status", check=False)
    git(work.root / "lib", "add", "--all", check=False)
    assert {"clean", "process", "included-clean", "fsmonitor"} <= canary.carried_out()


def test_a_gate_that_leaves_a_clone_behind_has_none_of_them_carried_out(tmp_path, canary):
    repo = make_repo(tmp_path / "shop", a="1\n")
    rules = WorkspaceRules(setup=("touch made",))
    house = GitGateWorktrees(
        Repo.of(repo), tmp_path / "gates", rules, within="", log=tmp_path / "log"
    )
    as_added_clone(house.prepare("land-1.1", commit(repo, "one")), canary)
    house.leave("land-1.1")
    house.prepare("land-2.1", commit(repo, "two"))
    assert canary.carried_out() == set()


def test_hooks_that_are_files_of_an_agents_work_run_only_where_agents_are_not_isolated(tmp_path):
    """As with husky; and hooks that are not run its files all the same, as pre-commit's do."""
    for hooks in (False, True):
        place = tmp_path / str(hooks)
        repo, ran = make_repo(place / "shop", a="1\n"), place / "ran"
        git(repo, "config", "core.hooksPath", ".husky")
        (repo / ".husky").mkdir()
        (repo / ".husky" / "post-checkout").write_text("#!/bin/sh\n")
        checkout = checkout_in(place, hooks=hooks, pool=1)
        first = prepared(checkout, site(repo))
        root = Path(first.root)
        (root / ".husky").mkdir()
        for name in ("pre-commit", "post-checkout", "post-merge"):
            (root / ".husky" / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
            (root / ".husky" / name).chmod(0o755)
        committing.commit("t-1", first, str(repo), "Work", hooks=hooks)
        spec = Spec(cwd=str(repo), base=first.branch)
        second = prepared(checkout, site(repo, "t-2", spec=spec))
        Path(second.root, "more").write_text("1\n")
        committing.commit("t-2", second, str(repo), "More", hooks=hooks)
        third = prepared(checkout, site(repo, "t-3", spec=spec, merges=[second.branch]))
        checkout.remove(third, task="t-3", project=str(repo))
        prepared(checkout, site(repo, "t-4", spec=spec))
        assert ran.exists() == hooks


def test_changes_in_a_clone_within_are_seen_and_kept_all_the_same(tmp_path, canary):
    work = Work(tmp_path)
    as_added_clone(work.root, canary)
    git(work.root, "commit", "--quiet", "-m", "a clone")
    status = committing.status("t-1", work.workspace, str(work.repo))
    assert [(file.path, file.change) for file in status.files] == [("lib", "modified")]
    kept = keep(work.workspace, "t-1")
    ((name, inner),) = kept.snapshot.nested
    assert (name, git(work.repo, "show", f"{inner}:a")) == ("lib", "2")


def test_a_link_to_another_repository_brings_nothing_of_it_within_reach(tmp_path):
    work = Work(tmp_path)
    private = make_repo(tmp_path / "private", letter=PRIVATE)
    secret = git(private, "rev-parse", "HEAD")
    (work.root / "lib").mkdir()
    (work.root / "lib" / ".git").write_text(f"gitdir: {private / '.git'}\n")
    git(work.root, "update-index", "--add", "--cacheinfo", f"160000,{secret},lib")
    kept = keep(work.workspace, "t-1")
    assert kept.snapshot.nested == ()
    assert any("lib is a repository that is elsewhere" in note for note in kept.snapshot.notes)
    assert git(work.repo, "cat-file", "-t", secret, check=False) == ""


@pytest.mark.parametrize("part", ["objects", "refs", "HEAD", "index"])
def test_nor_does_a_clone_whose_parts_lead_there(tmp_path, part):
    work = Work(tmp_path)
    private = make_repo(tmp_path / "private", letter=PRIVATE)
    make_repo(work.root / "lib", a="1\n")
    git(work.root, "add", "lib")
    mine = work.root / "lib" / ".git" / part
    shutil.rmtree(mine) if mine.is_dir() else mine.unlink()
    mine.symlink_to(private / ".git" / part)
    with suppress(FleetError):
        keep(work.workspace, "t-1")
    secret = git(private, "rev-parse", "HEAD")
    assert git(work.repo, "cat-file", "-t", secret, check=False) == ""


def test_a_filter_of_a_persons_own_settings_works_in_worktrees_and_clones(tmp_path, monkeypatch):
    """As Git LFS does, which people have in their global settings or in the repository's."""
    (tmp_path / "gitconfig").write_text('[filter "big"]\n\tclean = tr a-z A-Z\n\trequired = true\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    work = Work(tmp_path)
    (work.root / ".gitattributes").write_text("*.big filter=big\n")
    (work.root / "x.big").write_text("large\n")
    tip = work.checkout.finish(work.workspace, work.site, gather=True)
    assert git(work.repo, "show", f"{tip.commit}:x.big") == "LARGE"
    make_repo(work.root / "lib", a="1\n")
    git(work.root, "add", "lib")
    (work.root / "lib" / ".gitattributes").write_text("*.big filter=big\n")
    (work.root / "lib" / "y.big").write_text("large\n")
    ((_, inner),) = keep(work.workspace, "t-1").snapshot.nested
    assert git(work.repo, "show", f"{inner}:y.big") == "LARGE"
