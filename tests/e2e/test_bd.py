"""`fleet bd`: bd's command line over our own queue, and `bd` inside a run."""

from __future__ import annotations

import json
import stat
import subprocess

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import LIMIT


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def qa_file(scratch, task):
    return scratch.home / "tasks" / task / "artifacts" / "Q&A.md"


def bd_json(scratch, *words, **env):
    return json.loads(scratch("bd", *words, "--json", env=env))


def issue(scratch, task):
    (found,) = bd_json(scratch, "show", task)["data"]
    return found


def test_create_says_what_was_created_and_where(scratch):
    said = scratch("bd", "create", "--coder", "agy", "--model", "opus", "--title", "Heavy refactor")
    place = scratch.repo
    assert said == f"Created t-1: Heavy refactor  [cwd: {place}, coder: agy, model: opus]\n"
    assert scratch("bd", "new", "Plain") == f"Created t-2: Plain  [cwd: {place}]\n"
    shown = scratch.data("show", "t-1")
    assert shown["task"]["coder"] == "agy"
    assert shown["task"]["given"] == ["coder", "model"]


def test_create_takes_options_both_ways_and_the_last_one_wins(scratch):
    scratch(
        *("bd", "create", "--title=Fix", "--description=Do it.", "-p", "P1", "--priority=0"),
        *("--type", "bug", "--labels", "a,b", "-l", "c", "--model=o3"),
    )
    found = issue(scratch, "t-1")
    assert found["description"] == "Do it."
    assert (found["priority"], found["issue_type"], found["labels"]) == (0, "bug", ["a", "b", "c"])
    assert found["fleet"]["model"] == "o3"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x", "--coder", "cluade"), "There is no coder 'cluade'.\n  Did you mean 'claude'?"),
        (("x", "--priority", "P9"), "Priority 'P9' is not between 0"),
        (("x", "--cwd", "nowhere"), "nowhere is not a directory"),
        (("x", "--deps", "t-9"), "There is no task 't-9'"),
        (("x", "--deps", "blocks:t-9"), "There is no task 't-9'"),
        (("x", "--deps", "sees:t-9"), "'sees' is not a kind of dependency"),
        (("x", "--parent", "t-9"), "There is no task 't-9'"),
        (("x", "--title", "y"), "The title is 'y' or 'x', not both"),
        ((), "The title is missing"),
        (("x", "--frob"), "there is no option '--frob'"),
    ],
)
def test_what_cannot_be_created_leaves_nothing_behind(scratch, words, says):
    said = scratch.fails("bd", "create", *words, status=1)
    assert says in said
    assert scratch("bd", "list", "--all") == "No issues found.\n"


def test_a_dry_run_checks_and_creates_nothing(scratch):
    said = scratch("bd", "create", "Fix", "--dry-run", "--coder", "codex")
    assert said == f"Would create: Fix  [cwd: {scratch.repo}, coder: codex]\n"
    scratch.fails("bd", "create", "Fix", "--dry-run", "--coder", "nope", status=1)
    assert scratch.data("tasks", "--all") == []


def test_the_json_of_bd_has_its_envelope_its_fields_and_its_lists(scratch):
    made = bd_json(scratch, "create", "Fix the login")
    assert made.keys() == {"schema_version", "data"}
    assert made["schema_version"] == 1
    assert made["data"].items() >= {
        "id": "t-1", "title": "Fix the login", "description": "", "status": "open",
        "priority": 2, "issue_type": "task", "created_by": "ada", "dependency_count": 0,
        "dependent_count": 0, "comment_count": 0,
    }.items()  # fmt: skip
    assert not made["data"].keys() & {"assignee", "closed_at", "close_reason", "labels", "notes"}
    for words in (("list",), ("ready",), ("show", "t-1"), ("update", "t-1", "--title", "New")):
        assert [i["id"] for i in bd_json(scratch, *words)["data"]] == ["t-1"], words
    bare = bd_json(scratch, "list", BD_JSON_ENVELOPE="0")
    assert [i["title"] for i in bare] == ["New"]
    assert json.loads(scratch("bd", "--json", "list"))["data"][0]["id"] == "t-1"


