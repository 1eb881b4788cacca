"""Whether this home is still where its host id was made: disk images and copies include the id.

On a shared store two machines with one id would adopt each other's runs. So the home notes the
machine, the boot and the file for which its id is in use, and the supervisors that used it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.base import machine
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from fleet.adapters.home.home import Home

MOST_HOLDERS = 100  # supervisors that are remembered: the last may not have written its row


class _Note(NamedTuple):
    machine: str = ""
    boot: str = ""
    file: int = 0  # the number of the file with the id: a copy has another
    holders: tuple[str, ...] = ()


class HostIdentity:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._file = home.path / "host.machine"
        self._before = self._read()

    def _read(self) -> _Note:
        with suppress(OSError, ValueError, TypeError, KeyError):
            values = json.loads(self._file.read_text("utf-8"))
            holders = tuple(map(str, values["holders"]))
            return _Note(str(values["machine"]), str(values["boot"]), int(values["file"]), holders)
        return _Note()

    @property
    def is_copied(self) -> bool:
        """Whether the id was provably used on another machine, or in another folder."""
        was = self._before
        return bool(was.file) and (was.machine, was.file) != (machine.machine_id(), self._inode())

    @property
    def is_certain(self) -> bool:
        """Whether the id was provably last used here, since the machine was started."""
        return not self.is_copied and self._before.boot == machine.boot_id() != ""

    def knows(self, holder: str) -> bool:
        """Whether this holder was a supervisor of this home; assumed when there is no note."""
        return not self._before.file or holder in self._before.holders

    def note(self, holder: str) -> None:
        """Note a supervisor; call it before that writes its host's row."""
        holders = (*self._before.holders, holder)[-MOST_HOLDERS:]
        self._write(_Note(machine.machine_id(), machine.boot_id(), self._inode(), holders))

    def renew(self) -> str:
        """Give this home another host id, and return that."""
        write_atomically(self._home.path / "host", f"{self._home.new_host_id()}\n")
        self._write(_Note(machine.machine_id(), machine.boot_id(), self._inode()))
        return self._home.host_id()

    def _inode(self) -> int:
        self._home.host_id()  # makes the file
        return (self._home.path / "host").stat().st_ino

    def _write(self, note: _Note) -> None:
        write_atomically(self._file, json.dumps(note._asdict()))
        self._before = note
