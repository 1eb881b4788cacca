"""Changing a task that was added, as a person types it."""

from __future__ import annotations

import random
import shlex
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from fleet.cli.tasks.edit_text import changes
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def editor(scratch, tmp_path):
    """Makes `$EDITOR` a script of `sh`; `$1` is the file."""

    def make(script: str) -> dict[str, str]:
        file = tmp_path / "my editor"
        file.write_text(f"#!/bin/sh\ncp \"$1\" '{tmp_path}/seen.yaml'\n{script}\n")
        file.chmod(0o755)
        return {"EDITOR": shlex.quote(str(file))}

    return make


def test_who_does_an_ended_task_next_is_told_by_edit(scratch):
    """Its row shows who did it last."""
    task = scratch.add()
    scratch.work()
    done = scratch.type("edit", task, "--agent", "codex")
    assert "scripted" not in done.stdout
    again = f"It is done: `fleet retry {task}` queues it again with codex."
    assert again in done.stderr
    scratch("retry", task)
    assert scratch.data("show", task)["task"]["coder"] == "codex"


def test_why_an_edited_task_waits_is_said_once(scratch):
    first, task = scratch.add("First"), scratch.add("Second")
    done = scratch.type("edit", task, "--after", first)
    assert done.stderr.startswith(f"It waits for {first}, which is open.")


def test_every_option_of_edit_counts(scratch):
    first, task = scratch.add("First"), scratch.add("Old title", "--label", "old")
    words = [
        "--title",
        "New title",
        "--prompt",
        "say New.",
        "--priority",
        "0",
        "--agent",
        "scripted",
    ]
    words += ["--model", "small", "--base", "main", "--gate", "true", "--after", first]
    words += ["--label", "ui", "--label", "bug", "--budget", "$2", "--budget", "90m"]
    words += ["--attempts", "3", "--time-limit", "90", "--review"]
    row = scratch.data("edit", task, *words)
    assert (row["title"], row["priority"], row["status"]) == ("New title", 0, "waiting")
    detail = scratch.data("show", task)
    assert (detail["prompt"], detail["after"]) == ("say New.", [first])
    spec = detail["spec"]
    assert (spec["agent"], spec["model"], spec["base"]) == ("scripted", "small", "main")
    assert (spec["gate"], spec["labels"], spec["review"]) == ("true", ["ui", "bug"], True)
    limits = spec["limits"]
    assert (limits["attempts"], limits["time_limit"]) == (3, 90)
    assert limits["budget"] == {"cost": 2_000_000, "tokens": 0, "seconds": 5400}
    scratch("edit", task, "--after", "", "--label", "", "--base", "", "--no-review")
    detail = scratch.data("show", task)
    assert (detail["after"], detail["spec"]["labels"], detail["spec"]["base"]) == ([], [], "")
    assert detail["task"]["status"] == "ready"


def test_edit_says_what_became_of_the_task(scratch):
    task = scratch.add("Fix it", script="fail 2 no")
    assert scratch("edit", task, "--title", "Fix the login", "--priority", "1") == (
        f"Changed {task}: Fix the login  [scripted, priority 1, ready]\n"
    )
    scratch.work()
    done = scratch.type("edit", task, "--prompt", "say Done.")
    assert done.stderr == f"It is failed: `fleet retry {task}` queues it again.\n"
    scratch("retry", task)
    scratch.work()
    assert scratch.status(task) == "done"


def test_dependencies_that_conflict_are_mended_with_another_base(scratch):
    """What the refusal advises can be typed."""
    one = scratch.add("One", script="write a.txt one\ncommit x")
    two = scratch.add("Two", script="write a.txt two\ncommit x")
    both = scratch.add("Both", "--after", one, "--after", two, script="write b.txt both\ncommit x")
    scratch.work()
    shown = scratch.data("show", both)
    assert shown["task"]["status"] == "paused"
    assert "fleet edit" in shown["why"]
    scratch.git("branch", "-q", "mended", f"fleet/{one}")
    tree = scratch.root / "mended"
    scratch.git("worktree", "add", "-q", str(tree), "mended")
    scratch.git("merge", "-q", "-s", "ours", "--no-edit", f"fleet/{two}", cwd=tree)
    assert "no commit 'mendde'" in scratch.fails("edit", both, "--base", "mendde", status=2)
    done = scratch.type("edit", both, "--base", "mended")
    assert "paused" not in done.stderr
    scratch.work()
    assert scratch.status(both) == "done"
    branch = scratch.data("show", both)["runs"][-1]["branch"]
    assert scratch.git("show", f"{branch}:a.txt").strip() == "one"