def test_an_error_is_status_1_and_with_json_an_object_on_stderr(scratch):
    assert "There is no task 't-9'" in scratch.fails("bd", "show", "t-9", status=1)
    said = json.loads(scratch.fails("bd", "show", "t-9", "--json", status=1))
    assert said.keys() == {"schema_version", "error", "code", "hint"}
    assert (said["error"], said["code"]) == ("There is no task 't-9'.", "not_found")
    said = json.loads(scratch.fails("bd", "lst", "--json", status=1, env={"BD_JSON_ENVELOPE": "0"}))
    assert said["hint"] == "Did you mean 'list'?"


def test_dependencies_hold_and_blocks_turns_them_round(scratch):
    scratch("bd", "create", "First")
    scratch("bd", "create", "Second", "--deps", "t-1")
    scratch("bd", "create", "Zeroth", "--deps", "blocks:t-1,discovered-from:t-2")
    assert scratch("bd", "dep", "add", "t-2", "t-3") == "t-2 waits for t-3.\n"
    assert [i["id"] for i in bd_json(scratch, "ready")["data"]] == ["t-3"]
    waiting = bd_json(scratch, "blocked")["data"]
    assert {i["id"]: i["blocked_by"] for i in waiting} == {"t-1": ["t-3"], "t-2": ["t-1", "t-3"]}
    needs = issue(scratch, "t-2")["dependencies"]
    assert [(n["id"], n["status"], n["dependency_type"]) for n in needs] == [
        ("t-1", "open", "blocks"),
        ("t-3", "open", "blocks"),
    ]
    assert issue(scratch, "t-3")["labels"] == ["discovered-from:t-2"]
    assert bd_json(scratch, "dep", "remove", "t-2", "t-3")["data"] == {
        "status": "removed", "issue_id": "t-2", "depends_on_id": "t-3", "type": "blocks",
    }  # fmt: skip
    assert "wait for each other" in scratch.fails("bd", "dep", "add", "t-3", "t-2", status=1)


def test_an_epic_is_made_of_its_children(scratch):
    scratch("bd", "create", "Big", "--type", "epic")
    scratch("bd", "create", "Part", "--parent", "t-1")
    assert issue(scratch, "t-2")["parent"] == "t-1"
    scratch("bd", "close", "t-2")
    assert issue(scratch, "t-1")["status"] == "closed"


def test_a_list_is_filtered_by_status_and_whose_it_is(scratch):
    for title in ("One", "Two", "Three"):
        scratch("bd", "create", title)
    scratch("bd", "update", "t-1", "--claim")
    scratch("bd", "update", "t-2", "--status", "blocked", "--notes", "Not yet.")
    scratch("bd", "close", "t-3", "--reason", "Merged.")

    def ids(*words):
        return [i["id"] for i in bd_json(scratch, "list", *words)["data"]]

    assert ids("--status=blocked") == ["t-2"]
    assert ids("--status", "in_progress") == ["t-1"]
    assert ids("--assignee", "ada") == ["t-1"]
    assert ids() == ["t-2", "t-1"]
    assert ids("--all", "--limit", "0") == ["t-3", "t-2", "t-1"]
    assert ids("--limit", "1") == ["t-2"]
    closed = issue(scratch, "t-3")
    assert (closed["status"], closed["close_reason"]) == ("closed", "Merged.")
    assert closed["closed_at"].endswith("Z")
    assert issue(scratch, "t-2")["notes"] == "Not yet."
    assert "'done' is not a status" in scratch.fails("bd", "list", "--status", "done", status=1)


def test_what_somebody_has_is_not_started_until_they_let_go(scratch):
    task = scratch.add()
    assert scratch("bd", "update", task, "--claim") == f"{task} is ada's to do by hand.\n"
    eve = {"LOGNAME": "eve"}
    assert "is already assigned to ada" in scratch.fails(
        "bd", "update", task, "--claim", status=1, env=eve
    )
    scratch.work()
    assert scratch.status(task) == "assigned"
    assert scratch("bd", "update", task, "--status", "open", "--assignee", "") == (
        f"{task} is unassigned, so it may start.\n"
    )
    scratch.work()
    assert scratch.status(task) == "done"


def test_ready_claim_takes_the_first_that_nobody_has(scratch):
    scratch("bd", "create", "Later", "-p", "3")
    scratch("bd", "create", "First", "-p", "0")
    assert scratch("bd", "ready", "--claim") == "Claimed t-2: First\n"
    assert [i["id"] for i in bd_json(scratch, "ready", "--claim", "--unassigned")["data"]] == [
        "t-1"
    ]
    assert scratch("bd", "ready", "--claim") == "No ready work.\n"


