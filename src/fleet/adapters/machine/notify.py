"""Ways to notify the user: the desktop, and a webhook."""

from __future__ import annotations

import json
import sys
import threading
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.processes import run as process
from fleet.base.files import write_atomically
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.ports import Notifier

SEND_SECONDS = 5.0
FROM_ENV = "os.environ/"
SHOW = (  # title and text are arguments of the script, never part of it
    *("-e", "on run argv"),
    *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
    *("-e", "end run"),
)


class Desktop:
    """`notify-send` on Linux, `osascript` on macOS, where it is not tested yet."""

    name = "desktop"

    def __init__(self, env: Mapping[str, str], platform: str = sys.platform) -> None:
        self._env = env
        self._mac = platform == "darwin"

    def send(self, notice: Mapping[str, Any]) -> None:
        title = _plain(str(notice["title"]))
        text = _plain(str(notice["text"])).removeprefix(f"{title}: ")
        if self._mac:
            argv = ["osascript", *SHOW, title, text]
        else:  # the desktop reads the text as markup
            argv = ["notify-send", "--app-name=fleet", "--", title, escape(text, quote=False)]
        done = process.run(argv, Path("/"), env=self._env, timeout=SEND_SECONDS)
        if done.status != 0:
            raise Unavailable(f"{argv[0]}: {done.words}")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


class Webhook:
    """Posts notices to an address. That may be a secret, so errors only show its host."""

    name = "webhook"

    def __init__(self, address: str, env: Mapping[str, str]) -> None:
        self._written = address
        self._env = env

    def send(self, notice: Mapping[str, Any]) -> None:
        """Send a notice in a thread, so that a slow server cannot exceed the deadline."""
        address = self._address()
        outcomes: list[Exception | None] = []

        def post() -> None:
            try:
                _post(address, dict(notice))
            except Exception as error:  # noqa: BLE001  # raised below, in the caller's thread
                outcomes.append(error)
            else:
                outcomes.append(None)

        thread = threading.Thread(target=post, daemon=True)
        thread.start()
        thread.join(SEND_SECONDS)
        why = f"no answer within {SEND_SECONDS:.0f} s" if not outcomes else _why(outcomes[0])
        if why:
            raise Unavailable(f"{_host(address)}: {why}")

    def _address(self) -> str:
        name = self._written.removeprefix(FROM_ENV)
        if name == self._written:
            return self._written
        address = self._env.get(name, "")
        if not address.startswith(("http://", "https://")):
            raise Unavailable(f"{name} does not contain an http or https address.")
        return address


def _post(address: str, body: dict[str, Any]) -> None:
    from urllib import request  # noqa: PLC0415  # only where there is a webhook

    class Stay(request.HTTPRedirectHandler):
        """Follows no redirect, as the notice is meant for this address alone."""

        def redirect_request(self, *_given: Any, **_more: Any) -> None:
            return None

    from fleet import __version__  # noqa: PLC0415  # likewise

    headers = {"Content-Type": "application/json", "User-Agent": f"fleet/{__version__}"}
    sent = request.Request(  # noqa: S310  # http or https: the settings take nothing else
        address, json.dumps(body).encode(), headers, method="POST"
    )
    with request.build_opener(Stay).open(sent, timeout=SEND_SECONDS):
        pass


def _why(error: Exception | None) -> str:
    from urllib.error import HTTPError, URLError  # noqa: PLC0415  # likewise

    match error:
        case None:
            return ""
        case HTTPError():
            error.close()
            moved = (
                " (it points elsewhere, which is not followed)" if error.code // 100 == 3 else ""
            )
            return f"answered {error.code}{moved}"
        case URLError():
            return getattr(error.reason, "strerror", None) or str(error.reason)
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _host(address: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415  # likewise

    return urlsplit(address).hostname or "the address"


CHANNELS: dict[str, Callable[[Any, Mapping[str, str]], Notifier]] = {
    # by setting under `notify`; each is called with the setting's value and the environment
    "desktop": lambda _on, env: Desktop(env),
    "webhook": Webhook,
}


class NumberFile:
    """One number in a file, written completely or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        try:
            return int(self._path.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, number: int | None) -> None:
        if number is None:
            self._path.unlink(missing_ok=True)
        else:
            write_atomically(self._path, f"{number}\n")
