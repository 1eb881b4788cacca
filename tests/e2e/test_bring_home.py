"""What a person reads on the way from done to landed, and what is left afterwards."""

from __future__ import annotations

import re

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import LIMIT, until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def made(scratch, name: str = "a.txt", *words: str, text: str = "1") -> str:
    return scratch.add(f"Write {name}", *words, script=f"write {name} {text}\ncommit {name}")


def rows_of(text: str) -> dict[str, list[str]]:
    """The summary at the end of `fleet run`, by task."""
    lines = text.partition("\nAfter ")[2].splitlines()[2:]
    return {line.split()[0]: re.split(r"  +", line) for line in lines}


def snapshot(scratch):
    """A function that brings the worktree and the branch back, as if nobody had cleared them."""
    tip = scratch.git("rev-parse", "fleet/t-1").strip()
    (root,) = [run["path"] for run in scratch.data("show", "t-1")["runs"]]

    def back() -> None:
        scratch.git("worktree", "add", "-q", "-B", "fleet/t-1", root, tip)

    return back


def branches(scratch) -> list[str]:
    return scratch.git("branch", "--format=%(refname:short)").split()


def test_the_summary_says_what_landed_in_this_run(scratch):
    task = made(scratch)
    rows = rows_of(scratch.work(FLEET_LAND_AUTO="true"))
    commit = scratch.git("rev-parse", "main")
    assert rows[task] == [task, "landed", f"Write a.txt ({commit[:7]})", f"fleet show {task}"]


def test_the_summary_says_how_a_held_landing_goes_on(scratch):
    task = made(scratch)
    scratch.work()
    scratch("land", task)
    scratch("land", "hold", task, "--why", "After the release.")
    more = made(scratch, "b.txt")
    rows = rows_of(scratch.work())
    assert rows[task] == [task, "held", "After the release.", "fleet land release l-1"]
    assert rows[more][1] == "done"
    shown = scratch("show", task)
    assert "After the release.  → fleet land release l-1" in shown
    scratch(*rows[task][3].split()[1:])
    assert "It waits to land on main." in scratch("show", task)


def test_what_an_agent_did_not_commit_shows_as_uncommitted(scratch):
    task = scratch.add("Write", script="write a.txt 1")
    text = scratch.work(FLEET_RUN_COMMIT="leave")
    step = f"fleet diff {task}, fleet worktree commit {task} -m MESSAGE"
    assert re.search(rf"{task} is done, with uncommitted work: .*→ {step}\n", text)
    assert rows_of(text)[task] == [task, "uncommitted", "Write", step]
    assert f"{task}   uncommitted" in scratch("tasks", "--all")
    shown = scratch("show", task)
    assert re.search(r"status +uncommitted", shown)
    assert step in shown
    scratch("worktree", "commit", task, "-m", "By hand")
    assert "uncommitted" not in scratch("tasks", "--all")


def test_a_list_says_with_which_commit_work_landed(scratch):
    task = made(scratch)
    scratch.work(FLEET_LAND_AUTO="true")
    commit = scratch.git("rev-parse", "main")[:7]
    assert f"landed {commit}" in scratch("tasks", "--all")
    assert re.search(rf"status +landed {commit}", scratch("show", task))


def test_now_without_a_supervisor_parks_the_worktree_and_deletes_the_branch(scratch):
    task = made(scratch)
    scratch.work()
    assert branches(scratch) == ["fleet/t-1", "main"]
    scratch("land", task, "--now")
    assert branches(scratch) == ["main"]
    assert "worktree" not in scratch("show", task)


def test_what_has_landed_says_so_to_every_way_to_its_branch(scratch):
    task = scratch.add("Work", script="write a.txt one\ncommit x")
    scratch.work()
    scratch("land", task, "--now")
    commit = scratch.git("rev-parse", "HEAD").strip()[:12]
    assert f"{task} has landed already ({commit})." in scratch.fails("merge", task, status=1)
    words = scratch.fails("cd", task, status=1)
    assert f"{task} has landed ({commit}), and its worktree was removed." in words
    assert "+one" in scratch("diff", task)
    assert "l-1 has landed already." in scratch.fails("land", "hold", task, status=1)


