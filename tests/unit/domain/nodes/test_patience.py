from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.nodes.patience import RECENT, Cold, first_byte_limit, worth_loading

ASKED = Cold(idle=1.0, others=False, room=False, busy=False)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.booleans())
def test_a_longer_prompt_is_waited_for_at_least_as_long(one, more, measured):
    shorter = first_byte_limit(one, measured=measured)
    assert one < shorter <= first_byte_limit(one + more, measured=measured)


def test_a_guess_is_trusted_less_than_a_measurement():
    assert first_byte_limit(1.0, measured=False) > first_byte_limit(1.0, measured=True)


def test_what_is_in_use_is_loaded_and_evicts_nothing_on_a_guess():
    assert worth_loading(ASKED)
    assert not worth_loading(ASKED._replace(idle=RECENT))
    assert not worth_loading(ASKED._replace(busy=True))
    assert not worth_loading(ASKED._replace(others=True))
    assert worth_loading(ASKED._replace(others=True, room=True))
