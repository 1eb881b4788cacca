"""What the pages on machines, and the examples' own, tell people to write is whole."""

from __future__ import annotations

import ast
import configparser
import json
import plistlib
import re
import shutil
import subprocess

import pytest
import yaml

from tests.docs.test_commands import complaint, typed
from tests.docs.tree import TOP, files, name
from tests.wait import LIMIT

PAGES = [
    TOP / "docs" / page
    for page in (
        "how-to/worker-machines.md",
        "how-to/tailscale.md",
        "how-to/other-harnesses.md",
        "security.md",
    )
]
SAID = [*files("examples/*README.md"), *files("src/fleet/skills/*.md")]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    found = [pair for page in PAGES for pair in BLOCK.findall(page.read_text("utf-8"))]
    return [body for kind, body in found if kind == language]


def units() -> list[configparser.ConfigParser]:
    found = []
    for text in blocks("ini"):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.read_string(text)
        found.append(unit)
    return found


def test_every_block_is_what_it_says_it_is():
    assert len(units()) == 3
    assert [plistlib.loads(text.encode())["RunAtLoad"] for text in blocks("xml")] == [True]
    assert [json.loads(text)["grants"][0]["src"] for text in blocks("json")] == [["tag:controller"]]
    assert [set(yaml.safe_load(text)) for text in blocks("yaml")] == [{"nodes"}]
    assert [ast.parse(text).body[0].lineno for text in blocks("python")] == [1]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
@pytest.mark.parametrize("number", range(3))
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path, number):
    text = blocks("ini")[number].replace("/usr/local/bin/llama-server", "/bin/true")
    if "ExecStart" not in text:
        text = text.replace("[Service]", "[Service]\nExecStart=/bin/true")
    file = tmp_path / "made.service"
    file.write_text(text.replace("User=llama\n", ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert "made.service" not in done.stderr, done.stderr


def test_every_variable_of_the_table_is_set_in_the_unit():
    page = PAGES[0].read_text("utf-8")
    named = set(re.findall(r"^\| `(OLLAMA_\w+)`", page, re.MULTILINE))
    assert named == set(re.findall(r"Environment=(OLLAMA_\w+)=", page))


@pytest.mark.parametrize("page", SAID, ids=[name(page) for page in SAID])
def test_a_line_that_an_example_or_a_skill_prints_can_be_typed(page):
    lines = list(typed(page.read_text("utf-8")))
    assert lines
    assert [said for _, words in lines if (said := complaint(words))] == []
