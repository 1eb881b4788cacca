"""Which of an agent's tools a program grants."""

from fleet.adapters.coders.claude.files import TOOLS as CLAUDE
from fleet.adapters.coders.codex.files import TOOLS as CODEX
from fleet.adapters.coders.opencode.files import TOOLS as OPENCODE


def test_a_tool_that_claude_code_no_longer_has_is_named():
    tools = ("Read", "Grep", "Glob", "Edit", "MultiEdit", "Bash")
    assert CLAUDE.unknown(tools) == ["MultiEdit"]
    assert CLAUDE.granted(tools) == ("Read", "Edit", "Bash")


def test_searching_tools_are_granted_without_a_shell():
    assert CLAUDE.granted(("Read", "Grep", "Glob")) == ("Read", "Grep", "Glob")


def test_a_tool_with_a_pattern_and_one_of_a_server_are_known():
    tools = ("Bash(git:*)", "mcp__files__read")
    assert CLAUDE.unknown(tools) == []
    assert CLAUDE.granted(tools) == tools


def test_opencode_has_the_tools_that_its_permissions_are_made_of():
    assert OPENCODE.unknown(("Read", "bash", "Shell", "mcp__x__y")) == ["Shell"]
    assert OPENCODE.granted(("Grep", "Bash", "Shell")) == ("Grep", "Bash")


def test_a_coder_that_takes_no_names_is_told_nothing():
    assert CODEX.unknown(("MultiEdit",)) == []
