"""Work merged onto its base, plainly, or refused with nothing changed."""

import shutil
from pathlib import Path

import pytest

from fleet.adapters.git.diff.history import History
from fleet.adapters.git.diff.merge_preview import outlook
from fleet.adapters.git.landing.branches import GitBranches, RemoteBranches
from fleet.adapters.git.landing.merge_and_push import ahead, merge, push
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Conflict, NotFound, Refused, Unavailable
from fleet.ports import Arrival, Finished, Fit, MemberWork
from tests.contract.checkouts import commit, git, make_repo, picture


def refused(place, repo, onto="", kind=Refused):
    before = picture(repo), (repo / "README").read_text()
    with pytest.raises(kind) as caught:
        merge(place, str(repo), onto)
    assert (picture(repo), (repo / "README").read_text()) == before
    return caught.value


def test_a_branch_that_is_ahead_goes_forward_with_the_checkout(repo, place, root):
    tip = commit(root, "work", README="committed\n")
    done = merge(place, str(repo))
    assert (done.onto, done.commit, done.fast_forward) == ("main", tip, True)
    assert (repo / "README").read_text() == "committed\n"
    assert git(repo, "status", "--porcelain") == ""
    assert merge(place, str(repo)).nothing


def test_two_that_went_on_meet_in_a_merge_commit(repo, place, root):
    mine = commit(repo, "mine", other="2\n")
    theirs = commit(root, "theirs", README="theirs\n")
    done = merge(place, str(repo))
    assert not done.fast_forward
    assert git(repo, "show", "--no-patch", "--format=%P", "main").split() == [mine, theirs]
    assert ((repo / "README").read_text(), (repo / "other").read_text()) == ("theirs\n", "2\n")
    assert git(repo, "status", "--porcelain") == ""


def test_a_conflict_names_its_files(repo, place, root):
    commit(repo, "mine", **{"README": "mine\n", "ü x": "1\n"})
    commit(root, "theirs", **{"README": "theirs\n", "ü x": "2\n"})
    error = refused(place, repo)
    assert error.code == "merge_conflict"
    assert error.message == f"{place.branch} conflicts with main in README, ü x."


def test_uncommitted_work_is_no_work_to_merge(repo, place, root):
    commit(root, "work", README="committed\n")
    (root / "new").write_text("untracked\n")
    assert "uncommitted work" in refused(place, repo).message


def test_a_main_checkout_with_changes_is_not_touched(repo, place, root):
    commit(root, "work", other="committed\n")
    (repo / "README").write_text("half done\n")
    assert "changes of its own" in refused(place, repo).message


def test_a_branch_in_several_checkouts_does_not_move_away_below_one(repo, place, root, tmp_path):
    """Git would update one of them, and show in the other that what landed was deleted."""
    tip, second = commit(root, "work", other="committed\n"), tmp_path / "second"
    git(repo, "worktree", "add", "--quiet", "--force", str(second), "main")
    error = refused(place, repo)
    assert f"{repo} and in {second}, and git can bring only one" in error.message
    assert error.fix == f"Leave it in one: git -C {second} switch --detach"
    branches, before = GitBranches(Repo.of(repo)), git(repo, "rev-parse", "main")
    with pytest.raises(Refused, match="checked out in"):
        branches.move("main", tip, before)
    assert (git(repo, "rev-parse", "main"), git(second, "status", "--porcelain")) == (before, "")
    git(second, "switch", "--quiet", "--detach")
    assert merge(place, str(repo)).commit == tip


def test_a_second_checkout_that_is_gone_is_in_nobodys_way(repo, place, root, tmp_path):
    tip, second = commit(root, "work", other="committed\n"), tmp_path / "second"
    git(repo, "worktree", "add", "--quiet", "--force", str(second), "main")
    shutil.rmtree(second)
    assert merge(place, str(repo)).commit == tip


