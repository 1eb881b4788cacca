"""`server.revoked`: a copy of the revocations, beside the key and apart from the store.

A database that is restored from a backup lacks what was revoked since then; this file has it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.access import Revocation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE = "server.revoked"


class RevokedFile:
    """One revocation a line; of two with one key the later time counts."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE

    def add(self, revocations: Iterable[Revocation]) -> None:
        """Each process appends whole lines, so several may."""
        lines = "".join(json.dumps(r) + "\n" for r in revocations).encode()
        if not lines:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, lines)
            os.fsync(fd)
        finally:
            os.close(fd)

    def read(self, now: int) -> dict[str, Revocation]:
        """Read the revocations by key, and drop from the file those whose tokens have all expired."""
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        kept: dict[str, Revocation] = {}
        for line in lines:
            revocation = _of(line)
            if revocation and not 0 < revocation.until <= now:
                earlier = kept.get(revocation.key, revocation)
                kept[revocation.key] = max(earlier, revocation)
        if len(kept) < len(lines):
            text = "".join(json.dumps(r) + "\n" for r in kept.values())
            write_atomically(self._file, text)
        return kept


def _of(line: bytes) -> Revocation | None:
    """The revocation of a line; None for one that a power cut has left unfinished."""
    try:
        key, before, until = json.loads(line)
        return Revocation(str(key), int(before), int(until))
    except (ValueError, TypeError):
        return None
