import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
import pytest

from fleet.cli import main as table
from fleet.cli.root import load, root
from fleet.cli.terminal.frame import FleetCommand, FleetGroup


@pytest.mark.parametrize("name", table.COMMANDS)
def test_every_command_of_the_table_loads(name):
    assert isinstance(load(name), (FleetCommand, FleetGroup))


# They go on, and tell a person, or a program, what happens meanwhile.
NOT_REPORTING = {"run", "demo", "attach", "mcp", "help", "top"}


def leaves(command):
    if not isinstance(command, click.Group):
        return [command]
    return [leaf for sub in command.commands.values() for leaf in leaves(sub)]


@pytest.mark.parametrize("name", table.COMMANDS)
def test_every_command_that_reports_can_say_json(name):
    if name in NOT_REPORTING:
        return
    for command in leaves(load(name)):
        assert any("--json" in param.opts for param in command.params), command.name


@pytest.mark.parametrize("name", table.COMMANDS)
def test_every_command_and_every_option_has_help(name):
    for command in (load(name), *leaves(load(name))):
        assert command.help, command.name
        silent = [
            param.opts[-1]
            for param in command.params
            if isinstance(param, click.Option) and not param.hidden and not param.help
        ]
        assert silent == [], command.name


def test_every_command_is_under_one_heading():
    placed = Counter(n for two in table.HEADINGS.values() for names in two for n in names)
    assert placed == Counter(list(table.COMMANDS))


def test_every_line_of_help_is_one_sentence_that_fits():
    for name, (target, words) in table.COMMANDS.items():
        assert target.startswith("fleet.cli."), name
        assert words.endswith("."), name
    for page in (table.overview(), table.overview(everything=True)):
        assert max(map(len, page.splitlines())) <= 80


def test_help_shows_about_twenty_everyday_commands():
    everyday = [name for shown, _ in table.HEADINGS.values() for name in shown]
    assert 18 <= len(everyday) <= 24


def test_only_the_renderer_prints():
    forbidden = re.compile(r"print|click\.(s?echo|confirm|prompt)|sys\.std(out|err)\.write")
    for source in Path(table.__file__).parent.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(source.read_text())) if type(node) is ast.Call)
        names = [ast.unparse(call.func) for call in calls]
        assert [name for name in names if forbidden.fullmatch(name)] == [], source


def test_an_alias_is_not_also_a_command():
    assert not set(table.ALIASES) & set(table.COMMANDS)


def test_an_alias_runs_the_command_it_stands_for():
    ctx = click.Context(root)
    table.ALIASES["comp"] = "completion"
    try:
        assert root.get_command(ctx, "comp") is load("completion")
    finally:
        del table.ALIASES["comp"]


def imported_by(*words, cwd=None, env=None):
    script = f"import sys; from fleet.cli.main import main; main({list(words)!r})"
    script += "; print(*sys.modules, file=sys.stderr)"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=cwd, env=env
    )
    return set(found.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["help"], ["help", "all"]])
def test_help_loads_nothing_but_the_table(words):
    modules = imported_by(*words)
    assert "fleet.cli.main" in modules
    ours = {name for name in modules if name.startswith("fleet")}
    assert ours == {
        *("fleet", "fleet.cli", "fleet.cli.main"),
        *("fleet.cli.terminal", "fleet.cli.terminal.output"),
    }


def test_a_commands_help_loads_no_other_command():
    modules = imported_by("completion", "--help")
    assert "fleet.cli.terminal.completion" in modules
    commands = {target.partition(":")[0] for target, _ in table.COMMANDS.values()}
    assert commands & modules == {"fleet.cli.terminal.completion"}
    assert not {"yaml", "sqlite3", "json"} & modules


@pytest.mark.parametrize("words", [["tasks"], ["list"], ["show", "t-1"]])
def test_where_nothing_is_done_yet_nothing_about_landing_is_loaded(tmp_path, words):
    """Half of what these commands cost is to load what they import."""
    env = {**os.environ, "FLEET_HOME": str(tmp_path / "home")}
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["commit", "-qm", "Begin", "--allow-empty"]):
        subprocess.run([*git, *command], check=True)
    imported_by("add", "Fix the login", cwd=tmp_path, env=env)
    modules = imported_by(*words, cwd=tmp_path, env=env)
    assert "fleet.client.local" in modules
    unwanted = ("fleet.operations.inbox", "fleet.supervisor", "fleet.server", "fleet.adapters.git")
    assert not {name for name in modules if name.startswith(unwanted)}
    assert not {"yaml", "asyncio", "subprocess", "starlette", "msgspec"} & modules