def test_closing_several_closes_what_it_can(scratch):
    scratch("bd", "create", "One")
    scratch("bd", "create", "Two")
    done = scratch.type("bd", "close", "t-1", "t-9", "t-2", "--reason", "Merged.")
    assert (done.returncode, done.stdout) == (1, "Closed t-1: Merged.\nClosed t-2: Merged.\n")
    assert "t-9: There is no task 't-9'." in done.stderr
    assert scratch("bd", "reopen", "t-1") == "t-1 is open again.\n"


def test_delete_cancels_and_keeps_what_happened(scratch):
    task = scratch.add()
    assert "--force does it" in scratch("bd", "delete", task)
    assert scratch.status(task) == "ready"
    assert scratch("bd", "delete", task, "--force").startswith(f"Cancelled {task}")
    assert scratch.status(task) == "cancelled"
    assert "is cancelled already" in scratch("bd", "delete", task, "--force")


def test_comments_are_written_and_listed(scratch):
    task = scratch.add()
    assert scratch("bd", "comment", task, "note") == f"Added the comment m-1 to {task}.\n"
    scratch("bd", "comments", "add", task, "two", "words")
    listed = bd_json(scratch, "comments", "list", task)["data"]
    assert [(c["id"], c["author"], c["text"]) for c in listed] == [
        (1, "ada", "note"),
        (2, "ada", "two words"),
    ]


@pytest.mark.parametrize("words", [("dolt", "push"), ("sync",), ("init",), ("export",)])
def test_what_has_no_meaning_here_says_what_to_use_instead(scratch, words):
    said = scratch.fails("bd", *words, status=1)
    assert f"`bd {words[0]}` is not supported here" in said
    assert len(said.splitlines()) == 2


def test_an_unknown_option_is_status_1_too_and_the_version_is_said(scratch):
    assert "there is no option '--nonesuch'" in scratch.fails("bd", "--nonesuch", status=1)
    assert json.loads(scratch.fails("bd", "--json", "--nonesuch", status=1))["code"] == "bad_input"
    assert "there is no option '--nonesuch'" in scratch.fails("bd", "dep", "--nonesuch", status=1)
    assert scratch("bd", "--version") == f"bd of {scratch('--version')}"


def test_help_and_prime_are_in_our_own_words(scratch):
    shown = scratch("bd", "--help")
    assert scratch("bd") == shown
    for name in ("create", "list", "ready", "update", "close", "dep", "comment", "prime"):
        assert f"\n  {name} " in shown
    assert "bd close $FLEET_TASK_ID" in scratch("bd", "prime")


def test_a_person_answers_in_the_file_and_opens_the_task_again(scratch):
    task = scratch.add()
    said = scratch("bd", "update", task, "--status", "blocked", "--notes", "QUESTION: Which way?")
    assert said == f"{task} asks (m-1): fleet answer m-1 TEXT\n"
    assert [i["id"] for i in bd_json(scratch, "list", "--status=blocked")["data"]] == [task]
    assert issue(scratch, task)["notes"] == "QUESTION: Which way?"
    file = qa_file(scratch, task)
    assert file.read_text().endswith("## Q: m-1\n\nWhich way?\n")

    before = scratch.facts()
    open_it = ("bd", "update", task, "--status", "open", "--assignee", "")
    said = scratch.fails(*open_it, status=1)
    assert "fleet answer m-1 TEXT" in said
    assert "under `## A:`" in said
    assert scratch.facts() == before

    with file.open("a") as out:
        out.write("\n## A: 2026-01-31 17:05\n\nLeft,\nthen right.\n")
    assert scratch(*open_it) == f"{task} got your answer.\n"
    messages = scratch.data("show", task)["messages"]
    assert [(m["kind"], m["text"]) for m in messages][-1] == ("answer", "Left,\nthen right.")
    assert scratch.status(task) == "ready"


def test_open_with_an_answer_in_the_file_also_resumes_what_is_paused(scratch):
    task = scratch.add()
    scratch("bd", "update", task, "--status", "blocked", "--notes", "QUESTION: Which way?")
    scratch("pause", task)
    with qa_file(scratch, task).open("a") as out:
        out.write("\n## A:\n\nLeft.\n")
    said = scratch("bd", "update", task, "--status", "open")
    assert said == f"{task} got your answer.\n{task} may start.\n"
    assert scratch.status(task) == "ready"


