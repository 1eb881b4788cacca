"""LiteLLM in an environment of its own, apart from ours: it brings a hundred packages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.home.home import Home
from fleet.adapters.processes.pip import pip_install
from fleet.base.files import write_atomically
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

PINS = Path(__file__).with_name("litellm.txt")
MALICIOUS = frozenset({"1.82.7", "1.82.8"})  # they stole the credentials that they found
OLDEST = (1, 104)  # before it, a gateway without a key was open to everyone
INSTALL = 900.0  # seconds for the installation
ANSWER = 20.0
UPGRADE = "fleet gateway install"
OWN = "FLEET_GATEWAY_PYTHON"  # the Python of a LiteLLM that is not ours
ASK = "from importlib.metadata import version; print(version('litellm'))"


class Environment:
    """A virtual environment with LiteLLM. Its file `whole` is written once it is complete.

    `own`: a Python with a LiteLLM that the user has installed, to which Fleet adds nothing.
    """

    size = "about 750 MB"  # on the disk

    def __init__(self, home: Path, own: str = "") -> None:
        self.own = own
        self._home = Home(home)
        self.where = Path(own).parent.parent if own else home / "gateway" / "litellm"
        self.python = Path(own) if own else self.where / "bin" / "python"
        self._whole = self.where / "whole.json"

    def version(self) -> str:
        """Return the installed version; empty when there is no complete installation."""
        if self.own:
            return self._own_version()
        try:
            return str(json.loads(self._whole.read_bytes())["version"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _own_version(self) -> str:
        argv = [self.own, "-c", ASK]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=ANSWER, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        version = done.stdout.strip()
        return version if done.returncode == 0 and version[:1].isdecimal() else ""

    def checked(self) -> str:
        """Return the version to run; raise `Refused` for none, or one that must not run."""
        version = self.version()
        if not version and self.own:
            raise Refused(
                f"{OWN} is {self.own}, which has no LiteLLM.",
                fix=self._upgrade,
            )
        if not version:
            raise Refused("LiteLLM is not installed.", fix="fleet gateway install")
        check_version(version, self._upgrade if self.own else UPGRADE)
        return version

    @property
    def _upgrade(self) -> str:
        return f"{self.own} -m pip install --upgrade 'litellm[proxy]'; or unset {OWN}."

    @property
    def wanted(self) -> str:
        """Return the version that `install` installs."""
        return pinned()

    @property
    def packages(self) -> int:
        """Return how many packages `install` installs."""
        return sum("==" in line for line in PINS.read_text("utf-8").splitlines())

    def install(self, step: Callable[[str, int], None]) -> str:
        """Install LiteLLM, in place of an incomplete installation or another version.

        `step` is called with the current package and the number of packages so far.
        """
        if self.own:
            return self.checked()
        wanted = pinned()
        check_version(wanted)
        if self.version() == wanted:
            return wanted
        self._home.ensure()
        shutil.rmtree(self.where, ignore_errors=True)
        self.where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        step(f"making an environment in {self.where}", 0)
        try:
            self._make()
            words = ("--no-deps", "-r", str(PINS))
            pip_install(str(self.python), words, step, within=INSTALL)
        except Unavailable as error:
            raise Unavailable(
                f"LiteLLM could not be installed: {error.message}",
                fix="Check the network and pip's index, then run `fleet gateway install` again.",
            ) from error
        write_atomically(self._whole, json.dumps({"version": wanted}) + "\n")
        return wanted

    def _make(self) -> None:
        argv = [sys.executable, "-m", "venv", str(self.where)]
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=INSTALL, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable("the environment for it could not be made in time.") from None
        if done.returncode != 0:
            raise Unavailable(" ".join((done.stderr or done.stdout).split()[-30:]))


def pinned() -> str:
    match = re.search(r"^litellm==(\S+)$", PINS.read_text("utf-8"), re.MULTILINE)
    assert match is not None
    return match[1]


def check_version(version: str, upgrade: str = UPGRADE) -> None:
    """Raise `Refused` for a compromised release or one that is too old."""
    if version in MALICIOUS:
        raise Refused(
            f"LiteLLM {version} is a compromised release: it steals the keys it finds.",
            fix="Remove it, change every key that was on that machine, and install another.",
        )
    if tuple(int(n) for n in re.findall(r"\d+", version)[:2]) < OLDEST:
        raise Refused(
            f"LiteLLM {version} is too old: it starts without a key.",
            fix=upgrade,
        )
