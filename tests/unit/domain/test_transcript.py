from __future__ import annotations

from functools import reduce

import pytest

from fleet.domain.run import Ending, Usage, Wanted
from fleet.domain.transcript import Conversation, Cut, Exit, Said, SaidKind, hear, hear_all, judge

K = SaidKind


def heard(*said: Said) -> Conversation:
    return reduce(hear, said, Conversation())


def judged(conversation: Conversation, code: int | None = 0, **given):
    given = {
        "parked": False,
        "wanted": Wanted.NOTHING,
        "cut": None,
        "commit": "abc",
        "stderr": "",
    } | given
    ended = Exit(code, given.pop("stderr"), given.pop("exceeded", ""), given.pop("cap", 0))
    return judge(conversation, ended, **given)


def test_every_kind_can_be_heard():
    for kind in K:
        assert isinstance(heard(Said(kind)), Conversation)


def test_usage_adds_up_unless_it_is_a_total():
    step = Said(K.USAGE, usage=Usage(10, 5, context=10))
    assert heard(step, step).usage == Usage(20, 10, context=10)
    total = Said(K.RESULT, usage=Usage(15, 7, usd=0.5), total=True)
    assert heard(step, step, total).usage == Usage(15, 7, context=10, usd=0.5)


def test_the_largest_context_is_remembered():
    sizes = [Said(K.USAGE, usage=Usage(context=c)) for c in (10, 90, 20)]
    assert heard(*sizes).peak_context == 90
    assert heard(*sizes).usage.context == 20


def test_tools_are_open_until_their_result():
    assert heard(Said(K.TOOL, name="Bash")).open_tools == 1
    assert heard(Said(K.TOOL), Said(K.TOOL_RESULT)).open_tools == 0
    assert heard(Said(K.TOOL_RESULT)).open_tools == 0


def test_exit_zero_is_success_with_the_last_words_and_a_checkpoint():
    outcome = judged(heard(Said(K.SESSION, "s-1"), Said(K.TEXT, "All done."), Said(K.RESULT)))
    assert (outcome.ending, outcome.detail) == (Ending.SUCCEEDED, "All done.")
    assert (outcome.checkpoint.session, outcome.checkpoint.commit) == ("s-1", "abc")


def test_exit_zero_with_an_error_result_is_a_failure():
    assert judged(heard(Said(K.RESULT, "no credit", failed=True))).ending is Ending.FAILED


def test_another_status_is_a_failure_with_its_last_words():
    outcome = judged(Conversation(), 3, stderr="cannot find it\n")
    assert (outcome.ending, outcome.exit_code) == (Ending.FAILED, 3)
    assert outcome.detail == "Exit status 3. cannot find it"
    assert judged(Conversation(), None).detail == "It ended without a status."


def test_a_run_that_fails_after_it_exceeded_its_memory_is_out_of_memory():
    over = judged(Conversation(), 137, exceeded="memory", cap=64 << 20)
    assert over.ending is Ending.OUT_OF_MEMORY
    assert over.detail == "It exceeded the memory of its container, 64 MiB."
    assert judged(heard(Said(K.RESULT)), 0, exceeded="memory").ending is Ending.SUCCEEDED
    assert judged(heard(Said(K.RESULT, failed=True)), 0, exceeded="memory").ending is (
        Ending.OUT_OF_MEMORY
    )


def test_a_run_that_fails_at_its_limit_of_processes_says_so():
    many = judged(Conversation(), 1, exceeded="pids", cap=40, stderr="cannot fork\n")
    assert many.ending is Ending.FAILED
    assert "the limit of its container, 40 processes. cannot fork" in many.detail


def test_a_rate_limit_names_when_to_resume():
    outcome = judged(heard(Said(K.LIMIT, "slow down", resume_at=77)), 1)
    assert (outcome.ending, outcome.resume_at) == (Ending.RATE_LIMITED, 77)


def test_a_limit_that_a_later_turn_overcame_is_none():
    assert judged(heard(Said(K.LIMIT), Said(K.TURN), Said(K.RESULT))).ending is Ending.SUCCEEDED


