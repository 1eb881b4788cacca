"""What joining a queue does on the machine that joins, and how that is undone.

`fleet host add` runs this there over ssh; `fleet host join` runs it where it is typed. A record of
what was done is beside it, so that undoing touches nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64decode
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.base.files import write_atomically
from fleet.config import home as home_of
from fleet.config.commands.init import ensure_home
from fleet.config.commands.set import UNSET, Change, SettingFiles, apply, parsed, stated_in
from fleet.config.keys import table
from fleet.config.keys.lookup import resolve
from fleet.domain.errors import FleetError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = "joined.json"
TOKEN = "server.token"  # noqa: S105  # nosec B105  # the name of a file in the home
START_SECONDS = 60.0
UNIT = """\
# Written by `fleet host add` or `fleet host join`; `fleet host forget` or `leave` removes it.
[Unit]
Description=Fleet supervisor
After=network-online.target

[Service]
Environment=FLEET_HOME={home}
ExecStart={program} run foreground
KillMode=process
OOMPolicy=continue
Restart=always
RestartSec=5

[Install]
WantedBy=default.target
"""


def main() -> None:
    """JSON on standard input and output; an error is one, too."""
    wish = json.load(sys.stdin)
    if wish.get("home"):
        os.environ["FLEET_HOME"] = wish["home"]
    try:
        answer: dict[str, Any] = _carry_out(wish)
    except FleetError as error:
        answer = {"error": error.message, "fix": error.fix}
    os.write(1, f"{json.dumps(answer)}\n".encode())


def _carry_out(wish: dict[str, Any]) -> dict[str, Any]:
    if wish.get("who"):
        return who()
    return undo() if wish.get("undo") else settle(wish)


def who() -> dict[str, Any]:
    """This host, and the id of the token that it has for the server; empty: none."""
    from fleet.adapters.home.home import Home  # as late as it is needed

    home = home_of(os.environ)
    ensure_home(home)
    return {"host": Home(home).host_id(), "token": token_id(home)}


def token_id(home: Path) -> str:
    """What its claims say: the server checks its signature."""
    with suppress(OSError, ValueError, KeyError, IndexError):
        claims = (home / TOKEN).read_text("utf-8").split(".")[1]
        return str(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["jti"])
    return ""


def settle(wish: dict[str, Any]) -> dict[str, Any]:
    """`settings`: what to set. `program`: the fleet to start. `root`: its folder, if it was sent.

    `start`: false where the person starts it.
    """
    home = home_of(os.environ)
    ensure_home(home)
    before = record_of(home)
    fresh = wish["settings"].keys() - before.get("settings", {}).keys()
    former = _stated(home, fresh) | before.get("former", {})
    changed = _set(home, wish["settings"]) or before.get("root") != wish["root"]
    done = {
        **before,
        "root": wish["root"],
        "roots": sorted({*before.get("roots", ()), wish["root"]} - {""}),
        "program": wish["program"],
        "settings": {**before.get("settings", {}), **wish["settings"]},
        "former": former,
        "ours": before.get("ours", {}) | _stated(home, wish["settings"]),
        "link": _link(wish) or before.get("link", ""),
    }
    if wish.get("token"):
        write_atomically(home / TOKEN, wish["token"].encode(), mode=0o600)
    _write(home, done)  # before the service: what fails then can still be undone
    service = before.get("unit", "")
    if wish.get("start", True):
        service = _start(home, wish["program"], restart=changed)
    _write(home, {**done, "unit": service})
    from fleet.adapters.home.home import Home  # as late as it is needed

    return {"host": Home(home).host_id(), "home": str(home), "service": service or "background"}


def undo() -> dict[str, Any]:
    home = home_of(os.environ)
    done = record_of(home)
    if not done:
        return {"undone": []}
    _stop(done)
    put_back = _put_back(home, done)
    roots = {*done.get("roots", ()), done["root"]} - {""}
    link = Path(done.get("link") or "/nowhere")
    if link.is_symlink() and any(Path(root) in link.readlink().parents for root in roots):
        link.unlink()
    for root in roots:
        shutil.rmtree(root, ignore_errors=True)
    for name in (TOKEN, RECORD):
        (home / name).unlink(missing_ok=True)
    return {"undone": [*put_back, *filter(None, (done.get("link"), done["root"]))]}


def _put_back(home: Path, done: dict[str, Any]) -> list[str]:
    """Give each setting that is still ours the value that it had before; return their names."""
    stated = _stated(home, done["settings"])
    ours = done.get("ours", stated)  # an older release recorded none
    names = [name for name in stated if stated[name] == ours.get(name)]
    before = [(*resolve(name), *done.get("former", {}).get(name, ())) for name in names]
    changes = [Change(key, path, *(value or (UNSET,))) for key, path, *value in before]
    context = SettingFiles(Path("/"), home, os.environ)
    apply(changes, file=context.file(table.USER), layer=table.USER, context=context)
    return names


def _stated(home: Path, names: Iterable[str]) -> dict[str, list[Any]]:
    """What the user's file says about each of these, alone in a list; nothing about the others."""
    file = SettingFiles(Path("/"), home, os.environ).file(table.USER)
    known = {name: [*stated_in(file, name)] for name in names}
    return {name: value for name, value in known.items() if value}


def record_of(home: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        read: dict[str, Any] = json.loads((home / RECORD).read_text("utf-8"))
        return read
    return {}


def _write(home: Path, done: dict[str, Any]) -> None:
    write_atomically(home / RECORD, json.dumps(done).encode(), mode=0o600)


def _set(home: Path, settings: dict[str, str]) -> bool:
    """Whether that changed anything. The file has the store's password, so it is the user's alone."""
    context = SettingFiles(Path("/"), home, os.environ)
    file = context.file(table.USER)
    before = file.read_bytes() if file.exists() else b""
    if before:
        file.chmod(0o600)  # before the password is in it
    changes = [parsed(f"{name}={value}") for name, value in settings.items()]
    apply(changes, file=file, layer=table.USER, context=context)
    return file.read_bytes() != before


def _link(wish: dict[str, Any]) -> str:
    """`fleet` on the user's PATH, unless there is one that is not ours."""
    if not wish["root"]:
        return ""
    link, ours = Path.home() / ".local/bin/fleet", str(Path(wish["root"]).parent)
    if link.exists() and not str(link.resolve()).startswith(ours):
        return ""
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(wish["program"])
    return str(link)


def _start(home: Path, program: str, *, restart: bool) -> str:
    """The unit of systemd that runs the supervisor; empty: it runs in the background."""
    if _run("systemctl", "--user", "show-environment").returncode == 0:
        unit = Path.home() / ".config/systemd/user/fleet.service"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(UNIT.format(home=home, program=program), "utf-8")
        _run("loginctl", "enable-linger")
        _run("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "fleet")
        _must("systemctl", "--user", "restart" if restart else "start", "fleet")
        return str(unit)
    if restart:
        _run(program, "run", "stop")
    _must(program, "run", "start")
    return ""


def _stop(done: dict[str, Any]) -> None:
    if unit := done.get("unit"):
        _run("systemctl", "--user", "disable", "--now", "fleet")
        Path(unit).unlink(missing_ok=True)
        _run("systemctl", "--user", "daemon-reload")
    else:
        _run(done["program"], "run", "stop")


def _must(*argv: str) -> None:
    done = _run(*argv)
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-500:]
        raise Unavailable(f"`{' '.join(argv[-2:])}` failed there: {words}", code="no_start")


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=START_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 127, "", str(error))
