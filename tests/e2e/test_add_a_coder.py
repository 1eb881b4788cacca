"""The page on coders of one's own does what it says, in the order in which it says it."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-coder.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
FILES = {title: text for _, title, text in BLOCKS if title}
BY_SETTINGS, BY_CLASS = [text.splitlines() for kind, _, text in BLOCKS if kind == "sh"]


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    made.tools = tmp_path / "tools"
    made.tools.mkdir()
    made.env |= {"PATH": f"{made.tools}:{made.env['PATH']}"}
    del made.env["FLEET_CODER"]
    return made


def declare(scratch) -> None:
    program = scratch.tools / "mycli"
    program.write_text(FILES["mycli"])
    program.chmod(0o755)
    scratch.home.mkdir(exist_ok=True)
    (scratch.home / "config.yaml").write_text(FILES["config.yaml"])


def install(scratch) -> None:
    """As pip would: the module, and beside it the record with the entry point."""
    place = scratch.root / "site"
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    record = place / f"{project['name']}-{project['version']}.dist-info"
    record.mkdir(parents=True)
    (place / "polite.py").write_text(FILES["polite.py"])
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (record / "METADATA").write_text(about)
    ((group, points),) = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (record / "entry_points.txt").write_text("\n".join(lines) + "\n")
    scratch.env |= {"PYTHONPATH": str(place)}


def typed(scratch, lines: list[str]) -> dict[str, str]:
    return {line: scratch(*shlex.split(line)[1:]) for line in lines if line}


def written(scratch, name: str) -> str:
    (file,) = (scratch.home / "worktrees").rglob(name)
    return file.read_text()


def test_a_coder_declared_by_the_lines_of_the_page_does_a_task(scratch):
    declare(scratch)
    shown = typed(scratch, BY_SETTINGS)
    assert "mycli --model" in shown["fleet coders mycoder"]
    assert "done" in shown["fleet show t-1"]
    assert "my-model" in shown["fleet show t-1"]
    assert "I am my-model.\nWritten." in shown["fleet logs t-1"]
    run = scratch.data("show", "t-1")["runs"][0]
    assert (run["ending"], run["detail"]) == ("succeeded", "The greeting is written.")
    assert "Write a greeting" in written(scratch, "greeting.txt")


def test_a_coder_installed_as_the_page_says_does_a_task(scratch):
    declare(scratch)
    install(scratch)
    scratch("add", "The first")  # the page's tasks go on from the section before
    shown = typed(scratch, BY_CLASS)
    assert "/tee" in shown["fleet coders polite"]
    assert "done" in shown["fleet show t-2"]
    assert "Thank the reader" in written(scratch, "polite.txt")


def test_a_coder_that_a_project_declares_runs_once_it_is_trusted(scratch):
    declare(scratch)
    (scratch.home / "config.yaml").rename(scratch.repo / "fleet.yaml")
    scratch("add", "Write a greeting", "--coder", "mycoder", "--model", "m")
    scratch("trust")
    scratch.work()
    assert scratch.status("t-1") == "done"
    assert "Write a greeting" in written(scratch, "greeting.txt")


def test_a_coder_without_its_package_is_unknown_and_one_that_is_broken_says_why(scratch):
    assert "There is no coder 'polite'." in scratch.fails("add", "x", "--coder", "polite", status=2)
    install(scratch)
    (scratch.root / "site" / "polite.py").write_text("import nothing_of_this_name\n")
    rows = {row["name"]: row for row in scratch.data("coders", "--no-probe")}
    assert "nothing_of_this_name" in rows["polite"]["error"]
    assert rows["claude"]["from"] == "fleet"


def test_every_coder_is_listed_with_what_it_can_do_and_where_it_is(scratch):
    declare(scratch)
    slow = scratch.tools / "claude"
    slow.write_text("#!/bin/sh\nsleep 60 & sleep 60\n")
    aider = scratch.tools / "aider"
    aider.write_text("#!/bin/sh\necho aider 9.8.7\n")
    for program in (slow, aider):
        program.chmod(0o755)
    rows = {row["name"]: row for row in scratch.data("coders")}
    assert rows["claude"]["path"] == str(slow)
    assert rows["claude"]["version"] is None
    assert rows["claude"]["why"] == "It did not say its version within 3 s."
    assert rows["aider"]["version"] == "9.8.7"
    assert rows["agy"]["path"] is None
    assert rows["agy"]["abilities"]["verified"].startswith("Not with agy itself")
    assert (rows["agy"]["estimates"], rows["claude"]["estimates"]) == (True, False)
    assert (rows["mycoder"]["from"], rows["mycoder"]["executable"]) == ("settings", "mycli")
    assert all(row["abilities"] for row in rows.values())
    assert rows["command"]["path"] is None
    table = scratch("coders", "--no-probe")
    assert "mycoder" in table
    assert "not found" in table
    assert "There is no coder 'aidr'." in scratch.fails("coders", "aidr", status=2)


def test_agy_is_run_as_its_documents_say_by_a_stand_in(scratch):
    program = scratch.tools / "agy"
    program.write_text('#!/bin/sh\necho "$# $1" > said.txt\necho Thinking.\necho Done.\n')
    program.chmod(0o755)
    scratch("add", "Do it", "--coder", "agy", "--model", "ignored")
    scratch.work()
    run = scratch.data("show", "t-1")["runs"][0]
    assert run["ending"] == "succeeded"
    assert written(scratch, "said.txt") == "2 -p\n"


def test_a_task_waits_and_does_not_fail_while_nobody_trusts_its_coder(scratch):
    (scratch.repo / "fleet.yaml").write_text("coders:\n  mine: {command: [date]}\n")
    scratch("add", "Greet", "--coder", "mine", "--attempts", "1")
    scratch.work()
    assert scratch.data("show", "t-1")["task"]["state"] == "open"
    assert "The command of the coder 'mine' is not trusted." in scratch("show", "t-1")
    scratch("trust")
    scratch.work()
    assert scratch.data("show", "t-1")["task"]["state"] == "done"