def test_what_a_run_has_already_cannot_be_changed_under_it(scratch):
    task = scratch.add("Slow", script="say one\nsleep 60")
    with scratch.supervisor():
        scratch.wait_for(task, "running")
        words = scratch.fails("edit", task, "--base", "main", "--gate", "true", status=1)
        assert f"{task} is running, and its run keeps the base and gate it started with" in words
        assert f"fleet cancel {task}" in words
        done = scratch.type("edit", task, "--title", "Slower", "--prompt", "say two")
        assert done.returncode == 0
        assert f"fleet send {task} TEXT" in done.stderr


def test_the_base_of_a_task_that_has_begun_is_its_branch(scratch):
    task = scratch.add("Fail", script="write a.txt one\ncommit x\nfail 9 no")
    scratch.work()
    words = scratch.fails("edit", task, "--base", "main", status=1)
    assert f"{task} has begun, and its next run continues on fleet/{task}" in words


def test_without_options_the_task_is_edited_as_text(scratch, editor, tmp_path):
    task = scratch.add(
        "Old title", "--label", "ui", "--budget", "$2.5", script="say one\n  say two"
    )
    env = editor("""sed -i -e 's/^title: .*/title: "New: title"/' -e 's/say one/say 1/' "$1" """)
    assert scratch("edit", task, env=env).startswith(f"Changed {task}: New: title")
    assert scratch.data("show", task)["prompt"] == "say 1\n  say two"
    seen = (tmp_path / "seen.yaml").read_text()
    assert seen.startswith(f"# {task} is ready.")
    assert yaml.safe_load(seen)["budget"] == ["$2.5"]
    assert seen.endswith("prompt: |2-\n  say one\n    say two\n")


def test_an_edit_that_changes_nothing_is_aborted(scratch, editor):
    task = scratch.add()
    before = scratch.facts()
    assert "Nothing was changed" in scratch.fails("edit", task, env=editor("true"), status=1)
    assert "status 3" in scratch.fails("edit", task, env=editor("exit 3"), status=1)
    assert scratch.facts() == before


def test_a_text_that_is_refused_is_not_lost(scratch, editor):
    task = scratch.add()
    env = editor(
        """sed -i -e 's/^priority: .*/priority: soon/' -e 's/^title: .*/title: B/' "$1" """
    )
    words = scratch.fails("edit", task, env=env, status=2)
    assert "priority is 'soon', not a number" in words
    file = words.split("--file ")[1].strip()
    text = Path(file).read_text().replace("soon", "4")
    scratch("edit", task, "--file", "-", stdin=text.encode())
    assert scratch.data("show", task)["task"]["title"] == "B"
    nonsense = text.replace("gate:", "gaet:")
    assert "Did you mean 'gate'" in scratch.fails(
        "edit", task, "--file", "-", stdin=nonsense.encode(), status=2
    )


def test_without_a_terminal_or_an_editor_edit_says_what_to_type(scratch):
    task = scratch.add()
    assert "--title TEXT" in scratch.fails("edit", task, status=2)


def test_any_prompt_survives_the_editor(scratch, tmp_path, editor):
    choose = random.Random(7)
    for _ in range(40):
        parts = choose.choices(
            ["a", " ", "\n", "\t", "#", ": ", "- ", "'", '"', "é", "\u2028"], k=12
        )
        prompt = "".join(parts)
        task = scratch.data("add", "Any", "--prompt", f"say x\n{prompt}")["id"]
        scratch.type("edit", task, env=editor("true"))
        seen = (tmp_path / "seen.yaml").read_bytes().decode()
        assert changes(seen, seen) == {}
        assert yaml.load(seen, Loader=yaml.BaseLoader)["prompt"] == f"say x\n{prompt}", repr(prompt)


def test_a_resumed_run_is_told_the_new_prompt(scratch):
    """A conversation that goes on has only heard the old one."""
    task = scratch.add("Ask", script="ask Which way?\nsay {answer}")
    scratch.work()
    scratch("edit", task, "--prompt", "say New words.")
    scratch("answer", task, "Left")
    scratch.work()
    assert scratch.status(task) == "done"
    assert "New words." in scratch("logs", task)


def test_a_task_of_a_server_elsewhere_is_edited_there(scratch):
    with closing(Served(scratch)) as served:
        task = scratch.add()
        env = {"FLEET_URL": served.url}
        scratch("edit", task, "--title", "There", env=env)
    assert scratch.data("show", task)["task"]["title"] == "There"
