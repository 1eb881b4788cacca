"""Whatever was in a worktree can be got back, byte for byte."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fleet.adapters.git.kept.refs import bytes_of, drop, find_kept, keep, list_kept
from fleet.adapters.git.kept.restore import restore
from fleet.adapters.git.repo import Repo
from fleet.adapters.git.tree import Tree
from fleet.domain.errors import BadInput, NotFound, Refused, Unavailable
from tests.contract.checkouts import (
    WHO,
    checkout_in,
    commit,
    git,
    make_repo,
    picture,
    prepared,
    site,
)
from tests.contract.trees import files_of, raw, state_of


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop", README="hello\n", src__main="one\ntwo\nthree\n")


def back(repo, kept, tmp_path, name="back"):
    restored = restore(Repo.of(repo), kept, into=tmp_path / name)
    assert restored.path == str(tmp_path / name)
    return tmp_path / name


def test_a_worktree_in_which_nothing_was_done_is_not_kept(repo, place):
    assert keep(place, "t-1") is None
    assert list_kept(Repo.of(repo)) == []


def test_commits_alone_are_kept_until_they_are_merged(repo, place, root):
    tip = commit(root, "work", new="x\n")
    kept = keep(place, "t-1")
    assert (kept.id, kept.snapshot.head, kept.snapshot.uncommitted) == ("t-1/1", tip, False)
    git(repo, "merge", "--quiet", place.branch)
    drop(Repo.of(repo), kept)
    assert keep(place, "t-1") is None


def test_kept_work_takes_the_bytes_that_nothing_else_has(repo, place, root):
    assert bytes_of(Repo.of(repo), []) == 0
    (root / "noise").write_bytes(os.urandom(500_000))
    kept = keep(place, "t-1")
    assert 500_000 <= bytes_of(Repo.of(repo), [kept]) < 520_000
    git(repo, "branch", "same", kept.commit)
    assert bytes_of(Repo.of(repo), [kept]) == 0


def test_commits_that_were_pushed_are_not_kept(repo, place, root, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "far.git"))
    commit(root, "work", new="x\n")
    git(root, "push", "--quiet", "-u", "origin", place.branch)
    assert keep(place, "t-1") is None
    (root / "new").write_text("more\n")
    assert keep(place, "t-1").snapshot.uncommitted


def test_everything_comes_back_as_it_was_and_the_worktree_is_not_touched(
    repo, place, root, tmp_path
):
    commit(root, "work", done="x\n")
    (root / "README").write_text("staged\n")
    git(root, "add", "README")
    (root / "README").write_text("staged, then changed\n")
    (root / "src" / "main").unlink()
    (root / "with\nnewline").write_bytes(b"\x00\xff\r\n")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).write_bytes(b"not utf-8")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("nowhere at all")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "file").write_text("x")
    before, around = state_of(root), picture(repo)
    kept = keep(place, "t-1")
    assert state_of(root) == before
    assert picture(repo)["stash"] == around["stash"]
    assert state_of(back(repo, kept, tmp_path)) == before


def test_said_again_it_is_the_same_and_a_change_is_another(repo, place, root):
    (root / "new").write_text("1\n")
    first = keep(place, "t-1")
    assert keep(place, "t-1") == first
    (root / "new").write_text("2\n")
    second = keep(place, "t-1")
    assert [k.id for k in list_kept(Repo.of(repo))] == [first.id, second.id] == ["t-1/1", "t-1/2"]


def test_a_detached_head_and_the_branch_it_left_are_both_kept(repo, place, root):
    on_branch = commit(root, "on the branch", a="1\n")
    git(root, "checkout", "--quiet", "--detach", "main")
    detached = commit(root, "on nothing", b="2\n")
    kept = keep(place, "t-1")
    assert kept.snapshot.head == detached
    parents = raw(repo, "show", "--no-patch", "--format=%P", kept.commit).decode().split()
    assert {on_branch, detached} <= set(parents)


def test_a_branch_without_a_commit_comes_back_without_one(repo, place, root, tmp_path):
    git(root, "checkout", "--quiet", "--orphan", "anew")
    (root / "more").write_text("untracked\n")
    before = files_of(root), raw(root, "ls-files", "--stage", "-z")
    kept = keep(place, "t-1")
    assert kept.snapshot.head == ""
    there = back(repo, kept, tmp_path)
    assert (files_of(there), raw(there, "ls-files", "--stage", "-z")) == before
    assert git(there, "rev-parse", "--verify", "HEAD", check=False) == ""


@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick"])
def test_a_conflict_comes_back_with_all_its_sides(repo, place, root, tmp_path, how):
    ours = commit(root, "ours", README="ours\n")
    theirs = commit(repo, "theirs", README="theirs\n", other="x\n")
    git(root, how, "main" if how != "cherry-pick" else theirs, check=False)
    (root / "README").write_text("half resolved\n")
    before = state_of(root)
    assert before["index"].count(b"README") == 3
    kept = keep(place, "t-1")
    assert state_of(root) == before
    assert f"There was a {how} in progress." in kept.snapshot.notes
    assert "There were conflicts in README." in kept.snapshot.notes
    after = state_of(back(repo, kept, tmp_path))
    assert (after["files"], after["index"]) == (before["files"], before["index"])
    parents = raw(repo, "show", "--no-patch", "--format=%P", kept.commit).decode().split()
    assert {ours, theirs} <= set(parents) or how == "rebase"
    assert git(repo, "merge-base", "--is-ancestor", ours, kept.commit) == ""


def test_what_git_ignores_is_not_kept(repo, place, root):
    commit(root, "ignore", **{".gitignore": "*.log\n"})
    (root / "x.log").write_text("noise\n")
    kept = keep(place, "t-1")
    assert not kept.snapshot.uncommitted
    assert "x.log" not in git(repo, "ls-tree", "-r", "--name-only", kept.commit)


def test_line_endings_and_filters_change_no_byte(repo, place, root, tmp_path):
    attributes = "*.txt text\n*.crlf text eol=crlf\n*.id ident\n"
    commit(root, "attributes", **{".gitattributes": attributes})
    files = {"a.txt": b"one\r\ntwo\n\r", "b.crlf": b"bare\nlines\n", "c.id": b"$Id: mine $\n"}
    for name, content in files.items():
        (root / name).write_bytes(content)
    kept = keep(place, "t-1")
    there = back(repo, kept, tmp_path)
    assert {name: (there / name).read_bytes() for name in files} == files


def test_a_change_that_git_was_told_not_to_see_is_kept(repo, place, root, tmp_path):
    git(root, "update-index", "--skip-worktree", "README")
    git(root, "update-index", "--assume-unchanged", "src/main")
    (root / "README").write_text("hidden\n")
    (root / "src" / "main").write_text("hidden too\n")
    assert git(root, "status", "--porcelain") == ""
    there = back(repo, keep(place, "t-1"), tmp_path)
    assert files_of(there) == files_of(root)


def test_hooks_and_settings_of_the_user_do_not_run(repo, place, root, tmp_path):
    hooks = repo / ".git" / "hooks"
    for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(repo, "config", "commit.gpgSign", "true")
    (root / "new").write_text("x\n")
    kept = keep(place, "t-1")
    drop(Repo.of(repo), kept)
    assert not (tmp_path / "ran").exists()


def test_a_submodules_own_commits_and_changes_are_kept(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    library = make_repo(tmp_path / "library", lib="1\n")
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "--quiet", "add", str(library), "lib")
    commit(repo, "with a library")
    place = prepared(checkout_in(tmp_path), site(repo, "t-2"))
    root = Path(place.root)
    git(root, *allow, "submodule", "--quiet", "update", "--init")
    assert keep(place, "t-2") is None
    own = commit(root / "lib", "work in the library", lib="2\n")
    (root / "lib" / "new").write_text("uncommitted\n")
    kept = keep(place, "t-2")
    assert keep(place, "t-2") == kept
    ((name, inner),) = kept.snapshot.nested
    assert name == "lib"
    assert any("lib is a repository with uncommitted changes" in n for n in kept.snapshot.notes)
    assert git(repo, "show", f"{inner}:new") == "uncommitted"
    assert git(repo / "lib", "cat-file", "-t", own) == "commit"  # for `git submodule update`
    assert git(repo, "merge-base", "--is-ancestor", own, kept.commit) == ""


def test_a_clone_inside_the_worktree_is_kept_too(repo, place, root):
    inner = make_repo(root / "vendor", file="1\n")
    git(inner, "branch", "aside")
    git(inner, "checkout", "--quiet", "aside")
    tip = commit(inner, "aside", more="2\n")
    kept = keep(place, "t-1")
    assert [name for name, _ in kept.snapshot.nested] == ["vendor"]
    assert git(repo, "show", f"{tip}:more") == "2"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(place, root):
    (root / "secret").write_text("x")
    (root / "secret").chmod(0)
    (root / "plain").write_text("y")
    kept = keep(place, "t-1")
    assert kept.missing == ("secret",)


def test_a_directory_that_is_no_worktree_says_nothing(place, root):
    (root / ".git").unlink()
    with pytest.raises(Unavailable, match="is not a working tree"):
        keep(place, "t-1")


def test_kept_work_can_be_a_branch_with_a_commit_on_top(repo, place, root):
    commit(root, "work", done="x\n")
    (root / "more").write_text("uncommitted\n")
    kept = keep(place, "t-1")
    restored = restore(Repo.of(repo), kept, branch="rescued")
    assert git(repo, "log", "--format=%s", "main..rescued").splitlines() == [
        "Uncommitted work of t-1",
        "work",
    ]
    assert git(repo, "show", f"{restored.branch}:more") == "uncommitted"
    with pytest.raises(Refused, match="The branch rescued already exists"):
        restore(Repo.of(repo), kept, branch="rescued")
    assert restore(Repo.of(repo), kept).branch == f"{place.branch}-restored"


def test_nothing_is_restored_over_what_is_there(repo, place, root, tmp_path):
    (root / "new").write_text("x\n")
    kept = keep(place, "t-1")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    before = picture(repo)
    with pytest.raises(Refused, match="already exists"):
        restore(Repo.of(repo), kept, into=tmp_path / "taken")
    assert picture(repo) == before


def test_kept_work_is_found_by_its_id_or_its_task(repo, place, root):
    (root / "new").write_text("1\n")
    kept = keep(place, "t-1")
    asked = Repo.of(repo)
    assert (
        find_kept(asked, "t-1/1") == find_kept(asked, "t-1") == find_kept(asked, kept.ref) == kept
    )
    (root / "new").write_text("2\n")
    keep(place, "t-1")
    with pytest.raises(BadInput, match=r"t-1/1, t-1/2"):
        find_kept(asked, "t-1")
    with pytest.raises(NotFound, match="Nothing is kept as 't-9'"):
        find_kept(asked, "t-9")
    drop(asked, kept)
    assert [k.id for k in list_kept(asked)] == ["t-1/2"]


def test_kept_work_survives_gits_own_tidying(repo, place, root, tmp_path):
    (root / "new").write_text("1\n")
    before = files_of(root)
    kept = keep(place, "t-1")
    git(repo, "worktree", "remove", "--force", place.root)
    git(repo, "branch", "-D", place.branch)
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "--quiet", "--prune=now")
    assert files_of(back(repo, kept, tmp_path)) == before


NAMES = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)), min_size=1, max_size=12
).filter(lambda n: n not in {".", ".."} and n.lower() not in {".git", "git~1"} and n[:4] != ".git")
CONTENT = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([b"", b"one\r\ntwo\r\n", b"x" * 70_000, b"#!/bin/sh\n"]),
)
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.tuples(st.sampled_from(["file", "executable", "link"]), CONTENT),
    max_size=6,
)


def put(root: Path, files) -> None:
    """Those of them that can be there beside each other."""
    for name, (kind, content) in files.items():
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if kind == "link":
                path.symlink_to(os.fsdecode(content.replace(b"\0", b"?")[:200]) or "x")
            else:
                path.write_bytes(content)
                path.chmod(0o755 if kind == "executable" else 0o644)
        except OSError:
            continue


@settings(
    max_examples=int(os.environ.get("EXAMPLES", "15")),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink takes minutes of git
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(FILES, FILES, FILES, FILES)
def test_any_files_come_back(first, second, staged, loose):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        repo = make_repo(top / "shop", README="hello\n")
        put(repo, first)
        commit(repo, "first")
        place = prepared(checkout_in(top), site(repo))
        root = Path(place.root)
        put(root, second)
        commit(root, "second")
        put(root, staged)
        subprocess.run(["git", *WHO, "add", "-A"], cwd=root, check=True, capture_output=True)
        put(root, loose)
        before = state_of(root)
        kept = keep(place, "t-1")
        assert state_of(root) == before
        if kept is not None:
            git(repo, "worktree", "remove", "--force", place.root)
            there = back(repo, kept, top)
            assert files_of(there) == before["files"]
            assert raw(there, "ls-files", "--stage", "-z") == before["index"]


def test_files_below_the_path_of_a_submodule_are_kept_and_found_by_nobody_else(repo, tmp_path):
    """Git shows none of them where the submodule is not checked out."""
    other = make_repo(tmp_path / "other", lib="x\n")
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "--quiet", "add", str(other), "vendor/lib")
    commit(repo, "submodule")
    checkout = checkout_in(tmp_path, pool=2)
    place = prepared(checkout, site(repo))
    (Path(place.root) / "vendor" / "lib" / "deep").mkdir(parents=True)
    (Path(place.root) / "vendor" / "lib" / "deep" / "notes").write_text("precious\n")
    done = checkout.remove(place, task="t-1")
    assert (done.kept, done.parked) == (("t-1/1",), False)
    (kept,) = list_kept(Repo.of(repo))
    assert "vendor/lib" in " ".join(kept.snapshot.notes)
    where = back(repo, kept, tmp_path)
    assert (where / "vendor" / "lib" / "deep" / "notes").read_text() == "precious\n"
    later = Path(prepared(checkout, site(repo, "t-2")).root)
    assert list((later / "vendor" / "lib").iterdir()) == []


def test_what_is_in_an_index_is_read_again_once_git_has_written_it(tmp_path):
    git(tmp_path, "init", "-q")
    tree = Tree.at(tmp_path)
    assert tree.entries() == []  # there is no index yet
    seen = []
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        seen.append([entry.path for entry in tree.entries()])
        assert tree.entries() == tree.entries()
    assert seen == [[b"a"], [b"a", b"b"], [b"a", b"b", b"c"]]
    git(tmp_path, "rm", "-q", "--cached", "a")
    assert [entry.path for entry in tree.entries()] == [b"b", b"c"]