def test_what_was_cut_off_after_a_landing_is_cleared_by_the_next_run(scratch):
    made(scratch)
    scratch.work()
    before = snapshot(scratch)
    scratch("land", "t-1", "--now")
    before()
    assert branches(scratch) == ["fleet/t-1", "main"]
    scratch.work()
    assert branches(scratch) == ["main"]


def test_queued_work_waits_behind_a_rival_that_asks_and_the_run_ends(scratch):
    ways = ["", "\nend\nask Which?", "\nend\nsay I leave it."]
    for number, way in enumerate(ways, 1):
        script = f"write f.txt {number}\ncommit f.txt{way}"
        scratch.add(f"Write {number}", script=script)
    scratch.work()
    scratch("land", "t-1", "t-2", "t-3")
    rows = rows_of(scratch.work())
    assert rows["t-2"][:3] == ["t-2", "asks", "Which?"]
    assert "So did l-2: it waits for that one." in scratch("show", "t-3")


def test_now_waits_for_work_that_is_behind_a_rival(scratch):
    merge = "git -c user.name=a -c user.email=a@b merge -q -s ours main"
    ways = ["", f"\nend\nask Which?\nrun {merge}", "\nend\nask And now?"]
    for number, way in enumerate(ways, 1):
        scratch.add(f"Write {number}", script=f"write f.txt {number}\ncommit f.txt{way}")
    scratch.work()
    with scratch.supervisor():
        scratch("land", "t-1", "t-2", "t-3")
        until(lambda: "So did l-2" in scratch("land", "show", "t-3"))
        waiting = scratch.start("land", "t-3", "--now")
        until(lambda: "t-2" in scratch("questions"))
        scratch("answer", "t-2", "This one.")
        text, _ = waiting.communicate(timeout=LIMIT)
        scratch.wait_for("t-2", "landed")
    why = "It conflicts with main in f.txt. It goes back to its agent, which a supervisor starts."
    assert text == f"t-3 did not land on main: {why}\n"


def test_work_that_asks_or_is_held_is_refused_with_what_to_type(scratch):
    asks = scratch.add("Choose", script="ask Which licence?")
    held = made(scratch)
    scratch.work()
    assert f"fleet answer {asks} TEXT" in scratch.fails("land", asks, status=1)
    scratch("land", held)
    scratch("land", "hold", held)
    assert f"fleet land release {held}" in scratch.fails("land", held, status=1)
    assert f"fleet land release {held}" in scratch.fails("land", held, "--now", status=1)


def test_all_goes_on_with_what_was_queued_before(scratch):
    """As by a command that was killed; what a person holds stays where it is."""
    first, second, held, more = (made(scratch, f"{name}.txt") for name in "abcd")
    scratch.work()
    scratch("land", first, second, held)
    scratch("land", "hold", held)
    said = scratch("land", "--all", "--now")
    assert [f"{task} landed on main" in said for task in (first, second, more)] == [True] * 3
    assert held not in said
    assert scratch.data("show", held)["task"]["status"] == "landing"


def test_all_says_what_waits_in_the_queue(scratch):
    task = made(scratch)
    scratch.work()
    assert scratch("land", "--all").startswith(f"{task} waits to land on main")
    done = scratch.type("land", "--all")
    queue = "1 task in the queue to land: fleet land list"
    assert done.stdout == f"Nothing here is done and not landed. {queue}\n"
    assert "No supervisor is running, so nothing lands." in done.stderr


def test_now_on_a_paused_branch_says_who_paused_it(scratch):
    task = made(scratch)
    more = made(scratch, "b.txt")
    scratch.work()
    scratch("land", task, "--now")
    scratch("land", "pause")
    done = scratch.type("land", more, "--now")
    assert done.returncode == 1
    assert f"{more} has not landed on main yet: ada paused main." in done.stdout


