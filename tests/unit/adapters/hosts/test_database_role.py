from __future__ import annotations

import pytest

from fleet.adapters.hosts.database_role import at_address

URL = "postgresql://box:pw@127.0.0.1:5433/fleet?sslmode=require"


@pytest.mark.parametrize("address", ["db.example:5432", "postgresql://ada:x@db.example:5432/other"])
def test_of_another_address_only_the_machine_and_the_port_count(address):
    there = "postgresql://box:pw@db.example:5432/fleet?sslmode=require"
    assert at_address(URL, address) == there


def test_without_another_address_the_url_stays_as_it_is():
    assert at_address(URL, "") == URL


def test_a_socket_of_this_machine_is_left_out():
    url = "postgresql://fleet@/t1?host=/run/postgresql&port=5433"
    assert at_address(url, "db.example") == "postgresql://fleet@db.example/t1"
