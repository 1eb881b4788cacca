import io
import json

import pytest

from fleet.cli.terminal import output
from fleet.cli.terminal.render import (
    Cell,
    ItemStream,
    Raw,
    Result,
    Table,
    Text,
    confirm,
    fail,
    say,
    show,
)
from fleet.domain.errors import BadConfig, BadInput


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_a_result_is_a_table_or_one_document(capsys):
    result = Result("tasks", [{"id": "t-1"}, {"id": "t-2"}], Table(["task"], [("t-1",), ("t-2",)]))
    assert show(result) == 0
    assert capsys.readouterr().out == "TASK\nt-1\nt-2\n"
    show(result, as_json=True)
    out = capsys.readouterr().out
    assert json.loads(out) == {"fleet": 1, "kind": "tasks", "data": [{"id": "t-1"}, {"id": "t-2"}]}
    assert out.count("\n") == 4  # one element per line


@pytest.mark.parametrize("data", [None, [], {}, 7, "text", (), ({"a": 1},)])
def test_any_data_is_one_document(data, capsys):
    show(Result("x", data, Text("")), as_json=True)
    assert list(json.loads(capsys.readouterr().out)) == ["fleet", "kind", "data"]


def test_notes_go_to_stderr_or_into_the_document(capsys):
    result = Result("tasks", [], Text("none"), notes=["The supervisor is not running."])
    show(result)
    assert capsys.readouterr() == ("none\n", "The supervisor is not running.\n")
    show(result, as_json=True)
    shown = capsys.readouterr()
    assert json.loads(shown.out)["notes"] == ["The supervisor is not running."]
    assert shown.err == ""


def test_a_result_may_carry_an_exit_status(capsys):
    assert show(Result("check", None, Text("broken"), exit_status=1)) == 1


def test_a_feed_is_shown_item_by_item(capsys):
    feed = ItemStream(lambda n: Cell(f"line {n}") if n else None)
    show(Result("log", iter([0, 1, 2]), feed))
    assert capsys.readouterr().out == "line 1\nline 2\n"
    show(Result("log", iter([0, 1]), feed), as_json=True)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["data"] for line in lines] == [0, 1]


def test_raw_text_is_printed_to_the_last_byte(capsys):
    show(Result("file", None, Raw("\x1b[1m no newline")))
    assert capsys.readouterr().out == "\x1b[1m no newline"


def test_an_error_names_the_thing_and_the_next_step(capsys):
    error = BadConfig("fleet.yaml:14: 'mac-mni' is not a node.", fix="Did you mean 'mac-mini'?")
    assert fail(error) == 2
    assert capsys.readouterr() == (
        "",
        "fleet: fleet.yaml:14: 'mac-mni' is not a node.\n  Did you mean 'mac-mini'?\n",
    )
    fail(error, as_json=True)
    assert json.loads(capsys.readouterr().err) == {
        "fleet": 1,
        "error": {
            "code": "bad_config",
            "message": "fleet.yaml:14: 'mac-mni' is not a node.",
            "fix": "Did you mean 'mac-mini'?",
        },
    }


def test_an_error_cannot_colour_the_terminal(capsys):
    fail(BadInput("no task '\x1b[31m'", fix="\x1b[0m"))
    say("\x1b[31m")
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("env", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_for_those_who_want_it(env, terminal, coloured, monkeypatch):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert output.colours(Terminal() if terminal else io.StringIO()) is coloured


def test_only_a_terminal_has_a_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    assert output.columns(io.StringIO()) is None
    assert output.columns(Terminal()) == 20
    monkeypatch.setenv("COLUMNS", "wide")
    assert output.columns(Terminal()) == 80


def test_a_stream_that_is_not_utf8_gets_what_it_can_show():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    output.write("caf\u00e9 …\n", stream)
    assert raw.getvalue() == b"caf? ?\n"


def test_a_question_without_a_terminal_is_refused_with_the_way_round(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(BadInput, match="no terminal to ask: Trust it") as refused:
        confirm("Trust it?", otherwise="Say --yes.")
    assert refused.value.fix == "Say --yes."


@pytest.mark.parametrize(
    ("typed", "agreed"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)]
)
def test_only_a_clear_yes_is_a_yes(typed, agreed, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert confirm("Trust it?", otherwise="") is agreed
