"""`fleet skills` and `fleet plugins`, and whether what they teach is so."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

import fleet
from fleet.cli.root import root
from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import Scratch

TOP = Path(__file__).parents[2]
SHIPPED = Path(fleet.__file__).parent / "skills"
NAMES = ["subagent-fleet-bootstrap", "subagent-fleet-setup", "subagent-fleet-operations"]
FOLDERS = {
    "claude-code": ".claude/skills",
    "codex": ".codex/skills",
    "opencode": ".opencode/skills",
}
BUNDLE = [
    ".claude-plugin/marketplace.json",
    "plugins/subagent-fleet/.claude-plugin/plugin.json",
    ".agents/plugins/marketplace.json",
    "plugins/subagent-fleet/.codex-plugin/plugin.json",
    *(f"plugins/subagent-fleet/skills/{name}/SKILL.md" for name in NAMES),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(fleet [^`\n]+)`")
SETUP = "subagent-fleet-setup"
NOT_HERE = {"fleet up", "fleet doctor"}  # they need LiteLLM


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def text_of(name: str) -> str:
    return (SHIPPED / name / "SKILL.md").read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(text_of(name)) if found == language]


def typed(name: str) -> list[str]:
    """The command lines of ours that a skill tells to type."""
    lines = [line for block in blocks(name, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("fleet ")]


def files_of(top: Path) -> list[str]:
    found = [path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()]
    return sorted(path for path in found if not path.startswith((".git/", ".fleet/")))


def every(folders=FOLDERS, names=NAMES) -> list[str]:
    return sorted(f"{f}/{name}/SKILL.md" for f in dict(folders).values() for name in names)


def test_the_list_names_the_skills_the_assistants_and_what_is_installed(scratch):
    said = scratch("skills", "list")
    assert all(word in said for word in (*NAMES, *FOLDERS, *FOLDERS.values()))
    listed = scratch.data("skills", "list")
    assert [skill["name"] for skill in listed["skills"]] == NAMES
    assert listed["skills"][0]["installed"] == dict.fromkeys(FOLDERS)
    scratch("skills", "install", "--target", "codex")
    listed = scratch.data("skills", "list")
    assert listed["skills"][0]["installed"] == dict.fromkeys(FOLDERS) | {"codex": "installed"}


def test_all_skills_are_installed_for_all_assistants_at_the_top_of_the_checkout(scratch):
    below = scratch.repo / "src"
    below.mkdir()
    said = scratch("skills", "install", cwd=below)
    assert files_of(scratch.repo) == every()
    assert all(f"  {path}" in said for path in every())
    for path in every():
        assert (scratch.repo / path).read_text() == text_of(Path(path).parent.name)
    assert "Unchanged: 9 files." in scratch("skills", "install")


@pytest.mark.parametrize("target", FOLDERS)
def test_one_assistant(scratch, target):
    scratch("skills", "install", "--target", target)
    assert files_of(scratch.repo) == every({target: FOLDERS[target]})


@pytest.mark.parametrize("name", NAMES)
def test_one_skill_and_the_others_stay(scratch, name):
    scratch("skills", "install", "-t", "codex")
    scratch("skills", "install", "--skill", name)
    assert files_of(scratch.repo) == sorted({*every({"": ".codex/skills"}), *every(names=[name])})


def test_somewhere_else_and_outside_of_git(scratch, tmp_path):
    scratch("skills", "install", "--out", str(tmp_path / "there"), "-t", "opencode")
    assert files_of(tmp_path / "there") == every({"": ".opencode/skills"})
    (tmp_path / "plain").mkdir()
    scratch("skills", "install", "-t", "codex", cwd=tmp_path / "plain")
    assert files_of(tmp_path / "plain") == every({"": ".codex/skills"})


def test_an_assistant_or_a_skill_that_is_not_there_is_named(scratch):
    assert "claude-code" in scratch.fails("skills", "install", "--target", "claud", status=2)
    assert SETUP in scratch.fails("skills", "install", "--skill", "setup", status=2)


def test_an_edited_skill_stops_it_and_then_nothing_is_written(scratch):
    scratch("skills", "install", "-t", "codex")
    mine = scratch.repo / ".codex/skills" / SETUP / "SKILL.md"
    mine.write_text("mine")
    said = scratch.fails("skills", "install", status=1)
    assert f"Edited since they were installed: .codex/skills/{SETUP}/SKILL.md." in said
    assert "--force" in said
    assert mine.read_text() == "mine"
    assert not (scratch.repo / ".claude").exists()
    installed = scratch.data("skills", "list")["skills"][1]["installed"]
    assert installed == {"claude-code": None, "codex": "edited", "opencode": None}
    scratch("skills", "install", "--force")
    assert mine.read_text() == text_of(SETUP)


def test_a_skill_of_somebody_else_stops_it(scratch):
    mine = scratch.repo / ".claude/skills" / SETUP / "SKILL.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    said = scratch.fails("skills", "install", status=1)
    assert f"not written by us: .claude/skills/{SETUP}/SKILL.md." in said
    assert files_of(scratch.repo) == [f".claude/skills/{SETUP}/SKILL.md"]


def test_a_skill_as_an_older_fleet_wrote_it_is_brought_up_to_date(scratch):
    scratch("skills", "install", "-t", "codex")
    older = scratch.repo / ".codex/skills" / SETUP / "SKILL.md"
    record = scratch.repo / ".fleet/generated.json"
    older.write_text("older")
    held = json.loads(record.read_text())
    digest = hashlib.sha256(b"older").hexdigest()
    held["files"][f".codex/skills/{SETUP}/SKILL.md"]["hashes"] = [digest]
    record.write_text(json.dumps(held))
    assert scratch.data("skills", "list")["skills"][1]["installed"]["codex"] == "older"
    scratch("skills", "install", "-t", "codex")
    assert older.read_text() == text_of(SETUP)


def test_clean_takes_away_what_was_installed_and_nobody_edited(scratch):
    scratch("skills", "install", "-t", "codex")
    mine = scratch.repo / ".codex/skills" / SETUP / "SKILL.md"
    mine.write_text("mine")
    scratch("clean", "--yes")
    assert files_of(scratch.repo) == [f".codex/skills/{SETUP}/SKILL.md"]


def test_generating_leaves_the_skills_alone(scratch):
    scratch("skills", "install")
    scratch("init")
    scratch("generate", "-t", "codex", "-t", "opencode", "-t", "claude")
    assert set(every()) < set(files_of(scratch.repo))


def test_a_marketplace_for_claude_code_and_codex(scratch, tmp_path):
    said = scratch("plugins", "install", "--out", str(tmp_path / "market"))
    assert files_of(tmp_path / "market") == sorted(BUNDLE)
    assert "claude plugin marketplace add" in said
    assert "codex plugin add subagent-fleet@subagent-fleet" in said
    for path in BUNDLE[:4]:
        held = json.loads((tmp_path / "market" / path).read_text())
        assert held["name"] == "subagent-fleet"
        assert held.get("version", fleet.__version__) == fleet.__version__


def test_one_after_the_other_is_both(scratch):
    scratch("plugins", "install", "--target", "codex")
    assert files_of(scratch.repo) == sorted(BUNDLE[2:])
    scratch("plugins", "install", "--target", "claude-code")
    assert files_of(scratch.repo) == sorted(BUNDLE)
    assert "Unchanged: 7 files." in scratch("plugins", "install")


def test_an_edited_plugin_is_not_written_over(scratch):
    scratch("plugins", "install", "-t", "claude-code")
    mine = scratch.repo / BUNDLE[0]
    mine.write_text("{}")
    assert BUNDLE[0] in scratch.fails("plugins", "install", status=1)
    assert not (scratch.repo / ".agents").exists()
    scratch("plugins", "install", "--force")
    assert json.loads(mine.read_text())["name"] == "subagent-fleet"


def test_this_repository_has_the_plugin_as_it_is_made(scratch, tmp_path):
    scratch("plugins", "install", "--out", str(tmp_path / "market"))
    for path in BUNDLE:
        made = (tmp_path / "market" / path).read_text()
        assert (TOP / path).read_text() == made, f"{path}: `fleet plugins install --out . --force`"


@pytest.mark.parametrize("name", NAMES)
def test_a_skill_has_the_front_matter_that_the_assistants_need(name):
    head = yaml.safe_load(text_of(name).split("---\n", 2)[1])
    assert head["name"] == name
    assert 40 < len(head["description"]) < 500
    assert head.keys() == {"name", "description"}


LINES = [(name, line) for name in NAMES for line in typed(name)]


def test_the_skills_speak_of_every_part():
    said = " ".join(line for _, line in LINES)
    for word in (
        "add",
        "run",
        "questions",
        "diff",
        "kept",
        "discover",
        "gateway",
        "generate",
        "trace",
    ):
        assert f"fleet {word}" in said


def parsed(words: list[str]) -> click.Context:
    """As the program itself does it: every option, value and number of arguments counts."""
    command, context = root, click.Context(root, info_name="fleet")
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"{command.name} has no command {words[0]}"
        command, words = found, words[1:]
        context = click.Context(command, context, info_name=command.name)
    command.parse_args(context, list(words))
    return context


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_a_line_that_a_skill_says_to_type_is_understood(name, line):
    words = shlex.split(line, comments=True)[1:]
    if words != ["--version"]:
        parsed(words)


@pytest.mark.parametrize(
    "line", ["frobnicate", "answer", "list --frob", "gateway frob", "gc --days x"]
)
def test_a_line_that_is_wrong_is_noticed(line):
    with pytest.raises((AssertionError, click.UsageError)):
        parsed(line.split())


def complaint(words: list[str]) -> str:
    """Named in a sentence, a command may lack its arguments, but not exist in name alone."""
    command, context = root, click.Context(root, info_name="fleet")
    known = {"--version", "--help"}
    for word in words:
        if word.startswith("--") and word not in known:
            return f"{command.name} has no option {word}"
        if isinstance(command, click.Group) and not word.startswith("-"):
            command = command.get_command(context, word)
            if command is None:
                return f"there is no command {word}"
            known |= {option for param in command.params for option in param.opts}
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_a_sentence_names_is_there(name):
    prose = BLOCK.sub("", text_of(name))
    named = INLINE.findall(prose)
    assert [c for line in named if (c := complaint(shlex.split(line)[1:]))] == []
    assert complaint(["frobnicate"]) == "there is no command frobnicate"


def test_the_fleet_of_the_setup_skill_works_line_by_line(scratch):
    (example,) = blocks(SETUP, "yaml")
    nodes = [FakeNode(["qwen2.5-coder:32b", "qwen2.5-coder:7b"]).start() for _ in range(2)]
    try:
        for node, address in zip(nodes, re.findall(r'"(http://[^"]+)"', example), strict=True):
            example = example.replace(address, node.url)
        scratch("init")
        (scratch.repo / "fleet.yaml").write_text(example)
        said = {line: scratch(*line.split()[1:]) for line in typed(SETUP) if line not in NOT_HERE}
    finally:
        for node in nodes:
            node.stop()
    assert said["fleet validate"] == "fleet.yaml is valid.\n"
    assert "offline" not in said["fleet discover --verbose"]
    assert ".claude/agents/planner.md" in said["fleet generate"]
    assert "implementer" in said["fleet nodes"]


def test_the_queue_of_the_operations_skill_works_line_by_line(scratch):
    lines = typed("subagent-fleet-operations")
    adding = [shlex.split(line)[1:] for line in lines if line.startswith("fleet add ")]
    scratch("init")
    assert len(adding) == 3
    for words in adding:
        scratch(*words, "--config", str(scratch.repo / "fleet.yaml"))
    asking = {
        "fleet tasks",
        "fleet show t-1",
        "fleet list",
        "fleet questions",
        "fleet task t-1 plan",
    }
    asking |= {"fleet kept list", "fleet gc --dry-run", "fleet cancel t-2", "fleet list --repair"}
    assert asking <= set(lines)
    for line in asking:
        scratch(*line.split()[1:])
    assert scratch.status("t-2") == "cancelled"
