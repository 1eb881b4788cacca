"""What is typed wrong is refused with one sentence and with what would help, and changes nothing."""

from __future__ import annotations

import shlex

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    made = Scratch(tmp_path_factory.mktemp("mistyped"))
    made.add("Notes", script="write notes.md x\ncommit Notes")
    made.work()
    made.add("Later", script="say Done.")
    (made.repo / "broken.yaml").write_text("tasks: [\n")
    (made.repo / "wrong.yaml").write_text("tasks: [{title: x, priority: high}]\n")
    return made


@pytest.mark.parametrize(
    ("typed", "status", "words"),
    [
        ("land trains x", 2, "It takes only options."),
        ("ui x", 2, "It takes only options."),
        ("land t-1 --all", 2, "Tasks cannot be named with --all or --label."),
        ("land t-1 --onto nosuch", 2, "There is no branch 'nosuch' in {repo}.\n"),
        ("multi --issues label:bug", 1, "{repo} has no remote 'origin'.\n"),
        ("land pause nosuch", 2, "`fleet land trains` lists branches."),
        ("multi --issues ''", 2, "The query is empty."),
        ("edit t-2 --title ''", 2, "Say what is to be done"),
        ("open t-1 --editor nosuch", 2, "fleet open t-1 --editor PROGRAM"),
        ("add --file broken.yaml", 2, "brackets and quotes must be closed"),
        ("send-back t-2 Again", 1, "only finished work can be sent back.\n  Tell its agent"),
        ("create x --permissions all", 2, "'all' is not one of 'read', 'edit', 'full'."),
        ("token create ''", 2, "Name a person."),
        ("retry t-2", 1, "fleet send t-2 TEXT"),
        ("search ...", 2, "There is no word to search for."),
        ("land t-1 --push --pr", 2, "by a push or by a pull request, not by both."),
        ("restore broken.yaml", 2, "broken.yaml is not a copy of a store."),
        (
            "add x --in-place --branch fix",
            2,
            "A task that works in place has no branch of its own.",
        ),
        ("add x --in-place --base main", 2, "Leave out --in-place, or --base and --branch."),
        ("kill x --batch t-1", 2, "A name and --batch cannot be used together."),
        ("token revoke --all --before soon", 2, "--before: 'soon' is not a time."),
        ("create refs/heads/x", 2, "'refs/heads/x' is not a valid branch name."),
        ("serve --stop --background", 2, "--status and --stop cannot be used together."),
        ("trust --show --revoke", 2, "--show and --revoke cannot be used together."),
        ("discover --port 80", 2, "--port needs --scan."),
        ("add --file wrong.yaml", 2, "wrong.yaml:1: priority: 'high' is not a whole number."),
    ],
)
def test_it_says_what_is_wrong_and_what_helps(scratch, typed, status, words):
    before = scratch.data("tasks", "--all")
    assert words.format(repo=scratch.repo) in scratch.fails(*shlex.split(typed), status=status)
    assert scratch.data("tasks", "--all") == before


def test_a_webhook_that_nobody_serves_is_told_in_words(scratch):
    env = {"FLEET_NOTIFY_WEBHOOK": "http://127.0.0.1:9/hook"}
    done = scratch.type("notify", env=env)
    assert "127.0.0.1: Connection refused" in done.stdout
