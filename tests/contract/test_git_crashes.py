"""kill -9 while a workspace is being made: whoever comes next finishes it."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from fleet.adapters.git.make import Making
from fleet.adapters.git.repo import Repo
from fleet.base import machine
from tests.contract.checkouts import checkout_in, commit, git, make_repo, prepared, site
from tests.contract.launching import is_alive
from tests.wait import until

FILES = {f"d{n % 20}__f{n}": f"{n}\n" * 40 for n in range(400)}
ROUNDS = int(os.environ.get("ROUNDS", "10"))
SEED = int(os.environ.get("SEED", time.time_ns() % 100_000))


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    """Two finished branches to merge, and enough files for a checkout to take a moment."""
    repo = make_repo(tmp_path_factory.mktemp("crash") / "shop", **FILES)
    for name in ("one", "two"):
        git(repo, "checkout", "--quiet", "-b", name, "main")
        commit(repo, name, **{name: f"{name}\n"})
    git(repo, "checkout", "--quiet", "main")
    return repo


def in_a_child(act) -> int:
    """The pid of a process that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def mark_of(workspace, repo):
    return Making(Repo.of(repo), workspace, fresh=True).mark


@pytest.mark.parametrize("victims", ["the supervisor", "the supervisor and its git"])
def test_a_workspace_is_finished_whenever_its_maker_was_killed(repo, tmp_path, victims, capsys):
    rng = random.Random(SEED)
    setup = ("cat one two > set-up.tmp", "sleep 0.02; mv set-up.tmp set-up")
    checkout = checkout_in(tmp_path, setup=setup)
    begun = time.monotonic()
    prepared(checkout, site(repo, f"t-{SEED}", merges=["one", "two"]))
    takes = time.monotonic() - begun
    for number in range(ROUNDS):
        wanted = site(repo, f"t-{SEED}{number}{len(victims)}", merges=["one", "two"])
        planned = checkout.plan(wanted)
        child = in_a_child(lambda p=planned, w=wanted: checkout.prepare(p, w))
        time.sleep(rng.uniform(0, takes * 1.1))
        kill(child)
        if "git" in victims:
            for pid in machine.marked(mark_of(planned, repo)):
                machine.send_signal(pid, signal.SIGKILL, mark=mark_of(planned, repo))
        checkout.prepare(planned, wanted)
        try:
            whole(planned, repo)
        except AssertionError as error:
            raise AssertionError(f"SEED={SEED}, round {number}: {error}") from error
    with capsys.disabled():
        print(f"\nSEED={SEED}: {ROUNDS} times {victims} killed within {takes:.2f} s")


def whole(workspace, repo):
    root = Path(workspace.root)
    assert Path(root, "set-up").read_text() == "one\ntwo\n"
    assert git(root, "status", "--porcelain") == "?? set-up"
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD") == workspace.branch
    assert sum(1 for p in root.rglob("f*") if p.is_file()) == len(FILES)
    merges = git(root, "log", "--format=%s", "main..HEAD").splitlines()
    assert len(merges) == len(set(merges)) == 3
    assert git(root, "fsck", "--no-dangling", check=False) == ""
    assert not root.with_name(f"{root.name}.making").exists()
    assert git(repo, "worktree", "list", "--porcelain").count(f"worktree {root}\n") == 1


def test_a_set_up_that_outlived_its_supervisor_is_ended_before_it_is_begun_again(repo, tmp_path):
    pids = tmp_path / "pids"
    long_at_first = f"[ -s {pids} ] && for=0 || for=60; echo $$ >> {pids}; sleep $for"
    checkout = checkout_in(tmp_path, setup=(f"{long_at_first}; echo done >> {pids}",))
    wanted = site(repo, "t-7000")
    planned = checkout.plan(wanted)
    child = in_a_child(lambda: checkout.prepare(planned, wanted))
    until(lambda: pids.exists() and pids.read_text())
    kill(child)
    first = int(pids.read_text())
    assert is_alive(first)
    checkout.prepare(planned, wanted)
    assert not is_alive(first)
    _, second, done = pids.read_text().split()
    assert (int(second) != first, done) == (True, "done")


def test_what_an_agent_did_is_never_made_again(repo, tmp_path):
    """The file that says "not whole yet" is gone before anybody may work there."""
    checkout = checkout_in(tmp_path)
    wanted = site(repo, "t-7001")
    planned = prepared(checkout, wanted)
    Path(planned.root, "precious").write_text("uncommitted\n")
    git(Path(planned.root), "checkout", "--quiet", "--detach")
    checkout.prepare(planned, wanted)
    assert Path(planned.root, "precious").exists()


def test_locks_that_a_killed_agents_git_left_do_not_stop_the_next_run(repo, tmp_path):
    checkout = checkout_in(tmp_path)
    planned = prepared(checkout, site(repo, "t-7003"))
    root = Path(planned.root)
    places = [git(root, "rev-parse", "--path-format=absolute", "--git-path", n) for n in (
        "index.lock", "HEAD.lock", f"refs/heads/{planned.branch}.lock")]  # fmt: skip
    for place in places:
        Path(place).touch()
        os.utime(place, (time.time() - 5, time.time() - 5))
    assert git(root, "commit", "--allow-empty", "-m", "x", check=False) == ""
    prepared(checkout, site(repo, "t-7003", 2, previous=planned))
    assert git(root, "commit", "--allow-empty", "-m", "x")
    Path(places[0]).touch()  # a moment ago; nobody is left who could be at work there
    prepared(checkout, site(repo, "t-7003", 3, previous=planned))
    assert not Path(places[0]).exists()


def test_a_lock_that_a_killed_git_left_on_the_branch_is_no_obstacle(repo, tmp_path):
    checkout = checkout_in(tmp_path)
    wanted = site(repo, "t-7002")
    planned = checkout.plan(wanted)
    Path(planned.root).parent.mkdir(parents=True)
    Path(f"{planned.root}.making").touch()
    (repo / ".git" / "refs" / "heads" / "fleet").mkdir(exist_ok=True)
    (repo / ".git" / "refs" / "heads" / f"{planned.branch}.lock").touch()
    checkout.prepare(planned, wanted)
    assert git(Path(planned.root), "rev-parse", "--abbrev-ref", "HEAD") == planned.branch