def test_a_checkout_whose_submodule_is_elsewhere_follows_and_the_submodule_stays(
    repo, place, root, tmp_path
):
    lib = make_repo(tmp_path / "lib")
    first, second = git(lib, "rev-parse", "HEAD"), commit(lib, "two", l="2\n")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "lib")
    git(repo / "lib", "checkout", "--quiet", second)
    git(repo, "add", "lib")
    git(repo, "commit", "--quiet", "-m", "lib")
    git(repo / "lib", "checkout", "--quiet", first)
    git(root, "merge", "--quiet", "--ff-only", "main")
    tip = commit(root, "work", other="3\n")
    assert merge(place, str(repo)).commit == tip
    assert git(repo / "lib", "rev-parse", "HEAD") == first
    git(root, "update-index", "--cacheinfo", f"160000,{first},lib")
    git(root, "commit", "--quiet", "-m", "back")
    git(repo / "lib", "checkout", "--quiet", second)
    assert merge(place, str(repo)).commit == git(root, "rev-parse", "HEAD")
    assert (git(repo / "lib", "rev-parse", "HEAD"), (repo / "other").read_text()) == (second, "3\n")


def test_an_untracked_file_in_the_way_stays(repo, place, root):
    commit(root, "work", new="theirs\n")
    (repo / "new").write_text("mine\n")
    assert "git cannot update it" in refused(place, repo).message
    assert (repo / "new").read_text() == "mine\n"


def test_an_ignored_file_in_the_way_stays(repo, place, root):
    commit(repo, "ignore", **{".gitignore": ".env\n"})
    (root / ".env").write_text("theirs\n")
    git(root, "add", "--force", ".env")
    commit(root, "work", other="3\n")
    (repo / ".env").write_text("mine\n")
    assert "would be overwritten" in refused(place, repo).message
    assert (repo / ".env").read_text() == "mine\n"


def hook(repo, name: str, *lines: str) -> Path:
    path = repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def test_what_git_did_before_a_hook_refused_the_rest_is_taken_back(repo, place, root):
    (root / "link").symlink_to("README")
    (root / "README").chmod(0o755)
    git(root, "add", "link")
    commit(root, "work", other="3\n", new="2\n")
    line = 'while read old new ref; do test "$ref" != refs/heads/main || exit 1; done'
    no = hook(repo, "reference-transaction", 'test "$1" = prepared || exit 0', line)
    before = git(repo, "ls-files", "--stage")
    assert "git cannot update it" in refused(place, repo).message
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "ls-files", "--stage") == before
    assert not (repo / "link").is_symlink()
    no.unlink()
    assert merge(place, str(repo)).commit == git(repo, "rev-parse", "main")


def test_a_commit_that_somebody_adds_at_once_is_no_trouble(repo, place, root):
    tip = commit(root, "work", other="3\n")
    before = git(repo, "rev-parse", "main")
    hook(repo, "post-merge", "echo 2 > more", "git add more", "git commit --quiet -m More")
    branches = GitBranches(Repo.of(repo))
    assert branches.move("main", tip, before) == str(repo)
    assert git(repo, "log", "--format=%s", "-1") == "More"


def test_work_on_a_branch_that_a_person_rewrote_is_what_is_there_now(repo, place, root):
    (root / "secret").write_text("1\n")
    git(root, "add", "secret")
    tip = commit(root, "work", other="3\n")
    git(root, "rm", "--quiet", "--cached", "secret")
    git(root, "commit", "--quiet", "--amend", "-m", "without it")
    branches, before = GitBranches(Repo.of(repo)), git(repo, "rev-parse", "main")
    work = MemberWork(tip, "Work", branch=place.branch)
    built = branches.build(before, work)
    assert "secret" not in git(repo, "ls-tree", "--name-only", built.commit).split()
    branches.move("main", built.commit, before)
    arrival = Arrival(before, built.commit, built.tip, "merge")
    branches.check_home("main", {"l-1": arrival})
    with pytest.raises(Refused, match="does not have"):
        branches.check_home("main", {"l-1": arrival._replace(tip=tip)})


def test_squashed_work_has_come_home_whole_or_not_at_all(repo, place, root):
    commit(repo, "mine", other="2\n")
    first = commit(root, "one", a="1\n")
    tip = commit(root, "two", a="2\n", b="1\n")
    branches, before = GitBranches(Repo.of(repo)), git(repo, "rev-parse", "main")
    part = branches.build(before, MemberWork(first, "Work", "squash"))
    whole = branches.build(before, MemberWork(tip, "Work", "squash"))
    assert git(repo, "show", "--no-patch", "--format=%P", whole.commit) == before
    arrival = Arrival(before, whole.commit, tip, "squash")
    with pytest.raises(Refused, match="does not have"):
        branches.check_home("main", {"l-1": arrival})  # main was not moved
    branches.move("main", part.commit, before)
    with pytest.raises(Refused, match="does not have"):
        branches.check_home("main", {"l-1": arrival._replace(commit=part.commit)})
    assert git(repo, "rev-parse", "refs/fleet/landed/l-1") == tip
    branches.check_home("main", {"l-2": Arrival(before, part.commit, first, "squash")})


