"""Blobs beside the log of a cloud store: whole or absent, and nothing is left of what was replaced."""

import pytest

from fleet.adapters.stores.log.parts import NO_PARTS, BlobParts, whole
from fleet.domain.errors import Unavailable

LARGE = b"x" * 2_000_000  # several parts in each service that has parts


@pytest.mark.real
@pytest.mark.parametrize("store", ["dynamodb", "firestore"], indirect=True)
def test_a_blob_that_is_replaced_leaves_no_parts_behind(store):
    log = store._log
    assert log.get("snapshot") is None
    log.put("snapshot", LARGE)
    first = log._parts("snapshot")
    assert (log.get("snapshot"), first.total > 1) == (LARGE, True)
    log.put("snapshot", b"small")
    assert log.get("snapshot") == b"small"
    assert log._read_parts(first) == []


def test_a_reader_whose_blob_is_replaced_meanwhile_has_the_new_one_whole():
    parts = {"old": [b"a"], "new": [b"c", b"d"]}
    indexes = iter([BlobParts("old", 2), BlobParts("new", 2)])
    assert whole(lambda: next(indexes), lambda known: parts[known.mark]) == b"cd"


def test_a_part_that_is_missing_for_good_is_said_so():
    with pytest.raises(Unavailable, match="old"):
        whole(lambda: BlobParts("old", 2), lambda _: [b"a"])
    assert whole(lambda: NO_PARTS, lambda _: []) is None
