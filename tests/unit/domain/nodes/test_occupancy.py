from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.nodes.kinds import kind_of
from fleet.domain.nodes.occupancy import HALF, USUAL, Occupancy, Strangers, page_of, read_page


def test_each_kind_that_says_who_is_at_work_is_read():
    llama, vllm, sglang = (kind_of(name).pages for name in ("llamacpp", "vllm", "sglang"))
    assert page_of(llama) == "/slots"
    slots = '[{"id": 0, "is_processing": true}, {"id": 1, "is_processing": false}]'
    assert read_page(llama, slots) == Occupancy(1, slots=2)
    text = '# HELP\nvllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_waiting 2.0\n'
    assert read_page(vllm, text) == Occupancy(3, 2)
    loads = '{"loads": [{"num_running_reqs": 3, "num_waiting_reqs": 2}]}'
    assert read_page(sglang, loads) == Occupancy(3, 2)
    older = '[{"num_reqs": 5, "num_waiting_reqs": 2}]'
    assert read_page(sglang, older) == Occupancy(3, 2)
    assert page_of(kind_of("ollama").pages) == ""


def test_what_is_no_such_page_says_nothing():
    llama = kind_of("llamacpp").pages
    for text in ("", "{}", "<html>", '{"error": {"code": 501}}', "[" * 100_000):
        assert read_page(llama, text) is None, text[:20]


def test_the_requests_of_others_are_those_that_are_not_ours():
    strangers = Strangers().seen(Occupancy(3, 1, slots=4), 2, now=10.0)
    assert strangers.since == (10.0, 10.0)
    later = strangers.seen(Occupancy(2, slots=4), 0, now=12.0).seen(Occupancy(1), 0, now=13.0)
    assert later.since == (10.0,)


def test_while_the_node_has_a_free_slot_nobody_waits_for_strangers():
    strangers = Strangers().seen(Occupancy(3, slots=4), 0, now=0.0)
    assert strangers.wait([], 0.0, now=0.0) == 0
    assert strangers.beside == 3


def test_a_full_node_is_waited_for_as_long_as_a_request_usually_takes():
    strangers = Strangers().seen(Occupancy(1, slots=1), 0, now=0.0)
    assert strangers.wait([], 0.0, now=1.0) == USUAL - 1
    assert strangers.wait([], 20.0, now=1.0) == 19.0
    assert strangers.wait([3.0], 20.0, now=1.0) == 19.0 - 3.0
    assert strangers.beside == 0


def test_a_wait_that_was_seen_counts_less_and_less():
    strangers = Strangers().queued(8.0, now=0.0)
    assert strangers.wait([], 0.0, now=0.0) == 8
    assert strangers.wait([], 0.0, now=HALF) == 4
    assert Strangers().queued(0.1, now=0.0).wait([], 0.0, now=0.0) == 0


@given(
    st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 9),
    st.lists(st.floats(0, 100), max_size=5), st.floats(0, 1000),
)  # fmt: skip
def test_strangers_never_make_a_wait_shorter(busy, waiting, slots, ours, left, now):
    strangers = Strangers().seen(Occupancy(busy, waiting, slots), ours, now=0.0)
    assert len(strangers.since) == max(0, busy + waiting - ours)
    assert strangers.wait(left, 0.0, now) >= 0
    assert strangers.beside >= 0