def test_one_git_tells_what_would_be_taken_of_all_work_that_nobody_touched(repo, place, root):
    tip = commit(root, "work", other="3\n")
    branches = GitBranches(Repo.of(repo))
    works = {"mine": MemberWork(tip, "x", branch=place.branch), "bare": MemberWork(tip, "x"),
             "gone": MemberWork(tip, "x", branch="no-such")}  # fmt: skip
    assert branches.tips(works) == dict.fromkeys(works, tip)
    newer = commit(root, "by a person", other="4\n")
    assert branches.tips(works) == {"mine": newer, "bare": tip, "gone": tip}
    assert branches.tips({}) == {}


def test_an_agent_that_left_its_branch_behind_lands_what_was_recorded(repo, place, root):
    commit(root, "thrown away", other="3\n")
    git(root, "checkout", "--quiet", "-b", "mine", "main")
    tip = commit(root, "work", new="1\n")
    branches, before = GitBranches(Repo.of(repo)), git(repo, "rev-parse", "main")
    assert branches.build(before, MemberWork(tip, "Work", branch=place.branch)).commit == tip


def test_a_base_that_is_checked_out_nowhere_is_moved_alone(repo, place, root):
    git(repo, "branch", "release")
    tip = commit(root, "work", README="committed\n")
    before = git(repo, "status", "--porcelain")
    done = merge(place, str(repo), "release")
    assert (done.checkout, git(repo, "rev-parse", "release")) == ("", tip)
    assert (git(repo, "status", "--porcelain"), (repo / "README").read_text()) == (
        before,
        "hello\n",
    )


def test_a_base_that_another_worktree_has_is_moved_there(repo, place, root, tmp_path):
    git(repo, "worktree", "add", "--quiet", "-b", "release", str(tmp_path / "side"))
    commit(root, "work", README="committed\n")
    assert merge(place, str(repo), "release").checkout == str(tmp_path / "side")
    assert (tmp_path / "side" / "README").read_text() == "committed\n"
    (tmp_path / "side").rename(tmp_path / "away")
    commit(root, "more", README="more\n")
    assert "which does not exist" in refused(place, repo, "release").message


def test_a_place_to_merge_onto_is_needed(repo, place, root):
    commit(root, "work", README="committed\n")
    assert "no branch 'nope'" in refused(place, repo, "nope", NotFound).message
    assert "into itself" in refused(place, repo, place.branch).message
    git(repo, "checkout", "--quiet", "--detach")
    assert "--into" in refused(place, repo).fix


def test_a_push_needs_a_remote_and_then_tracks_it(repo, place, root, tmp_path):
    tip = commit(root, "work", README="committed\n")
    with pytest.raises(Refused, match="has no remote 'origin'"):
        push(place, str(repo))
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "far.git"))
    done = push(place, str(repo))
    assert (done.remote, done.address) == ("origin", str(tmp_path / "far.git"))
    assert git(tmp_path / "far.git", "rev-parse", place.branch) == tip
    assert git(root, "rev-parse", "--abbrev-ref", "@{upstream}") == f"origin/{place.branch}"


