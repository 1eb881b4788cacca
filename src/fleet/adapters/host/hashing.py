"""Digests without `hashlib`, which loads OpenSSL first: most commands need one or two short ones."""

from __future__ import annotations

try:
    from _blake2 import blake2b
    from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from hashlib import blake2b, sha256


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return str(sha256(data).hexdigest())


def keyed_digest(key: bytes, data: bytes) -> str:
    """That only those who have the key can make; it has at most 64 bytes."""
    return blake2b(data, key=key, digest_size=32).hexdigest()
