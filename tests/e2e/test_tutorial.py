"""The tutorial does, line by line, what it says it does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import LIMIT

PAGES = Path(__file__).parents[2] / "docs" / "tutorial"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
MARK = "@@{}@@"


def steps(page: Path) -> list[tuple[str, str]]:
    """What is typed, and what is printed then."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:].rstrip("\n"), ""))
            else:
                typed, printed = found.pop()
                found.append((typed, printed + line))
    return found


def pattern(printed: str) -> str:
    """`…` is anything; on a line of its own, any lines."""
    text = re.escape(printed).replace("…\\\n", "…\n")
    text = re.sub(r"^…\n", r"(?:.*\\n)*?", text, flags=re.MULTILINE)
    return re.sub(r"(?:\\ )*…(?:\\ )*", ".*", text)


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_what_is_typed_prints_what_the_page_shows(page, tmp_path):
    scratch = Scratch(tmp_path)
    typed = steps(page)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = "".join(f"{line}\necho {MARK.format('$?')}\n" for line, _ in typed)
    who = {
        f"GIT_{who}_{what}": f"ada{'@localhost' * (what == 'EMAIL')}"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    env = {k: v for k, v in scratch.env.items() if k != "FLEET_CODER"} | who
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=elsewhere,
        env=env | {"OLLAMA_HOST": "127.0.0.1:1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    shown = re.split(MARK.format(r"(\d+)") + "\n", done.stdout)
    outputs, statuses = shown[::2], shown[1::2]
    assert len(statuses) == len(typed), done.stdout
    for (line, printed), output, status in zip(typed, outputs, statuses, strict=False):
        assert status == "0", f"$ {line}\n{output}"
        assert re.fullmatch(pattern(printed), output), f"$ {line}\n{output}\n!= {printed}"
