"""The best of N: what disqualifies, what is compared in which order, and what the judge may decide."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.domain.landing.changes import Changes
from fleet.domain.landing.race import (
    CENT,
    MINUTE,
    Contender,
    Proof,
    Race,
    RaceJudging,
    disqualified,
    is_outside,
    judge,
    judge_prompt,
    needs_cross,
    needs_more,
    read_choice,
    results,
    vendor,
)
from fleet.domain.record_json import changed, reader

YES = Proof(True)


def contender(name: str, **given) -> Contender:
    changes = {k: given.pop(k) for k in list(given) if k in Changes._fields}
    return Contender(
        name,
        **{"own": YES, "main": YES, "changes": Changes(**{"lines": 10, "files": 1} | changes)}
        | given,
    )


@pytest.mark.parametrize(
    ("worse", "words"),
    [
        ({"out": "It failed."}, "It failed."),
        ({"own": Proof(False, "exit status 1")}, "It does not pass the test: exit status 1"),
        ({"main": Proof(False)}, "It does not pass the test on today's target"),
        ({"files": 0}, "It changed nothing."),
        ({"deleted_tests": ("tests/test_a.py",)}, "It deletes tests: tests/test_a.py"),
        ({"skipped_tests": ("tests/test_a.py",)}, "It skips tests: tests/test_a.py"),
        ({"outside": ("a", "b", "c", "d")}, "not to touch: a, b, c and 1 more"),
        ({"secrets": ("a.env",)}, "It adds what looks like a secret: a.env"),
        ({"cross": {"t-1": False}}, "It fails 1 of the others' tests; t-1 fails 0."),
        (
            {"changed_tests": ("tests/x",)},
            "It changes 1 of the test files that were there; t-1 changes 0.",
        ),
        ({"lines": 11}, "It changes 11 lines; t-1 changes 10."),
        ({"files": 2}, "It changes 2 files; t-1 changes 1."),
        ({"cost": 3 * CENT}, "It cost 3 cents; t-1 cost 0."),
        ({"took": 5 * MINUTE}, "It took 5 min; t-1 took 0."),
    ],
)
def test_each_step_decides_when_all_before_it_are_equal(worse, words):
    verdict = judge([contender("t-2", **worse), contender("t-1")])
    assert verdict.winner == "t-1"
    assert words in verdict.why["t-2"]


def test_what_was_executed_counts_more_than_a_small_and_cheap_diff():
    small = contender("t-1", lines=1, own=Proof(False, "exit status 1"))
    assert judge([small, contender("t-2", lines=900, cost=CENT * 900)]).winner == "t-2"


def test_less_than_a_cent_or_a_minute_decides_nothing():
    verdict = judge([contender("t-1", cost=1, took=9), contender("t-2")])
    assert (verdict.winner, verdict.tie) == ("", ("t-1", "t-2"))


def test_the_judge_is_heard_only_about_equals():
    equal = [contender("t-1"), contender("t-2")]
    assert judge(equal, "t-2").winner == "t-2"
    assert judge([contender("t-1"), contender("t-2", lines=11)], "t-2").winner == "t-1"
    assert judge([contender("t-1"), contender("t-2", out="It failed.")], "t-2").winner == "t-1"


def test_nobody_wins_when_all_are_disqualified():
    verdict = judge([contender("t-1", out="It failed."), contender("t-2", files=0)])
    assert (verdict.winner, verdict.tie) == ("", ())
    assert judge([]).winner == ""


PROOFS = st.builds(Proof, st.booleans())
CONTENDERS = st.lists(
    st.builds(
        Contender,
        st.just(""),
        out=st.sampled_from(["", "", "It failed."]),
        own=PROOFS,
        main=PROOFS,
        changes=st.builds(
            Changes,
            lines=st.integers(0, 3),
            files=st.integers(0, 2),
            changed_tests=st.lists(st.just("tests/a"), max_size=1).map(tuple),
            deleted_tests=st.lists(st.just("tests/b"), max_size=1).map(tuple),
        ),
        cross=st.dictionaries(st.sampled_from("xy"), st.booleans()),
        cost=st.integers(0, 2 * CENT),
        took=st.integers(0, 2 * MINUTE),
    ),
    max_size=6,
).map(lambda some: [c._replace(task=f"t-{n}") for n, c in enumerate(some)])


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(CONTENDERS, st.randoms(use_true_random=False), st.sampled_from(["", "t-0", "t-1"]))
def test_the_verdict_is_fair(contenders, chance, preferred):
    verdict = judge(contenders, preferred)
    fair = {c.task: c for c in contenders if not disqualified(c)}
    assert {verdict.winner, *verdict.tie} - {""} <= set(fair)  # never one whose test failed
    assert bool(verdict.winner or verdict.tie) == bool(fair)  # one of them, or a tie
    assert len(verdict.tie) != 1
    assert not (verdict.winner and verdict.tie)
    assert set(verdict.why) == {c.task for c in contenders}  # each has its reason
    shuffled = contenders[:]
    random.Random(chance.random()).shuffle(shuffled)
    again = judge(shuffled, preferred)  # the order of the list decides nothing
    assert (again.winner, set(again.tie)) == (verdict.winner, set(verdict.tie))
    rows = results(contenders, verdict)
    assert {row.task for row in rows} == {c.task for c in contenders}
    assert {row.task for row in rows if row.rank == 1} == (
        {verdict.winner, *verdict.tie} - {""} or {row.task for row in rows[:1]}
    )


@given(CONTENDERS)
def test_a_loser_that_gets_worse_changes_nothing(contenders):
    verdict = judge(contenders)
    if not verdict.winner:
        return
    worse = [c if c.task == verdict.winner else c._replace(cost=c.cost + CENT) for c in contenders]
    assert judge(worse).winner == verdict.winner


def test_more_are_needed_when_none_passes_or_those_that_pass_disagree():
    assert needs_more([])
    assert needs_more([contender("a", own=Proof(False))])
    assert not needs_more([contender("a"), contender("b", own=Proof(False))])
    assert not needs_more([contender("a", cross={"b": True}), contender("b")])
    assert needs_more([contender("a", cross={"b": False}), contender("b")])


def test_tests_are_crossed_only_among_those_who_can_win():
    wrote = contender("t-1", tests=("tests/new.py",))
    plain, out = contender("t-2"), contender("t-3", tests=("tests/x.py",), out="It failed.")
    assert needs_cross([wrote, plain, out]) == [("t-1", ""), ("t-1", "t-2")]
    assert needs_cross([wrote, out]) == []


def test_touches_cover_directories_and_patterns():
    assert not is_outside("src/a/b.py", ("src",))
    assert not is_outside("src/a/b.py", ("src/*",))
    assert is_outside("srcs/a.py", ("src", "docs/*"))
    assert not is_outside("anything", ())


def test_the_vendor_is_the_models_maker():
    assert vendor("claude", "") == vendor("opencode", "anthropic/claude-opus") == "anthropic"
    assert vendor("codex", "") == vendor("opencode", "openai/gpt-5") == "openai"
    assert vendor("opencode", "heavy-coder") == "heavy-coder"


def test_a_judge_sees_no_names_and_its_last_line_counts():
    prompt = judge_prompt("Fix it", ["+one", "+two"])
    assert "t-" not in prompt
    assert "Solution 2\n\n+two" in prompt
    assert read_choice("I like the first.\nBEST: 1\nNo:\n**BEST: 2**", ["t-8", "t-9"]) == "t-9"
    assert read_choice("BEST: 0", ["t-8"]) == read_choice("BEST: 3", ["t-8"]) == ""
    assert read_choice("the best is BEST: 1 here", ["t-8"]) == ""


def test_a_race_survives_being_written_and_read():
    race = Race("t-1", "ada", RaceJudging(test="make test", touches=("src",)))
    race = Race("t-1", "ada", race.rules, results=results([contender("t-2")], judge([])))
    assert reader(Race, strict=True)(changed(race)) == race
