"""Make this machine take tasks from the queue of a server, with an invitation; it can be repeated."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import Home
from fleet.adapters.hosts.shell import HereShell
from fleet.adapters.server_client import Remote
from fleet.app.coders import on_path
from fleet.app.hosts.look import SKEW, SetUpStep, look, try_host, wait_for_row
from fleet.app.hosts.settle import RECORD, TOKEN, record_of, settle, undo
from fleet.base.files import write_atomically
from fleet.config import home as home_of
from fleet.config.commands.init import ensure_home
from fleet.domain.errors import BadInput, FleetError, NotFound, Refused
from fleet.operations.compute.joining import Joined, JoinHost
from fleet.operations.team.sessions import Me, ShowMe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fleet.app.app import App

KEY = "join.key"  # the name of a file in the home


class Joining:
    """`code`: an invitation; not needed where the machine has joined this server already.

    `open_app`: by the settings as they are when it is called.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        url: str,
        code: str,
        open_app: Callable[[], App],
        *,
        labels: tuple[str, ...] = (),
        start: bool = True,
    ) -> None:
        self._env, self._code, self._open = env, code, open_app
        self._remote = Remote(url, variable="")
        self._labels, self._start = labels, start
        self._home = home_of(env)
        self.host = ""
        self.by_hand = ""

    def steps(self, *, dry: bool) -> Iterator[SetUpStep]:
        _, notes = look(HereShell(self._env))
        coders = ", ".join(on_path(self._env)) or "no coder on PATH"
        version = self._version()
        yield SetUpStep("look", "; ".join([*notes, coders, f"the server runs Fleet {version}"]))
        if dry:
            yield from _rest()
            return
        ensure_home(self._home)
        self.host = Home(self._home).host_id()
        wish, words = self._enrolled()
        yield SetUpStep("enrol", words)
        done = settle(wish)
        self.by_hand = f"{wish['program']} run start" if not self._start else ""
        yield SetUpStep("service", (self.by_hand and f"Start it: {self.by_hand}") or _service(done))
        if not self._start:
            return
        app = self._open()
        seconds = wait_for_row(app, self.host, "this machine")
        yield SetUpStep("wait", f"{self.host} is awake after {seconds:.0f} s")
        yield SetUpStep("task", try_host(app, self.host))

    def _version(self) -> str:
        """Of the server's Fleet."""
        try:
            return str(self._remote.say("GET", "/health").get("version", ""))
        except NotFound:
            raise BadInput(
                f"There is no Fleet server at {self._remote.url}.",
                fix="Is the path in the address right? `fleet host invite` prints the whole line.",
            ) from None

    def _enrolled(self) -> tuple[dict[str, Any], str]:
        """What to set, and what was done for it."""
        wish: dict[str, Any] = {"root": "", "program": _program(), "start": self._start}
        before = record_of(self._home).get("settings", {})
        if before.get("host.server") == self._remote.url and self._is_known():
            return {
                **wish,
                "settings": before | self._labelled(),
            }, f"{self.host} has joined already"
        if not self._code:
            fix = "fleet host invite, where the server runs, makes one."
            raise Refused("An invitation is needed.", fix=fix, code="no_secret")
        joined: Joined = self._remote.call(
            "host.join", JoinHost(self._code, self.host, self._key()), Joined
        )
        settings = {
            "store.url": joined.store_url,
            "store.schema": joined.store_schema,
            "host.server": self._remote.url,
        }
        words = "a login of its own" if joined.own else "the server's own login"
        skew = abs(time.time() - joined.at / 1e6)
        clock = f"; its clock is {skew:.0f} s off" if skew > SKEW else ""
        wish |= {"token": joined.token, "settings": settings | self._labelled()}
        return wish, f"{self.host} has {words} to the store{clock}"

    def _labelled(self) -> dict[str, str]:
        return {"host.labels": json.dumps(list(self._labels))} if self._labels else {}

    def _is_known(self) -> bool:
        """Whether the server accepts the token that this machine has."""
        with suppress(OSError, FleetError):
            token = (self._home / TOKEN).read_text("utf-8").strip()
            me: Me = Remote(self._remote.url, token, variable="").call("me.show", ShowMe(), Me)
            return me.name == self.host
        return False

    def _key(self) -> str:
        """Written before it is used: an answer that was lost can be had again."""
        file = self._home / KEY
        with suppress(OSError):
            return file.read_text("utf-8").strip()
        key = secrets.token_urlsafe(32)
        write_atomically(file, key.encode(), mode=0o600)
        return key


def leave(env: Mapping[str, str]) -> dict[str, Any]:
    """Undo what joining did on this machine; what is in the store stays there."""
    home = home_of(env)
    if not (home / RECORD).exists():
        raise Refused(
            "This machine has not joined a queue.", fix="fleet host list lists machines.",
            code="not_joined",
        )  # fmt: skip
    undone = undo()
    (home / KEY).unlink(missing_ok=True)
    return {"host": Home(home).host_id(), **undone}


def _rest() -> Iterator[SetUpStep]:
    yield SetUpStep("enrol", "a login to the store, and a token for the server", done=False)
    words = "a systemd user unit, else a supervisor in the background"
    yield SetUpStep("service", words, done=False)
    yield SetUpStep("wait", "until its row is in the store", done=False)
    yield SetUpStep("task", "a task that runs here", done=False)


def _service(done: dict[str, Any]) -> str:
    if done["service"] == "background":
        return "a supervisor in the background; after a reboot: fleet run start"
    return f"systemd runs {done['service']}"


def _program() -> str:
    """The fleet that was typed."""
    beside = Path(sys.executable).parent / "fleet"
    return str(beside) if beside.exists() else shutil.which("fleet") or "fleet"
