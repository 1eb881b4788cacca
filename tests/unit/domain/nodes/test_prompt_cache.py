from __future__ import annotations

from fleet.domain.nodes.prompt_cache import cached, remember, steps

SYSTEM, HELLO, MORE = b"s" * 400, b"h" * 40, b"m" * 40


def test_what_two_prompts_begin_with_is_cached():
    one, two = steps([SYSTEM, HELLO]), steps([SYSTEM, HELLO, MORE])
    assert cached([one], two) == 110
    assert cached([two], one) == 110
    assert cached([one], steps([SYSTEM, MORE])) == 100
    assert cached([one], steps([HELLO, SYSTEM])) == 0
    assert cached([], one) == 0
    assert steps([]) == ()


def test_parts_are_not_confused_with_their_sum():
    assert cached([steps([b"aaaa", b"bbbb"])], steps([b"aaaabbbb"])) == 0


def test_a_slot_holds_one_conversation():
    one, longer = steps([SYSTEM, HELLO]), steps([SYSTEM, HELLO, MORE])
    other = steps([MORE, HELLO])
    assert remember([one], longer, 1) == [longer]
    assert remember([one], longer, 4) == [longer]
    assert remember([one], other, 1) == [other]
    assert remember([one], other, 2) == [one, other]
