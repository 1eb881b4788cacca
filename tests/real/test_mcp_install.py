"""`fleet mcp install`, as the programs themselves see it, and a run where it is installed."""

from __future__ import annotations

import os
import subprocess

import pytest

from fleet.testing.model_server import say
from tests.real.model_scratch import FLEET
from tests.real.programs import private_env, repository
from tests.real.test_mcp_runs import ServedDesk, tool

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
CODERS = ["claude", "codex", "opencode"]
QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def typed(env, cwd, *words) -> str:
    ran = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=90, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("coder", CODERS)
def test_the_program_lists_it_and_lists_it_no_more(coder, tmp_path):
    cwd = repository(tmp_path / "repo")
    env = private_env(tmp_path / "home", FLEET_HOME=str(tmp_path / "fleet"), **QUIET)
    env["PATH"] = f"{FLEET.parent}{os.pathsep}{env['PATH']}"
    assert "fleet" not in typed(env, cwd, coder, "mcp", "list").replace(str(tmp_path), "")
    typed(env, cwd, FLEET, "mcp", "install", "--coder", coder)
    listed = typed(env, cwd, coder, "mcp", "list")
    assert (str(FLEET) if coder == "codex" else f"{FLEET} mcp") in listed
    if coder != "codex":  # which does not try them
        assert "onnected" in listed
    typed(env, cwd, FLEET, "mcp", "uninstall", "--coder", coder)
    assert str(FLEET) not in typed(env, cwd, coder, "mcp", "list")


@pytest.mark.parametrize("coder", CODERS)
def test_a_run_is_itself_also_where_the_person_has_installed_it(coder, tmp_path):
    script = [tool(coder, "note", text="Half way."), say("Noted.")]
    with ServedDesk(coder, tmp_path, script) as scratch:
        scratch("mcp", "install", "--coder", coder)
        scratch.add("Write a note")
        scratch.start()
        scratch.wait("done", "failed")
        notes = [m for m in scratch.data("show", "t-1")["messages"] if m["kind"] == "note"]
        assert [(m["author"], m["text"]) for m in notes] == [("t-1.1", "Half way.")], (
            scratch.story()
        )
        tools = scratch.server.turns[0].tools
        assert len(set(tools)) == len(tools)
