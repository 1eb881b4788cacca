import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.coders.acp.coder import AcpCoder
from fleet.domain.errors import Refused
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from tests.unit.adapters.coders.folds import SECRET, Recorded, brief, read, replies

CODER = AcpCoder()
ENDINGS = {
    "401": Ending.FAILED,
    "429-final": Ending.RATE_LIMITED,
    "killed": Ending.FAILED,
    "no-such-session": Ending.FAILED,
    "permission-refused": Ending.FAILED,
    "taken-for-a-command": Ending.FAILED,
}
COMMAND = ("some-agent", "--acp")
ABLE = {"id": "initialize", "result": {"agentCapabilities": {"loadSession": True}}}
MODES = {"availableModes": [{"id": "read-only"}, {"id": "acceptEdits"}, {"id": "yolo"}]}
SESSION = {"id": "session", "result": {"sessionId": "s1"}}


def launch(**fields):
    options = {"command": COMMAND, **fields.pop("options", {})}
    return CODER.launch(brief(options=options, **fields))


def hear(*messages, **fields):
    return read(CODER, *messages, opening=launch(**fields).opening)


def update(what, **told):
    params = {"sessionId": "s1", "update": {"sessionUpdate": what, **told}}
    return {"method": "session/update", "params": params}


def speaks(text, message="m1"):
    content = {"type": "text", "text": text}
    return update("agent_message_chunk", content=content, messageId=message)


def asks(kind, *paths, options=("allow_once", "reject_once")):
    call = {"toolCallId": "c1", "kind": kind, "locations": [{"path": path} for path in paths]}
    choices = [{"optionId": f"the {kind}", "kind": kind} for kind in options]
    params = {"sessionId": "s1", "toolCall": call, "options": choices}
    return {"id": 7, "method": "session/request_permission", "params": params}


def decision(message, permissions):
    said, _ = hear(message, options={"permissions": permissions})
    return json.loads(said[0].text)["result"]["outcome"]


def done(ident="prompt", **result):
    return {"id": ident, "result": {"stopReason": "end_turn", **result}}


def methods(said):
    return [json.loads(one.text).get("method") for one in replies(said)]


class TestRecorded(Recorded):
    coder = CODER
    endings = ENDINGS


@given(st.lists(st.text() | st.sampled_from(['{"id": 1}', '{"method": "x"}', "[]", "null"])))
def test_lines_that_mean_nothing_say_nothing(lines):
    listener = CODER.listen("{}")
    assert not [said for line in lines for said in listener.hear(line)]


def test_without_a_command_there_is_nothing_to_start():
    with pytest.raises(Refused, match="no command"):
        CODER.launch(brief())


def test_the_model_is_put_into_the_command_where_that_names_it():
    started = launch(model="m", options={"command": ("agent", "--model={model}")})
    assert started.argv == ("agent", "--model=m")
    assert json.loads(started.opening)["model"] == ""


def test_the_prompt_is_not_on_the_command_line():
    assert SECRET not in " ".join(launch().argv)
    assert SECRET in launch().opening


def test_instructions_come_before_the_first_prompt_and_not_again():
    first = launch(instructions="Be kind.")
    assert json.loads(first.opening)["prompt"] == f"Be kind.\n\n{SECRET}"
    later = launch(instructions="Be kind.", session="s1")
    assert json.loads(later.opening)["prompt"] == SECRET


@pytest.mark.parametrize(
    ("able", "session", "method"),
    [
        ({}, "", "session/new"),
        ({"loadSession": True}, "s1", "session/load"),
        ({"sessionCapabilities": {"resume": {}}, "loadSession": True}, "s1", "session/resume"),
    ],
)
def test_a_session_is_begun_or_continued_as_the_program_can(able, session, method):
    said, _ = hear({"id": "initialize", "result": {"agentCapabilities": able}}, session=session)
    assert methods(said) == [method]


def test_a_session_that_cannot_be_continued_is_not_kept():
    cannot = {"id": "initialize", "result": {"agentCapabilities": {}}}
    _, heard = hear(cannot, SESSION)
    assert heard.session == ""


def test_what_is_played_back_of_an_old_session_is_not_said_again():
    said, heard = hear(ABLE, speaks("Long ago."), SESSION, done(), session="s1")
    assert SaidKind.TEXT not in [one.kind for one in said]
    assert heard.turns == 0


@pytest.mark.parametrize(
    ("permissions", "mode"), [("read", "read-only"), ("edit", "acceptEdits"), ("full", "yolo")]
)
def test_the_mode_that_fits_the_permissions_is_chosen_before_the_prompt(permissions, mode):
    begun = {"id": "session", "result": {"sessionId": "s1", "modes": MODES}}
    options = {"permissions": permissions}
    said, _ = hear(ABLE, begun, options=options)
    assert json.loads(replies(said)[-1].text)["params"]["modeId"] == mode
    said, _ = hear(ABLE, begun, {"id": "set:mode", "result": {}}, options=options)
    assert methods(said) == ["session/new", "session/set_mode", "session/prompt"]


