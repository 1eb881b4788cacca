from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.docs.tree import TOP, files

FRAGMENT = re.compile(r"[a-z0-9-]+\.(added|changed|fixed)\.md")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(TOP / "scripts" / "changelog", tmp_path / "scripts")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("The rules.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nNewest first.\n")
    (tmp_path / "src" / "fleet").mkdir(parents=True)
    (tmp_path / "src" / "fleet" / "__init__.py").write_text(
        '"""Fleet."""\n\n__version__ = "0.0.1"\n'
    )
    return tmp_path


def changelog(tree, *words):
    command = [sys.executable, tree / "scripts" / "changelog", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_fragment_here_has_a_name_that_can_be_folded():
    found = [path.name for path in files("changelog.d/*") if path.name != "README.md"]
    assert [name for name in found if not FRAGMENT.fullmatch(name)] == []


def test_a_release_takes_the_fragments_in_and_stands_above_the_older_ones(tree):
    (tree / "changelog.d" / "b.fixed.md").write_text("`fleet run` no longer stops.\nNever.\n")
    (tree / "changelog.d" / "a.added.md").write_text("`fleet add` is there.\n")
    assert changelog(tree, "0.1.0").returncode == 0
    (tree / "changelog.d" / "c.changed.md").write_text("`fleet show` says more.\n")
    assert changelog(tree, "0.2.0").returncode == 0

    log = (tree / "CHANGELOG.md").read_text()
    assert re.findall(r"^##+ (\S+)", log, re.MULTILINE) == [
        *("0.2.0", "Changed"),
        *("0.1.0", "Added", "Fixed"),
    ]
    assert "- `fleet run` no longer stops.\n  Never.\n" in log
    assert [path.name for path in (tree / "changelog.d").iterdir()] == ["README.md"]


@pytest.mark.parametrize("words", [[], ["v1"], ["0.1.0", "more"]])
def test_a_version_that_is_none_changes_nothing(tree, words):
    (tree / "changelog.d" / "a.added.md").write_text("Something.\n")
    before = (tree / "CHANGELOG.md").read_text()
    assert changelog(tree, *words).returncode != 0
    assert (tree / "CHANGELOG.md").read_text() == before
    assert (tree / "changelog.d" / "a.added.md").exists()


def test_a_release_sets_the_version_and_only_its_tag_is_released(tree):
    (tree / "changelog.d" / "a.added.md").write_text("Something.\n")
    assert "0.0.1, not 0.2.0" in changelog(tree, "--released", "0.2.0").stderr
    assert "0.0.1 is not in CHANGELOG.md" in changelog(tree, "--released", "0.0.1").stderr
    assert changelog(tree, "0.2.0").returncode == 0
    source = (tree / "src" / "fleet" / "__init__.py").read_text()
    assert source == '"""Fleet."""\n\n__version__ = "0.2.0"\n'
    assert changelog(tree, "--released", "0.2.0").returncode == 0


def test_the_version_is_in_one_file():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/fleet/__init__.py"


def test_a_misnamed_fragment_is_named_and_nothing_is_folded(tree):
    (tree / "changelog.d" / "oops.md").write_text("Something.\n")
    for words in ("0.1.0", "--check"):
        done = changelog(tree, words)
        assert done.returncode != 0
        assert "oops.md" in done.stderr
    assert (tree / "changelog.d" / "oops.md").exists()


def test_a_version_is_released_once(tree):
    for _ in range(2):
        (tree / "changelog.d" / "a.added.md").write_text("Something.\n")
        done = changelog(tree, "0.1.0")
    assert "already" in done.stderr
    assert (tree / "changelog.d" / "a.added.md").exists()
