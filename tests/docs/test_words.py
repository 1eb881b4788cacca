from __future__ import annotations

import re

import pytest

from tests.docs.tree import files, name

# Written in pieces, so that this file does not contain what it looks for.
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?:^|[\s\"'`=(:])/(?:wor" + r"k|roo" + r"t|opt/(?:pypi|wheels))(?:/|\b)", re.MULTILINE
    ),
    "the host of a package registry": re.compile(
        r"\b(?:pypi\.or" + r"g|pythonhosted\.or" + r"g|npmjs\.(?:or" + r"g|co" + r"m)|debian\.or"
        r"g|artifactor" + r"y)\b"
    ),
    "an issue by its number": re.compile(r"(?i)\bissues? #?" + r"\d+\b"),
    "the older documents by number": re.compile(r"(?i)\bsee" + r"ds? `?00\d"),
}
TEXTS = [path for path in files() if b"\0" not in path.read_bytes()[:4096]]
EMOJI = re.compile("[\U0001f300-\U0001faff\u2705\u274c\u2728]")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what):
    found = []
    for path in TEXTS:
        if "tests/e2e/seeds/" in name(path) and what.startswith("the older"):
            continue
        if name(path) == "uv.lock" and "registry" in what:
            continue  # it says where each file is; test_lock.py says which hosts
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if FORBIDDEN[what].search(line):
                found.append(f"{name(path)}:{number}: {line.strip():.100}")
    assert found == []


def test_the_forbidden_is_recognised():
    lines = {
        "a path of one machine": "cd /wor" + "k/main",
        "the host of a package registry": "https://pypi.or" + "g/simple",
        "an issue by its number": "as iss" + "ue 12 says",
        "the older documents by number": "Seed 00" + "4",
    }
    assert lines.keys() == FORBIDDEN.keys()
    assert [what for what, line in lines.items() if not FORBIDDEN[what].search(line)] == []
    for path in ("docs/work/", "a/root", "src/fleet/cli/tasks/work.py"):
        assert not FORBIDDEN["a path of one machine"].search(path)


def test_source_and_pages_have_no_emoji():
    shown = [path for path in TEXTS if name(path).startswith("src/") or path.suffix == ".md"]
    assert [name(path) for path in shown if EMOJI.search(path.read_text("utf-8", "replace"))] == []