def test_a_mode_that_was_refused_ends_the_run_before_it_begins():
    begun = {"id": "session", "result": {"sessionId": "s1", "modes": MODES}}
    refused = {"id": "set:mode", "error": {"code": 1, "message": "No such mode."}}
    said, heard = hear(ABLE, begun, refused)
    assert heard.failed
    assert "session/prompt" not in methods(said)


def test_the_model_is_chosen_the_way_the_program_offers():
    offered = {"sessionId": "s1", "configOptions": [{"id": "model"}]}
    said, _ = hear(ABLE, {"id": "session", "result": offered}, model="m")
    assert methods(said)[-1] == "session/set_config_option"
    said, _ = hear(ABLE, SESSION, model="m")
    assert methods(said)[-1] == "session/set_model"


@pytest.mark.parametrize(
    ("permissions", "message", "granted"),
    [
        ("read", asks("read", "/etc/hosts"), True),
        ("read", asks("execute"), False),
        ("read", asks("edit", "/repo/a"), False),
        ("edit", asks("edit", "/repo/a"), True),
        ("edit", asks("edit", "a"), True),
        ("edit", asks("edit", "/repo/../etc/hosts"), False),
        ("edit", asks("edit", "/etc/hosts"), False),
        ("edit", asks("edit", "/tasks/t-1/artifacts/PLAN.md"), True),
        ("edit", asks("execute"), True),
        ("edit", asks("execute", "/elsewhere"), False),
        ("edit", asks("other"), False),
        ("full", asks("other", "/elsewhere"), True),
    ],
)
def test_what_it_asks_for_is_decided_by_the_permissions(permissions, message, granted):
    wish = "allow_once" if granted else "reject_once"
    assert decision(message, permissions) == {"outcome": "selected", "optionId": f"the {wish}"}


def test_where_nothing_offered_fits_the_request_is_cancelled():
    only_yes = asks("edit", "/etc/hosts", options=("allow_always",))
    assert decision(only_yes, "edit") == {"outcome": "cancelled"}


def test_what_was_not_offered_is_refused_rather_than_left_waiting():
    said, _ = hear({"id": 3, "method": "fs/read_text_file", "params": {}})
    assert json.loads(said[0].text)["error"]["code"] == -32601


def test_words_in_pieces_are_one_thing_said_and_two_messages_are_two():
    said, heard = hear(ABLE, SESSION, speaks("Hel"), speaks("lo."), speaks("Bye.", "m2"), done())
    assert [one.text for one in said if one.kind is SaidKind.TEXT] == ["Hello.", "Bye."]
    assert heard.last == "Bye."


def test_prompts_that_were_taken_together_end_one_turn_and_count_once():
    listener = CODER.listen(launch().opening)
    assert listener.words("More.") is None
    for line in (ABLE, SESSION):
        listener.hear(json.dumps(line))
    ident = json.loads(listener.words("More."))["id"]
    usage = {"inputTokens": 100, "outputTokens": 10}
    _, heard = hear(ABLE, SESSION, speaks("Yes."), done(usage=usage), done(ident, usage=usage))
    assert (heard.turns, heard.ended_turns, heard.heard_words) == (1, 1, 1)
    assert heard.usage.input == 100


def test_words_that_were_refused_in_a_turn_are_said_again_after_it_by_anyone():
    busy = {"id": "words:5:More.", "error": {"code": 1, "message": "Busy."}}
    said, _ = hear(ABLE, SESSION, speaks("Yes."), busy, done())
    assert json.loads(replies(said)[-1].text)["params"]["prompt"][0]["text"] == "More."
    assert said[-2].kind is SaidKind.RESULT


def test_a_program_that_stops_when_it_is_refused_has_not_succeeded():
    call = update("tool_call", toolCallId="c1", title="touch /x", kind="execute", status="pending")
    _, heard = hear(ABLE, SESSION, call, asks("execute", "/x"), done())
    assert heard.failed
    assert "touch /x" in heard.error
    _, heard = hear(ABLE, SESSION, call, asks("execute", "/x"), speaks("So be it."), done())
    assert not heard.failed


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "cancelled"])
def test_a_turn_that_did_not_end_by_itself_has_not_succeeded(reason):
    _, heard = hear(ABLE, SESSION, speaks("Well"), done(stopReason=reason))
    assert heard.failed
    assert reason in heard.error


def test_what_it_can_do_is_said_in_sentences():
    for field in CODER.abilities.__slots__:
        assert getattr(CODER.abilities, field)