def test_work_that_was_merged_by_hand_is_noticed_in_one_run(scratch):
    task = made(scratch)
    scratch.work()
    scratch.git("commit", "-q", "--allow-empty", "-m", "Ahead")
    scratch.git("cherry-pick", "fleet/t-1")
    scratch.work()
    assert "landed" in scratch("show", task)


def test_commits_that_a_person_squashed_count_as_landed(scratch):
    script = "write a.txt 1\ncommit One\nwrite b.txt 2\ncommit Two"
    task = scratch.add("Write", script=script)
    scratch.work()
    (branch,) = [name for name in branches(scratch) if name != "main"]
    scratch.git("commit", "-q", "--allow-empty", "-m", "Ahead")
    scratch.git("merge", "-q", "--squash", branch)
    scratch.git("commit", "-q", "-m", "Both")
    scratch.work()
    assert "landed" in scratch("show", task)


def test_now_waits_for_work_that_is_queued_already(scratch):
    task = made(scratch)
    scratch.work()
    scratch("land", task)
    assert f"{task} landed on main" in scratch("land", task, "--now")
    refusal = scratch.fails("land", task, "--now", status=1)
    assert "has landed already" in refusal


def test_what_a_conflict_is_about_names_the_other_task(scratch):
    scratch.add("Round the prices", script="write f.txt 1\ncommit f.txt")
    larger = "write f.txt 2\ncommit f.txt\nwrite g.txt 1\ncommit g.txt\nend\nsay Left."
    scratch.add("Write them", script=larger)  # so the other lands first
    scratch.work()
    scratch.git("commit", "-q", "--allow-empty", "-m", "By hand")
    scratch("land", "t-1", "t-2")
    scratch.work(FLEET_LAND_TRIES="1")
    (words,) = {m["text"] for m in scratch.data("show", "t-2")["messages"] if m["kind"] == "words"}
    assert "The other side is the work of t-1 (Round the prices)." in words


def test_landed_work_is_not_cancelled_but_undone_once(scratch):
    task = made(scratch)
    scratch.work(FLEET_LAND_AUTO="true")
    refusal = scratch.fails("cancel", task, status=1)
    assert f"{task} has landed" in refusal
    assert f"fleet land undo {task}" in refusal
    undo = scratch("land", "undo", task).split()[0]
    assert f"{undo} undoes {task} already." in scratch.fails("land", "undo", task, status=1)
    scratch.work()
    assert f"{task} was undone by {undo}" in scratch.fails("land", "undo", task, status=1)
    assert scratch.git("for-each-ref", "refs/fleet/train") == ""
    again = scratch("land", "undo", undo).split()[0]
    scratch.work()
    assert scratch.status(again) == "landed"
    assert (scratch.repo / "a.txt").exists()
    assert "undoes it" in scratch("land", "undo", task)


def test_who_did_the_work_undoes_what_later_work_builds_on(scratch):
    task = made(scratch)
    scratch.work(FLEET_LAND_AUTO="true")
    (scratch.repo / "a.txt").write_text("1 and more\n")
    scratch.git("commit", "-q", "-am", "More")
    later = {"FLEET_CODER": "claude"}  # what new tasks get by now
    undo = scratch("land", "undo", task, env=later).split()[0]
    assert scratch.data("show", undo, env=later)["task"]["coder"] == "scripted"


def test_a_remark_is_on_a_line_that_there_is(scratch):
    task = made(scratch)
    scratch.work()
    refusal = scratch.fails("comment", task, "Why?", "--file", "a.txt", "--line", "99", status=2)
    assert f"a.txt has 1 line in the work of {task}, so there is no line 99." in refusal
    scratch("comment", task, "Why?", "--file", "a.txt", "--line", "1")
    assert "a.txt:1: Why?" in scratch("show", task)


def test_the_help_of_land_has_the_options_of_what_most_people_type(scratch):
    assert {"--onto", "--now", "--push"} <= set(scratch("land", "--help").split())


