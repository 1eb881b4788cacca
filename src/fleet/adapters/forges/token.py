"""The token for a forge, from the environment or from a program such as gh or git.

It is never an argument of a program, and never in the environment of an agent or a gate.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.processes import run as process
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.forges.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

ASK_SECONDS = 10.0  # for one program
FRESH_SECONDS = 600.0  # for which a token is kept in memory
OLD_SECONDS = 30.0  # for which a missing token is not looked for again


class TokenSource:
    """Finds the token for one host. `kind`: the kind of forge."""

    def __init__(self, host: str, kind: str, env: Mapping[str, str], scheme: str = "https") -> None:
        self._host, self._kind, self._env, self._scheme = host, KINDS[kind], env, scheme
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def __call__(self) -> str:
        """Return the token; raise `Refused` when there is none."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._token = self._find()
                fresh = FRESH_SECONDS if self._token else OLD_SECONDS
                self._until = time.monotonic() + fresh
            token = self._token
        if not token:
            raise Refused(
                f"There is no token for {self._host}.", fix=self._fix(), code="no_forge_token"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise Refused(
                f"The token for {self._host} contains characters that a token cannot have."
            )
        return token

    def _fix(self) -> str:
        kind = self._kind
        if not kind.has_code:
            return f"Set {kind.token}{'; ' if kind.token_form else ''}{kind.token_form}."
        ways = f"{kind.login} --hostname {self._host}, or set" if kind.login else "Set"
        return f"{ways} {kind.token}, or store one with git: git credential approve"

    def _find(self) -> str:
        if token := self._env.get(self._kind.token, "").strip():
            return token
        if not self._kind.has_code:
            return ""
        return self._from_program() or self._from_git()

    def _from_program(self) -> str:
        argv = self._kind.token_command
        if not argv or shutil.which(argv[0], path=self._env.get("PATH")) is None:
            return ""
        return self._ask((*argv, self._host)).strip()

    def _from_git(self) -> str:
        """Return the password that git would send to this host, without prompting."""
        question = f"protocol={self._scheme}\nhost={self._host}\n\n".encode()
        answer = self._ask(("git", "credential", "fill"), question)
        pairs = dict(line.partition("=")[::2] for line in answer.splitlines())
        return pairs.get("password", "")

    def _ask(self, argv: tuple[str, ...], stdin: bytes = b"") -> str:
        env = {k: v for k, v in self._env.items() if not k.startswith("GIT_") or "CONFIG" in k}
        env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true"}
        env |= {"GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "LC_ALL": "C"}
        home = Path(self._env.get("HOME") or os.sep)
        try:
            done = process.run(
                argv, home, env=env, timeout=ASK_SECONDS, stdin=stdin, in_memory=True
            )
        except (Unavailable, OSError):
            return ""  # as if there were none: the error's fix says what to do
        return "" if done.status else done.out
