"""A file of tasks is added, looked at as a tree, carried out and written down again."""

from __future__ import annotations

import json

import pytest
import yaml

from fleet.cli.tasks.tasks import add
from tests.e2e.scratch import Scratch

PLAN = """\
tasks:
  - name: release
    title: Release 2.0
    join: all
  - name: api
    title: Add the endpoint
    parent: release
    prompt: |
      write api.txt
      commit Api
    label: [api, backend]
    budget: [100k tokens, 90m]
    attempts: 3
  - name: page
    title: Add the page
    parent: release
    after: api
    priority: 1
    prompt: say Done.
  - say Done.
"""


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def plan(scratch):
    path = scratch.repo / "tasks.yaml"
    path.write_text(PLAN)
    return path


def test_a_file_of_tasks_is_added_and_carried_out_in_its_order(scratch, plan):
    rows = scratch.data("add", "--file", str(plan), "--label", "mine")
    assert [row["status"] for row in rows] == ["children", "ready", "waiting", "ready"]
    assert [row["labels"] for row in rows] == [["mine"], ["api", "backend"], ["mine"], ["mine"]]
    assert scratch.data("show", "t-2")["spec"]["limits"]["budget"]["tokens"] == 100_000
    scratch.work()
    states = {row["id"]: row["state"] for row in scratch.data("tasks", "--all")}
    assert states == dict.fromkeys(("t-1", "t-2", "t-3", "t-4"), "done")


@pytest.mark.parametrize("width", [80, 120])
def test_the_tree_shows_tasks_below_their_parent_or_below_what_they_wait_for(scratch, plan, width):
    scratch("add", "-f", "-", stdin=plan.read_bytes())
    shown = scratch("tasks", "--tree", env={"COLUMNS": str(width)})
    assert max(map(len, shown.splitlines())) <= width
    assert [line.split()[:4] for line in shown.splitlines()[1:]] == [
        ["Release", "2.0", "t-1", "children"],
        ["└─", "Add", "the", "endpoint"],
        ["└─", "Add", "the", "page"],
        ["say", "Done.", "t-4", "ready"],
    ]
    assert shown.splitlines()[3].startswith("   └─ ")  # below what it waits for
    assert shown.splitlines()[3].split()[4:7] == ["t-3", "waiting", "t-2"]
    tree = scratch.data("tasks", "--tree", "--limit", "1")
    assert [(row["task"]["id"], row["parent"]) for row in tree] == [("t-4", None)]
    tree = scratch.data("tasks", "--tree", "--status", "waiting")
    assert [(row["task"]["id"], row["parent"]) for row in tree] == [("t-1", None), ("t-3", "t-1")]


def test_what_is_exported_and_added_elsewhere_is_exported_alike(scratch, plan, tmp_path):
    scratch("add", "--file", str(plan))
    scratch(
        "add", "Odd: 'quotes', # signs\tand ü", "--prompt", "  two\n\nlines  \n", "--branch", "x/y"
    )
    text = scratch("tasks", "--export")
    assert "prompt: |" in text
    other = Scratch(tmp_path / "other")
    other("add", "--file", "-", stdin=text.encode())
    assert other("tasks", "--export") == text
    assert other.data("tasks", "--export")["yaml"] == text


def test_a_plan_may_wait_for_work_that_has_landed(scratch):
    scratch("add", "-f", "-", stdin=b"- {title: A, name: a}\n- {title: B, after: 'a:landed'}\n")
    assert scratch.data("show", "t-2")["needs"] == ["t-1:landed"]
    exported = yaml.safe_load(scratch("tasks", "--export"))["tasks"]
    assert exported[1]["after"] == "a:landed"


def test_an_export_has_whatever_a_task_was_added_with(scratch):
    given = {
        "coder": "scripted", "model": "m", "priority": 0, "label": ["a", "b"], "needs": "gpu",
        "base": "HEAD", "branch": "x", "review": True, "attempts": 2,
        "time_limit": 60, "budget": ["$5", "90 tokens"], "gate": "true", "permissions": "read",
        "prompt": "Do it.", "team": "red", "agent": "scripted",
    }  # fmt: skip
    elsewhere = {"title", "file", "again", "dry_run", "issue", "prompt_file", "description"}
    elsewhere |= {"after", "cwd", "swarm", "config", "json", "show_help"}
    assert {option.name for option in add.params} - elsewhere == {*given, "in_place"}
    path = scratch.repo / "one.yaml"
    both = [{"title": "One", **given}, {"title": "Two", "team": "red", "in_place": True}]
    path.write_text(json.dumps({"tasks": both}))
    scratch("add", "--file", str(path))
    tasks = yaml.safe_load(scratch("tasks", "red", "--export"))["tasks"]
    assert [task.pop("name") for task in tasks] == ["one", "two"]
    assert tasks[0] == both[0]
    assert tasks[1]["in_place"] is True


def test_an_export_says_which_tasks_it_leaves_out(scratch):
    first = scratch.add("First")
    second = scratch.add("Second", "--after", first)
    scratch("pause", second)
    done = scratch.type("tasks", "--status", "paused", "--export")
    assert "title: Second" in done.stdout
    assert "after" not in done.stdout
    assert f"Dependencies on tasks that are not in this list were left out: {first}." in done.stderr