def test_a_second_solution_of_the_same_work_does_not_land(scratch):
    scratch("fanout", "2", "--headless", "--prompt", "run sh -c 'echo $$ > a.txt'\ncommit A")
    scratch.work()
    one, two = [row["id"] for row in scratch.data("tasks", "--all") if row["run"]]
    batch = scratch.data("show", one)["parent"]
    scratch("close", one, two)
    scratch("pick", batch, one, "--land")
    refusal = scratch.fails("pick", batch, two, "--land", status=1)
    assert f"{one}, another solution of {batch}, waits to land." in refusal
    scratch.work()
    refusal = scratch.fails("pick", batch, two, "--land", status=1)
    assert f"fleet land undo {one}" in refusal
    scratch("land", "undo", one)
    scratch.work()
    scratch("pick", batch, two)
    assert scratch.status(two) == "landing"


def test_a_solution_is_not_picked_beside_one_that_has_landed(scratch):
    scratch("fanout", "2", "--headless", "--prompt", "write a.txt 1\ncommit A")
    scratch.work()
    one, two = [row["id"] for row in scratch.data("tasks", "--all") if row["run"]]
    batch = scratch.data("show", one)["parent"]
    scratch("close", one, two)
    scratch("land", one, "--now")
    assert f"fleet land undo {one}" in scratch.fails("pick", batch, two, status=1)


def test_work_that_a_person_took_out_of_the_branch_lands_again(scratch):
    task = made(scratch)
    scratch.work()
    scratch("land", task, "--now")
    assert f"fleet land undo {task}" in scratch.fails("land", task, status=1)
    scratch.git("reset", "-q", "--hard", "HEAD~1")
    refusal = scratch.fails("land", "undo", task, status=1)
    assert "somebody took it out" in refusal
    assert f"To land it again: fleet land {task}" in refusal
    assert f"{task} landed on main" in scratch("land", task, "--now")
    assert (scratch.repo / "a.txt").exists()


def test_work_that_a_person_reverted_is_not_undone_again(scratch):
    task = made(scratch)
    scratch.work()
    scratch("land", task, "--now")
    scratch.git("revert", "--no-edit", "HEAD")
    assert "is left on main" in scratch.fails("land", "undo", task, status=1)


def test_work_whose_branch_was_renamed_is_listed_and_lands_elsewhere(scratch):
    task = made(scratch)
    scratch.work()
    scratch.git("branch", "-m", "main", "trunk")
    (row,) = scratch.data("review")
    assert (row["task"], row["added"]) == (task, None)
    done = scratch.type("land", task, "--now")
    assert "There is no branch 'main'" in done.stdout
    assert "Make it first (git branch main), or name another: --onto BRANCH." in done.stdout
    refusal = scratch.fails("land", task, "--onto", "trunk", "--now", status=1)
    drop, again = f"fleet land drop {task}", f"fleet land {task} --onto trunk"
    assert f"{drop}, then {again}" in refusal
    scratch(*drop.split()[1:])
    assert f"{task} landed on trunk" in scratch(*again.split()[1:], "--now")


def test_a_command_that_is_typed_again_goes_on_with_the_same_wish(scratch, tmp_path):
    task = made(scratch)
    scratch.work()
    scratch.git("clone", "-q", "--bare", ".", str(tmp_path / "far.git"))
    scratch.git("remote", "add", "origin", str(tmp_path / "far.git"))
    away = (tmp_path / "far.git").rename(tmp_path / "away.git")
    assert scratch.type("land", task, "--push", "--now").returncode == 1
    away.rename(tmp_path / "far.git")
    assert "is already waiting to land" in scratch.fails("land", task, "--pr", "--now", status=1)
    assert f"{task} landed on origin/main" in scratch("land", task, "--push", "--now")