@pytest.mark.parametrize("how", ["failed", "cancelled", "done", "paused"])
def test_open_reopens_what_ended_and_resumes_what_is_paused(scratch, how):
    task = scratch.add(script="fail 9 No." if how == "failed" else "say Done.")
    if how == "failed":
        scratch.work()
    else:
        scratch({"cancelled": "cancel", "done": "close", "paused": "pause"}[how], task)
    assert scratch.status(task) == how
    scratch("bd", "update", task, "--status", "open", "--assignee", "")
    assert scratch.status(task) == "ready"


def test_open_leaves_a_running_task_alone(scratch):
    task = scratch.add(script="say Working.\nsleep 60")
    with scratch.supervisor():
        scratch.wait_for(task, "running")
        before = scratch.facts()[1:]
        said = scratch("bd", "update", task, "--status", "open", "--assignee", "")
        assert said == f"{task} is running ({task}.1), so nothing was changed.\n"
        assert scratch.facts()[1:] == before


def test_an_agent_asks_by_bd_and_goes_on_with_the_answer(scratch):
    ask = 'run bd update t-1 --status blocked --notes "QUESTION: Which licence?"'
    task = scratch.add(script=f"say One.\n{ask}\nsay It is {{answer}}.")
    scratch.work()
    assert scratch.status(task) == "asking"
    (question,) = scratch.data("questions")
    assert question["text"] == "Which licence?"
    assert qa_file(scratch, task).read_text().endswith("## Q: m-1\n\nWhich licence?\n")
    with qa_file(scratch, task).open("a") as out:
        out.write("\n## A: 2026-01-31 17:05\n\nMIT\n")
    scratch("bd", "update", task, "--status", "open", "--assignee", "")
    scratch.work()
    assert scratch.status(task) == "done"


def test_an_agents_question_is_its_summary_and_its_block_in_the_file(scratch):
    write = """run sh -c 'printf "\\n## Q: The licence\\n\\nMIT or BSD?\\n" >> "$FLEET_ARTIFACT_DIR/Q&A.md"'"""
    ask = 'run bd update t-1 --status blocked --notes "QUESTION: Which one?"'
    task = scratch.add(script=f"{write}\n{ask}")
    scratch.work()
    (question,) = scratch.data("questions")
    assert question["text"] == "Which one?\n\nThe licence\n\nMIT or BSD?"
    assert qa_file(scratch, task).read_text().count("\n## Q:") == 1
    with qa_file(scratch, task).open("a") as out:
        out.write("\n## A: 2026-01-31 17:05\n\nMIT\n")
    assert scratch("bd", "update", task, "--status", "open") == f"{task} got your answer.\n"


def test_an_agent_closes_its_task_and_is_settled_when_it_ends(scratch):
    close = 'run bd close t-1 --reason "Merged it."'
    task = scratch.add(
        script=f"run bd update t-1 --claim\nrun bd update t-1 --status open\n{close}"
    )
    scratch.work()
    shown = scratch.data("show", task)
    assert shown["task"]["status"] == "done"
    assert shown["why"] == "Merged it."
    assert len(shown["runs"]) == 1


def test_what_an_agent_creates_belongs_to_its_own_project(scratch):
    task = scratch.add(script='run bd create "More to do" --deps discovered-from:t-1')
    scratch.work()
    assert scratch.status(task) == "done"
    found = scratch.data("show", "t-2")
    assert found["task"]["cwd"] == str(scratch.repo)
    assert found["task"]["project"] == str(scratch.repo)
    assert found["author"] == "t-1.1"


def test_the_bd_of_a_run_is_found_and_imports_nothing_from_where_it_is_typed(scratch):
    scratch.add(script="say Done.")
    scratch.work()
    program = scratch.home / "bin" / "bd"
    assert stat.S_IMODE(program.stat().st_mode) == 0o700
    for name in ("fleet", "click", "json"):
        (scratch.repo / f"{name}.py").write_text("raise SystemExit('imported from the project')")
    env = scratch.env | {"PYTHONPATH": str(scratch.repo), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [program, "list", "--all", "--json"],
        cwd=scratch.repo, env=env, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["data"][0]["id"] == "t-1"


def test_an_edit_changes_what_the_next_run_is_told(scratch):
    task = scratch.add(script="fail 9 No.")
    words = ("--title", "New", "-d", "say Better.", "-p", "0")
    assert scratch("bd", "update", task, *words) == f"{task} is changed.\n"
    scratch.work()
    assert scratch.status(task) == "done"
    assert (issue(scratch, task)["title"], issue(scratch, task)["priority"]) == ("New", 0)
