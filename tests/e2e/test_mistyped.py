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
    ],
)
def test_it_says_what_is_wrong_and_what_helps(scratch, typed, status, words):
    before = scratch.data("tasks", "--all")
    assert words.format(repo=scratch.repo) in scratch.fails(*shlex.split(typed), status=status)
    assert scratch.data("tasks", "--all") == before
