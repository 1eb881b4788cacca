"""`fleet diff`: what a task itself changed, as a person and as a program sees it."""

import os
import pty

import pytest

from fleet.adapters.git.diff import read
from tests.e2e.scratch import FLEET, Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def files(document) -> dict[str, dict]:
    return {file["path"]: file for file in document["files"]}


def test_a_dependents_diff_has_none_of_what_its_dependencies_brought(scratch):
    one = scratch.add("One", script="write one.txt 1\ncommit One")
    two = scratch.add("Two", script="write two.txt 2\ncommit Two")
    three = scratch.add(
        "Three", "--after", one, "--after", two, script="write three.txt 3\ncommit Three"
    )
    alone = scratch.add("Four", "--after", one, script="write four.txt 4\ncommit Four")
    scratch.work()
    assert scratch("diff", three, "--name-only") == "three.txt\n"
    assert scratch("diff", alone, "--name-only") == "four.txt\n"
    brings = scratch("diff", three, "--against", "main", "--name-only")
    assert brings == "one.txt\nthree.txt\ntwo.txt\n"
    assert "There is no branch or commit 'nope'" in scratch.fails(
        "diff", three, "--against", "nope", status=2
    )


def test_lists_show_how_many_lines_each_task_itself_changed(scratch):
    one = scratch.add("One", script="write one.txt 1\\n2\\n3\ncommit One")
    two = scratch.add("Two", script="write two.txt 2\ncommit Two")
    three = scratch.add("Three", "--after", one, "--after", two, script="write README.md 3")
    idle = scratch.add("Idle", script="say Nothing to do.")
    failed = scratch.add("Fail", "--attempts", "1", script="write a.txt 1\ncommit A\nexit 3")
    scratch.work()
    rows = {row["id"]: row["run"] for row in scratch.data("tasks", "--all")}
    sizes = {task: (run["added"], run["removed"]) for task, run in rows.items()}
    assert sizes == {one: (3, 0), two: (1, 0), three: (1, 0), idle: (0, 0), failed: (None, None)}
    assert [word for word in scratch("tasks", "--all").split() if word == "+3"] == ["+3"]
    shown = scratch("show", three)
    assert "changes     +1 -0\n" in shown
    assert f"next        fleet diff {three}, fleet land {three}\n" in shown
    assert "fleet land" not in scratch("show", idle)
    scratch("land", three, "--now")
    assert "next  " not in scratch("show", three)


def test_the_list_of_agents_counts_what_is_in_their_worktrees_now(scratch):
    one = scratch.add("One", script="write one.txt 1\\n2\\n3\ncommit One")
    scratch.work()
    script = "append README.md x\nwrite b.txt b\ncommit B\nappend b.txt c\nsay Written.\nsleep 60"
    after = scratch.add("Go on", "--after", one, script=script)
    with scratch.supervisor():
        until(lambda: "Written." in scratch.type("logs", after).stdout, "it has written")
        (row,) = scratch.data("list")
        assert (row["added"], row["removed"]) == (3, 0)
        scratch("cancel", after)


