"""A block of ports for each live workspace of this host, recorded in one file under a lock."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.data import dataclass
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST, LAST = 20_000, 32_000  # below what Linux and macOS give to outgoing connections


@dataclass(frozen=True, slots=True)
class Block:
    base: int
    size: int


@dataclass(frozen=True, slots=True)
class Ports:
    """`file` belongs to one home; trying to listen shows the ports of other programs."""

    file: Path

    def claim(self, root: str, size: int) -> Block:
        """The block of this workspace; the same one for as long as the workspace exists."""
        with self._alone():
            blocks = {path: other for path, other in self._read().items() if _live(path)}
            block = blocks.get(root)
            if block is None or block.size < size:
                blocks.pop(root, None)
                block = _free(list(blocks.values()), size)
                self._write({**blocks, root: block})
            return block

    def release(self, root: str) -> None:
        if self.file.exists():
            with self._alone():
                blocks = self._read()
                if blocks.pop(root, None) is not None:
                    self._write(blocks)

    def held(self) -> dict[str, Block]:
        return self._read()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self.file.with_name(f"{self.file.name}.lock")
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _read(self) -> dict[str, Block]:
        try:
            record = json.loads(self.file.read_text("utf-8", "surrogateescape"))
            return {path: Block(int(base), int(size)) for path, (base, size) in record.items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return {}  # the next claims choose anew, and trying to listen shows the ports in use

    def _write(self, blocks: dict[str, Block]) -> None:
        plain = {path: [block.base, block.size] for path, block in blocks.items()}
        write_atomically(self.file, json.dumps(plain, indent=1) + "\n")


def _live(root: str) -> bool:
    return os.path.lexists(root)


def _free(taken: list[Block], size: int) -> Block:
    for base in range(FIRST, LAST - size + 1, size):
        apart = all(base + size <= b.base or b.base + b.size <= base for b in taken)
        if apart and all(_unused(port) for port in range(base, base + size)):
            return Block(base, size)
    raise Unavailable(
        f"There are no {size} free ports in a row between {FIRST} and {LAST}.",
        fix="Remove workspaces (fleet gc), or lower workspace.ports.",
    )


def _unused(port: int) -> bool:
    import socket  # noqa: PLC0415  # start-up time

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
