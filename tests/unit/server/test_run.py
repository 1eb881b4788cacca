from __future__ import annotations

import socket

import pytest

from fleet.domain.errors import Refused
from fleet.server.run import _bound


def test_the_socket_names_its_protocol_so_that_small_answers_are_sent_at_once():
    """Else asyncio leaves Nagle's algorithm on, and an answer on a kept connection takes 40 ms."""
    with _bound("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_a_port_that_is_taken_is_refused_with_the_way_to_choose_another():
    with (
        _bound("127.0.0.1", 0) as taken,
        pytest.raises(Refused, match="Cannot listen on port") as refused,
    ):
        _bound("127.0.0.1", taken.getsockname()[1])
    assert "--port" in refused.value.fix
