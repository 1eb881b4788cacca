"""The keys of the server's tokens: `server.key` in the home, and the secrets of the environment.

`server.key` has one key a line, the one that signs first. A line with a time is an older key, and
verifies until then (in seconds since 1970). A home from before there were several has one line.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically, write_once
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILE = "server.key"
SECRET, PREVIOUS = "JWT_SECRET", "JWT_SECRET_PREVIOUS"
LOOK_SECONDS = 1.0  # between looks at the file: another process may have rotated the keys


class SigningKey(NamedTuple):
    """`id` identifies the key without revealing it. `until`: 0 for no end."""

    id: str
    value: bytes
    until: float = 0.0


class KeyRing:
    """The keys of tokens. The home's own always verify; `JWT_SECRET`, where set, signs instead."""

    def __init__(
        self, home: Path, env: Mapping[str, str], clock: Callable[[], float] = time.time
    ) -> None:
        self._file, self._clock = home / FILE, clock
        self._given = [_of_secret(env[name]) for name in (SECRET, PREVIOUS) if env.get(name)]
        self.by_secret = bool(env.get(SECRET))
        self._own: list[SigningKey] = []
        self._by_id: dict[str, SigningKey] = {}
        self._stamp: object = None
        self._looked = 0.0

    def signing(self) -> SigningKey:
        """Return the key that signs new tokens."""
        return self._given[0] if self.by_secret else self.own()

    def own(self) -> SigningKey:
        """Return the home's key, which signs the tokens of its commands and runs."""
        self._look()
        return self._own[0]

    def find(self, key_id: str) -> SigningKey | None:
        """Return the key with this id, unless it is retired."""
        if time.monotonic() - self._looked > LOOK_SECONDS or key_id not in self._by_id:
            self._look()
        key = self._by_id.get(key_id)
        return key if key and not 0 < key.until <= self._clock() else None

    def all(self) -> list[SigningKey]:
        """Return all keys that verify tokens, for a token that does not name its key."""
        self._look()
        return [key for key in self._by_id.values() if self.find(key.id)]

    def rotate(self, overlap: float) -> SigningKey:
        """Make a new key of our own. Those before it verify for `overlap` more seconds, or until their end."""
        now = self._clock()
        older = [
            key._replace(until=min(key.until or now + overlap, now + overlap))
            for key in (self.own(), *self._own[1:])
            if overlap > 0 and not 0 < key.until <= now
        ]
        lines = [secrets.token_hex(32), *(f"{key.value.hex()} {key.until:.0f}" for key in older)]
        write_atomically(self._file, "\n".join(lines) + "\n")
        return self.own()

    def _look(self) -> None:
        self._looked = time.monotonic()
        stamp = self._stat()
        if stamp is None and not self._own:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_once(self._file, secrets.token_hex(32) + "\n")
            stamp = self._stat()
        if stamp is None or stamp == self._stamp:
            return  # while the file is missing, the last keys stay valid
        self._own = _read(self._file)
        self._by_id = {key.id: key for key in (*self._own, *self._given)}
        self._stamp = stamp

    def _stat(self) -> object:
        with suppress(FileNotFoundError):
            stat = self._file.stat()
            return stat.st_ino, stat.st_mtime_ns, stat.st_size
        return None


def _read(file: Path) -> list[SigningKey]:
    try:
        lines = [line.split() for line in file.read_text("ascii").splitlines() if line.strip()]
        keys = [_key(bytes.fromhex(line[0]), *map(float, line[1:2])) for line in lines]
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"{file} cannot be read: {error}.", fix="Restore it from a copy."
        ) from None
    if not keys:
        raise Unavailable(
            f"{file} is empty.", fix="Restore it, or remove it to have a new key made."
        )
    return keys


def _of_secret(secret: str) -> SigningKey:
    return _key(hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest())


def _key(value: bytes, until: float = 0.0) -> SigningKey:
    return SigningKey(hashlib.sha256(b"mark " + value).hexdigest()[:16], value, until)
