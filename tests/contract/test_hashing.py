"""Our digests are those that everybody else would make."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from fleet.adapters.machine.digest import digest_of, keyed_digest


@pytest.mark.parametrize("data", [b"", b"t-1.1", bytes(range(256)) * 9])
def test_they_are_the_standard_ones(data):
    assert digest_of(data) == hashlib.sha256(data).hexdigest()
    for key in (b"k", b"k" * 63, b"k" * 64, b"k" * 65, bytes(range(200))):
        assert keyed_digest(key, data) == hmac.new(key, data, hashlib.sha256).hexdigest()
