"""Our digests are those that everybody else would make."""

from __future__ import annotations

import hashlib

import pytest

from fleet.adapters.machine.digest import digest_of


@pytest.mark.parametrize("data", [b"", b"t-1.1", bytes(range(256)) * 9])
def test_they_are_the_standard_ones(data):
    assert digest_of(data) == hashlib.sha256(data).hexdigest()
