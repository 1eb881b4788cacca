import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.coders.plain.custom import CustomCoder
from fleet.config.bind_coders import _spot
from fleet.domain.errors import Refused
from fleet.domain.fleet import OwnCoder
from fleet.domain.run import Usage
from fleet.domain.transcript import SaidKind
from tests.unit.adapters.coders.folds import SECRET, brief, read

SAYS = {
    "session": "type=init session.id",
    "text": "type=message content.0.text",
    "tool": "type=tool name",
    "tool_result": "type=tool_end output",
    "error": "error.message",
    "result": "type=done answer",
    "failed": "type=done is_error",
    "input": "usage.in",
    "output": "usage.out",
    "context": "usage.in",
    "usd": "usage.cost",
}


def coder(*command, says=None, **fields):
    spots = {what: _spot(text) for what, text in (says or {}).items()}
    return CustomCoder(OwnCoder("mine", command or ("mycli",), says=spots, **fields))


TALKER = coder(says=SAYS, resume=("mycli", "--continue", "{session}", "{prompt}"))


def launch(command, **fields):
    return coder(*command).launch(brief(**fields))


def test_what_it_asks_for_stands_in_its_place_and_nothing_is_replaced_twice():
    made = launch(("mycli", "--model={model}", "-p", "{prompt}"), model="{prompt}")
    assert made.argv == ("mycli", "--model={prompt}", "-p", SECRET)
    assert made.stdin is None


def test_without_a_place_for_it_the_prompt_is_standard_input():
    assert launch(("mycli",)).stdin == SECRET


def test_an_argument_that_would_be_empty_is_left_out_with_its_flag():
    command = ("mycli", "--model", "{model}", "--system", "{instructions}", "-v", "{prompt}")
    assert launch(command).argv == ("mycli", "-v", SECRET)
    assert launch(command, model="m").argv == ("mycli", "--model", "m", "-v", SECRET)


def test_instructions_without_a_place_stand_before_the_prompt_once():
    assert launch(("mycli",), instructions="Be kind.").stdin == f"Be kind.\n\n{SECRET}"
    placed = launch(("mycli", "--system", "{instructions}"), instructions="Be kind.")
    assert (placed.argv[-1], placed.stdin) == ("Be kind.", SECRET)


def test_instructions_can_be_a_file_in_the_tasks_folder(tmp_path):
    given_brief = brief(instructions="Be kind.")._replace(task_dir=str(tmp_path / "t-1"))
    made = coder("mycli", "--system-file", "{instructions_file}").launch(given_brief)
    assert Path(made.argv[-1]).read_text() == "Be kind."
    assert made.argv[-1].startswith(str(tmp_path))


def test_behind_a_gateway_it_is_told_where_and_with_which_key():
    options = {"gateway": {"base_url": "http://127.0.0.1:4000", "key_env": "KEY"}}
    made = launch(("mycli", "--url", "{gateway}"), options=options, env={"KEY": "sk-1"})
    assert made.argv == ("mycli", "--url", "http://127.0.0.1:4000/v1")
    assert made.env["OPENAI_API_KEY"] == "sk-1"
    assert made.env["OPENAI_BASE_URL"] == "http://127.0.0.1:4000/v1"


def test_it_is_told_what_its_agent_may_do():
    options = {"permissions": "read", "extra_args": ("-v",)}
    made = launch(("mycli", "--may={permissions}"), options=options)
    assert made.argv == ("mycli", "--may=read", "-v")


def test_a_project_that_is_not_trusted_runs_nothing():
    with pytest.raises(Refused, match="not trusted"):
        CustomCoder(OwnCoder("mine", ())).launch(brief())


def test_a_later_run_has_its_own_command():
    made = TALKER.launch(brief(session="s-7"))
    assert made.argv == ("mycli", "--continue", "s-7", SECRET)
    assert TALKER.resumes
    assert not coder().resumes


def test_its_json_lines_are_read_as_declared():
    said, heard = read(
        TALKER,
        {"type": "init", "session": {"id": "s-7"}},
        {"type": "message", "content": [{"text": "Hello."}], "usage": {"in": 100, "out": 5}},
        {"type": "tool", "name": "bash"},
        {"type": "tool_end", "output": {"code": 0}},
        {"type": "other"},
        {"type": "done", "answer": "All done.", "is_error": False, "usage": {"cost": 0.5}},
        opening="",
    )
    kinds = [one.kind.value for one in said]
    turn = ["turn", "session", "text", "usage", "tool", "tool_result", "usage", "result"]
    assert kinds == turn
    assert heard.session == "s-7"
    assert (heard.last, heard.failed, heard.at_rest) == ("All done.", False, True)
    assert heard.usage == Usage(input=100, output=5, context=100, usd=0.5)


def test_what_is_a_total_is_not_added_up():
    total = coder(says={"input": "n"}, counts="total")
    _, heard = read(total, {"n": 100}, {"n": 150}, opening="")
    assert heard.usage.input == 150


@pytest.mark.parametrize("count", ["NaN", "Infinity", "true", '"many"'])
def test_a_count_that_is_no_number_counts_as_nothing(count):
    listener = coder(says={"input": "n", "text": "text"}).listen("")
    heard = listener.hear(f'{{"text": "Hello.", "n": {count}}}')
    assert [one.text for one in heard if one.kind is SaidKind.TEXT] == ["Hello."]
    assert not any(one.usage for one in heard)


def test_a_result_that_says_it_failed_is_a_failure_and_a_limit_is_a_limit():
    done = {"type": "done", "answer": "No.", "is_error": True}
    assert read(TALKER, done, opening="")[1].failed
    limited = {"type": "done", "answer": "", "error": {"message": "429 Too many requests"}}
    assert read(TALKER, limited, opening="")[1].limited


def test_a_run_is_followed_to_its_end_whatever_becomes_of_the_declaration():
    opening = TALKER.launch(brief()).opening
    changed = coder(says={"text": "words"})
    _, heard = read(changed, {"type": "done", "answer": "As before."}, opening=opening)
    assert (heard.last, heard.at_rest) == ("As before.", True)


def test_without_a_result_its_exit_ends_it():
    assert coder(says={"text": "words"}).launch(brief()).opening == ""


def test_a_program_that_knows_its_last_conversation_needs_no_session():
    latest = coder(resume=("mycli", "--last"))
    listener = latest.listen("")
    said = [*listener.hear("One"), *listener.hear("Two")]
    assert [one.text for one in said if one.kind is SaidKind.SESSION] == ["latest"]
    assert latest.launch(brief(session="latest")).argv == ("mycli", "--last")


@given(st.lists(st.text() | st.sampled_from(['{"type": "done"}', '{"error": 7}', "[]", "null"])))
def test_no_line_is_fatal(lines):
    for listener in (TALKER.listen(""), coder().listen("")):
        for line in lines:
            listener.hear(line)


@pytest.mark.parametrize("text", ["", "a..b", "=x y", "a= b", "two paths", "a b=c d=e f g"])
def test_what_is_no_place_in_a_line_is_refused(text):
    assert _spot(text) is None


def test_json_that_is_not_declared_says_nothing_and_other_lines_are_text():
    listener = TALKER.listen("")
    assert listener.hear(json.dumps({"type": "noise"})) == ()
    assert [one.text for one in listener.hear("plain words")] == ["plain words"]
