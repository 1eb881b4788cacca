"""`fleet review`: what waits to be looked at, and what a person says of it."""

import os
import pty

import pytest

from tests.e2e.scratch import FLEET, Scratch
from tests.e2e.served import Served
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def rows(scratch) -> dict[str, dict]:
    return {row["task"]: row for row in scratch.data("review")}


def made(scratch, name: str, *words: str, text: str = "1") -> str:
    return scratch.add(f"Make {name}", *words, script=f"write {name} {text}\ncommit {name}")


def test_tips_come_first_with_all_that_they_bring(scratch):
    one = made(scratch, "one.txt")
    two = made(scratch, "two.txt", "--after", one)
    three = made(scratch, "three.txt", "--after", two)
    other = made(scratch, "other.txt")
    scratch.work()
    listed = scratch.data("review")
    assert {row["task"] for row in listed[:2]} == {three, other}
    known = {row["task"]: row for row in listed}
    assert sorted(known[three]["brings"]) == [one, two]
    assert known[one]["part_of"] == three
    assert (known[three]["files"], known[three]["added"], known[three]["removed"]) == (1, 1, 0)
    assert known[three]["onto"] == "main"
    shown = scratch("review", env={"COLUMNS": "200"})
    assert f"{one}, {two}" in shown
    assert "+1 -0" in shown
    scratch("land", one, "--now")
    assert one not in rows(scratch)
    assert rows(scratch)[three]["brings"] == [two]


def test_it_says_what_work_would_conflict_with_now(scratch):
    one, two = made(scratch, "same.txt", text="a"), made(scratch, "same.txt", text="b")
    three = made(scratch, "main.txt", text="c")
    scratch.work()
    (scratch.repo / "main.txt").write_text("mine\n")
    scratch.git("add", ".")
    scratch.git("commit", "-q", "-m", "Mine")
    known = rows(scratch)
    assert (known[one]["rivals"], known[two]["rivals"]) == ([two], [one])
    assert known[one]["conflicts"] == []
    assert known[three]["conflicts"] == ["main.txt"]
    assert "main: main.txt" in scratch("review", env={"COLUMNS": "200"})


def test_the_gates_verdict_is_of_the_work_as_it_is(scratch):
    task = made(scratch, "one.txt", "--gate", "true")
    free = made(scratch, "two.txt")
    scratch.work()
    known = rows(scratch)
    assert (known[task]["gate"], known[free]["gate"]) == ("passed", "")
    (root,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    scratch.git("commit", "-q", "--allow-empty", "-m", "Same tree", cwd=root)
    assert rows(scratch)[task]["gate"] == "passed"
    (root / "more.txt").write_text("more\n")
    scratch.git("add", ".", cwd=root)
    scratch.git("commit", "-q", "-m", "By hand", cwd=root)
    assert rows(scratch)[task]["gate"] == "untested"


def test_accepted_work_lands_and_what_is_sent_back_goes_on(scratch):
    one = made(scratch, "one.txt", "--review")
    two = scratch.add("Two", script="write two.txt 2\ncommit Two\nend\nwrite three.txt 3")
    scratch.work()
    assert scratch.status(one) == "review"
    assert f"Accepted {one}: it waits to land (l-1)." in scratch("review", one, "--accept")
    scratch("comment", two, "Why?", "--file", "two.txt", "--line", "1")
    assert scratch("review", two, "--send-back", "Go on.") == f"Sent {two} back to its agent.\n"
    assert "Remarks on your work:\n- two.txt:1: Why?" in str(
        [m["text"] for m in scratch.data("show", two)["messages"]]
    ).replace("\\n", "\n")
    scratch.work()
    assert scratch.status(one) == "landed"
    assert scratch("diff", two, "--name-only") == "three.txt\ntwo.txt\n"
    assert "Name the task." in scratch.fails("review", "--accept", status=2)


def test_an_agent_reviews_in_a_task_of_its_own(scratch):
    one = made(scratch, "one.txt")
    scratch.work()
    asked = scratch.data("review", one, "--agent", "scripted")
    detail = scratch.data("show", asked["id"])
    prompt = detail["prompt"]
    assert f"fleet comment {one} --file FILE --line LINE" in prompt
    line = next(line.strip() for line in prompt.splitlines() if "git diff" in line)
    assert "+1" in scratch.git(*line.split()[1:])
    scratch.work()
    assert scratch.status(asked["id"]) == "done"
    assert asked["id"] not in rows(scratch)
    assert [i["task"] for i in scratch.data("inbox")] == [one]
    finished = scratch.data("inbox", "--finished")
    assert [i["task"] for i in finished if i["kind"] == "finished"] == [asked["id"]]


def test_on_a_terminal_a_key_decides(scratch):
    one = made(scratch, "one.txt")
    scratch.work()
    scratch.git("config", "--global", "core.pager", "cat")
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(scratch.repo)
        os.execve(FLEET, [FLEET, "review", one], scratch.env | {"TERM": "xterm"})
    shown = b""

    def asked() -> bool:
        nonlocal shown
        shown += os.read(terminal, 65536)
        return b"a: accept" in shown

    until(asked, "the question")
    assert b"one.txt" in shown

    def accepted() -> bool:
        """Again and again: what is typed before it reads single keys is dropped."""
        os.write(terminal, b"a")
        return scratch.status(one) == "landing"

    until(accepted, "its landing")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_remark_on_a_line_is_taken_over_http_as_well(scratch):
    task = scratch.add("Greet", script="write a.txt x\ncommit A")
    scratch.work()
    served = Served(scratch, "--no-run")
    try:
        token = scratch.data("token", "create", "ann", "--role", "coordinator")["token"]
        remark = {"task": task, "text": "Why x?", "path": "a.txt", "line": 1}
        status, _ = served.ask("POST", "/v1/message/comment", remark, token=token)
    finally:
        served.end()
    assert status in {200, 201}
    assert "Why x?" in scratch("show", task)


def test_tasks_that_share_a_commit_are_each_measured_once(scratch):
    """The later ones start from the first, and commit nothing."""
    made(scratch, "one.txt")
    scratch.work()
    commit = scratch.git("rev-parse", "fleet/t-1").strip()
    for branch in ("two", "three"):
        task = scratch.add(f"Make {branch}", "--base", "main", script=f"run git merge -q {commit}")
        scratch.work()
        assert scratch.git("rev-parse", f"fleet/{task}").strip() == commit
    assert [(row["files"], row["added"]) for row in scratch.data("review")] == [(1, 1)] * 3