@pytest.mark.parametrize("how", [("merge", "--no-edit"), ("rebase",)])
def test_what_was_taken_over_from_the_target_is_not_the_tasks_own(scratch, how):
    task = scratch.add("One", script="write one.txt 1\ncommit One")
    scratch.work()
    (scratch.repo / "main.txt").write_text("main\n")
    scratch.git("add", "main.txt")
    scratch.git("commit", "-q", "-m", "Main")
    (root,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    scratch.git(*how, "main", cwd=root)
    assert scratch("diff", task, "--name-only") == "one.txt\n"
    scratch.git("merge", "--no-edit", f"fleet/{task}")
    assert "one.txt" in scratch("diff", task, "--name-only")


def test_a_run_shows_only_what_it_changed_itself(scratch):
    task = scratch.add("One", script="write one.txt 1\ncommit One\nend\nwrite two.txt 2")
    scratch.work()
    scratch("send-back", task, "Go on.")
    scratch.work()
    assert scratch("diff", task, "--name-only") == "one.txt\ntwo.txt\n"
    assert scratch("diff", task, "--run", "1", "--name-only") == "one.txt\n"
    assert scratch("diff", task, "--run", "2", "--name-only") == "two.txt\n"
    assert f"{task} has no run 3" in scratch.fails("diff", task, "--run", "3", status=2)


def test_json_has_files_hunks_and_lines(scratch):
    (scratch.repo / "old.py").write_text("".join(f"line {n}\n" for n in range(40)))
    (scratch.repo / "picture").write_bytes(b"\0\1")
    scratch.git("add", ".")
    scratch.git("commit", "-q", "-m", "Files")
    task = scratch.add("Change", script="write uv.lock x")
    scratch.work()
    (root,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    scratch.git("mv", "old.py", "new.py", cwd=root)
    text = (root / "new.py").read_text()
    (root / "new.py").write_text(text.replace("line 1\n", "first\n").replace("line 30\n", ""))
    (root / "picture").write_bytes(b"\0\2")
    document = scratch.data("diff", task)
    found = files(document)
    renamed = found["new.py"]
    assert (renamed["change"], renamed["old_path"]) == ("renamed", "old.py")
    assert (renamed["added"], renamed["removed"], len(renamed["hunks"])) == (1, 2, 2)
    first = renamed["hunks"][0]
    assert (first["old_start"], first["new_start"]) == (1, 1)
    assert first["lines"][:3] == [" line 0", "-line 1", "+first"]
    assert found["picture"]["binary"]
    assert (found["uv.lock"]["change"], found["uv.lock"]["folded"]) == ("added", "lock file")
    assert (document["total"], document["added"]) == (3, 2)
    stat = files(scratch.data("diff", task, "--stat"))
    assert [file["hunks"] for file in stat.values()] == [[], [], []]


def test_a_long_diff_says_what_was_cut(scratch):
    task = scratch.add("Much")
    scratch.work()
    (root,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    (root / "long.txt").write_text("".join(f"{n}\n" for n in range(7000)))
    (root / "wide.txt").write_text("".join("x" * 1000 + "\n" for _ in range(1000)))
    done = scratch.type("diff", task, "--json")
    assert len(done.stdout) < 1.2 * read.MOST_BYTES
    found = files(scratch.data("diff", task))
    assert (found["long.txt"]["cut"], found["long.txt"]["folded"]) == (2000, "long")
    lines = sum(len(hunk["lines"]) for hunk in found["wide.txt"]["hunks"])
    assert lines > 300
    assert lines + found["wide.txt"]["cut"] == 1000


def test_only_as_many_lines_are_read_as_a_reply_has_room_for(scratch):
    task = scratch.add("Much")
    scratch.work()
    (root,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    for n in range(12):
        (root / f"part{n:02}.txt").write_text("a\n" * 390)
    (root / "uv.lock").write_text("b\n" * 20_000)
    few = files(scratch.data("diff", task))
    assert [few["part00.txt"]["cut"], few["part11.txt"]["cut"]] == [0, 0]
    for n in range(12, 40):
        (root / f"part{n:02}.txt").write_text("a\n" * 390)
    found = files(scratch.data("diff", task))
    assert [found[name]["cut"] for name in ("part00.txt", "part39.txt", "uv.lock")] == [
        0,
        390,
        20_000,
    ]
    last = scratch.data("diff", task, "--path", "part39.txt")["files"][0]
    assert (last["cut"], len(last["hunks"][0]["lines"])) == (0, 390)


def on_a_terminal(scratch, *words) -> str:
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(scratch.repo)
        os.execve(FLEET, [FLEET, *words], scratch.env | {"TERM": "xterm"})
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode()


def test_on_a_terminal_git_shows_it_with_the_persons_own_program(scratch):
    task = scratch.add("One", script="write one.txt 1\ncommit One")
    scratch.work()
    scratch.git("config", "--global", "core.pager", "sed s/^/PAGED:/")
    shown = on_a_terminal(scratch, "diff", task)
    assert "PAGED:" in shown
    assert "\x1b[32m+" in shown
    scratch.env["NO_COLOR"] = "1"
    assert "\x1b[32m" not in on_a_terminal(scratch, "diff", task)
    scratch.git("config", "--global", "diff.external", "echo MINE")
    assert "MINE one.txt" in on_a_terminal(scratch, "diff", task)
    assert "MINE" not in scratch("diff", task)
