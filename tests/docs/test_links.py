from __future__ import annotations

import re

import pytest

from tests.docs.tree import TOP, files, name

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
PAGES = [pytest.param(path, id=name(path)) for path in files("*.md")]


def anchors(text: str) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page):
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path) if path else page
        if not to.exists() or (anchor and anchor not in anchors(to.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def test_the_index_of_the_documentation_names_every_page():
    index = (TOP / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [path.relative_to(TOP / "docs").as_posix() for path in files("docs/*.md")]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


def test_agents_read_what_people_read():
    assert (TOP / "AGENTS.md").read_text() == (TOP / "CONTRIBUTING.md").read_text()


def test_a_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    for page in files("README.md", "CONTRIBUTING.md", "docs/*.md"):
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text))
        assert named <= targets, f"{name(page)} names {named - targets}"


def test_decisions_are_numbered_short_and_of_one_shape():
    decisions = files("docs/decisions/*.md")
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in decisions:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f"# {int(path.name[:4])}. "), name(path)
        heads = [line for line in lines if line.startswith("## ")]
        assert heads == ["## Context", "## Decision", "## Consequences"], name(path)
        assert len(lines) < 60, name(path)