@pytest.mark.parametrize(
    ("given", "ending"),
    [
        ({"parked": True}, Ending.ASKED),
        ({"cut": Cut(Ending.TIMED_OUT)}, Ending.TIMED_OUT),
        ({"cut": Cut(Ending.LOST)}, Ending.LOST),
        ({"wanted": Wanted.STOP, "cut": Cut(Ending.TIMED_OUT)}, Ending.STOPPED),
        ({"wanted": Wanted.CANCEL, "parked": True}, Ending.CANCELLED),
        ({"wanted": Wanted.CANCEL, "closed": "Done."}, Ending.CANCELLED),
        ({"closed": "Done.", "cut": Cut(Ending.STALLED)}, Ending.SUCCEEDED),
        ({"closed": "Done.", "in_turns": True}, Ending.SUCCEEDED),
    ],
)
def test_what_somebody_wanted_counts_most_then_why_we_ended_it(given, ending):
    assert judged(Conversation(), 1, **given).ending is ending


def test_what_the_program_itself_says_of_its_money_and_context_counts():
    spent = judged(heard(Said(K.SPENT, "Reached $1."), Said(K.RESULT, failed=True)), 1)
    assert (spent.ending, spent.detail) == (Ending.OVER_BUDGET, "Reached $1.")
    assert judged(heard(Said(K.FULL, "Too long."), Said(K.RESULT, failed=True)), 1).ending is (
        Ending.CONTEXT_FULL
    )


def test_the_window_is_the_last_that_the_program_named():
    said = heard(Said(K.USAGE, usage=Usage(context=5), window=1000), Said(K.USAGE, usage=Usage()))
    assert (said.window, said.peak_context) == (1000, 5)


def test_long_last_words_are_cut_from_the_front():
    detail = judged(Conversation(), 1, stderr="x" * 10_000 + "the end").detail
    assert len(detail) < 600
    assert detail.endswith("the end")


@pytest.mark.parametrize("kind", [K.TEXT, K.RESULT, K.ERROR, K.LIMIT, K.SPENT, K.FULL])
def test_a_program_that_prints_without_end_makes_no_outcome_without_end(kind):
    flood = Said(kind, text="x" * 8_000_000, failed=True)
    assert len(judged(heard(flood)).detail) < 11_000


def test_what_it_wants_or_calls_is_kept_in_bounds_too():
    flood = heard(Said(K.WANTS, text="x" * 100_000), Said(K.TOOL, name="y" * 100_000))
    assert max(len(flood.wants), len(flood.last)) < 11_000


def test_of_many_items_the_conversation_is_the_same_as_one_by_one():
    items = [
        Said(SaidKind.SESSION, "s-1"), Said(SaidKind.TEXT, "one"), Said(SaidKind.TEXT, "two"),
        Said(SaidKind.TOOL, name="Edit"), Said(SaidKind.TEXT, "three"), Said(SaidKind.TEXT, "four"),
    ]  # fmt: skip
    for count in range(len(items) + 1):
        one_by_one = reduce(hear, items[:count], Conversation())
        assert hear_all(Conversation(), items[:count]) == one_by_one


def test_a_conversation_that_is_gone_costs_no_attempt_and_is_begun_anew():
    gone = judged(Conversation(session="s-1"), 1, stderr="No conversation found", in_turns=True)
    assert (gone.ending, gone.checkpoint.session) == (Ending.LOST, "")
    assert (
        gone.detail == "Its conversation could not be resumed. Exit status 1. No conversation found"
    )
    result = hear(Conversation(session="s-1"), Said(K.RESULT, "no rollout found", failed=True))
    gone = judged(result, 0, in_turns=True)
    assert (gone.ending, gone.checkpoint.session) == (Ending.LOST, "")


@pytest.mark.parametrize(
    ("conversation", "code"),
    [
        (heard(Said(K.SESSION, "s-1"), Said(K.TURN)), 1),  # it was resumed, then failed
        (Conversation(session="s-1"), -9),
        (Conversation(session="s-1"), 137),
        (Conversation(session="s-1"), 0),  # a person looked at it in its terminal, and left
    ],
)
def test_any_other_failure_keeps_the_conversation(conversation, code):
    outcome = judged(conversation, code, in_turns=True)
    assert (outcome.ending, outcome.checkpoint.session) == (Ending.FAILED, "s-1")


def test_the_last_words_of_a_tool_say_what_it_runs():
    assert heard(Said(K.TOOL, "npm test", name="Bash")).last == "Bash: npm test"
    assert heard(Said(K.TOOL, name="Edit")).last == "Edit"
    assert heard(Said(K.TOOL, "npm test")).last == "npm test"
