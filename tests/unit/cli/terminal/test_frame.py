import errno
import json
from pathlib import Path
from textwrap import dedent

import click
import pytest

from fleet.cli.terminal import frame
from fleet.cli.terminal.frame import command, group, run, wants_json
from fleet.cli.terminal.render import Pairs, Result, Text
from fleet.domain.errors import Conflict, NotFound


@command(config=True)
@click.argument("name")
@click.option("--limit", "-n", type=int, default=20, help="At most this many.")
@click.option("--sort", type=click.Choice(["age", "priority"]))
def sample(name, limit, sort, config):
    """Do a sample."""
    data = {"name": name, "limit": limit, "config": config, "json": wants_json()}
    shown = [("name", name), ("limit", limit), ("json", "yes" if wants_json() else "no")]
    return Result("sample", data, Pairs(shown))


def raising(error):
    @command("boom")
    def boom():
        raise error

    return boom


@group(invoke_without_command=True, json=True)
def settings():
    """Show the settings."""
    if click.get_current_context().invoked_subcommand is None:
        return Result("settings", {"a": 1}, Text("a 1"))
    return None


@settings.command("set")
@click.argument("pair")
def set_(pair):
    """Set one."""
    return Result("set", pair, Text(f"set {pair}"))


def test_a_command_shows_the_result_it_returns(capsys):
    assert run(sample, ["x", "--limit", "3"]) == 0
    assert "limit  3" in capsys.readouterr().out