def test_the_address_of_a_remote_is_told_without_its_password(repo, place, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", f"file://bo:secret@/{tmp_path}/far.git")
    assert push(place, str(repo)).address == f"file:///{tmp_path}/far.git"


def test_branches_that_are_ahead_are_told_with_their_conflicts_and_nothing_is_written(
    repo, place, root
):
    commit(root, "theirs", README="theirs\n")
    git(repo, "branch", "same")
    git(repo, "branch", "fine")
    asked = [place.branch, "same", "fine", "no-such", "bad name"]
    assert ahead(str(repo), asked) == [(place.branch, "main", ())]
    commit(repo, "mine", README="mine\n")
    before = git(repo, "count-objects", "-v")
    assert ahead(str(repo), asked) == [(place.branch, "main", ("README",))]
    assert git(repo, "count-objects", "-v") == before
    git(repo, "checkout", "--quiet", "--detach")
    ((_, onto, _),) = ahead(str(repo), asked)
    assert onto == git(repo, "rev-parse", "HEAD").strip()[:12]


def test_a_directory_without_a_commit_has_nothing_that_is_ahead(tmp_path):
    with pytest.raises(Refused):
        ahead(str(tmp_path), ["main"])


def kill_git(folder, monkeypatch, when: str = "*") -> None:
    """A git with this word in its command is killed after its first line."""
    program = folder / "git"
    folder.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" "{when}" "*) {shutil.which("git")} "$@" | head -n 1;'
        f' kill -9 $$;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_a_git_that_is_killed_says_nothing_about_two_commits(tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "shop")
    kill_git(tmp_path / "bin", monkeypatch)
    with pytest.raises(Unavailable):
        Repo.at(repo / ".git").is_ancestor("HEAD", "HEAD")


def rivals(repo) -> dict[str, str]:
    """By name the tips of two branches that conflict."""
    tips = {}
    for name in ("one", "two"):
        git(repo, "checkout", "-q", "-b", name, "main")
        tips[name] = commit(repo, name, README=f"{name} {repo}\n")
    return tips


@pytest.mark.parametrize("when", ["cat-file", "log", "diff-tree"])
def test_work_whose_git_is_killed_is_not_compared(tmp_path, monkeypatch, when):
    repo = make_repo(tmp_path / "shop")
    works = {name: MemberWork(tip, "x") for name, tip in rivals(repo).items()}
    kill_git(tmp_path / "bin", monkeypatch, when)
    with pytest.raises(Unavailable):
        GitBranches(Repo.of(repo)).compare(git(repo, "rev-parse", "main"), works)


def test_a_forecast_whose_git_is_killed_is_made_again(tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "shop")
    works = {name: MemberWork(tip, "x") for name, tip in rivals(repo).items()}
    with monkeypatch.context() as for_now:
        kill_git(tmp_path / "bin", for_now, "merge-tree")
        fits = GitBranches(Repo.of(repo)).compare(git(repo, "rev-parse", "main"), works)
        assert {name: fit.rivals for name, fit in fits.items()} == {"one": (), "two": ()}
    fits = GitBranches(Repo.of(repo)).compare(git(repo, "rev-parse", "main"), works)
    assert {name: fit.rivals for name, fit in fits.items()} == {"one": ("two",), "two": ("one",)}


def test_work_is_compared_by_its_size_and_by_what_it_conflicts_with(tmp_path):
    repo = make_repo(tmp_path / "shop")
    tips = {}
    for name, files in {
        "small": {"a": "1\n"},
        "large": {"README": "one\n", "b": "1\n" * 50},
        "rival": {"README": "two\n"},
    }.items():
        git(repo, "checkout", "-q", "-b", name, "main")
        tips[name] = commit(repo, name, **files)
    git(repo, "checkout", "-q", "main")
    main = commit(repo, "main goes on", main="2\n")
    branches = GitBranches(Repo.of(repo))
    before = picture(repo)
    fits = branches.compare(main, {name: MemberWork(tip, "x") for name, tip in tips.items()})
    readme = 2  # one line goes, one comes
    assert fits == {
        "small": Fit(1),
        "large": Fit(50 + readme, ("rival",)),
        "rival": Fit(readme, ("large",)),
    }
    assert picture(repo) == before


