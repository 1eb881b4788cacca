"""A commit log in a folder, which processes of one machine share: each entry is a file, linked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.files import write_atomically, write_once

if TYPE_CHECKING:
    from pathlib import Path


class FolderLog:
    def __init__(self, folder: Path, *, most: int = 1 << 20) -> None:
        self.most = most
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, number: int, entry: bytes) -> bool:
        return write_once(self._entry(number), entry, durable=False)

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        entries = []
        for number in range(after + 1, after + 1 + limit):
            try:
                entries.append((number, self._entry(number).read_bytes()))
            except FileNotFoundError:
                break
        return entries

    def put(self, name: str, blob: bytes) -> None:
        write_atomically(self._folder / name, blob, durable=False)

    def get(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def close(self) -> None:
        pass

    def _entry(self, number: int) -> Path:
        return self._folder / f"{number:012d}"
