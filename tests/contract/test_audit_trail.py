from __future__ import annotations

import pytest

from fleet.adapters.home.audit_trail import AuditFiles
from fleet.domain.audit import AuditQuery, AuditRecord
from fleet.testing.fakes import MemoryTrail

DAY = 86_400_000_000


@pytest.fixture(params=["files", "memory"])
def trail(tmp_path, request):
    if request.param == "memory":
        yield MemoryTrail()
        return
    made = AuditFiles(tmp_path / "audit")
    yield made
    made.close()


def a_record(actor: str = "bob", **fields) -> AuditRecord:
    return AuditRecord("", fields.pop("at", DAY), fields.pop("outcome", "allowed"), actor, **fields)


def ids(records) -> list[str]:
    return [record.id for record in records]


def test_records_are_numbered_and_read_newest_first(trail):
    for _ in range(3):
        trail.add(a_record())
    assert ids(trail.read(AuditQuery())) == ["a-3", "a-2", "a-1"]
    assert ids(trail.read(AuditQuery(limit=1, before="a-3"))) == ["a-2"]
    assert ids(trail.read(AuditQuery(after="a-1"))) == ["a-2", "a-3"]


def test_a_record_comes_back_as_it_was_written(trail):
    record = a_record(at=DAY + 1, team="red", address="::1", target="t-1 “x”\n", count=7)
    trail.add(record)
    assert trail.read(AuditQuery()) == [AuditRecord("a-1", *list(_fields(record))[1:])]


def _fields(record: AuditRecord):
    return (getattr(record, name) for name in AuditRecord.__dataclass_fields__)


def test_filters_narrow_what_is_read(trail):
    trail.add(a_record("ann", team="red"))
    trail.add(a_record("bob", team="blue", outcome="refused"))
    trail.add(a_record("bob", team="red", at=3 * DAY))
    assert ids(trail.read(AuditQuery(actor="bob"))) == ["a-3", "a-2"]
    assert ids(trail.read(AuditQuery(team="red"))) == ["a-3", "a-1"]
    assert ids(trail.read(AuditQuery(refused=True))) == ["a-2"]
    assert ids(trail.read(AuditQuery(since=2 * DAY))) == ["a-3"]


def test_the_trail_is_bounded_and_keeps_the_newest(tmp_path):
    trail = AuditFiles(tmp_path / "audit", most=20_000)
    for _ in range(500):
        trail.add(a_record())
    trail.close()
    size = sum(path.stat().st_size for path in (tmp_path / "audit").iterdir())
    assert size < 20_000 + 1000
    found = ids(trail.read(AuditQuery(limit=1000)))
    assert found[0] == "a-500"
    numbers = [int(name[2:]) for name in found]
    assert numbers == list(range(500, 500 - len(numbers), -1))
    middle = found[len(found) // 2]
    assert ids(trail.read(AuditQuery(after=middle, limit=1000))) == found[: len(found) // 2][::-1]


def test_half_a_line_of_a_server_that_died_is_dropped(tmp_path):
    trail = AuditFiles(tmp_path / "audit")
    trail.add(a_record())
    trail.close()
    (file,) = (tmp_path / "audit").iterdir()
    with file.open("ab") as half:
        half.write(b'{"id":"a-2","at":"20')
    again = AuditFiles(tmp_path / "audit")
    assert ids(again.read(AuditQuery())) == ["a-1"]
    again.add(a_record())
    again.close()
    assert ids(again.read(AuditQuery())) == ["a-2", "a-1"]