def test_what_brought_nothing_or_came_without_fleet_says_why_it_is_not_undone(scratch):
    idle, by_hand, task = scratch.add("Look"), made(scratch, "b.txt"), made(scratch)
    scratch.work()
    assert f"{idle} changed nothing" in scratch("land", idle, "--now")
    said = scratch.fails("land", "undo", idle, status=1)
    assert f"{idle} brought nothing to main, so there is nothing to undo." in said
    scratch.git("merge", "-q", f"fleet/{by_hand}")
    scratch.work()
    said = scratch.fails("land", "undo", by_hand, status=1)
    assert f"{by_hand} was merged without Fleet" in said
    assert "git revert" in said
    scratch("land", task, "--now")
    scratch("land", "undo", task)
    scratch.work()
    (undone,) = [row["id"] for row in scratch.data("tasks", "--all") if "Undo" in row["title"]]
    said = scratch.fails("land", undone, status=1)
    assert f"{undone} has landed already" in said
    assert f"fleet land undo {undone}" in said


def test_work_in_a_bare_repository_lands_and_is_undone(scratch, tmp_path):
    bare = tmp_path / "shop.git"
    scratch.git("clone", "-q", "--bare", str(scratch.repo), str(bare))
    scratch.repo = bare
    task = made(scratch)
    scratch.work()
    assert f"{task} landed on main" in scratch("land", task, "--now")
    assert scratch.git("show", "main:a.txt") == "1\n"
    scratch("land", "undo", task)
    scratch.work()
    assert scratch.git("ls-tree", "--name-only", "main") == ""


def test_the_summary_says_who_won_a_race_and_no_loser_is_to_land(scratch):
    lines = "run sh -c 'seq ${FLEET_TASK_ID#t-} > a.txt'"  # the later one writes more lines
    scratch("best", "2", lines, "--test", "true", "--judge", "none")
    said = scratch.work()
    assert "t-2 is the best of t-1: " in said
    rows = rows_of(said)
    assert rows["t-2"][1] == "done"
    assert (rows["t-3"][1], rows["t-3"][3]) == ("beaten", "fleet pick t-1")
    assert "t-2 was picked instead." in rows["t-3"][2]
    assert "Land it: fleet land t-2" in scratch.type("pick", "t-1").stderr
    scratch("land", "t-2", "--now")
    said = scratch.type("pick", "t-1").stderr
    assert "t-2 is the best." in said
    assert "Land it" not in said


def test_a_tie_is_said_when_the_run_ends_and_is_over_once_one_has_landed(scratch):
    scratch("best", "2", "write a.txt 1", "--test", "true", "--judge", "none")
    said = scratch.work()
    assert re.search("t-1 needs your choice: t-2, t-3 are equal .*→ fleet pick t-1\n", said)
    assert "Pick one: fleet pick t-1 TASK" in scratch.type("pick", "t-1").stderr
    scratch("land", "t-3", "--now")
    said = scratch.type("pick", "t-1").stderr
    assert "t-3 has landed." in said
    assert "Pick one" not in said


def test_what_is_typed_wrongly_changes_nothing(scratch):
    first, second = made(scratch), made(scratch, "b.txt")
    scratch.work()
    scratch("land", first, "--now")
    scratch("land", second)
    before = (scratch.facts(), scratch.git("for-each-ref"))
    for words, said in (
        (("land", "undo", first, "--agent", "nobody"), "There is no agent 'nobody'."),
        (("land", "move", second, "--before", second), "l-2 cannot be moved before itself."),
        (("best", "2", "x", "--test", "true", "--onto", "nope"), "There is no branch 'nope'"),
        (("pick", "--test", "true"), "Name the batch that is to be compared."),
        (("pick", "", "", "--now"), "Name the batch that is to be compared."),
    ):
        assert said in scratch.fails(*words, status=2)
    merge = scratch.fails("merge", first, status=1)
    assert f"fleet land undo {first}" in merge
    assert (scratch.facts(), scratch.git("for-each-ref")) == before


def test_who_follows_a_landing_is_told_when_no_supervisor_runs(scratch):
    task = made(scratch)
    scratch.work()
    scratch("land", task)
    following = scratch.start("land", "show", task, "--follow")
    assert "No supervisor is running, so nothing lands." in following.stderr.readline()
    scratch("land", "drop", task)
    assert following.wait(LIMIT) == 0
