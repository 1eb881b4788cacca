"""`fleet land`: the tree that was tested is the tree that lands, and work that cannot land goes back."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.domain.landing.landing import Move, result_id
from fleet.domain.run import Host
from fleet.ports import LandingQuery, Put
from tests.contract.checkouts import git
from tests.wait import until

MERGE = "git -c user.name=a -c user.email=a@b merge -q"


def done(supervised, *tasks: str, **env: str) -> None:
    supervised.start(**env)
    supervised.wait(*tasks)


def land(supervised, *words: str, status: int = 0, **env: str):
    ended = supervised.type("land", *words, **env)
    assert ended.returncode == status, ended.stderr + ended.stdout
    return ended.stdout + ended.stderr


def landed(supervised, *tasks: str) -> None:
    for task in tasks:
        until(
            lambda task=task: supervised.task(task).tally.landed,
            why=lambda: land(supervised, "list", "--all"),
        )


def gates(supervised) -> list[str]:
    return [path.name for path in supervised.home.glob("runs/land-*")]


def main_branch(supervised) -> str:
    return git(supervised.repo, "symbolic-ref", "--short", "HEAD")


def test_work_lands_at_once_without_a_gate_where_its_branch_has_not_moved(supervised):
    task = supervised.add("write a.txt x", gate="test -e a.txt")
    done(supervised, task)
    said = land(supervised, task, "--now")
    tip = git(supervised.repo, "rev-parse", "HEAD")
    assert said == f"{task} landed on {main_branch(supervised)} ({tip[:12]}).\n"
    assert gates(supervised) == []
    assert (supervised.repo / "a.txt").read_text() == "x\n"
    assert "landed" in supervised.type("tasks", "--all").stdout


def test_work_is_tested_on_the_merged_tree_before_it_lands(supervised):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    done(supervised, one, two, FLEET_RUN_GATE="! test -e a.txt || ! test -e b.txt")
    land(supervised, one, "--now")
    before = git(supervised.repo, "rev-parse", "HEAD")
    land(supervised, two)
    until(lambda: "returned" in land(supervised, "list") or "held" in land(supervised, "list"))
    assert len(gates(supervised)) >= 1
    assert git(supervised.repo, "rev-parse", "HEAD") == before
    until(lambda: len(supervised.endings(two)) > 1, why=lambda: supervised.story(two))
    heard = supervised.transcript(two) + json.dumps(
        [m.text for m in supervised.store.messages(two)]
    )
    assert "does not pass" in heard


def test_a_conflict_goes_back_to_its_agent_who_merges_and_then_it_lands(supervised):
    name = main_branch(supervised)
    one = supervised.add("write f.txt one", "commit One")
    fix = f'run sh -c "{MERGE} {name} || true; echo both > f.txt; git add f.txt"'
    two = supervised.add("write f.txt two", "commit Two", "end", fix, "commit Merged")
    done(supervised, one, two)
    land(supervised, one, two)
    landed(supervised, one, two)
    assert (supervised.repo / "f.txt").read_text() == "both\n"
    assert len(supervised.endings(two)) == 2
    (words,) = [m.text for m in supervised.store.messages(two) if m.kind == "words"]
    assert "f.txt" in words
    assert "Merge, do not rebase" in words
    assert "+one" in words


def test_work_that_comes_back_too_often_needs_a_person(supervised):
    one = supervised.add("write f.txt one", "commit One")
    two = supervised.add("write f.txt two", "commit Two", "end", "end")
    done(supervised, one, two, FLEET_LAND_TRIES="1")
    land(supervised, one, two)
    landed(supervised, one)
    until(lambda: "held" in land(supervised, "list"), why=lambda: land(supervised, "list"))
    assert "conflicts" in land(supervised, "show", two)


@pytest.mark.parametrize("what", ["failed", "running", "uncommitted"])
def test_what_is_not_done_does_not_land(supervised, what):
    script, env = {
        "failed": (["write a.txt x", "commit A", "exit 3"], {}),
        "running": (["write a.txt x", "commit A", "sleep 60"], {}),
        "uncommitted": (["write a.txt x"], {"FLEET_RUN_COMMIT": "leave"}),
    }[what]
    task = supervised.add(*script, attempts=1)
    supervised.start(**env)
    if what == "running":
        supervised.running(task)
    else:
        supervised.wait(task, state="failed" if what == "failed" else "done")
    said = land(supervised, task, status=1)
    assert {"failed": "failed", "running": "still running", "uncommitted": "not committed"}[
        what
    ] in said
    assert "fleet" in said


def test_force_lands_what_failed_and_says_who_and_why(supervised):
    task = supervised.add("write a.txt x", "commit A", "exit 3", attempts=1)
    supervised.start()
    supervised.wait(task, state="failed")
    assert "reason" in land(supervised, task, "--force", status=2)
    land(supervised, task, "--force", "--why", "It is needed today.", "--now")
    assert (supervised.repo / "a.txt").exists()
    (event,) = [e for e in supervised.store.events(task=task) if e.type == "landing.queued"]
    assert event.data["force"] == "It is needed today."
    assert event.actor == "ada"


def test_work_lands_on_the_branch_that_its_task_started_from(supervised):
    name = main_branch(supervised)
    git(supervised.repo, "branch", "release")
    task = supervised.add("write a.txt x", base="release")
    done(supervised, task)
    land(supervised, task, "--now")
    assert git(supervised.repo, "show", "release:a.txt") == "x"
    assert git(supervised.repo, "ls-tree", "--name-only", name, "a.txt") == ""


def test_a_checkout_with_changes_of_its_own_is_not_harmed_and_said(supervised):
    task = supervised.add("write README x", "commit A")
    done(supervised, task)
    tracked = git(supervised.repo, "ls-files").splitlines()[0]
    (supervised.repo / tracked).write_text("mine\n")
    land(supervised, task)
    until(lambda: "changes of its own" in supervised.said(), why=supervised.said)
    assert (supervised.repo / tracked).read_text() == "mine\n"
    git(supervised.repo, "checkout", tracked)
    landed(supervised, task)


def test_a_branch_that_a_person_moved_meanwhile_is_built_upon(supervised):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    (supervised.repo / "mine.txt").write_text("mine\n")
    git(supervised.repo, "add", "mine.txt")
    git(supervised.repo, "commit", "-q", "-m", "Mine")
    land(supervised, task, "--now")
    assert git(supervised.repo, "show", "HEAD:mine.txt") == "mine"
    assert git(supervised.repo, "show", "HEAD:a.txt") == "x"


def test_squash_makes_one_commit_with_the_tested_tree(supervised):
    task = supervised.add("write a.txt 1", "commit A", "write a.txt 2", "commit B")
    done(supervised, task)
    before = git(supervised.repo, "rev-parse", "HEAD")
    land(supervised, task, "--as", "squash", "--now")
    assert git(supervised.repo, "rev-list", "--count", f"{before}..HEAD") == "1"
    assert git(supervised.repo, "show", "HEAD:a.txt") == "2"


def test_a_landing_goes_on_after_the_supervisor_was_killed_while_its_gate_ran(supervised):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    env = {"FLEET_LAND_GATE": "echo gate >> ../gates; sleep 2"}
    done(supervised, one, two, **env)
    land(supervised, one)
    mark = lambda: list((supervised.home / "gates").rglob("gates"))  # noqa: E731
    until(mark, why=supervised.said)
    supervised.end(signal.SIGKILL)
    supervised.start(**env)
    landed(supervised, one)
    assert sum(p.read_text().count("gate") for p in mark()) == 1
    land(supervised, two)
    landed(supervised, two)
    assert git(supervised.repo, "fsck", "--no-dangling") == ""


def test_a_move_that_was_carried_out_before_a_kill_is_written_down_though_the_branch_is_paused(
    supervised,
):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    land(supervised, task)
    (train,) = supervised.store.trains().values()
    before, tip = git(supervised.repo, "rev-parse", "HEAD"), supervised.task(task).tally.checkpoint
    move = Move(before, tip.commit, (train_member(supervised),), (tip.commit,), "", "It passed.")
    supervised.store.commit([Put(replace(train, move=move, paused="ada"))], [])
    git(supervised.repo, "merge", "--quiet", "--ff-only", tip.commit)
    supervised.type("run", "--once")
    (landing,) = supervised.store.landings(LandingQuery())
    assert (landing.state, landing.commit) == ("landed", tip.commit)
    assert landing.evidence.rule == "It passed."


def train_member(supervised) -> str:
    (landing,) = supervised.store.landings(LandingQuery())
    return landing.id


def test_another_hosts_queue_is_left_alone_until_its_lease_is_over(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    land(supervised, task)
    (train,) = supervised.store.trains().values()
    lease = supervised.store.now() + 600_000_000
    other = Host("other", 0, "other", "holder", "", lease)
    supervised.store.commit([Put(other), Put(replace(train, host="other"))], [])
    supervised.type("run", "--once")
    (train,) = supervised.store.trains().values()
    assert (supervised.task(task).tally.landed, train.host) == ("", "other")
    over = replace(supervised.store.hosts()["other"], lease_until=1)
    supervised.store.commit([Put(over)], [])
    supervised.type("run", "--once")
    (train,) = supervised.store.trains().values()
    assert supervised.task(task).tally.landed
    assert train.host not in {"", "other"}  # from now on, the other host cannot write it


def test_a_gate_whose_keeper_vanished_is_run_again(supervised):
    task = supervised.add("write a.txt x")
    gate = "test -e ../again || { touch ../again; sleep 60; }"
    done(supervised, task, FLEET_LAND_GATE=gate)
    land(supervised, task)
    until(lambda: list((supervised.home / "gates").rglob("again")), why=supervised.said)
    (keeper,) = supervised.home.glob("runs/land-*/keeper.json")
    os.kill(json.loads(keeper.read_text())["pid"], signal.SIGKILL)
    landed(supervised, task)


def test_hold_move_pause_and_drop(supervised):
    tasks = [supervised.add(f"write {n}.txt x") for n in "abc"]
    done(supervised, *tasks)
    supervised.end(signal.SIGTERM)
    land(supervised, *tasks)
    land(supervised, "move", tasks[2])
    rows = json.loads(supervised.type("land", "list", "--json").stdout)["data"]
    assert [row["task"] for row in rows] == [tasks[2], tasks[0], tasks[1]]
    land(supervised, "hold", tasks[0])
    land(supervised, "drop", tasks[1])
    land(supervised, "pause")
    supervised.start()
    assert supervised.task(tasks[2]).tally.landed == ""
    land(supervised, "resume")
    landed(supervised, tasks[2])
    assert not Path(supervised.repo, "a.txt").exists()
    land(supervised, "release", tasks[0])
    landed(supervised, tasks[0])
    assert not Path(supervised.repo, "b.txt").exists()
    assert supervised.task(tasks[1]).tally.landing == ""


def test_work_of_a_more_urgent_task_lands_first(supervised):
    usual, urgent, late = (
        supervised.add(f"write {n}.txt x", priority=priority)
        for n, priority in enumerate((2, 0, 3))
    )
    done(supervised, usual, urgent, late)
    supervised.end(signal.SIGTERM)
    land(supervised, late, usual, urgent)
    rows = json.loads(supervised.type("land", "list", "--json").stdout)["data"]
    assert [row["task"] for row in rows] == [urgent, usual, late]
    land(supervised, "move", late)
    rows = json.loads(supervised.type("land", "list", "--json").stdout)["data"]
    assert [row["task"] for row in rows] == [late, urgent, usual]


def test_small_work_lands_before_large_work_and_what_conflicts_last(supervised, tmp_path):
    go, main = tmp_path / "go", main_branch(supervised)
    rivals = [supervised.add(f"write same.txt {n}", f"commit {n}") for n in "xy"]
    large = supervised.add('run sh -c "seq 500 > large.txt"', "commit Large")
    small = supervised.add("write small.txt x", "commit Small")
    done(supervised, *rivals, large, small)
    supervised.end(signal.SIGTERM)
    moved = supervised.add("write moved.txt x", "commit Moved")
    gate = f"until test -e {go}; do sleep 0.05; done"
    done(supervised, moved, FLEET_LAND_GATE=gate)
    supervised.end(signal.SIGTERM)
    land(supervised, *rivals, large, moved, small)
    land(supervised, "move", moved, "--before", rivals[1])

    def queue() -> list[str]:
        rows = json.loads(supervised.type("land", "list", "--json").stdout)["data"]
        return [row["task"] for row in rows]

    supervised.start(FLEET_LAND_GATE=gate)
    until(lambda: queue() == [small, moved, large, *rivals], why=lambda: str(queue()))
    later = supervised.add("write later.txt x", "commit Later")
    supervised.wait(later)
    land(supervised, later)
    until(lambda: "testing" in land(supervised, "trains"))
    assert queue() == [small, moved, large, *rivals, later]
    go.write_text("")
    landed(supervised, small, large, rivals[0], later)
    merges = git(supervised.repo, "log", "--first-parent", "--format=%s", main)
    assert merges.index("write same.txt x") < merges.index("seq 500")


def test_work_that_was_merged_or_rebased_by_hand_counts_as_landed(supervised):
    one = supervised.add("write a.txt x", "commit A")
    two = supervised.add("write b.txt x", "commit B")
    done(supervised, one, two)
    git(supervised.repo, "merge", "-q", supervised.run(one).workspace.branch)
    git(supervised.repo, "cherry-pick", supervised.run(two).workspace.branch)
    landed(supervised, one, two)


def test_a_task_that_another_one_brought_along_counts_as_landed(supervised):
    one = supervised.add("write a.txt x")
    two = supervised.add("write b.txt x", after=[one])
    done(supervised, two)
    land(supervised, two, "--now")
    landed(supervised, one)


def test_with_land_auto_work_lands_as_soon_as_it_is_done(supervised):
    one = supervised.add("write a.txt x")
    two = supervised.add("write b.txt x")
    nothing = supervised.add("say Nothing to do.")
    supervised.start(FLEET_LAND_AUTO="true")
    landed(supervised, one, two)
    supervised.wait(nothing)
    assert supervised.task(nothing).tally.landing == ""


def test_nothing_lands_past_a_gate_that_is_not_trusted(supervised):
    task = supervised.add("write a.txt x", gate="true")
    done(supervised, task)
    (supervised.repo / "fleet.yaml").write_text("run:\n  gate: exit 1\n")
    assert "not trusted" in supervised.type("merge", task).stderr
    land(supervised, task)
    until(lambda: "is not trusted" in supervised.said(), why=supervised.said)
    assert supervised.task(task).tally.landed == ""


def test_all_lands_what_is_done_here_and_passes_over_what_has_no_branch(supervised):
    here = supervised.add("say Nothing.", in_place=True)
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    failed = supervised.add("exit 3", attempts=1)
    done(supervised, here, one, two)
    supervised.wait(failed, state="failed")
    said = land(supervised, "--all", "--now")
    assert said.count("landed on") == 2
    assert "Nothing here is done and not landed." in land(supervised, "--all")


@pytest.mark.parametrize("supervisor", [True, False])
def test_now_does_not_wait_for_a_person_and_says_what_is_in_the_way(supervised, supervisor):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    if not supervisor:
        supervised.end(signal.SIGTERM)
    tracked = git(supervised.repo, "ls-files").splitlines()[0]
    (supervised.repo / tracked).write_text("mine\n")
    said = land(supervised, task, "--now", status=1)
    assert "has not landed" in said
    assert "changes of its own" in said
    assert "stays queued" in said
    git(supervised.repo, "checkout", tracked)
    if not supervisor:
        supervised.start()
    landed(supervised, task)


def test_what_was_in_the_way_is_tried_again_at_once(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    tracked = git(supervised.repo, "ls-files").splitlines()[0]
    (supervised.repo / tracked).write_text("mine\n")
    said = land(supervised, task, "--now", status=1)
    assert "has changes of its own. Commit or stash them there. It stays queued" in said
    git(supervised.repo, "checkout", tracked)
    assert "landed on" in land(supervised, task, "--now")


def test_a_hook_that_never_lets_the_branch_move_does_not_keep_a_single_pass_going(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    name = main_branch(supervised)
    git(supervised.repo, "checkout", "-q", "--detach")  # the branch is moved alone
    hook = supervised.repo / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    no = f'while read old new ref; do test "$ref" != refs/heads/{name} || exit 1; done'
    hook.write_text(f'#!/bin/sh\ntest "$1" = prepared || exit 0\n{no}\n')
    hook.chmod(0o755)
    land(supervised, task)
    ended = supervised.type("run", "--once")
    assert ended.stderr.count(f"could not move {name}") == 1
    assert "could not move" in land(supervised, "show", task)
    hook.unlink()
    assert "landed on" in land(supervised, task, "--now")


def test_work_does_not_land_on_its_own_branch(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    said = land(supervised, task, "--onto", supervised.run(task).workspace.branch, status=1)
    assert f"is the branch of {task} itself" in said
    assert supervised.task(task).tally.landed == ""


def test_a_commit_whose_files_no_gate_has_tested_stops_the_queue(supervised):
    """As after a store and a repository that were restored from different days."""
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    land(supervised, task)
    (train,) = supervised.store.trains().values()
    before, tip = git(supervised.repo, "rev-parse", "HEAD"), supervised.task(task).tally.checkpoint
    (landing,) = supervised.store.landings(LandingQuery())
    other = result_id(git(supervised.repo, "rev-parse", "HEAD^{tree}"), "true", ())
    wrong = Move(before, tip.commit, (landing.id,), (tip.commit,), other, "It passed the gate.")
    supervised.store.commit([Put(replace(train, move=wrong))], [])
    supervised.start()
    until(lambda: "not those that were tested" in supervised.said(), why=supervised.said)
    assert git(supervised.repo, "rev-parse", "HEAD") == before
    (row,) = json.loads(supervised.type("land", "trains", "--json").stdout)["data"]
    assert "not those that were tested" in row["stopped"]
    (train,) = supervised.store.trains().values()
    assert train.stopped
    assert not supervised.task(task).tally.landed
    supervised.type("land", "resume")
    landed(supervised, task)


def test_a_branch_that_there_is_not_is_refused_when_typed(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    said = land(supervised, task, "--onto", "nope", status=2)
    assert f"There is no branch 'nope' in {supervised.repo}." in said
    assert "git branch nope" in said
    assert supervised.task(task).tally.landing == ""


def test_a_repository_that_was_moved_is_what_its_landings_wait_for(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    supervised.end(signal.SIGTERM)
    old, new = supervised.repo, supervised.place / "elsewhere"
    supervised.repo = old.rename(new)
    said = land(supervised, task, "--now", status=1)
    assert f"{old}/.git does not exist. Move it back to where it was" in said
    old.symlink_to(new)
    assert "landed on" in land(supervised, task, "--now")


def test_undo_takes_landed_work_out_again_tested_like_any_other(supervised):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    done(supervised, one, two, FLEET_LAND_GATE="test -e b.txt")
    land(supervised, one, two)
    landed(supervised, one, two)
    said = land(supervised, "undo", one)
    undo = said.split()[0]
    landed(supervised, undo)
    assert not (supervised.repo / "a.txt").exists()
    assert (supervised.repo / "b.txt").exists()
    assert f"Undo {one}" in git(supervised.repo, "log", "-1", "--format=%s")
    bad = land(supervised, "undo", two).split()[0]  # the gate does not pass without it
    until(lambda: supervised.store.landing(supervised.task(bad).tally.landing).returns)
    assert (supervised.repo / "b.txt").exists()
    assert "nothing to undo" in land(supervised, "undo", bad, status=1)


def test_an_undo_that_was_cut_off_leaves_nothing_behind_once_it_is_made_again(supervised):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    land(supervised, task, "--now")
    hook = supervised.repo / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    kill_fleet = 'kill -9 "$(cut -d " " -f 4 /proc/$PPID/stat)"'
    hook.write_text(
        '#!/bin/sh\nwhile read old new ref; do case "$1 $ref" in'
        f' "committed refs/fleet/train/"*) {kill_fleet};; esac; done\n'
    )
    hook.chmod(0o700)
    earlier = supervised.type("land", "undo", task, GIT_COMMITTER_DATE="2005-04-07T22:13:13Z")
    assert earlier.returncode == -signal.SIGKILL
    hook.unlink()
    landed(supervised, land(supervised, "undo", task).split()[0])
    assert git(supervised.repo, "for-each-ref", "refs/fleet/train") == ""


def test_an_agent_undoes_what_later_work_builds_on(supervised):
    one = supervised.add("write f.txt one", "commit One")
    done(supervised, one)
    land(supervised, one, "--now")
    (supervised.repo / "f.txt").write_text("one and more\n")
    git(supervised.repo, "commit", "-qam", "More")
    undo = land(supervised, "undo", one).split()[0]
    assert supervised.store.landing(supervised.task(undo).tally.landing).state == "returned"
    assert "Work that came later stays" in supervised.task(undo).prompt


def test_after_landing_the_worktree_is_parked_and_the_branch_is_gone(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    space = supervised.run(task).workspace
    land(supervised, task, "--now")
    until(lambda: not Path(space.root).exists())
    until(lambda: git(supervised.repo, "branch", "--list", space.branch) == "")
    assert "a.txt" in supervised.type("diff", task, "--name-only").stdout


def test_a_reconciler_mends_the_conflict_in_a_conversation_of_its_own(supervised):
    (supervised.repo / "fleet.yaml").write_text("agents:\n  neutral:\n    coder: scripted\n")
    one = supervised.add("write f.txt one", "commit One")
    two = supervised.add("write f.txt two", "commit Two")
    done(supervised, one, two, FLEET_LAND_RECONCILER="neutral", FLEET_LAND_TRIES="1")
    land(supervised, one, two)
    until(lambda: len(supervised.endings(two)) > 1, why=lambda: supervised.story(two))
    assert supervised.run(two, 1).choice.agent != "neutral"
    assert supervised.run(two, 2).choice.agent == "neutral"


def test_a_task_can_wait_until_another_one_has_landed(supervised):
    one = supervised.add("write a.txt x")
    ended = supervised.type("add", "write b.txt x", "--after", f"{one}:landed", "--json")
    two = json.loads(ended.stdout)["data"]["id"]
    done(supervised, one)
    assert f"It waits until {one} has landed" in supervised.type("show", two).stdout
    assert supervised.state(two) == "open"
    land(supervised, one)
    supervised.wait(two)
    assert supervised.task(one).tally.landed


def test_what_a_task_waited_for_lands_with_it_in_the_same_moment(supervised):
    one = supervised.add("write a.txt x", "commit A")
    two = supervised.add("write b.txt x", "commit B", after=(one,))
    done(supervised, one, two)
    supervised.end(signal.SIGTERM)
    land(supervised, two, "--now", "--as", "squash")
    listed = supervised.type("tasks", "--all", "--json").stdout
    assert {row["id"]: row["status"] for row in json.loads(listed)["data"]} == {
        one: "landed",
        two: "landed",
    }
    (event,) = [e for e in supervised.store.events(task=one) if e.type == "task.landed"]
    assert event.data["onto"] == main_branch(supervised)


@pytest.mark.parametrize("command", ["tasks", "show", "review", "status"])
def test_work_that_was_merged_by_hand_has_landed_also_where_no_supervisor_runs(supervised, command):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    done(supervised, one, two)
    supervised.end(signal.SIGTERM)
    git(supervised.repo, "merge", "-q", "--no-edit", f"fleet/{one}")
    words = {"show": ["show", one], "tasks": ["tasks", "--all"]}.get(command, [command])
    printed = supervised.type(*words).stdout
    assert command not in {"show", "tasks"} or "landed" in printed
    assert command != "review" or one not in printed
    assert (supervised.task(one).tally.landed, supervised.task(two).tally.landed) == (
        git(supervised.repo, "rev-parse", "HEAD"),
        "",
    )


def test_who_queues_work_where_no_supervisor_runs_is_told(supervised):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    assert "No supervisor" not in land(supervised, task)
    landed(supervised, task)
    again = supervised.add("write b.txt x")
    supervised.wait(again)
    supervised.end(signal.SIGTERM)
    assert "No supervisor is running, so nothing lands." in land(supervised, again)


def test_work_that_only_removes_lines_names_the_next_step(supervised):
    tracked = git(supervised.repo, "ls-files").splitlines()[0]
    task = supervised.add(f"run git rm -q {tracked}", "commit Gone")
    done(supervised, task)
    assert f"fleet land {task}" in supervised.type("show", task).stdout


def test_with_another_environment_what_passed_is_tested_again(supervised):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x", base="HEAD")
    more = {"FLEET_RUN_GATE": "true", "FLEET_LAND_ENVIRONMENT": "TOOLCHAIN"}
    done(supervised, one, two, TOOLCHAIN="1", **more)
    supervised.end(signal.SIGTERM)
    land(supervised, one, "--now", TOOLCHAIN="2", **more)
    assert len(gates(supervised)) == 1
    land(supervised, two, "--now", TOOLCHAIN="2", **more)
    assert len(gates(supervised)) == 2  # main has moved


def test_work_that_is_released_is_tested_again_though_it_failed_before(supervised):
    task = supervised.add("write a.txt x")
    ready = supervised.home / "ready"
    env = {"FLEET_LAND_GATE": f"test -e {ready}", "FLEET_LAND_TRIES": "0"}
    done(supervised, task, **env)
    land(supervised, task)
    until(lambda: "held" in land(supervised, "list"), why=lambda: land(supervised, "list"))
    ready.touch()
    land(supervised, "release", task)
    landed(supervised, task)


def test_a_worktree_for_gates_that_git_was_killed_in_is_made_again(supervised):
    one, two = supervised.add("write a.txt x"), supervised.add("write b.txt x")
    done(supervised, one, two, FLEET_LAND_GATE="true")
    land(supervised, one)
    landed(supervised, one)
    (root,) = supervised.home.glob("gates/*/1")
    half = next(
        d
        for d in supervised.repo.glob(".git/worktrees/*")
        if (d / "gitdir").read_text().strip() == f"{root}/.git"
    )
    (half / "locked").write_text("initializing")  # as git leaves it
    (half / "HEAD").write_text("0" * 40 + "\n")
    shutil.rmtree(root)
    land(supervised, two)
    landed(supervised, two)
    assert git(supervised.repo, "fsck", "--no-dangling", "--no-progress") == ""


def under_test(supervised) -> None:
    until(lambda: "testing" in land(supervised, "trains"), why=supervised.said)


def open_gate(path: Path) -> str:
    """A gate that passes once this file exists."""
    return f"until test -e {path}; do sleep 0.05; done"


@pytest.mark.parametrize("command", ["hold", "drop", "move"])
def test_what_waits_for_rival_work_goes_on_once_that_is_out_of_its_way(
    supervised, tmp_path, command
):
    first, second = (supervised.add(f"write f.txt {n}", f"commit {n}") for n in "xy")
    gate = open_gate(tmp_path / "go")
    done(supervised, first, second, FLEET_LAND_GATE=gate, FLEET_LAND_SLOTS="3")
    land(supervised, first, second)
    under_test(supervised)  # so the second one is known to conflict with the first
    land(supervised, command, second if command == "move" else first)
    until(lambda: f"{second} (testing" in land(supervised, "trains"), why=supervised.said)
    (tmp_path / "go").touch()
    landed(supervised, second)
    assert (supervised.repo / "f.txt").read_text() == "y\n"


def test_each_project_of_a_repository_has_its_work_tested_by_its_own_gate(supervised):
    repo = supervised.repo
    for name, gate in (("a", "true"), ("b", "! test -e bad.txt")):
        (repo / name).mkdir()
        (repo / name / "fleet.yaml").write_text(f"run:\n  gate: '{gate}'\n")
        assert supervised.type("trust", cwd=repo / name).returncode == 0
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Two projects")
    one = supervised.add("write a.txt x", "commit A", project=repo / "a")
    two = supervised.add("write b.txt x", "commit B", project=repo / "b")
    done(supervised, one, two)
    supervised.end(signal.SIGTERM)
    (repo / "b" / "bad.txt").write_text("x\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "What the gate of b does not let pass")
    land(supervised, one, two)
    (train,) = supervised.store.trains().values()
    supervised.store.commit([Put(replace(train, batch=2))], [])  # both in one candidate
    supervised.start(FLEET_LAND_TRIES="0")
    landed(supervised, one)
    until(lambda: "held" in land(supervised, "list"), why=lambda: land(supervised, "list", "--all"))
    assert supervised.task(two).tally.landed == ""
    assert "bad.txt" in land(supervised, "show", two)


def test_work_that_a_person_sends_back_from_the_queue_lands_as_its_agent_leaves_it(
    supervised, tmp_path
):
    task = supervised.add("write a.txt 1", "commit One", "end", "write a.txt 2", "commit Two")
    done(supervised, task, FLEET_LAND_GATE=open_gate(tmp_path / "go"))
    land(supervised, task)
    under_test(supervised)
    land(supervised, "return", task, "Write two.")
    until(lambda: len(supervised.endings(task)) == 2, why=lambda: supervised.story(task))
    under_test(supervised)
    (tmp_path / "go").touch()
    landed(supervised, task)
    assert (supervised.repo / "a.txt").read_text() == "2\n"


@pytest.mark.parametrize("how", ["merge", "squash"])
@pytest.mark.parametrize("held", [True, False])
def test_what_a_person_commits_while_work_is_tested_comes_along(supervised, tmp_path, how, held):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task, FLEET_LAND_GATE=open_gate(tmp_path / "go"))
    land(supervised, task, "--as", how)
    under_test(supervised)
    if held:
        land(supervised, "hold", task)
    root = Path(supervised.run(task).workspace.root)
    (root / "a.txt").write_text("mine\n")
    git(root, "commit", "-qam", "Mine")
    tip = git(root, "rev-parse", "HEAD")
    if held:
        land(supervised, "release", task)
    (tmp_path / "go").touch()
    landed(supervised, task)
    assert (supervised.repo / "a.txt").read_text() == "mine\n"
    if how == "squash":
        (kept,) = git(supervised.repo, "for-each-ref", "refs/fleet/landed").splitlines()
        assert kept.startswith(tip)


def test_work_does_not_bring_along_what_a_person_holds(supervised):
    one = supervised.add("write a.txt x", "commit A")
    two = supervised.add("write b.txt x", "commit B", after=[one])
    three = supervised.add("write c.txt x", "commit C", after=[two])
    done(supervised, three)
    supervised.end(signal.SIGTERM)
    land(supervised, one, three)
    land(supervised, "hold", one)
    supervised.start()
    waits = f"It has the work of {one}, whose landing is held"
    until(lambda: waits in land(supervised, "show", three), why=supervised.said)
    land(supervised, "release", one)
    landed(supervised, one, two, three)


def test_forced_work_of_a_failed_task_that_conflicts_is_held_for_a_person(supervised):
    one = supervised.add("write f.txt one", "commit One")
    two = supervised.add("write f.txt two", "commit Two", "exit 3", attempts=1)
    done(supervised, one)
    supervised.wait(two, state="failed")
    land(supervised, one, "--now")
    said = land(supervised, two, "--force", "--why", "Needed.", "--now", status=1)
    assert "did not land" in said
    assert "goes back" not in said
    assert "held" in land(supervised, "list")


def test_what_a_task_does_after_it_has_landed_lands_too(supervised):
    task = supervised.add("write a.txt 1", "commit A", "end", "end", "write b.txt 1", "commit B")
    done(supervised, task)
    land(supervised, task, "--now")
    first = supervised.task(task).tally.landed

    def again(number: int) -> None:
        assert supervised.type("retry", task).returncode == 0
        succeeded = lambda: supervised.endings(task).count("succeeded") == number  # noqa: E731
        until(succeeded, why=lambda: supervised.story(task))
        supervised.wait(task)
        assert "failed" not in supervised.endings(task)

    again(2)  # it does nothing
    assert supervised.task(task).tally.landed == first
    assert task not in supervised.type("review").stdout
    again(3)
    assert task in supervised.type("review").stdout
    land(supervised, task, "--now")
    assert (supervised.repo / "b.txt").exists()


def test_all_queues_more_than_one_request_can_name(supervised):
    first = supervised.add("write a.txt x", "commit A")
    done(supervised, first)
    supervised.end(signal.SIGTERM)
    task, run = supervised.task(first), supervised.run(first)
    numbers = range(2, 104)
    copies = [replace(task, id=f"t-{n}", version=0) for n in numbers]
    runs = [replace(run, id=f"t-{n}.1", version=0, task=f"t-{n}") for n in numbers]
    supervised.store.commit([*map(Put, copies), *map(Put, runs)], [])
    assert len(land(supervised, "--all").splitlines()) == 103 + 1  # and that nobody supervises
    assert "waits to land" not in land(supervised, "--all")
