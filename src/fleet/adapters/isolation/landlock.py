"""Isolation by Landlock, which the kernel itself has: no package, no namespaces. See `confine`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.isolation import confine
from fleet.adapters.isolation.isolation import Isolation
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.ports import Launch


class Landlock(Isolation):
    fix = "Use Linux 5.19 or newer with Landlock among its security modules, or choose another isolation."

    _last = ("--",)

    def _words(self, own: Sequence[Path]) -> tuple[str, ...]:
        if sys.platform != "linux" or confine.version() < confine.NEEDED:
            raise Unavailable(
                "`isolation: landlock` is set, but this kernel has no Landlock.", fix=self.fix
            )
        words = [sys.executable, "-I", "-S", "-B", confine.__file__]
        for path in (self._home, *self._secrets):
            words += ["--hide", str(path)]
        for path in self._shared():
            words += ["--read", str(path)]
        for path in own:
            words += ["--write", str(path)]
        return tuple(words)

    def _words_for(
        self, launch: Launch, worktree: Path, believed: Sequence[Path]
    ) -> tuple[str, ...]:
        del worktree, believed  # to guard such files would close the folders above them
        if launch.sandboxes:
            raise Refused(
                f"{Path(launch.argv[0]).name} makes a sandbox of its own, which Landlock does not allow.",
                fix="Use isolation: bubblewrap, or give the agent permissions: full.",
            )
        return ()

    def _complaint(self, errors: str) -> str:
        return errors if errors.startswith(f"{confine.PROGRAM}:") else ""