def test_a_branch_that_a_person_rebases_is_not_moved_from_under_the_rebase(repo, place, root):
    tip, before = commit(root, "work", other="3\n"), git(repo, "rev-parse", "main")
    git(repo, "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "--root")
    with pytest.raises(Refused, match="where a rebase is in progress"):
        GitBranches(Repo.of(repo)).move("main", tip, before)
    git(repo, "rebase", "--continue")
    GitBranches(Repo.of(repo)).move("main", tip, before)
    assert git(repo, "rev-parse", "HEAD") == tip


def test_a_checkout_in_which_another_git_is_at_work_is_left_alone(repo, place, root):
    tip, before = commit(root, "work", other="3\n"), git(repo, "rev-parse", "main")
    (repo / ".git" / "index.lock").touch()
    with pytest.raises(Refused, match="Another git process seems to be running"):
        GitBranches(Repo.of(repo)).move("main", tip, before)
    assert not (repo / ".git" / "fleet-move").exists()
    (repo / ".git" / "index.lock").unlink()
    assert GitBranches(Repo.of(repo)).move("main", tip, before) == str(repo)


def test_a_file_and_a_directory_of_one_name_conflict_by_that_name(tmp_path):
    repo = make_repo(tmp_path / "shop", d__file="1\n")
    git(repo, "checkout", "-q", "-b", "work")
    tip = commit(repo, "one more in it", d__more="2\n")
    git(repo, "checkout", "-q", "main")
    git(repo, "rm", "-rq", "d")
    main = commit(repo, "a file instead", d="3\n")
    built = GitBranches(Repo.of(repo)).build(main, MemberWork(tip, "Work"))
    assert "d" in built.conflicts
    assert not [name for name in built.conflicts if "~" in name]


def test_attributes_of_the_repository_say_how_files_are_merged(tmp_path):
    repo = make_repo(tmp_path / "shop", README="hello\n", **{".gitattributes": "* merge=union\n"})
    works = {name: MemberWork(tip, "x") for name, tip in rivals(repo).items()}
    git(repo, "checkout", "-q", "main")
    branches = GitBranches(Repo.at(repo / ".git"))
    fits = branches.compare(git(repo, "rev-parse", "main"), works)
    assert {name: fit.rivals for name, fit in fits.items()} == {"one": (), "two": ()}
    built = branches.build(works["one"].tip, works["two"])
    text = git(repo, "show", f"{built.commit}:README")
    assert sorted(line.split()[0] for line in text.splitlines()) == ["one", "two"]


def test_a_forecast_of_more_branches_starts_no_more_gits(tmp_path, monkeypatch):
    top, counts = make_repo(tmp_path / "repo"), []
    base, tree = git(top, "rev-parse", "HEAD"), git(top, "rev-parse", "HEAD^{tree}")
    trace, config = tmp_path / "trace", tmp_path / "config"
    for name in range(6):
        tip = git(top, "commit-tree", tree, "-p", base, "-m", f"{name}")
        git(top, "branch", f"b{name}", tip)
    config.write_text(f"[trace2]\n\tnormalTarget = {trace}\n")
    onto = git(top, "branch", "--show-current")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    for names in (range(1), range(1, 6)):
        trace.write_text("")
        works = [
            Finished(f"t-{n}", f"b{n}", base, onto, git(top, "rev-parse", f"b{n}"), (), ())
            for n in names
        ]
        trace.write_text("")
        assert len(outlook(str(top / ".git"), works)) == len(works)
        counts.append(trace.read_text().count(" start git "))
    assert counts[0] == counts[1] > 0


def test_a_history_answers_as_git_does(tmp_path):
    top = make_repo(tmp_path / "repo")
    tree, commits = git(top, "rev-parse", "HEAD^{tree}"), [git(top, "rev-parse", "HEAD")]
    for n, parents in enumerate([(0,), (1,), (1,), (2, 3), (3,), (5, 2), (4,), (6,)]):
        options = [word for parent in parents for word in ("-p", commits[parent])]
        commits.append(git(top, "commit-tree", tree, *options, "-m", f"{n}"))
    repo = Repo.at(top / ".git")
    names = commits[1:]
    history = History(repo, names)
    for one in names:
        for other in names:
            assert history.is_ancestor(one, other) == repo.is_ancestor(one, other)
            assert history.merge_base(one, other) == git(top, "merge-base", one, other)
        words = ("log", "--first-parent", "--reverse", "--format=%s", one, "--not", commits[2])
        subjects = [commit.subject for commit in history.first_parents(one, [commits[2]])]
        assert subjects == [w for w in git(top, *words).splitlines() if one != commits[2]]


@pytest.mark.parametrize("checked_out", [True, False])
def test_a_branch_that_somebody_moved_is_not_moved_from_under_them(repo, place, root, checked_out):
    tip, before = commit(root, "work", other="3\n"), git(repo, "rev-parse", "main")
    mine = commit(repo, "mine", mine="1\n")
    if not checked_out:
        git(repo, "checkout", "--quiet", "--detach")
    with pytest.raises(Conflict):
        GitBranches(Repo.of(repo)).move("main", tip, before)
    assert git(repo, "rev-parse", "main") == mine


@pytest.mark.parametrize("checked_out", [True, False])
def test_what_a_person_took_out_of_a_branch_does_not_come_back_with_what_was_built_on_it(
    repo, place, root, checked_out
):
    """Git would go forward from there, to a commit that has it."""
    first = git(repo, "rev-parse", "main")
    before = commit(repo, "a mistake", mine="1\n")
    git(root, "merge", "--quiet", "--ff-only", "main")
    tip = commit(root, "work", other="3\n")
    git(repo, "reset", "--quiet", "--hard", first)
    if not checked_out:
        git(repo, "checkout", "--quiet", "--detach")
    with pytest.raises(Conflict, match="has moved"):
        GitBranches(Repo.of(repo)).move("main", tip, before)
    assert git(repo, "rev-parse", "main") == first


class BranchesBesideAPerson(GitBranches):
    """A person commits to the branch just after it was looked at."""

    person = ""

    def target(self, onto):
        seen = super().target(onto)
        if not self.person:
            self.person = commit(self._repo.checkout, "by a person", mine="1\n")
            git(self._repo.top, "update-ref", f"refs/heads/{onto}", self.person)
        return seen


@pytest.mark.parametrize("checked_out", [True, False])
def test_a_branch_that_somebody_moves_meanwhile_is_not_moved(repo, place, root, checked_out):
    if not checked_out:
        git(repo, "checkout", "--quiet", "-b", "elsewhere")
    tip, before = commit(root, "work", other="3\n"), git(repo, "rev-parse", "main")
    branches = BranchesBesideAPerson(Repo.of(repo))
    with pytest.raises(Conflict, match="has moved"):
        branches.move("main", tip, before)
    assert git(repo, "rev-parse", "main") == branches.person


def test_a_remote_with_a_relative_path_is_that_of_the_checkout_and_so_are_hooks(
    repo, place, root, tmp_path
):
    git(repo.parent, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", "../far.git")
    git(repo, "push", "--quiet", "origin", "main")
    hook(repo, "pre-push", f"pwd > {tmp_path}/ran-in")
    tip, remote = (
        commit(root, "work", other="3\n"),
        RemoteBranches(Repo.at(repo / ".git"), "origin"),
    )
    remote.move("main", tip, remote.target("main").commit)
    assert git(repo.parent / "far.git", "rev-parse", "main") == tip
    assert (tmp_path / "ran-in").read_text().strip() == str(repo)


def test_a_branch_that_is_not_where_it_was_moved_to_is_said_at_once(repo, place, root):
    tip, before = commit(root, "work", other="3\n"), git(repo, "rev-parse", "main")
    hook(repo, "post-merge", f"git reset --quiet --hard {before}")
    with pytest.raises(Refused, match="does not contain") as caught:
        GitBranches(Repo.of(repo)).move("main", tip, before)
    assert caught.value.code == "wrong_tree"


def test_a_remote_that_takes_back_what_it_took_is_said_at_once(repo, place, root):
    git(repo.parent, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(repo.parent / "far.git"))
    git(repo, "push", "--quiet", "origin", "main")
    back = hook(repo, "post-receive", "while read old new ref; do git update-ref $ref $old; done")
    back.rename(repo.parent / "far.git" / "hooks" / "post-receive")
    tip, remote = commit(root, "work", other="3\n"), RemoteBranches(Repo.of(repo), "origin")
    before = remote.target("main").commit
    with pytest.raises(Refused, match="does not contain") as caught:
        remote.move("main", tip, before)
    assert caught.value.code == "wrong_tree"
    assert git(repo, "rev-parse", "main") == before


def test_a_push_takes_nothing_away_that_others_pushed_since_we_looked(repo, place, root):
    git(repo.parent, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(repo.parent / "far.git"))
    git(repo, "push", "--quiet", "origin", "main")
    tip, remote = commit(root, "work", other="3\n"), RemoteBranches(Repo.of(repo), "origin")
    before = remote.target("main").commit
    theirs = commit(repo, "of another", mine="1\n")
    git(repo, "push", "--quiet", str(repo.parent / "far.git"), "main")
    with pytest.raises(Conflict, match="has moved"):
        remote.move("main", tip, before)
    assert git(repo.parent / "far.git", "rev-parse", "main") == theirs
