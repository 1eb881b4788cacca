"""Commits go from one clone to another in pieces, and nothing is shared but those."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fleet.adapters.git import pieces as git_pieces
from fleet.adapters.git.pieces import bring, missing, pack
from fleet.adapters.git.repo import Repo
from fleet.domain.hosts import piece as piece_module
from fleet.domain.hosts.piece import Piece, in_order, unknown
from tests.contract.checkouts import checkout_in, git, make_repo, prepared, site


def commit(folder: Path, name: str, text: str = "x\n") -> str:
    (folder / name).write_text(text)
    git(folder, "add", name)
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


def clone(of: Path, to: Path) -> Path:
    git(of.parent, "clone", "-q", str(of), str(to))
    return to


@pytest.fixture
def origin(tmp_path):
    return make_repo(tmp_path / "origin", README="hello\n")


def work(repo: Path, place: Path, task: str = "t-1", **more):
    workspace = prepared(checkout_in(place), site(repo, task, **more))
    return workspace, commit(Path(workspace.root), f"{task}.txt")


def test_work_made_in_one_clone_is_in_the_other(origin, tmp_path):
    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    workspace, tip = work(a, tmp_path / "home-a")
    (piece,) = pack(Repo.of(a), tip, workspace.base)
    assert piece.needs == (git(origin, "rev-parse", "HEAD"),)
    assert piece.roots == (git(origin, "rev-list", "--max-parents=0", "HEAD"),)
    assert len(piece.data) < 2000
    assert missing(Repo.of(b), [tip]) == [tip]
    assert bring(Repo.of(b), [piece], [tip]) == []
    assert git(b, "show", f"{tip}:t-1.txt") == "x"
    git(b, "gc", "-q", "--prune=now")
    assert missing(Repo.of(b), [tip]) == []
    assert "pieces" not in git(a, "for-each-ref")


def test_a_dependent_on_another_host_starts_from_the_work_that_was_brought(origin, tmp_path):
    from fleet.ports import Merge

    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    workspace, tip = work(a, tmp_path / "home-a")
    (piece,) = checkout_in(tmp_path / "home-a").pack(workspace, tip)
    there = checkout_in(tmp_path / "home-b")
    wanted = site(b, "t-2", merges=[Merge(workspace.branch, tip)])
    assert there.missing(wanted.task, [tip]) == [tip]
    assert there.bring(wanted.task, [piece], [tip]) == []
    assert (Path(prepared(there, wanted).root) / "t-1.txt").exists()


def test_commits_that_were_never_pushed_come_along(origin, tmp_path):
    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    commit(a, "local.txt")
    workspace, tip = work(a, tmp_path / "home-a")
    assert bring(Repo.of(b), pack(Repo.of(a), tip, workspace.base), [tip]) == []


def test_what_a_clone_lacks_of_its_remote_is_fetched(origin, tmp_path):
    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    commit(origin, "news.txt")
    git(a, "pull", "-q")
    workspace, tip = work(a, tmp_path / "home-a")
    assert bring(Repo.of(b), pack(Repo.of(a), tip, workspace.base), [tip]) == []
    pushed = commit(origin, "more.txt")
    assert bring(Repo.of(b), [], [pushed]) == []


def test_a_small_repository_without_a_remote_comes_whole(origin, tmp_path):
    b = make_repo(tmp_path / "b", other="1\n")
    workspace, tip = work(origin, tmp_path / "home-a")
    (piece,) = pack(Repo.of(origin), tip, workspace.base)
    assert piece.needs == ()
    assert bring(Repo.of(b), [piece], [tip]) == []


def test_of_a_large_one_only_the_new_work_comes_and_the_rest_is_named(
    origin, tmp_path, monkeypatch
):
    monkeypatch.setattr(git_pieces, "SMALL_PACKS", -1)
    b = Path(shutil.copytree(origin, tmp_path / "b"))
    workspace, tip = work(origin, tmp_path / "home-a")
    (piece,) = pack(Repo.of(origin), tip, workspace.base)
    assert piece.needs == (workspace.base,)
    assert bring(Repo.of(b), [piece], [tip]) == []
    other = make_repo(tmp_path / "other", other="1\n")
    assert bring(Repo.of(other), [piece], [tip]) == [tip]


def test_nothing_new_and_too_much_make_no_piece(origin, tmp_path, monkeypatch):
    a = clone(origin, tmp_path / "a")
    head = git(a, "rev-parse", "HEAD")
    assert pack(Repo.of(a), head, head) == ()
    workspace, tip = work(a, tmp_path / "home-a")
    monkeypatch.setattr(piece_module, "MAX_BYTES", 10)
    assert pack(Repo.of(a), tip, workspace.base) == ()


def test_what_is_too_large_for_one_row_comes_in_parts(origin, tmp_path, monkeypatch):
    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    workspace, tip = work(a, tmp_path / "home-a")
    monkeypatch.setattr(piece_module, "MAX_BYTES", 100)
    *parts, last = pack(Repo.of(a), tip, workspace.base)
    names = [f"{tip}/{n}" for n in range(1, len(parts) + 1)]
    assert parts
    assert [part.id for part in parts] == names
    assert [need for need in last.needs if "/" in need] == names
    rows = {piece.id: piece for piece in (*parts, last)}
    assert unknown({tip: last}, [tip]) == [workspace.base, *names]
    assert bring(Repo.of(b), [*parts[1:], last], [tip]) == [tip]
    assert bring(Repo.of(b), in_order([tip], rows), [tip]) == []
    assert git(b, "show", f"{tip}:t-1.txt") == "x"


def test_what_is_too_large_for_the_store_comes_from_the_remote_beside_what_is_not(
    origin, tmp_path, monkeypatch
):
    a, b = clone(origin, tmp_path / "a"), clone(origin, tmp_path / "b")
    workspace, small = work(a, tmp_path / "home-a")
    (piece,) = pack(Repo.of(a), small, workspace.base)
    other, large = work(a, tmp_path / "home-a", "t-2")
    monkeypatch.setattr(piece_module, "MAX_BYTES", 10)
    assert pack(Repo.of(a), large, other.base) == ()
    assert bring(Repo.of(b), [piece], [small, large]) == [large]
    git(a, "push", "-q", "origin", other.branch)
    assert bring(Repo.of(b), [piece], [small, large]) == []


def test_a_remote_that_cannot_be_reached_stops_nothing(origin, tmp_path):
    a = clone(origin, tmp_path / "a")
    git(a, "remote", "set-url", "origin", str(tmp_path / "gone"))
    assert bring(Repo.of(a), [], ["1" * 40]) == ["1" * 40]


def test_pieces_come_after_what_they_need():
    pieces = {
        "c": Piece("c", 1, "", needs=("b", "a")), "b": Piece("b", 1, "", needs=("a",)),
        "a": Piece("a", 1, "", needs=("root",)), "x": Piece("x", 1, ""),
    }  # fmt: skip
    assert [piece.id for piece in in_order(["c", "nobody's"], pieces)] == ["a", "b", "c"]
    assert unknown(pieces, pieces) == ["root"]
    circle = {"a": Piece("a", 1, "", needs=("b",)), "b": Piece("b", 1, "", needs=("a",))}
    assert {piece.id for piece in in_order(["a"], circle)} == {"a", "b"}