WRONG = """\
tasks:
  - titel: No title
  - title: Two slips
    priorty: 3
    priority: high
    review: maybe
  - [not, a, task]
"""


def test_everything_that_is_wrong_in_a_file_is_told_with_its_line(scratch):
    (scratch.repo / "tasks.yaml").write_text(WRONG)
    said = scratch.fails("add", "--file", "tasks.yaml", status=2)
    assert said.splitlines() == [
        "fleet: tasks.yaml has 5 problems. Nothing was added.",
        "tasks.yaml:2: titel: is not a key of a task.",
        "  Did you mean 'title'?",
        "tasks.yaml:4: priorty: is not a key of a task.",
        "  Did you mean 'priority'?",
        "tasks.yaml:5: priority: 'high' is not a whole number.",
        "tasks.yaml:6: review: is neither true nor false.",
        "tasks.yaml:7: is not a task.",
        "  Write `tasks:` and a list: `- title: Fix the login`.",
    ]
    assert scratch.data("tasks") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "standard input: has no list of tasks."),
        ("tasks: x", "standard input:1: has no list of tasks."),
        ("task:\n  - A", "standard input:1: task: is not a key here.\n  Did you mean 'tasks'?"),
        ("tasks:\n  - A\n  - title: B\n    after: nowhere", "standard input:3: There is no task"),
        ("tasks:\n  - A\n  - title: B\n    cwd: gone", "standard input:3: "),
        ("tasks:\n  - {name: a, title: A, after: a}", "standard input:2: These tasks would wait"),
        ("tasks: [{title: A, agent: nobody}]", "standard input:1: "),
        ("tasks: [\n", "standard input:2: is not valid YAML"),
        ("a: &a [*a]", "standard input"),
    ],
)
def test_a_file_with_one_mistake_adds_nothing(scratch, text, words):
    said = scratch.fails("add", "-f", "-", stdin=text.encode(), status=2)
    assert words in said
    assert scratch.data("tasks") == []


def test_a_title_or_a_file_is_needed_and_not_both(scratch, plan):
    said = scratch.fails("add", "Fix it", "--file", str(plan), status=2)
    assert "Give only one of: a title, --issue, --file." in said
    assert scratch.data("tasks") == []
    assert "The title is missing." in scratch.fails("add", status=2)


def test_the_same_file_is_added_once_unless_it_is_wanted_again(scratch, plan):
    scratch("add", "--file", str(plan))
    said = scratch.fails("add", "--file", str(plan), status=1)
    assert "The same tasks were added before: t-1 to t-4." in said
    assert "--again" in said
    assert len(scratch.data("add", "--file", str(plan), "--again")) == 4
    assert len(scratch.data("tasks")) == 8


def test_paths_in_a_file_are_relative_to_it(scratch):
    below = scratch.repo / "plans"
    below.mkdir()
    (below / "prompt.md").write_text("say Hello.")
    (below / "tasks.yaml").write_text("tasks: [{title: A, prompt-file: prompt.md, cwd: .}]")
    scratch.git("add", "-A")
    scratch.git("commit", "-qm", "Plans")
    scratch("add", "--file", "plans/tasks.yaml")
    shown = scratch.data("show", "t-1")
    assert (shown["prompt"], shown["task"]["cwd"]) == ("say Hello.", str(below))


def test_a_tree_with_nothing_open_says_what_is_done_and_not_landed(scratch):
    scratch.add("Notes", script="write notes.txt hello\ncommit Notes")
    scratch.work()
    tree, flat = (scratch.type("tasks", *words) for words in (["--tree"], []))
    assert "No open tasks. `fleet tasks --all` lists the ended ones." in tree.stdout
    assert "1 done and not landed" in tree.stderr
    assert (tree.stdout, tree.stderr) == (flat.stdout, flat.stderr)


def test_settings_that_are_not_trusted_are_named_once(scratch):
    (scratch.repo / "fleet.yaml").write_text("workspace: {setup: [make]}\n")
    file = scratch.root / "tasks.yaml"
    file.write_text(f"tasks:\n- title: One\n- title: Two\n  cwd: {scratch.repo}\n")
    for words in ([], ["--json", "--again"]):
        done = scratch.type("add", "--file", str(file), *words)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("fleet trust") == 1, done.stderr


def test_a_file_in_json_is_read_as_json_writes_it(scratch):
    title = "Fix \U0001f680 and \\ud83d"
    scratch("add", "--file", "-", stdin=json.dumps({"tasks": [title]}).encode())
    assert scratch.data("tasks")[0]["title"] == title


def test_all_open_tasks_are_exported_however_many_there_are(scratch):
    tasks = [f"Task {n}" for n in range(60)]
    scratch("add", "--file", "-", stdin=json.dumps({"tasks": tasks}).encode())
    assert scratch("tasks", "--export").count("title: Task") == 60
    assert scratch("tasks", "--export", "-n", "5").count("title: Task") == 5
