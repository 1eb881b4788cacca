import json
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.coders.codex.coder import CodexCoder
from fleet.domain.errors import Refused
from fleet.domain.run import Ending, Usage
from fleet.domain.transcript import SaidKind
from tests.unit.adapters.coders.folds import SECRET, Recorded, brief, read, replies

CODER = CodexCoder()
ENDINGS = {
    "401": Ending.FAILED,
    "429-final": Ending.RATE_LIMITED,
    "429-subscription": Ending.RATE_LIMITED,
    "killed": Ending.FAILED,
    "no-such-session": Ending.FAILED,
}
THREAD = {"id": "thread", "result": {"thread": {"id": "T"}}}


def told(method, **params):
    return {"method": method, "params": {"threadId": "T", **params}}


BEGUN = told("turn/started", turn={"id": "U"})
ENDED = told("turn/completed", turn={"id": "U", "status": "completed", "error": None})


def used(total, last, thread="T"):
    def tokens(given, cached=0):
        return {"inputTokens": given, "cachedInputTokens": cached, "outputTokens": 1}

    usage = {"total": tokens(*total), "last": tokens(*last)}
    return told("thread/tokenUsage/updated", threadId=thread, tokenUsage=usage)


def settings(**options):
    argv = CODER.launch(brief(options=options)).argv
    return [value for flag, value in pairwise(argv) if flag == "-c"]


def filesystem(cwd, **fields):
    argv = CODER.launch(brief(cwd, **fields)).argv
    (rules,) = [a for a in argv if a.startswith("permissions.fleet-run.filesystem=")]
    pairs = rules.partition("=")[2].strip("{}").split(",")
    return dict(json.loads(f"[{pair.replace('=', ',')}]") for pair in pairs)


def decide(method, permissions="edit", **params):
    opening = CODER.launch(brief(options={"permissions": permissions})).opening
    said, _ = read(CODER, {"id": 4, "method": method, "params": params}, opening=opening)
    return json.loads(said[0].text)


class TestRecorded(Recorded):
    coder = CODER
    endings = ENDINGS


@given(st.lists(st.text() | st.sampled_from(['{"id": 1}', '{"method": "x"}', "[]", "null"])))
def test_lines_that_mean_nothing_say_nothing_that_matters(lines):
    listener = CODER.listen("{}")
    for line in lines:
        assert not [s for s in listener.hear(line) if s.kind is not SaidKind.REPLY]


def test_a_total_that_is_said_again_is_not_counted_again():
    _, heard = read(CODER, THREAD, BEGUN, *[used((100,), (100,))] * 3, used((250, 50), (150, 50)))
    assert heard.usage == Usage(input=200, output=1, cached=50, context=150)


def test_what_a_resumed_thread_had_used_before_is_not_counted():
    _, heard = read(CODER, THREAD, used((900,), (300,)), BEGUN, used((1000,), (100,)))
    assert heard.usage.input == 100


def test_an_agent_that_it_started_counts_but_fills_no_context_and_ends_no_turn():
    other = {"method": "turn/completed", "params": {**ENDED["params"], "threadId": "other"}}
    _, heard = read(
        CODER, THREAD, BEGUN, used((100,), (100,)), used((5000,), (5000,), "other"), other
    )
    assert heard.usage.input == 5100
    assert heard.peak_context == 100
    assert heard.ended_turns == 0


def test_a_retry_of_its_own_is_not_an_error():
    error = {"message": "Reconnecting... 1/5"}
    said, _ = read(CODER, THREAD, BEGUN, told("error", error=error, willRetry=True))
    assert [s for s in said if s.kind is SaidKind.ERROR] == []


def test_an_interrupted_turn_is_not_a_success():
    turn = {"id": "U", "status": "interrupted", "error": None}
    _, heard = read(CODER, THREAD, BEGUN, told("turn/completed", turn=turn))
    assert heard.failed


def test_it_cannot_be_spoken_to_before_it_has_a_thread():
    assert CODER.listen("{}").words("Hello") is None


def test_words_enter_the_running_turn_and_begin_one_where_none_runs():
    listener = CODER.listen("{}")
    methods = []
    for line in (THREAD, BEGUN, ENDED):
        listener.hear(json.dumps(line))
        methods.append(json.loads(listener.words("Hello"))["method"])
    assert methods == ["turn/start", "turn/steer", "turn/start"]


def test_words_that_came_too_late_are_said_again_once_even_by_one_who_never_said_them():
    listener = CODER.listen("{}")
    for line in (THREAD, BEGUN):
        listener.hear(json.dumps(line))
    first = json.loads(listener.words("Hello: there"))
    late = {"id": first["id"], "error": {"code": -32600, "message": "no active turn to steer"}}
    said, _ = read(CODER, THREAD, BEGUN, ENDED, late)
    again = json.loads(replies(said)[-1].text)
    assert again["method"] == "turn/start"
    assert again["params"]["input"][0]["text"] == "Hello: there"
    refused = {"id": again["id"], "error": {"code": -32600, "message": "no"}}
    said, _ = read(CODER, THREAD, BEGUN, ENDED, late, refused)
    assert len(replies(said)) == 2


