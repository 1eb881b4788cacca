import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.coders.opencode.bridge import Sieve
from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from fleet.domain.run import Ending, Usage
from fleet.domain.transcript import SaidKind
from tests.unit.adapters.coders.folds import SECRET, Recorded, brief, read

CODER = OpenCodeCoder()
ENDINGS = {
    "401": Ending.FAILED,
    "429-far": Ending.RATE_LIMITED,
    "429-final": Ending.RATE_LIMITED,
    "500-final": Ending.FAILED,
    "killed": Ending.FAILED,
    "no-such-session": Ending.FAILED,
}
SESSION = {"id": "session", "status": 200, "body": {"id": "ses_1"}}
NOW = 1_794_735_000_000
GATEWAY = {"base_url": "http://127.0.0.1:4000", "key_env": "KEY", "context": 40_000}


def event(kind, at=NOW, **told):
    return {"at": at, "event": {"type": kind, "properties": {"sessionID": "ses_1", **told}}}


def status(kind, **more):
    return event("session.status", status={"type": kind, **more})


def part(kind, **more):
    fields = {"type": kind, "id": "p", "messageID": "m2", "sessionID": "ses_1", **more}
    return event("message.part.updated", part=fields)


def step(session="ses_1", given=100, cached=0):
    tokens = {"input": given, "output": 5, "reasoning": 2, "cache": {"read": cached, "write": 3}}
    return part("step-finish", sessionID=session, tokens=tokens, cost=0.25)


def words(text, message):
    return part("text", text=text, messageID=message, metadata={"fleet": "words:9"})


def kinds(said):
    return [one.kind for one in said if one.kind is not SaidKind.REPLY]


def config(**options):
    launch = CODER.launch(brief(model=options.pop("model", ""), options=options))
    return json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])


def rules(permissions):
    return config(permissions=permissions)["agent"]["fleet-run"]["permission"]


def decide(permissions, kind, **told):
    opening = CODER.launch(brief(options={"permissions": permissions})).opening
    said, _ = read(CODER, SESSION, event(kind, **told), opening=opening)
    return json.loads(said[-1].text)


class TestRecorded(Recorded):
    coder = CODER
    endings = ENDINGS


@given(st.lists(st.text() | st.sampled_from(['{"event": {}}', '{"status": 200}', "[]", "null"])))
def test_lines_that_mean_nothing_say_nothing(lines):
    listener = CODER.listen("{}")
    assert not [said for line in lines for said in listener.hear(line)]


def test_every_step_adds_to_usage_and_an_agent_of_its_own_fills_no_context():
    _, heard = read(CODER, SESSION, status("busy"), step(cached=900), step("ses_2", given=5000))
    assert heard.usage == Usage(input=5106, output=14, cached=900, context=1003, usd=0.5)


def test_a_turn_that_says_twice_that_it_is_idle_has_ended_once():
    _, heard = read(CODER, SESSION, status("busy"), status("busy"), *[status("idle")] * 2)
    assert (heard.turns, heard.ended_turns) == (1, 1)


def test_a_short_wait_for_its_next_try_is_its_own_business():
    retry = status("retry", attempt=3, message="Rate limit.", next=NOW + 60_000)
    said, _ = read(CODER, SESSION, status("busy"), retry)
    assert kinds(said) == [SaidKind.SESSION, SaidKind.TURN]


def test_a_long_wait_ends_the_turn_as_a_limit_that_names_when_to_come_back():
    until = NOW + 3_600_000
    retry = status("retry", attempt=1, message="Come back.", next=until)
    said, heard = read(CODER, SESSION, status("busy"), retry, retry, status("idle"))
    aborts = [s for s in said if s.kind is SaidKind.REPLY and "/abort" in s.text]
    assert len(aborts) == 1
    assert heard.limited
    assert heard.failed
    assert heard.resume_at == until * 1000


def test_a_limit_at_the_end_of_its_tries_names_when_to_come_back_if_it_was_told():
    data = {"message": "Slow down.", "statusCode": 429, "responseHeaders": {"retry-after": "20"}}
    error = event("session.error", error={"name": "APIError", "data": data})
    _, heard = read(CODER, SESSION, status("busy"), error, status("idle"))
    assert heard.resume_at == (NOW + 20_000) * 1000


def test_words_after_a_turn_begin_the_next_one_at_once():
    said, heard = read(CODER, SESSION, status("busy"), status("idle"), words("More.", "m3"))
    assert kinds(said)[-2:] == [SaidKind.TURN, SaidKind.HEARD]
    assert heard.turns > heard.ended_turns


