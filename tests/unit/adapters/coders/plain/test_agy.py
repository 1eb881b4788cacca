import pytest

from fleet.adapters.coders.plain.agy import AgyCoder
from fleet.adapters.coders.shared.context_estimate import ContextEstimate
from fleet.domain.errors import Refused
from fleet.domain.transcript import Conversation, SaidKind, hear
from tests.unit.adapters.coders.folds import SECRET, brief

CODER = AgyCoder()
BYPASS = "--dangerously-skip-permissions"


def test_it_says_that_agy_itself_was_not_tried():
    assert CODER.abilities.verified.startswith("Not with agy itself")


@pytest.mark.parametrize("granted", ["read", "edit", "full"])
def test_only_full_permissions_skip_its_questions(granted):
    argv = CODER.launch(brief(options={"permissions": granted})).argv
    assert argv[:3] == ("agy", "-p", SECRET)
    assert (BYPASS in argv) is (granted == "full")


def test_extra_args_do_not_skip_them_either():
    with pytest.raises(Refused, match="permissions are 'edit'"):
        CODER.launch(brief(options={"extra_args": (BYPASS,)}))


def test_it_is_told_no_model_and_its_instructions_before_the_prompt():
    launch = CODER.launch(brief(model="gemini-3", instructions="Be kind."))
    assert launch.argv == ("agy", "-p", f"Be kind.\n\n{SECRET}")


def test_a_prompt_that_no_argument_can_hold_is_refused():
    with pytest.raises(Refused, match="120,000 bytes"):
        CODER.launch(brief()._replace(prompt="é" * 70_000))


def test_its_lines_are_text_and_its_context_is_estimated_from_them():
    listener, heard = CODER.listen(""), Conversation()
    for line in ("x" * 100, "", "y" * 61):
        for said in listener.hear(line):
            heard = hear(heard, said)
    assert heard.last == "y" * 61
    assert (heard.usage.context, heard.usage.input) == (41, 0)
    assert listener.words("Stop.") is None


def test_four_characters_are_about_a_token():
    estimate = ContextEstimate("12345678", "1")
    assert estimate.tokens == 3
    assert estimate.usage().kind is SaidKind.USAGE


def test_many_lines_are_not_each_followed_by_an_estimate():
    listener = CODER.listen("")
    heard = [said for _ in range(20_000) for said in listener.hear("abcdefg")]
    reports = [said.usage.context for said in heard if said.kind is SaidKind.USAGE]
    assert len(reports) < 1000
    assert reports[-1] > 0.98 * 20_000 * 7 / 4
