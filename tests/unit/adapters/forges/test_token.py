"""Where the token for a forge comes from."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from fleet.adapters.forges.token import TokenSource
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

GIT = "git.example.com"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / ".gitconfig").write_text("")
    return tmp_path


def env(home: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(home / "bin"), "/usr/bin", "/bin"])
    return {"HOME": str(home), "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", **more}


def program(home: Path, name: str, script: str) -> None:
    (home / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / name).chmod(0o755)


def test_the_variable_comes_first(home):
    program(home, "gh", "echo from-gh")
    assert TokenSource(GIT, "github", env(home, FLEET_FORGE_TOKEN="given"))() == "given"


def test_gh_is_asked_for_github_and_glab_for_gitlab(home):
    program(home, "gh", 'echo "$@" > $HOME/gh.words; echo from-gh')
    program(home, "glab", "echo from-glab")
    assert TokenSource(GIT, "github", env(home))() == "from-gh"
    assert TokenSource(GIT, "gitlab", env(home))() == "from-glab"
    assert (home / "gh.words").read_text() == f"auth token --hostname {GIT}\n"


def test_gits_own_helper_is_asked_without_an_argument_that_names_the_secret(home):
    helper = "!f() { echo username=bo; echo password=from-git; }; f"
    (home / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')
    program(home, "gh", "exit 1")
    assert TokenSource(GIT, "github", env(home))() == "from-git"
    assert TokenSource(GIT, "gitea", env(home))() == "from-git"


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_without_any_the_error_names_every_way(home, kind):
    program(home, "gh", "exit 1")
    with pytest.raises(Refused) as caught:
        TokenSource(GIT, kind, env(home))()
    assert caught.value.code == "no_forge_token"
    assert "FLEET_FORGE_TOKEN" in caught.value.fix


def test_it_is_asked_for_once_in_a_while(home):
    program(home, "gh", f'{sys.executable} -c \'open("{home}/count", "a").write("x")\'; echo t')
    source = TokenSource(GIT, "github", env(home))
    assert [source(), source()] == ["t", "t"]
    assert (home / "count").read_text() == "x"


def test_what_cannot_be_a_header_is_no_token(home):
    with pytest.raises(Refused, match="characters"):
        TokenSource(GIT, "gitea", env(home, FLEET_FORGE_TOKEN="a\r\nX-Evil: 1"))()
