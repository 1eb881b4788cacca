"""How fleet was installed, and who is asked for the newest release."""

from __future__ import annotations

import sys

import pytest

from fleet.adapters.machine.installation import (
    Installation,
    installation,
    newest,
    pipx_backend,
)
from fleet.domain.errors import Unavailable


@pytest.mark.parametrize(
    ("mark", "method", "command"),
    [
        ("pipx_metadata.json", "pipx", "pipx upgrade agent-fleet"),
        ("uv-receipt.toml", "uv", "uv tool upgrade agent-fleet"),
        ("pyvenv.cfg", "pip", f"{sys.executable} -m pip install --upgrade agent-fleet"),
    ],
)
def test_the_tool_that_installed_fleet_upgrades_it(tmp_path, mark, method, command):
    (tmp_path / mark).touch()
    how = installation(str(tmp_path), origin={})
    assert (how.method, " ".join(how.command)) == (method, command)


def program(folder, name: str, *lines: str) -> dict[str, str]:
    """A stand-in on PATH, which knows only the question that we ask."""
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_uv_is_asked_for_the_newest_release_where_there_is_no_pip(tmp_path):
    env = program(tmp_path, "uv", '[ "$1 $2" = "pip compile" ] && sed "s/$/==2.5.0/"')
    assert newest(Installation("uv", ("uv", "tool", "upgrade", "agent-fleet")), env) == "2.5.0"


def test_pipx_is_asked_for_the_newest_release_where_there_is_no_pip(tmp_path):
    lines = ('[ "$1 $2" = "runpip agent-fleet" ] && echo "agent-fleet (2.5.0)"',)
    env = program(tmp_path, "pipx", *lines, 'echo "Available versions: 2.5.0, 2.4.0"')
    assert newest(Installation("pipx", ("pipx", "upgrade", "agent-fleet")), env) == "2.5.0"


@pytest.mark.parametrize(
    ("record", "backend"),
    [('{"backend": "uv"}', "uv"), ('{"backend": "pip"}', "pip"), ("{}", "pip"), ("[", "pip")],
)
def test_what_pipx_recorded_says_what_it_installs_with(tmp_path, record, backend):
    (tmp_path / "pipx_metadata.json").write_text(record)
    assert pipx_backend(str(tmp_path)) == backend
    assert pipx_backend(str(tmp_path / "nowhere")) == "pip"


def test_pipx_that_installs_with_uv_is_asked_as_uv(tmp_path, monkeypatch):
    (tmp_path / "pipx_metadata.json").write_text('{"backend": "uv"}')
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    asked = '[ "$1 $2 $3" = "runpip agent-fleet compile" ] && sed "s/$/==2.5.0/"'
    env = program(tmp_path, "pipx", asked)
    assert newest(Installation("pipx", ("pipx", "upgrade", "agent-fleet")), env) == "2.5.0"


def test_a_tool_that_fails_is_named_with_what_it_said(tmp_path):
    env = program(tmp_path, "uv", "echo no route >&2", "exit 2")
    with pytest.raises(Unavailable, match="uv says: no route"):
        newest(Installation("uv", ()), env)
    with pytest.raises(Unavailable, match="pipx could not be run"):
        newest(Installation("pipx", ()), {"PATH": str(tmp_path / "nothing")})
