"""Claude Code, Codex and OpenCode themselves find the plugin and the skills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.testing.model_server import ModelServer, say
from tests.real.programs import private_env, repository

pytestmark = pytest.mark.real

TOP = Path(__file__).parents[2]
NAMES = ["subagent-fleet-bootstrap", "subagent-fleet-setup", "subagent-fleet-operations"]
PLUGIN = "subagent-fleet@subagent-fleet"


class Seat:
    """Somebody's home and project, in which nothing was ever installed."""

    def __init__(self, folder: Path) -> None:
        home = folder / "home"
        self.repo = repository(folder / "project")
        self.env = private_env(
            home,
            CLAUDE_CONFIG_DIR=str(home / ".claude"),
            CODEX_HOME=str(home / ".codex"),
            FLEET_HOME=str(home / ".fleet"),
            IS_SANDBOX="1",
            DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            OPENCODE_DISABLE_AUTOUPDATE="1",
        )
        (home / ".codex").mkdir()
        self.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), self.env["PATH"]])

    def type(self, *words: str, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            words,
            cwd=cwd or self.repo,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"$ {words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def read(self, *words: str, **given):
        return json.loads(self.type(*words, **given))


@pytest.fixture
def seat(tmp_path):
    return Seat(tmp_path)


@pytest.mark.parametrize("what", [".", "plugins/subagent-fleet"])
def test_claude_code_finds_nothing_wrong_with_them(seat, what):
    assert "Validation passed" in seat.type(
        "claude", "plugin", "validate", "--strict", what, cwd=TOP
    )


def test_claude_code_installs_the_plugin_from_a_checkout_and_lists_its_skills(seat):
    seat.type("claude", "plugin", "marketplace", "add", str(TOP))
    assert f"Folder ({TOP})" in seat.type("claude", "plugin", "marketplace", "list")
    seat.type("claude", "plugin", "install", "subagent-fleet")
    (listed,) = seat.read("claude", "plugin", "list", "--json")
    assert (listed["id"], listed["enabled"]) == (PLUGIN, True)
    shown = seat.type("claude", "plugin", "details", "subagent-fleet")
    assert all(name in shown for name in NAMES)
    assert {f"subagent-fleet:{name}" for name in NAMES} <= set(begun(seat)["skills"])


def test_claude_code_lists_the_skills_that_were_installed_into_a_project(seat):
    assert not set(NAMES) & set(begun(seat)["skills"])
    seat.type("fleet", "skills", "install", "--target", "claude-code")
    assert set(NAMES) <= set(begun(seat)["skills"])


def begun(seat: Seat) -> dict:
    """What it says of itself when a conversation begins."""
    with ModelServer([say("Done.")]) as server:
        told = seat.type(
            *("claude", "-p", "Go.", "--output-format", "stream-json", "--verbose"),
            ANTHROPIC_BASE_URL=server.url,
            ANTHROPIC_AUTH_TOKEN="sk-scripted",
        )
    lines = [json.loads(line) for line in told.splitlines()]
    return next(line for line in lines if line.get("subtype") == "init")


def test_codex_installs_the_plugin_from_a_checkout_and_is_told_of_its_skills(seat):
    seat.type("codex", "plugin", "marketplace", "add", ".", cwd=TOP)
    added = seat.read("codex", "plugin", "add", PLUGIN, "--json")
    assert added["pluginId"] == PLUGIN
    (listed,) = seat.read("codex", "plugin", "list", "--json")["installed"]
    assert (listed["pluginId"], listed["enabled"]) == (PLUGIN, True)
    told = seat.type("codex", "debug", "prompt-input", "Go.")
    assert all(f"subagent-fleet:{name}" in told for name in NAMES)


def test_codex_is_told_of_the_skills_that_were_installed_into_a_project(seat):
    seat.type("fleet", "skills", "install", "--target", "codex")
    told = seat.type("codex", "debug", "prompt-input", "Go.")
    assert all(name in told for name in NAMES)


def test_opencode_lists_the_skills_that_were_installed_into_a_project(seat):
    seat.type("fleet", "skills", "install", "--target", "opencode")
    listed = seat.read("opencode", "debug", "skill")
    assert set(NAMES) <= {skill["name"] for skill in listed}


def test_the_bundle_that_we_write_elsewhere_installs_as_well(seat, tmp_path):
    seat.type("fleet", "plugins", "install", "--out", str(tmp_path / "market"))
    seat.type("claude", "plugin", "marketplace", "add", str(tmp_path / "market"))
    seat.type("claude", "plugin", "install", PLUGIN)
    seat.type("codex", "plugin", "marketplace", "add", str(tmp_path / "market"))
    seat.type("codex", "plugin", "add", PLUGIN)
