from __future__ import annotations

import re
import signal
from dataclasses import replace
from functools import cache

import pytest

from fleet.cli import main as table
from tests.e2e.seeds.seed_sandbox import NAMED, WORLDS, Sandbox
from tests.e2e.seeds.seed_table import BARE_WORD, COMMANDS, PROGRAMS, Command, read_pending
from tests.wait import until

PENDING = {key for key, _, _ in read_pending()[1]}
GROUP = re.compile(r'\[[^\]]*\]|<[^>]*>|"[^"]*"|\{[^}]*\}|\S+')
COMMENT = re.compile(r"\s+#[^'\"\n]*$")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def same(command: Command) -> Command:
    """All that makes a difference: documents print some lines twice, with other comments."""
    return replace(command, key="", line=COMMENT.sub("", command.line), times=1)


def rows(form: str, *, lasts: bool = False):
    found, known = [], set()
    for command in COMMANDS:
        if command.part == "foreign" or command.form != form or command.lasts != lasts:
            continue
        if same(command) in known and command.key not in PENDING:
            continue
        known.add(same(command))
        marks = ()
        if command.key in PENDING:
            why = f"{command.part} is not built; if this line works, take it out of pending.txt"
            marks = (pytest.mark.xfail(reason=why, strict=True),)
        name = f"{command.key} {command.typed.splitlines()[0]:.50}"
        found.append(pytest.param(command, id=name, marks=marks))
    return found


def must_be_in_the_table(command: Command) -> None:
    """Cheap, so that hundreds of pending lines cost nothing."""
    missing = command.calls() - set(table.COMMANDS) - set(table.ALIASES)
    assert not missing, f"$ {command.typed}\nthere is no command {missing}"
    known = command.given in WORLDS or command.given.split(" ")[0] in NAMED
    assert known, f"the world {command.given!r} cannot be made yet"


@pytest.mark.parametrize("command", rows("run"))
def test_the_line_does_what_its_document_says(command, tmp_path):
    must_be_in_the_table(command)
    sandbox = Sandbox(tmp_path)
    if command.part == "workspaces":
        sandbox.env["FLEET_CODER"] = "scripted"
    try:
        sandbox.given(command.given)
        check(sandbox, command)
    finally:
        sandbox.clear()


def check(sandbox: Sandbox, command: Command) -> None:
    done = sandbox.type(command.typed)
    shown = f"$ {command.typed}\n{done.stdout}"
    assert done.returncode == command.exit, shown
    assert "Traceback" not in done.stdout, shown
    for words in command.shows:
        assert sandbox.fill(words) in done.stdout, shown
    if command.then:
        sandbox.must(command.then)


@pytest.mark.parametrize("command", rows("run", lasts=True))
def test_the_line_goes_on_until_it_is_interrupted(command, tmp_path):
    must_be_in_the_table(command)
    sandbox = Sandbox(tmp_path)
    sandbox.given(command.given)
    going = sandbox.start(command.typed)
    # It says where it works once it is up; before that, Ctrl-C would prove nothing.
    until(lambda: going.over() or str(sandbox.home) in going.said(), going.said)
    up = not going.over()
    # A shell that is no terminal's starts a background job with SIGINT ignored.
    number = signal.SIGTERM if COMMENT.sub("", command.typed).endswith("&") else signal.SIGINT
    ended = going.end(number)
    shown = f"$ {command.typed}\n{going.said()}"
    assert up, shown
    assert ended, f"{shown}\n{number.name} did not end it"
    assert "Traceback" not in shown, shown
    assert going.process.returncode in {0, -number}, shown  # bash passes it on


def words_and_arguments(typed: str) -> tuple[list[str], list[str]]:
    """`fleet fanout <count> [prefix] --prompt PROMPT` → (fleet, fanout), (<count>, [prefix])."""
    text = re.sub(r"\s#.*|…", "", typed)
    text = re.sub(r"\[--?[^\]]*\]|(?<!\S)--?[a-z-]+,?( [A-Z]+| <\w+>)?", " ", text)
    words, arguments = [], []
    for part in GROUP.findall(text):
        plain = not arguments and (part in PROGRAMS or BARE_WORD.fullmatch(part))
        (words if plain else arguments).append(part)
    return words, arguments


@pytest.fixture(scope="module")
def help_of(tmp_path_factory):
    """What `… --help` prints, asked once for each command."""
    return cache(Sandbox(tmp_path_factory.mktemp("help")).must)


@pytest.mark.parametrize("command", rows("synopsis"))
def test_the_help_names_what_the_synopsis_names(command, help_of):
    must_be_in_the_table(command)
    words, arguments = words_and_arguments(command.typed)
    shown = help_of(f"{' '.join(words)} --help")
    usage = shown.split("\n\n")[0].split()
    taken = [part for part in usage if part.isupper() or part.endswith("...")]
    named = [part for part in taken if part not in {"[OPTIONS]", "COMMAND", "[ARGUMENTS]"}]
    for flag in FLAG.findall(command.typed.split(" #")[0]):
        assert re.search(rf"(?<![\w-]){flag}(?![\w-])", shown), shown
    assert len(named) >= len(arguments), shown
