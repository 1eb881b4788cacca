"""`fleet land`: the tree that was tested is the tree that lands, and work that cannot land goes back."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

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


def test_a_branch_that_there_is_not_is_refused_when_typed(supervised):
    task = supervised.add("write a.txt x", "commit A")
    done(supervised, task)
    said = land(supervised, task, "--onto", "nope", status=2)
    assert f"There is no branch 'nope' in {supervised.repo}." in said
    assert "git branch nope" in said
    assert supervised.task(task).tally.landing == ""


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