def test_words_that_the_ending_turn_was_not_given_are_a_turn_to_come():
    reply = event("message.updated", info={"role": "assistant", "id": "m2", "parentID": "m1"})
    lines = (SESSION, status("busy"), reply, words("More.", "m3"), status("idle"))
    _, heard = read(CODER, *lines)
    assert (heard.turns, heard.ended_turns) == (2, 1)
    taken = event("message.updated", info={"role": "assistant", "id": "m4", "parentID": "m3"})
    _, heard = read(CODER, *lines[:-1], taken, status("idle"))
    assert (heard.turns, heard.ended_turns) == (1, 1)


def test_it_cannot_be_spoken_to_before_it_has_a_session():
    assert CODER.listen("{}").words("Hello") is None


def test_what_it_asks_for_is_refused_with_a_word_so_that_it_goes_on():
    reply = decide("edit", "permission.asked", id="per_1")
    assert reply["path"] == "/permission/per_1/reply"
    assert reply["body"]["reply"] == "reject"
    assert reply["body"]["message"]


def test_what_it_asks_for_is_granted_with_full_permissions():
    assert decide("full", "permission.asked", id="per_1")["body"] == {"reply": "once"}


def test_a_question_of_its_own_tool_is_not_left_waiting():
    assert decide("full", "question.asked", id="que_1")["path"] == "/question/que_1/reject"


def test_one_that_reads_may_change_nothing_but_its_notes():
    found = rules("read")
    assert found["*"] == "deny"
    assert found["edit"] == {"*": "deny", "tasks/t-1/artifacts/*": "allow"}
    assert found["bash"]["*"] == "deny"
    assert found["bash"]["fleet *"] == "allow"


def test_one_that_edits_may_do_so_where_it_is():
    found = rules("edit")
    assert found["*"] == "allow"
    assert found["external_directory"] == {"*": "deny", "/tasks/t-1/artifacts/*": "allow"}


@pytest.mark.parametrize("permissions", ["edit", "full"])
def test_nothing_waits_for_a_person(permissions):
    assert {rules(permissions)[name] for name in ("question", "plan_enter", "doom_loop")} == {
        "deny"
    }


def test_without_a_gateway_it_uses_its_own_login_and_models():
    found = config(model="anthropic/claude-sonnet-5")
    assert "provider" not in found
    assert found["model"] == "anthropic/claude-sonnet-5"


def test_a_gateway_is_named_with_where_its_key_is_and_never_the_key():
    launch = CODER.launch(
        brief(model="heavy", env={"KEY": "sk-secret"}, options={"gateway": GATEWAY})
    )
    found = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])
    options = found["provider"]["fleet"]["options"]
    assert options == {
        "baseURL": "http://127.0.0.1:4000/v1",
        "apiKey": "{env:KEY}",
        "headers": {"x-fleet-run": "t-1.1"},
    }
    assert found["model"] == found["small_model"] == "fleet/heavy"
    assert found["provider"]["fleet"]["models"]["heavy"]["limit"]["context"] == 40_000
    assert "sk-secret" not in launch.env["OPENCODE_CONFIG_CONTENT"]


def test_the_prompt_is_not_on_the_command_line():
    launch = CODER.launch(brief())
    assert SECRET not in " ".join(launch.argv)
    assert SECRET in launch.opening


def test_a_part_that_grows_is_said_once_when_it_is_whole():
    def grown(text, **time):
        return part("text", text=text, time={"start": 1, **time})["event"]

    sieve = Sieve()
    said = [grown("a"), grown("ab"), grown("ab", end=2), grown("ab", end=2)]
    assert [sieve.keeps(one) for one in said] == [False, False, True, False]


def test_a_tool_is_said_when_its_state_is_new():
    def tool(state):
        return part("tool", tool="bash", state={"status": state})["event"]

    sieve = Sieve()
    said = ["pending", "running", "running", "running", "completed"]
    assert [sieve.keeps(tool(one)) for one in said] == [True, True, False, False, True]


def test_what_is_said_only_to_show_life_is_dropped():
    sieve = Sieve()
    assert not sieve.keeps({"type": "server.heartbeat", "properties": {}})
    assert not sieve.keeps({"type": "message.part.delta", "properties": {"delta": "x"}})


def test_what_it_can_do_is_said_in_sentences():
    for field in CODER.abilities.__slots__:
        assert getattr(CODER.abilities, field)
