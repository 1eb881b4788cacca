from __future__ import annotations

import asyncio

import pytest

from fleet.domain.access import Actor, Role
from fleet.server.audit import ALARMING, HOUR, REFUSALS, STRANGERS, Audit, Observed, admitted
from fleet.server.metrics import Meters
from fleet.server.tokens import TokenGrant
from fleet.testing.fakes import MemoryTrail

BOB = TokenGrant("id1", Actor("bob", Role.WORKER, "red"), 1e12, "k1")


@pytest.fixture
def kept():
    return MemoryTrail()


def asked(
    audit: Audit, addresses, *, grant: TokenGrant | None = None, code: str = "bad_token"
) -> None:
    """Each address asks once, and is refused."""

    async def app(_scope, _receive, send) -> None:
        if grant:
            admitted(grant)
        await send({"type": "http.response.start", "status": 401})
        await send({"type": "http.response.body", "body": b'{"code":"%b"}' % code.encode()})

    async def send(_message) -> None:
        pass

    async def run() -> None:
        observed = Observed(app, Meters(), audit)
        for address in addresses:
            scope = {"type": "http", "method": "GET", "path": "/x", "client": (address, 1)}
            await observed(scope, None, send)
        audit.count()

    asyncio.run(run())


def test_a_flood_of_addresses_writes_a_bounded_number_of_records(kept):
    audit = Audit(kept)
    asked(audit, [f"10.0.{n // 256}.{n % 256}" for n in range(5000)])
    assert (
        len(kept.records) == STRANGERS + 2
    )  # those apart, then the others, and how many these were
    assert sum(record.count for record in kept.records) == 5000
    assert audit.refusals == {"bad_token": 5000}


def test_a_token_cannot_write_without_bound_by_being_refused(kept):
    audit = Audit(kept)
    asked(audit, ["10.0.0.1"] * 500, grant=BOB, code="forbidden")
    assert [record.count for record in kept.records] == [1, 499]
    assert kept.records[1].actor == "bob"
    assert REFUSALS >= STRANGERS


def test_a_stranger_does_not_hide_the_refusals_of_those_with_a_token(kept):
    audit = Audit(kept)
    addresses = [f"10.0.{n // 256}.{n % 256}" for n in range(1000)]

    async def both() -> None:
        for grant, some in ((None, addresses), (BOB, ["10.9.9.9"])):
            audit_one(audit, some, grant)

    def audit_one(audit, some, grant) -> None:
        from fleet.server import audit as module

        for address in some:
            module._CALLER.set(module.Caller(address, "GET /x", grant))
            audit.answered(403, "forbidden")

    asyncio.run(both())
    assert kept.records[-1].actor == "bob"


def test_what_the_disk_does_not_take_is_counted(kept):
    audit, kept.full = Audit(kept), True
    asked(audit, ["10.0.0.1"])
    assert audit.dropped == 1


def test_somebody_is_told_of_many_refusals_within_a_minute_once_an_hour(kept):
    now, told = 0, []
    audit = Audit(kept, clock=lambda: now)
    audit.alarm = told.append
    asked(audit, ["10.0.0.1"] * (ALARMING - 1))
    asked(audit, ["10.0.0.1"] * (ALARMING - 1))
    assert told == []  # they are of two minutes
    asked(audit, ["10.0.0.7"] * 3 * ALARMING)
    asked(audit, ["10.0.0.7"] * 3 * ALARMING)
    assert len(told) == 1
    assert "10.0.0.7 (bad_token)" in told[0]
    now = HOUR
    asked(audit, ["10.0.0.8"] * ALARMING)
    assert len(told) == 2