@pytest.mark.parametrize("permissions", ["read", "edit"])
def test_what_it_asks_for_is_refused(permissions):
    command = "item/commandExecution/requestApproval"
    assert decide(command, permissions)["result"] == {"decision": "decline"}
    assert decide("item/permissions/requestApproval", permissions)["result"] == {"permissions": {}}


def test_what_it_asks_for_is_granted_with_full_permissions():
    assert decide("item/fileChange/requestApproval", "full")["result"] == {"decision": "accept"}


def test_a_question_of_its_own_tool_is_told_how_to_ask():
    reply = decide("item/tool/requestUserInput", questions=[{"id": "q1"}])
    assert "fleet ask" in reply["result"]["answers"]["q1"]["answers"][0]


def test_what_nobody_knows_is_refused_rather_than_left_waiting():
    assert decide("something/new")["error"]["code"] == -32601


@pytest.mark.parametrize("permissions", ["read", "edit", "full"])
def test_only_full_permissions_are_dangerous(permissions):
    launch = CODER.launch(brief(options={"permissions": permissions}))
    everything = " ".join(launch.argv) + launch.stdin
    assert ("danger" in everything) == (permissions == "full")


def test_extra_arguments_cannot_widen_permissions():
    extra = ("-c", "sandbox_mode=danger-full-access")
    with pytest.raises(Refused, match="permissions are 'edit'"):
        settings(extra_args=extra)
    assert "sandbox_mode=danger-full-access" in settings(extra_args=extra, permissions="full")


def test_the_prompt_is_not_on_the_command_line():
    launch = CODER.launch(brief())
    assert SECRET not in " ".join(launch.argv)
    assert SECRET in launch.opening


def test_without_a_gateway_it_uses_its_own_login():
    assert not [s for s in settings() if "model_provider" in s]


def test_a_gateway_is_named_with_where_its_key_is_and_never_the_key():
    launch = CODER.launch(
        brief(
            env={"KEY": "sk-secret"},
            options={"gateway": {"base_url": "http://127.0.0.1:4000/v1/", "key_env": "KEY"}},
        )
    )
    (provider,) = [a for a in launch.argv if a.startswith("model_providers.fleet=")]
    assert '"base_url"="http://127.0.0.1:4000/v1"' in provider
    assert '"env_key"="KEY"' in provider
    assert "sk-secret" not in " ".join(launch.argv) + launch.opening


def test_its_folder_is_not_named_since_that_would_make_the_user_trust_it():
    assert "cwd" not in json.loads(CODER.launch(brief()).opening)["thread"]


@pytest.fixture
def worktree(tmp_path):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    git("init", "-q", str(tmp_path / "repo"))
    git("-C", str(tmp_path / "repo"), "commit", "-q", "--allow-empty", "-m", "Begin")
    git("-C", str(tmp_path / "repo"), "worktree", "add", "-q", str(tmp_path / "work"))
    return tmp_path


def test_a_worktree_can_be_committed_in_and_its_hooks_not_changed(worktree):
    (worktree / "work" / "sub").mkdir()
    rules = filesystem(worktree / "work" / "sub")
    git = worktree / "repo" / ".git"
    assert rules[str(worktree / "work")] == "write"
    assert rules[str(worktree / "work" / ".git")] == "read"
    assert rules[str(git / "worktrees" / "work")] == rules[str(git)] == "write"
    assert rules[str(git / "hooks")] == rules[str(git / "config")] == "read"


def test_in_a_checkout_of_the_users_own_only_its_folder_is_writable(worktree):
    (worktree / "repo" / "sub").mkdir()
    rules = filesystem(worktree / "repo" / "sub")
    assert str(worktree / "repo") not in rules
    assert rules[str(worktree / "repo" / ".git")] == "write"


def test_one_that_reads_writes_only_its_notes(worktree):
    rules = filesystem(worktree / "work", options={"permissions": "read"})
    assert rules == {"/tasks/t-1/artifacts": "write"}


def test_the_store_can_be_written_for_fleet_ask_and_not_the_work_of_others(tmp_path):
    (tmp_path / "worktrees").mkdir()
    rules = filesystem("/repo", env={"FLEET_HOME": str(tmp_path)}, options={"permissions": "read"})
    assert rules[str(tmp_path)] == "write"
    assert rules[str(tmp_path / "worktrees")] == "read"
    assert str(tmp_path / "config.yaml") not in rules


def test_what_it_can_do_is_said_in_sentences():
    for field in CODER.abilities.__slots__:
        assert getattr(CODER.abilities, field)
