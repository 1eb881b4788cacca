from fleet.adapters.coders.opencode.files import NEEDS
from fleet.domain.coder_tools import OPENCODE, granted, unknown


def test_a_tool_that_claude_code_no_longer_has_is_named():
    tools = ("Read", "Grep", "Glob", "Edit", "MultiEdit", "Bash")
    assert unknown("claude", tools) == ["MultiEdit"]
    assert granted("claude", tools) == ("Read", "Edit", "Bash")


def test_searching_tools_are_granted_without_a_shell():
    assert granted("claude", ("Read", "Grep", "Glob")) == ("Read", "Grep", "Glob")


def test_a_tool_with_a_pattern_and_one_of_a_server_are_known():
    tools = ("Bash(git:*)", "mcp__files__read")
    assert unknown("claude", tools) == []
    assert granted("claude", tools) == tools


def test_opencode_has_the_tools_that_its_permissions_are_made_of():
    assert set().union(*NEEDS.values()) == OPENCODE
    assert unknown("opencode", ("Read", "bash", "Shell", "mcp__x__y")) == ["Shell"]
    assert granted("opencode", ("Grep", "Bash", "Shell")) == ("Grep", "Bash")


def test_a_coder_that_takes_no_names_is_told_nothing():
    assert unknown("codex", ("MultiEdit",)) == []
