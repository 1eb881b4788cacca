import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.coders.aider.coder import AiderCoder
from fleet.domain.run import Ending, Usage
from fleet.domain.transcript import Conversation, SaidKind, hear
from tests.unit.adapters.coders.folds import SECRET, brief, ending

CODER = AiderCoder()
GATEWAY = {"base_url": "http://127.0.0.1:4000/v1", "key_env": "KEY", "context": 40_000}
ENDINGS = {
    "401": Ending.FAILED,
    "429-final": Ending.RATE_LIMITED,
    "too-long": Ending.CONTEXT_FULL,
    "edit-outside": Ending.FAILED,
    "killed": Ending.FAILED,
}


def event(name, **properties):
    return json.dumps({"event": name, "properties": properties})


STARTS, SENT = event("message_send_starting"), event("message_send", prompt_tokens=10)
EXIT = event("exit", reason="Completed --message-file")


def heard(*lines):
    listener, so_far = CODER.listen('{"session": "/chat.md"}'), Conversation()
    said = [one for line in lines for one in listener.hear(line)]
    for one in said:
        so_far = hear(so_far, one)
    return said, so_far


def launched(tmp_path, **fields):
    return CODER.launch(brief(cwd=tmp_path, **fields)._replace(task_dir=str(tmp_path / "task")))


def after(argv, flag):
    return argv[argv.index(flag) + 1]


def test_what_the_real_program_said_reads_as_expected(transcript):
    transcript.check(CODER)


def test_it_exits_with_0_whatever_happened_and_no_error_is_a_success(transcript):
    case = transcript.folder.name
    expected = ENDINGS.get(case, Ending.SUCCEEDED)
    assert ending(CODER, transcript, -9 if case == "killed" else 0) is expected


def test_every_recorded_turn_but_the_killed_one_has_ended(transcript):
    _, so_far = transcript.read(CODER)
    assert so_far.at_rest is (transcript.folder.name != "killed")
    assert so_far.session.endswith(".md")


@given(st.lists(st.text() | st.sampled_from(['{"event": 7}', '{"event": "exit"}', "[]", STARTS])))
def test_no_line_is_fatal(lines):
    heard(*lines)


def test_a_reply_that_speaks_of_errors_is_no_error():
    reply = "litellm.RateLimitError: is what you see."
    said, so_far = heard(STARTS, reply, "Tokens: 1 sent", SENT, EXIT)
    assert not [one for one in said if one.kind in {SaidKind.LIMIT, SaidKind.ERROR}]
    assert (so_far.failed, so_far.last) == (False, reply)


def test_a_limit_that_it_got_past_by_itself_is_none():
    limit = "litellm.RateLimitError: Slow down."
    said, so_far = heard(STARTS, limit, "Retrying in 0.2 seconds...", "Fine.", SENT, EXIT)
    assert (so_far.limited, so_far.last) == (False, "Fine.")
    assert SaidKind.LIMIT not in [one.kind for one in said]


def test_another_error_after_a_limit_is_what_it_failed_of():
    limit, other = "litellm.RateLimitError: Slow.", "litellm.AuthenticationError: Bad key."
    _, so_far = heard(STARTS, limit, "Retrying in 0.2 seconds...", other, EXIT)
    assert (so_far.limited, so_far.failed, so_far.error) == (False, True, other)


def test_what_it_did_is_told_apart_from_what_it_said():
    lines = ("Applied edit to a.py", "Commit 1234567 Greet")
    said, so_far = heard(STARTS, "Applied edit to nothing", SENT, *lines, EXIT)
    tools = [(one.name, one.text) for one in said if one.kind is SaidKind.TOOL]
    assert tools == [("edit", "a.py"), ("commit", "1234567 Greet")]
    assert so_far.last == "Applied edit to nothing"


def test_replies_add_up():
    more = event("message_send", prompt_tokens=20, completion_tokens=3, cost=0.25)
    _, so_far = heard(STARTS, "a", SENT, STARTS, "b", more, EXIT)
    assert so_far.usage == Usage(input=30, output=3, context=20, usd=0.25)
    assert (so_far.turns, so_far.ended_turns) == (1, 1)


def test_nothing_sent_is_a_failure_that_repeats_its_last_words():
    _, so_far = heard(event("launched"), "No such model.", event("exit", reason="Bad"))
    assert (so_far.failed, so_far.error) == (True, "No such model.")


def test_nobody_sees_the_prompt_in_a_list_of_processes(tmp_path):
    launch = launched(tmp_path)
    assert SECRET not in " ".join(launch.argv)
    assert (launch.stdin, after(launch.argv, "--message-file")) == (SECRET, "/dev/stdin")


@pytest.mark.parametrize("prompt", ["!touch x", "/run touch x"])
def test_a_prompt_is_no_command(tmp_path, prompt):
    launch = CODER.launch(brief(cwd=tmp_path)._replace(prompt=prompt))
    assert launch.stdin[0] not in "/!"
    assert launch.stdin.endswith(prompt)


@pytest.mark.parametrize("granted", ["read", "edit", "full"])
def test_no_permission_lets_it_run_commands(tmp_path, granted):
    argv = launched(tmp_path, options={"permissions": granted}).argv
    assert "--no-suggest-shell-commands" in argv
    assert ("--dry-run" in argv) is (granted == "read")


def test_all_that_it_keeps_is_in_the_tasks_folder(tmp_path):
    launch = launched(tmp_path, instructions="Be kind.")
    folder = str(tmp_path / "task")
    for flag in ("--chat-history-file", "--input-history-file", "--read"):
        assert after(launch.argv, flag).startswith(folder)
    assert Path(after(launch.argv, "--read")).read_text() == "Be kind."
    assert "--no-gitignore" in launch.argv


def test_a_later_run_goes_on_with_the_same_history(tmp_path):
    first = launched(tmp_path)
    session = json.loads(first.opening)["session"]
    later = launched(tmp_path, session=session)
    assert "--restore-chat-history" not in first.argv
    assert "--restore-chat-history" in later.argv
    assert after(later.argv, "--chat-history-file") == session


def test_behind_a_gateway_it_asks_there_with_the_runs_key(tmp_path):
    given = {"model": "coder", "env": {"KEY": "sk-1"}, "options": {"gateway": GATEWAY}}
    launch = launched(tmp_path, **given)
    assert after(launch.argv, "--model") == "litellm_proxy/coder"
    assert after(launch.argv, "--set-env") == "LITELLM_PROXY_API_BASE=http://127.0.0.1:4000/v1"
    assert launch.env["LITELLM_PROXY_API_KEY"] == "sk-1"
    assert "sk-1" not in " ".join(launch.argv)
    known = json.loads(Path(after(launch.argv, "--model-metadata-file")).read_text())
    assert known["litellm_proxy/coder"]["max_input_tokens"] == 40_000


def test_outside_git_it_makes_no_repository(tmp_path):
    assert "--no-git" in CODER.launch(brief(cwd="/")).argv
    (tmp_path / ".git").mkdir()
    assert "--no-git" not in launched(tmp_path).argv


def test_where_git_knows_nobody_it_commits_as_itself_and_writes_no_settings(tmp_path):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=env)
    launch = launched(tmp_path, env=env)
    name = subprocess.run(
        ["git", "config", "user.name"],
        cwd=tmp_path, env=dict(launch.env), check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert name.stdout == "aider\n"
    for key in ("name", "email"):
        subprocess.run(["git", "config", f"user.{key}", "me"], cwd=tmp_path, check=True, env=env)
    assert "GIT_CONFIG_COUNT" not in launched(tmp_path, env=env).env
