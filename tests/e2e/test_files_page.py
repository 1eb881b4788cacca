"""The page that names the files of a home names those that are there, and no others."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import fleet
from tests.e2e.scratch import Scratch

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
NAMED = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
PATTERNS = [re.sub(r"<[a-z]+>", "*", name).rstrip("/") for name in NAMED]
SOURCE = "\n".join(p.read_text(encoding="utf-8") for p in Path(fleet.__file__).parent.rglob("*.py"))
BY_THE_CODER = "scripted.json"  # the scripted coder's own, as any program leaves its own


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("page"))
    scratch.add(script="say Done.")
    scratch.work()
    return scratch.home


def test_every_file_that_the_page_names_is_there_or_is_one_that_the_code_makes(home):
    assert len(NAMED) > 25
    for pattern in PATTERNS:
        made = f'"{pattern.split("/")[-1]}"' in SOURCE
        assert made or list(home.glob(pattern)), pattern


def test_every_file_that_is_there_is_on_the_page(home):
    tops = {pattern.split("/")[0] for pattern in PATTERNS} | {"fleet.db-wal", "fleet.db-shm"}
    assert {path.name for path in home.iterdir()} <= tops
    for top in ("tasks", "logs", "runs"):
        files = [p for p in (home / top).rglob("*") if p.is_file() and p.name != BY_THE_CODER]
        names = [str(path.relative_to(home)) for path in files]
        assert [n for n in names if not any(fnmatch(n, p) for p in PATTERNS)] == []
        assert names
