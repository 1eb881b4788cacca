import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.adapters.coders.claude import gate as claude_gate
from fleet.adapters.coders.claude.coder import ClaudeCoder
from fleet.domain.errors import Refused
from fleet.domain.run import Ending, Wanted
from fleet.domain.transcript import Conversation, Exit, SaidKind, hear, judge
from fleet.ports import Brief

CODER = ClaudeCoder()
SECRET = "A prompt that nobody should see in a list of processes"


def brief(**fields):
    options = fields.pop("options", {})
    return Brief("t-1.1", SECRET, "/repo", "/tasks/t-1", options=options, **fields)


def argv(**options):
    return CODER.launch(brief(options=options)).argv


def value(argv, flag):
    return argv[argv.index(flag) + 1]


def ending(transcript, code):
    _, heard = transcript.read(CODER)
    return judge(heard, Exit(code), parked=False, wanted=Wanted.NOTHING, cut=None, commit="")


def read(*lines):
    listener, heard = CODER.listen("first"), Conversation()
    said = [one for line in lines for one in listener.hear(json.dumps(line))]
    for one in said:
        heard = hear(heard, one)
    return said, heard


def test_what_the_real_program_printed_reads_as_expected(transcript):
    transcript.check(CODER)


def test_no_recorded_success_is_an_error_and_no_recorded_error_a_success(transcript):
    failures = {"401", "no-such-session"}
    limits = {"429-final", "429-subscription"}
    cut_short = {"killed", "terminated"}
    case = transcript.folder.name
    expected = (
        Ending.RATE_LIMITED if case in limits
        else Ending.CONTEXT_FULL if case == "too-long"
        else Ending.OVER_BUDGET if case == "budget"
        else Ending.FAILED if case in failures | cut_short
        else Ending.SUCCEEDED
    )  # fmt: skip
    assert ending(transcript, {"killed": -9, "terminated": 143}.get(case, 0)).ending is expected


def test_a_transcript_read_twice_gives_the_same(transcript):
    assert transcript.read(CODER) == transcript.read(CODER)


def test_the_prompt_is_the_first_record_on_standard_input_and_never_an_argument():
    launch = CODER.launch(brief())
    first = json.loads(launch.stdin)
    assert first["message"]["content"] == SECRET
    assert launch.keep_stdin
    assert launch.opening == first["uuid"]
    assert not any(SECRET in word for word in launch.argv)
    assert launch.stdin.count("\n") == 1


def test_words_are_one_line_and_no_two_have_the_same_id():
    listener = CODER.listen("first")
    one, two = listener.words("go\non"), listener.words("go\non")
    assert one.count("\n") == two.count("\n") == 1
    assert json.loads(one)["message"]["content"] == "go\non"
    assert json.loads(one)["uuid"] != json.loads(two)["uuid"]


def test_nothing_skips_permissions_unless_they_are_full():
    assert "--dangerously-skip-permissions" in argv(permissions="full")
    for permissions in ("read", "edit", None, "anything"):
        given = {} if permissions is None else {"permissions": permissions}
        assert not any("dangerously" in word for word in argv(**given))


@pytest.mark.parametrize(
    "extra",
    [("--dangerously-skip-permissions",), ("--permission-mode", "bypassPermissions")],
)
def test_extra_arguments_cannot_widen_permissions(extra):
    with pytest.raises(Refused, match="extra_args"):
        argv(extra_args=extra)
    assert argv(extra_args=extra, permissions="full")[-len(extra) :] == extra


def test_what_is_not_a_permission_only_reads():
    assert value(argv(permissions="everything"), "--permission-mode") == "dontAsk"


def test_an_agent_that_reads_has_no_editing_tools():
    assert {"Edit", "Write"} <= set(value(argv(permissions="read"), "--disallowedTools").split(","))


def test_tools_that_the_agent_names_are_all_it_has_and_are_allowed():
    words = argv(tools=("Read", "Bash", "WebFetch", "mcp__wiki__search"))
    assert value(words, "--tools") == "Read,Bash,WebFetch"
    assert value(words, "--allowedTools") == "Read,WebFetch,mcp__wiki__search"


def test_it_may_write_in_the_whole_worktree_and_in_the_artifacts_of_its_task(tmp_path):
    (tmp_path / ".git").touch()
    below = tmp_path / "packages" / "one"
    below.mkdir(parents=True)
    words = CODER.launch(Brief("t-1.1", "", str(below), "/tasks/t-1")).argv
    at = words.index("--add-dir")
    assert words[at + 1 : at + 3] == (str(tmp_path), "/tasks/t-1/artifacts")


def test_session_model_and_instructions_are_arguments():
    words = CODER.launch(brief(session="s-1", model="opus", instructions="Be brief.")).argv
    assert value(words, "--resume") == "s-1"
    assert value(words, "--model") == "opus"
    assert value(words, "--append-system-prompt") == "Be brief."


