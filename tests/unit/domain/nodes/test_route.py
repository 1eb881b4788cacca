from __future__ import annotations

import pytest

from fleet.domain.nodes.route import NodeOutlook, route


def test_the_node_that_answers_soonest_is_chosen_term_by_term():
    slow = NodeOutlook("slow", prefill=100, decode=10)
    fast = NodeOutlook("fast", wait=2, prefill=1000, decode=100)
    chosen = route([slow, fast], prompt=1000, output=100)
    assert chosen.node == "fast"
    terms = {e.node: (e.wait, e.load, e.prefill, e.decode, e.total) for e in chosen.estimates}
    assert terms == {"slow": (0, 0, 10, 10, 20), "fast": (2, 0, 1, 1, 4)}


def test_what_a_node_has_cached_need_not_be_read_again():
    warm = NodeOutlook("warm", prefill=100, cached=900)
    cold = NodeOutlook("cold", prefill=100)
    chosen = route([cold, warm], prompt=1000, output=0)
    assert chosen.node == "warm"
    assert chosen.estimates[1].prefill == pytest.approx(1.0)
    assert (
        route([NodeOutlook("w", prefill=10, cached=5000)], prompt=10, output=0).estimates[0].prefill
        == 0
    )


def test_order_settles_what_is_about_equal():
    assert (
        route([NodeOutlook("a", wait=1.0), NodeOutlook("b", wait=0.9)], prompt=0, output=0).node
        == "a"
    )
    assert (
        route([NodeOutlook("a", wait=1.0), NodeOutlook("b", wait=0.8)], prompt=0, output=0).node
        == "b"
    )


def test_a_dead_node_is_passed_over_and_an_unknown_one_is_not():
    dead = NodeOutlook("dead", up=False, why_down="refused")
    assert route([dead, NodeOutlook("live", load=60)], prompt=1, output=1).node == "live"
    assert route([NodeOutlook("unknown", up=None)], prompt=1, output=1).node == "unknown"
    none = route([dead], prompt=1, output=1)
    assert (none.node, none.why) == ("", "dead is down (refused)")
    assert route([], prompt=1, output=1).why == "no node serves this model"


def test_a_choice_is_explained_in_one_line_the_chosen_first():
    chosen = route(
        [NodeOutlook("slow", decode=10), NodeOutlook("fast", wait=1, decode=100)],
        prompt=0,
        output=100,
    )
    assert chosen.explained == (
        "fast 2.00 s (wait 1.00 + load 0.00 + prefill 0.00 + decode 1.00); "
        "slow 10.00 s (wait 0.00 + load 0.00 + prefill 0.00 + decode 10.00)"
    )
    assert (
        route([NodeOutlook("x", up=False)], prompt=0, output=0).explained == "x is down (no answer)"
    )


def test_a_preferred_node_is_chosen_although_it_is_slower_and_the_choice_says_why():
    fast = NodeOutlook("fast", decode=100)
    slow = NodeOutlook("slow", decode=50, weight=3)
    chosen = route([fast, slow], prompt=0, output=100)
    assert chosen.node == "slow"
    assert chosen.explained.startswith("slow 2.00 s (")
    assert "; weight 3)" in chosen.explained
    assert route([fast, slow], prompt=0, output=100).chosen.total == 2.0, "its time is as it is"
    much = NodeOutlook("slow", decode=10, weight=3)
    assert route([fast, much], prompt=0, output=100).node == "fast"
