from itertools import pairwise

import pytest

from fleet.adapters.coders.codex.coder import CodexCoder
from fleet.domain.errors import Refused
from fleet.domain.transcript import SaidKind
from fleet.ports import InTerminal
from tests.unit.adapters.coders.watched import heard, launched

CODEX = CodexCoder()


def event(name, **more):
    return {"session_id": "s", "turn_id": "t", "hook_event_name": name, **more}


def settings(launch):
    words = launch.argv
    return dict(b.split("=", 1) for a, b in pairwise(words) if a == "-c")


def test_an_agent_of_its_own_does_not_take_its_place():
    other = {**event("SessionStart", source="startup"), "session_id": "another"}
    said, so_far = heard(CODEX, event("SessionStart", source="startup"), other, opening="")
    assert so_far.session == "s"
    assert [one.kind for one in said] == [SaidKind.SESSION]


def test_the_first_prompt_is_the_last_argument_whatever_is_in_it():
    for prompt in ("-x", "a\tb\n", "\\", "x" * 120_000):
        launch = launched(CODEX, prompt)
        assert launch.argv[-2:] == ("--", prompt)
        assert launch.stdin is None
        assert launch.terminal
    assert launched(CODEX, "x" * 120_001).stdin == "x" * 120_001


def test_a_session_is_resumed_by_its_id():
    launch = launched(CODEX, session="before")
    assert launch.argv[1] == "resume"
    assert launch.argv[-3:] == ("--", "before", "Do it.")
    assert launch.opening == "before"


def test_only_full_permissions_are_never_asked_about():
    for granted in ("read", "edit"):
        given = settings(launched(CODEX, options={"permissions": granted}))
        assert given["approval_policy"] == '"on-request"'
        assert given["default_permissions"] == '"fleet-run"'
    full = settings(launched(CODEX, options={"permissions": "full"}))
    assert full["approval_policy"] == '"never"'
    assert full["default_permissions"] == '":danger-full-access"'
    with pytest.raises(Refused, match="extra_args"):
        launched(CODEX, options={"extra_args": ("--dangerously-bypass-hook-trust",)})


def test_it_vouches_for_its_own_hooks_and_for_no_others():
    launch = launched(CODEX)
    assert not any("bypass" in word for word in launch.argv)
    state = settings(launch)["hooks.state"]
    names = [name for name in settings(launch) if name.startswith("hooks.") and name[6].isupper()]
    assert state.count("trusted_hash") == len(names) == 8
    assert "/<session-flags>/config.toml:user_prompt_submit:0:0" in state


def test_it_is_a_coder_with_a_screen():
    assert isinstance(CODEX, InTerminal)
    assert "--no-daemon" in launched(CODEX).argv
