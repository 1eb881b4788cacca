"""Digests without `hashlib`, which loads OpenSSL first: most commands need one or two short ones."""

from __future__ import annotations

try:
    from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from hashlib import sha256

BLOCK = 64  # bytes that SHA-256 takes at a time


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return str(sha256(data).hexdigest())


def keyed_digest(key: bytes, data: bytes) -> str:
    """HMAC with SHA-256 (RFC 2104), in hexadecimal: only those who have the key can make it."""
    key = sha256(key).digest() if len(key) > BLOCK else key
    inner, outer = (bytes(b ^ pad for b in key.ljust(BLOCK, b"\0")) for pad in (0x36, 0x5C))
    return digest_of(outer + sha256(inner + data).digest())
