"""What the pages tell people to type is there to be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from fleet.cli import main as table
from fleet.cli.root import MOST_EXAMPLES, examples_of, load, root
from tests.docs.tree import files, name

PAGES = files("README.md", "CONTRIBUTING.md", "docs/*.md")
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OURS = ("fleet", "flt", "subagent-fleet")
END = {"|", "||", "&&", "&", ";", ">", ">>", "<"}


def typed(text: str):
    """The command lines of ours in a page's `console` and `sh` blocks."""
    for language, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if language == "console" and not line.startswith("$ "):
                continue
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words and words[0] in OURS:
                yield line, words[1:]


def options_of(command: click.Command) -> set[str]:
    return {o for p in command.params for o in (*p.opts, *p.secondary_opts)}


def complaint(words: list[str]) -> str:
    command, context = root, click.Context(root, info_name="fleet")
    known = {"--help", "-h"} | {o for p in root.params for o in p.opts}
    for word in words:
        if word in END:
            break
        if word.startswith("-") and word != "-":
            if word.split("=")[0] not in known:
                return f"{command.name} has no option {word}"
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None and command is root:
                return f"there is no command {word}"
            if found is not None:
                command, context = found, click.Context(found, context, info_name=word)
                known |= options_of(found)
                if (usual := getattr(found, "usual", "")) and isinstance(found, click.Group):
                    known |= options_of(found.get_command(context, usual))
    return ""


LINES = [
    pytest.param(words, id=f"{name(page)}: {line}")
    for page in PAGES
    for line, words in typed(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("words", LINES)
def test_a_line_that_a_page_prints_can_be_typed(words):
    assert complaint(words) == ""


def test_a_command_or_an_option_that_is_not_there_is_noticed():
    assert complaint(["frobnicate"]) == "there is no command frobnicate"
    assert complaint(["completion", "--frob"]) == "completion has no option --frob"


EXAMPLES = [
    line
    for line in Path(table.__file__).with_name("examples.txt").read_text().splitlines()
    if line.startswith("fleet ")
]


def paths(name: str) -> list[str]:
    command = load(name)
    if not isinstance(command, click.Group):
        return [f"fleet {name}"]
    subs = [f"fleet {name} {sub}" for sub, c in command.commands.items() if not c.hidden]
    return [f"fleet {name}", *subs]


@pytest.mark.parametrize("name", table.COMMANDS)
def test_the_help_of_every_command_ends_with_two_examples(name):
    for path in paths(name):
        lines = examples_of(path)
        assert len(lines) == MOST_EXAMPLES, f"{path} needs two lines in cli/examples.txt"


def test_no_example_is_there_twice_and_none_is_of_a_command_that_is_not():
    assert len(set(EXAMPLES)) == len(EXAMPLES)
    assert [line for line in EXAMPLES if complaint(shlex.split(line)[1:])] == []