def test_instructions_that_no_kernel_would_take_are_refused():
    with pytest.raises(Refused, match="longer"):
        CODER.launch(brief(instructions="x" * 130_000))


def test_the_markers_of_an_outer_session_are_dropped_and_a_login_is_kept():
    env = CODER.launch(
        brief(env={"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_PID": "1",
                   "CLAUDE_CODE_OAUTH_TOKEN": "t", "CLAUDE_CODE_USE_BEDROCK": "1", "PATH": "/bin"})
    ).env  # fmt: skip
    assert not {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID"} & set(env)
    assert env["CLAUDE_CODE_OAUTH_TOKEN"] == "t"
    assert env["CLAUDE_CODE_USE_BEDROCK"] == "1"
    assert env["DISABLE_AUTOUPDATER"] == "1"


def test_what_the_person_has_set_wins_over_our_quiet_defaults():
    assert CODER.launch(brief(env={"DISABLE_TELEMETRY": "0"})).env["DISABLE_TELEMETRY"] == "0"


def test_behind_the_gateway_its_key_is_the_only_one_and_every_tier_is_the_alias():
    gateway = {"base_url": "http://127.0.0.1:4000/v1", "key_env": "KEY", "context": 65536}
    env = CODER.launch(
        brief(
            model="fleet-heavy",
            env={"KEY": "sk-1", "ANTHROPIC_API_KEY": "mine"},
            options={"gateway": gateway},
        )
    ).env
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4000"
    assert env["ANTHROPIC_AUTH_TOKEN"] == "sk-1"
    assert "ANTHROPIC_API_KEY" not in env
    assert env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "fleet-heavy"
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"


def test_a_retry_of_its_own_is_no_rejection():
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    assert read(retry) == ([], Conversation())


def test_an_older_release_without_turn_usage_is_counted_by_differences():
    def result(cost):
        return {
            "type": "result", "subtype": "success", "is_error": False, "result": "ok",
            "total_cost_usd": cost, "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip

    _, heard = read(result(0.5), result(0.75))
    assert heard.usage.usd == pytest.approx(0.75)
    assert (heard.usage.input, heard.usage.output) == (20, 10)


def test_whoever_it_asks_is_told_that_nobody_is_there():
    said, _ = read({"type": "control_request", "request_id": "r1", "request": {"subtype": "x"}})
    (reply,) = said
    assert (reply.kind, reply.name) == (SaidKind.REPLY, "r1")
    assert json.loads(reply.text)["response"]["request_id"] == "r1"


def test_a_line_that_is_not_json_is_text_and_a_torn_one_is_nothing():
    listener = CODER.listen("first")
    assert [s.text for s in listener.hear("Something else")] == ["Something else"]
    assert listener.hear('{"type":"assistant","mess') == ()
    assert listener.hear("") == ()
    assert listener.hear("[1, 2]") == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "subtype", "message", "content", "usage", "id", "tasks", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["system", "assistant", "user", "result", "rate_limit_event", "command_lifecycle"]
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["message", "usage", "tasks", "subtype"]), JSON), KINDS)
def test_no_line_of_a_later_release_can_break_the_reader(line, kind):
    CODER.listen("first").hear(json.dumps({**line, "type": kind}))


def gate(command, directories, cwd, suggestions=()):
    asked = {
        "tool_name": "Bash", "cwd": str(cwd), "tool_input": {"command": command},
        "permission_suggestions": list(suggestions),
    }  # fmt: skip
    said = claude_gate.decide(asked, [str(d) for d in directories])
    return said["hookSpecificOutput"]["decision"]["behavior"]


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("make test", "allow"),
        ("cd sub && make", "allow"),
        ("cd .. && make", "deny"),
        ("cd sub/../.. && touch x", "deny"),
        ("make; cd /; rm x", "deny"),
        ("bash -c 'cd /etc && touch x'", "deny"),
        ('cd "/etc" && ls', "deny"),
        ("pushd ~ && ls", "deny"),
        ("echo abcd /etc", "allow"),
    ],
)
def test_a_command_may_not_leave_for_a_directory_outside(tmp_path, command, decision):
    (tmp_path / "sub").mkdir()
    assert gate(command, [tmp_path], tmp_path) == decision


def test_a_command_may_not_write_where_claude_code_sees_that_it_is_outside(tmp_path):
    outside = {"type": "addDirectories", "directories": ["/etc"]}
    assert gate("touch /etc/x", [tmp_path], tmp_path, [outside]) == "deny"


def test_the_gate_is_a_program_that_says_nothing_about_other_tools(tmp_path):
    def ask(asked):
        ran = subprocess.run(
            [sys.executable, "-I", "-S", claude_gate.__file__, str(tmp_path)],
            input=json.dumps(asked), capture_output=True, text=True, check=True,
        )  # fmt: skip
        return ran.stdout

    assert ask({"tool_name": "Write", "tool_input": {"file_path": "/etc/x"}}) == ""
    assert '"allow"' in ask({"tool_name": "Bash", "tool_input": {"command": "make"}})
