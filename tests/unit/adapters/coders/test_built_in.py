"""The table of built-in coders: what it names is there, and what reads it needs no second place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.adapters.assistants.mcp_settings import McpSettings, file_of
from fleet.adapters.assistants.skills import Plugin
from fleet.adapters.coders import BUILT_IN, BuiltIn, having, part
from fleet.adapters.coders.shared.generates import Generates, Tools
from fleet.adapters.coders.shared.programs import executable
from fleet.adapters.tmux.screen_rules import ScreenProgram
from fleet.adapters.tmux.screens import program_of, read_screen
from fleet.app.coders import coders_with, generate_targets, make_coder
from fleet.app.compute.generate import files_of, next_steps
from fleet.domain.fleet import CODERS, Fleet, Model
from fleet.ports import ScreenState

SOURCE = Path("src/fleet")
PARTS = {
    "files": Generates,
    "tools": Tools,
    "mcp": McpSettings,
    "plugin": Plugin,
    "screens": ScreenProgram,
}
NAMED = [(name, field) for name in BUILT_IN for field in PARTS if getattr(BUILT_IN[name], field)]
# Where the name of one coder must stand: a default, an option or a step that is about it alone.
ELSEWHERE = {
    "claude": {
        "app/compute/generate.py",
        "cli/compute/generate.py",
        "cli/demo/compute.py",
        "config/commands/init_files.py",  # whose tools `fleet init` names
        "config/keys/table.py",
        "config/settings.py",
        "domain/landing/race.py",  # whose models a name means, for a judge of another vendor
    },
    "gemini": {"domain/landing/race.py", "testing/models/gemini.py"},
}


def test_every_coder_that_settings_may_name_has_a_row():
    assert tuple(BUILT_IN) == CODERS


@pytest.mark.parametrize("name", CODERS)
def test_a_row_leads_to_the_coder_of_that_name(name):
    assert make_coder(name).name == name


@pytest.mark.parametrize(("name", "field"), NAMED)
def test_what_a_row_names_is_there(name, field):
    assert isinstance(part(getattr(BUILT_IN[name], field)), PARTS[field])


@pytest.mark.parametrize("name", having("executable"))
def test_the_name_of_a_coder_stands_in_its_row_and_in_its_folder(name):
    row = BUILT_IN[name]
    known = {"adapters/coders/__init__.py", "domain/fleet.py", *ELSEWHERE.get(name, ())}
    named = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(rf"[\"']{name}[\"']", file.read_text())
    }
    folder = row.coder.removeprefix("fleet.").rpartition(".")[0].replace(".", "/")
    assert {file for file in named if not file.startswith(folder)} <= known


def test_the_table_loads_no_coder():
    code = "import sys, fleet.adapters.coders; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("fleet.adapters")]
    assert loaded == ["fleet.adapters", "fleet.adapters.coders"]


@pytest.fixture
def nova(monkeypatch):
    """One more row, whose parts are those of another coder."""
    made = BuiltIn(
        "fleet.adapters.coders.codex.coder:CodexCoder",
        title="Nova",
        executable="nova",
        files="fleet.adapters.coders.aider.files:GENERATES",
        mcp="fleet.adapters.coders.claude.mcp:MCP",
        screens="fleet.adapters.coders.claude.screens:SCREENS",
    )
    monkeypatch.setitem(BUILT_IN, "nova", made)


class Nova:
    name = "nova"


@pytest.mark.usefixtures("nova")
def test_a_new_row_is_all_that_generate_mcp_probes_and_screens_need(tmp_path):
    assert make_coder("nova")
    assert executable(Nova()) == "nova"
    assert "nova" in generate_targets()
    assert [file.path for file in files_of(Fleet(), ["nova"], "fleet.yaml", str(tmp_path))]
    served = Fleet(models={"small": Model("small", "small", ())})
    steps = [why for _, why in next_steps(served, ["env", "nova"])]
    assert steps == ["Nova on your own machines"]
    assert "nova" in coders_with("mcp")
    assert file_of("nova", "project", tmp_path, {}) == tmp_path / ".mcp.json"
    assert program_of(["/opt/nova"]) == "nova"
    assert read_screen("nova", "  Esc to cancel") == (ScreenState.WANTS, "nova.dialog")