def test_the_example_of_how_a_command_is_written_works(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    lines = [line for line in frame.__doc__.splitlines() if line.startswith("    ") or not line]
    names = {}
    exec("from __future__ import annotations\n" + dedent("\n".join(lines)), names)
    assert run(names["tasks"], ["--limit", "3"]) == 0
    assert capsys.readouterr().out == "No tasks.\n"


def test_every_command_has_json_and_those_that_ask_have_config(capsys):
    assert run(sample, ["x", "--json", "--config", "f.yaml"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == {
        "name": "x",
        "limit": 20,
        "config": "f.yaml",
        "json": True,
    }
    run(sample, ["x"])
    assert "json   no" in capsys.readouterr().out


def test_the_config_file_arrives_as_a_path():
    seen = []

    @command(config=True)
    def look(config):
        seen.append(config)
        return Result("x")

    run(look, ["--config", "f.yaml"])
    run(look, [])
    assert seen == [Path("f.yaml"), None]


def test_examples_in_a_docstring_keep_their_lines(capsys):
    @command()
    def sample():
        """Do it.

        These lines are one paragraph, which
        is wrapped.

            fleet sample one
            fleet sample two
        """

    run(sample, ["--help"])
    out = capsys.readouterr().out
    assert "These lines are one paragraph, which is wrapped." in out
    assert "      fleet sample one\n      fleet sample two\n" in out


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_shows_the_options_with_their_defaults(flag, capsys):
    assert run(sample, [flag]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: fleet [OPTIONS] NAME\n")
    assert "[default: 20]" in out
    assert "--json" in out


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (["x", "--limti", "3"], "there is no option '--limti'.", "Did you mean '--limit'?"),
        (["x", "--zzz"], "there is no option '--zzz'.", "--help`."),
        ([], "the argument NAME is missing.", "See `fleet sample --help`."),
        (["x", "--limit", "ten"], "--limit: 'ten' is not a whole number.", "--help`."),
        (["x", "--limit"], "Option '--limit' requires an argument.", "--help`."),
        (
            ["x", "--sort", "agee"],
            "--sort: 'agee' is not one of 'age', 'priority'.",
            "Did you mean 'age'?",
        ),
        (["fix", "the", "bug"], "unexpected argument: the bug.", "It takes NAME."),
    ],
)
def test_what_was_typed_wrong_is_named_with_its_fix(words, message, fix, capsys):
    assert run(sample, words, prog="fleet sample") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    first, second = shown.err.splitlines()
    assert first == f"fleet: sample: {message}"
    assert second.startswith("  ")
    assert fix in second


def test_only_a_command_that_takes_text_is_told_of_quotes_and_dashes(capsys):
    @click.command
    @click.argument("agent")
    @click.argument("text")
    def tell(agent, text): ...

    run(tell, ["bob", "hello", "there"], prog="fleet tell")
    assert "Text with spaces needs quotes." in capsys.readouterr().err
    run(tell, ["--", "bob", "hello", "--loud"], prog="fleet tell")
    assert "Options go before --." in capsys.readouterr().err
    run(tell, ["bob", "-x"], prog="fleet tell")
    assert "goes after --: fleet tell AGENT -- TEXT." in capsys.readouterr().err
    run(sample, ["x", "--zzz"], prog="fleet sample")
    assert "goes after --" not in capsys.readouterr().err


def test_a_usage_error_is_json_when_json_was_asked_for(capsys):
    assert run(sample, ["--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err)["error"]["code"] == "bad_input"
    run(raising(NotFound("no")), ["--", "--json"])
    assert capsys.readouterr().err.startswith("fleet: ")


def test_a_group_shows_itself_or_runs_a_subcommand(capsys):
    assert run(settings, ["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == {"a": 1}
    assert run(settings, ["set", "a=2"]) == 0
    assert capsys.readouterr().out == "set a=2\n"
    assert run(settings, ["--json", "set", "a=2"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == "a=2"


def test_an_unknown_subcommand_is_named_with_the_nearest(capsys):
    assert run(settings, ["sett"], prog="fleet config") == 2
    assert capsys.readouterr().err == (
        "fleet: config: 'sett' is not a command.\n  Did you mean 'set'?\n"
    )
    run(settings, ["zzz"], prog="fleet config")
    assert "It has: set." in capsys.readouterr().err


def test_the_exit_status_is_that_of_the_error(capsys):
    assert run(raising(NotFound("There is no task 't-9'.", fix="See `fleet tasks`.")), []) == 2
    assert capsys.readouterr().err == "fleet: There is no task 't-9'.\n  See `fleet tasks`.\n"
    assert run(raising(Conflict("It changed.")), []) == 1


@pytest.mark.parametrize("name", ["FLEET_DEBUG", "AI_FLEET_DEBUG"])
def test_debug_shows_where_an_error_came_from(name, monkeypatch, capsys):
    monkeypatch.setenv(name, "1")
    run(raising(NotFound("none")), [])
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("fleet: none\n")
    run(raising(NotFound("none")), ["--json"])
    assert "Traceback" in json.loads(capsys.readouterr().err)["error"]["detail"]


def test_anything_else_is_a_bug_with_a_traceback(capsys):
    assert run(raising(KeyError("x")), []) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert "fleet: This is a bug in fleet (KeyError: 'x').\n  Please report it" in err
    assert run(raising(KeyError("x")), ["--json"]) == 70
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "bug"


def test_a_command_that_returns_no_result_is_a_bug(capsys):
    @command()
    def wrong():
        return "text"

    assert run(wrong, []) == 70


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_trouble_with_the_disk_is_not_a_bug(number, capsys):
    assert run(raising(OSError(number, "It failed", "/x/fleet.db")), []) == 3
    err = capsys.readouterr().err
    assert err.startswith("fleet: /x/fleet.db: It failed.\n  ")


def test_a_missing_file_that_nobody_foresaw_is_a_bug(capsys):
    assert run(raising(FileNotFoundError(errno.ENOENT, "No such file", "/x")), []) == 70


def test_an_interrupt_ends_with_130_and_an_ended_input_with_2(capsys):
    assert run(raising(KeyboardInterrupt()), []) == 130
    assert run(raising(click.Abort()), []) == 130
    assert capsys.readouterr().err == ""
    assert run(raising(EOFError()), []) == 2
