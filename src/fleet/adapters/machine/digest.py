"""Digests without `hashlib`, which loads OpenSSL first: most commands need one or two short ones."""

from __future__ import annotations

try:
    from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from hashlib import sha256


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return str(sha256(data).hexdigest())
