from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.nodes.prompt_cache import (
    ALIVE,
    MOST_STEPS,
    KeptPrompt,
    cached,
    common,
    evicted,
    has_room,
    remember,
    steps,
)

SYSTEM, HELLO, MORE = b"s" * 400, b"h" * 40, b"m" * 40


def kept(*parts, owner="x", at=0.0):
    return KeptPrompt(owner, steps(parts), at)


def test_what_two_prompts_begin_with_is_cached():
    one, two = steps([SYSTEM, HELLO]), steps([SYSTEM, HELLO, MORE])
    assert cached([kept(SYSTEM, HELLO)], two) == 110
    assert cached([kept(SYSTEM, HELLO, MORE)], one) == 110
    assert cached([kept(SYSTEM, HELLO)], steps([SYSTEM, MORE])) == 100
    assert cached([kept(SYSTEM, HELLO)], steps([HELLO, SYSTEM])) == 0
    assert cached([], one) == 0
    assert steps([]) == ()


def test_parts_are_not_confused_with_their_sum():
    assert cached([kept(b"aaaa", b"bbbb")], steps([b"aaaabbbb"])) == 0


def test_a_slot_holds_one_conversation():
    one, longer = kept(SYSTEM, HELLO), kept(SYSTEM, HELLO, MORE, at=1.0)
    other = kept(MORE, HELLO, owner="y", at=1.0)
    assert remember([one], "x", longer.prompt, 1, 1.0) == [longer]
    assert remember([one], "x", longer.prompt, 4, 1.0) == [longer]
    assert remember([one], "y", other.prompt, 1, 1.0) == [other]
    assert remember([one], "y", other.prompt, 2, 1.0) == [one, other]


def test_a_shared_system_prompt_makes_no_longer_form():
    one, sibling = kept(SYSTEM, HELLO), steps([SYSTEM, MORE])
    assert [each.owner for each in remember([one], "y", sibling, 2, 1.0)] == ["x", "y"]
    assert not has_room([one], "y", sibling, 1)
    assert has_room([one], "y", sibling, 2)
    assert has_room([one], "x", steps([SYSTEM, HELLO, MORE]), 1)


def test_who_takes_anothers_slot_costs_the_other_its_prompt():
    one, sibling = kept(SYSTEM, HELLO), steps([SYSTEM, MORE])
    assert evicted([one], "x", steps([SYSTEM, HELLO, MORE]), 1, 0.0, spare=True) == 0
    assert evicted([one], "y", sibling, 2, 0.0, spare=True) == 0
    assert evicted([one], "y", sibling, 1, 0.0, spare=True) == 2 * 110
    assert evicted([one], "y", sibling, 1, 0.0, spare=False) == 10, "the system prompt stays"
    assert evicted([one], "y", sibling, 1, ALIVE, spare=True) == 0, "it will not come back"


PARTS = st.lists(st.sampled_from([SYSTEM, HELLO, MORE]), min_size=1, max_size=5)


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), PARTS), max_size=12),
    st.integers(1, 4),
    st.booleans(),
)
def test_no_more_is_kept_than_there_are_slots_and_the_newest_is_kept(said, slots, spare):
    held = []
    for at, (owner, parts) in enumerate(said):
        cost = evicted(held, owner, steps(parts), slots, float(at), spare=spare)
        assert cost >= 0
        before = len(held)
        held = remember(held, owner, steps(parts), slots, float(at))
        assert len(held) <= slots
        assert held[-1] == KeptPrompt(owner, steps(parts), float(at))
        if len(held) > before:
            assert cost == 0, "who takes a free slot evicts nobody"


def test_a_prompt_of_very_many_parts_has_few_marks_and_all_of_its_tokens():
    parts = [b"word"] * (3 * MOST_STEPS)
    whole = steps(parts)
    assert len(whole) == MOST_STEPS + 1
    assert whole[-1].tokens == 3 * MOST_STEPS
    assert common(whole, steps([*parts, b"more"])) == MOST_STEPS
    assert common(whole, steps(parts)) == 3 * MOST_STEPS
