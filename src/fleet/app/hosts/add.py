"""Make another machine take tasks from this one's queue; every step can be repeated."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.hosts.bundle import EXTRAS, TAG, make_bundle, tag
from fleet.adapters.hosts.database_role import drop_login, make_login
from fleet.adapters.hosts.shell import SshShell
from fleet.adapters.processes.run import Missing, run
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, Refused, Unavailable
from fleet.domain.findings import is_old
from fleet.domain.hosts.state import UP, state_of
from fleet.domain.task import Limits, Spec, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.app import App

TAILSCALE_SECONDS = 10.0
ROW_SECONDS = 60.0  # for its supervisor to write its row
TASK_SECONDS = 60.0  # for the first task to be done there
LEAST_DISK = 1 << 30  # bytes
SKEW = 2.0  # seconds by which its clock may differ before we mention it
OLDEST = {"python": "3.11", "git": "2.38", "tmux": "3.2"}
LOOK = """
for each in python3.14 python3.13 python3.12 python3.11 python3; do
  at=$(command -v "$each") || continue
  version=$("$at" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
  echo "python $version $at"
done
echo "git $(git --version 2>/dev/null | grep -o '[0-9][0-9.]*' | head -1)"
echo "tmux $(tmux -V 2>/dev/null | grep -o '[0-9][0-9.]*[a-z]*' | head -1)"
echo "disk $(df -Pk "$HOME" | awk 'NR==2 {print $4}')"
echo "clock $(date +%s)"
echo "user $HOME"
"""
UNPACK = """
set -e
root={root}
if [ ! -e "$root/complete" ]; then
  rm -rf "$root.new" && mkdir -p "${{root%/*}}"
  {python} -m venv --without-pip "$root.new"
  lib="$root.new/{lib}"
  gzip -d | tar -xf - -C "$lib"
  {more}
  printf '%s\\n' {start} > "$root.new/bin/fleet"
  chmod 755 "$root.new/bin/fleet"
  {python} -m compileall -q "$lib" >/dev/null 2>&1 || true
  rm -rf "$root" && mv "$root.new" "$root" && touch "$root/complete"
fi
"$root/bin/fleet" --version
"""
SETTLE = "from fleet.app.hosts.settle import main; main()"


class Step(NamedTuple):
    """`done`: false in a dry run."""

    name: str
    words: str
    done: bool = True


class There(NamedTuple):
    """What a machine has. `lib`: where packages are below an environment of its Python."""

    python: str
    lib: str
    home: str
    tag: str


class Addition:
    """`settings`: for the machine, beside the store. `home`: fleet's there; empty: as usual."""

    def __init__(
        self,
        app: App,
        shell: SshShell,
        *,
        store: str = "",
        home: str = "",
        labels: tuple[str, ...] = (),
        server: str = "",
    ) -> None:
        self._app, self._shell = app, shell
        self._store, self._home, self._labels, self._server = store, home, labels, server
        self.host = ""
        self._root = self._program = ""

    def steps(self, *, dry: bool) -> Iterator[Step]:
        if not self._app.shared:
            raise Refused(
                "Machines share a queue through PostgreSQL, and the store here is a file.",
                fix="Set store.url to a PostgreSQL database first: see `fleet help config`.",
                code="store_not_shared",
            )
        there, notes = self._look()
        yield Step("look", "; ".join(notes))
        bundle = make_bundle()
        same = there.tag == tag()
        self._root = f"{there.home}/.local/share/fleet/{bundle.name}"
        self._program = f"{self._root}/bin/fleet"
        size = f"{len(bundle.data) / 1e6:.0f} MB"
        yield Step("install", f"Fleet {bundle.name} in {self._root} ({size})", done=not dry)
        if dry:
            yield from self._rest()
            return
        self._install(there, bundle.data, same=same)
        login = self._login()
        yield Step("settings", login)
        yield Step("service", self._settled())
        yield Step("wait", f"{self.host} is awake after {self._wait():.0f} s")
        yield Step("task", self._try())

    def _rest(self) -> Iterator[Step]:
        yield Step("settings", "store.url with a database login of its own", done=False)
        yield Step(
            "service", "a systemd user unit, else a supervisor in the background", done=False
        )
        yield Step("wait", "until its row is in the store", done=False)
        yield Step("task", "a task that runs there", done=False)

    def _look(self) -> tuple[There, list[str]]:
        """Raise `Refused` when something is missing there that Fleet cannot do without."""
        began = time.time()
        done = self._shell(LOOK)
        known: dict[str, str] = {}
        pythons = []
        for line in done.out.splitlines():
            name, _, value = line.partition(" ")
            pythons += [value.split()] if name == "python" else []
            known[name] = value.strip()
        good = [each for each in pythons if not is_old(each[0], OLDEST["python"])]
        missing = [] if good else [f"Python {OLDEST['python']} or newer"]
        missing += [
            f"{name} {OLDEST[name]} or newer"
            for name in ("git", "tmux")
            if not known.get(name) or is_old(known[name], OLDEST[name])
        ]
        if missing:
            raise Refused(
                f"{self._shell.name} lacks {', '.join(missing)}.",
                fix="Install it there, then repeat this command.",
                code="host_lacks",
            )
        python = self._best(good)
        notes = [f"Python {python[0]}, git {known['git']}, tmux {known['tmux']}"]
        notes += _warnings(known, began, time.time())
        where = self._shell(f"{shlex.quote(python[1])} -c {shlex.quote(TAG)}").out.strip()
        lib = f"lib/python{'.'.join(python[0].split('.')[:2])}/site-packages"
        return There(python[1], lib, known["user"], where), notes

    def _best(self, pythons: list[list[str]]) -> list[str]:
        """The one that can run what is compiled here, else the newest."""
        own = f"{sys.version_info[0]}.{sys.version_info[1]}."
        return next((each for each in pythons if each[0].startswith(own)), pythons[0])

    def _install(self, there: There, data: bytes, *, same: bool) -> None:
        from fleet.adapters.hosts.bundle import START

        start = START.format(python=f"{self._root}/bin/python")
        script = UNPACK.format(
            root=shlex.quote(self._root),
            start=shlex.quote(start),
            python=shlex.quote(there.python),
            lib=there.lib,
            more="" if same else _from_index(there.python),
        )
        done = self._shell(script, stdin=data)
        if done.status:
            raise Unavailable(
                f"Fleet could not be installed on {self._shell.name}: {done.words}",
                fix="Fix that there, then repeat this command.",
                code="not_installed",
            )

    def _login(self) -> str:
        """The settings of the store for that machine, with a login of its own where that is possible."""
        record = self._record()
        if record.get("url"):
            self._store = record["url"]
            return f"store.url with the login {record.get('role') or 'of this machine'}"
        ours = self._store or self._app.loaded.settings.store.url
        login = make_login(ours, self._shell.name)
        self._store = login.url if login else ours
        self._note({"url": self._store, "role": login.role if login else ""})
        if login is None:
            return "store.url as here: the role of this machine may not create others"
        return f"store.url with the login {login.role}"

    def _settled(self) -> str:
        settings = {
            "store.url": self._store,
            "store.schema": self._app.loaded.settings.store.schema,
        }
        if self._labels:
            settings["host.labels"] = json.dumps(list(self._labels))
        if self._server:
            settings["host.server"] = self._server
        wish = {
            "token": self._token(),
            "settings": settings, "root": self._root, "program": self._program, "home": self._home,
        }  # fmt: skip
        answer = ask_there(self._shell, self._root, wish)
        self.host = answer["host"]
        self._note({"host": self.host, "root": self._root})
        if answer["service"] == "background":
            return "a supervisor in the background; after a reboot: fleet run start"
        return f"systemd runs {answer['service']}"

    def _token(self) -> str:
        """With which its supervisor connects to the server. It may do what its database login may."""
        from fleet.operations.catalogue import perform
        from fleet.operations.team.tokens import CreateToken

        if not self._server:
            return ""
        seconds = int(self._app.loaded.settings.server.token_days * 86400)
        name = re.sub(r"[^A-Za-z0-9_-]", "-", f"host-{self._shell.name}")[:50]
        return perform(self._app.context, CreateToken(name, "coordinator", "", seconds)).token

    def _wait(self) -> float:
        began = time.monotonic()
        while time.monotonic() - began < ROW_SECONDS:
            row = self._app.store.hosts().get(self.host)
            if row is not None and state_of(row, now=self._app.store.now()) in UP:
                return time.monotonic() - began
            self._app.store.wait(0.5)
        raise Unavailable(
            f"{self.host} has not written to the store within {ROW_SECONDS:.0f} s.",
            fix=f"Its log is on {self._shell.name}, in logs/supervisor.log of its home.",
            code="no_row",
        )

    def _try(self) -> str:
        """Run a task there that needs no project and no model."""
        from fleet.operations.catalogue import perform
        from fleet.operations.tasks.change import AddTask

        spec = Spec(coder="scripted", in_place=True, cwd="/", limits=Limits(needs=(self.host,)))
        wish = AddTask(f"Try {self.host}", "say It works.", "/", spec)
        task = perform(self._app.context, wish).id
        until = time.monotonic() + TASK_SECONDS
        while time.monotonic() < until:
            row = self._app.store.task(task)
            if row.state is TaskState.DONE:
                return f"{task} is done there"
            if row.state is TaskState.FAILED:
                break
            self._app.store.wait(0.5)
        raise Unavailable(
            f"{task}, which was to try {self.host}, is not done. {row.tally.why}".strip(),
            fix=f"`fleet show {task}` says more.",
            code="not_tried",
        )

    def _record(self) -> dict[str, Any]:
        return addition_of(self._app.home.path, self._shell.name)

    def _note(self, more: dict[str, Any]) -> None:
        file = _file(self._app.home.path, self._shell.name)
        self._app.home.ensure()
        file.parent.mkdir(mode=0o700, exist_ok=True)
        done = {"box": self._shell.name, "home": self._home, **self._record(), **more}
        write_atomically(file, json.dumps(done).encode(), mode=0o600)


def ask_there(shell: SshShell, root: str, wish: dict[str, Any]) -> dict[str, Any]:
    python = shlex.quote(f"{root}/bin/python")
    done = shell(f"{python} -c {shlex.quote(SETTLE)}", stdin=json.dumps(wish).encode())
    try:
        answer: dict[str, Any] = json.loads(done.out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Unavailable(f"{shell.name} answered: {done.words}", code="not_settled") from None
    if "error" in answer:
        raise Unavailable(f"{shell.name}: {answer['error']}", fix=answer["fix"], code="not_settled")
    return answer


def additions(home: Path) -> dict[str, dict[str, Any]]:
    """What `fleet host add` did from this home, by host."""
    known = {}
    for file in sorted((home / "hosts").glob("*.json")):
        with suppress(OSError, ValueError):
            done = json.loads(file.read_text("utf-8"))
            known[done.get("host") or done["box"]] = done
    return known


def undo_addition(app: App, shell: SshShell, done: dict[str, Any]) -> list[str]:
    """Undo on the machine and in the store what adding it did, and nothing else."""
    wish = {"undo": True, "home": done.get("home", "")}
    undone = ask_there(shell, done["root"], wish)["undone"]
    if done.get("role"):
        with suppress(FleetError):  # it can do nothing but what this machine can
            drop_login(app.loaded.settings.store.url, done["role"])
    _file(app.home.path, done["box"]).unlink(missing_ok=True)
    return list(undone)


def addition_of(home: Path, box: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        done: dict[str, Any] = json.loads(_file(home, box).read_text("utf-8"))
        return done
    return {}


def _file(home: Path, box: str) -> Path:
    return home / "hosts" / f"{box.replace('/', '_')}.json"


def _from_index(python: str) -> str:
    """Its Python cannot load what is compiled here: its own package index has the same for it."""
    from importlib import metadata

    from fleet.adapters.machine.installation import NAME

    wanted = []
    for line in metadata.requires(NAME) or ():
        what, _, marker = line.partition(";")
        if "extra" not in marker or any(f"'{e}'" in marker.replace('"', "'") for e in EXTRAS):
            wanted.append(shlex.quote(what.strip()))
    words = " ".join(wanted)
    ours = "find . -mindepth 1 -maxdepth 1 ! -name fleet ! -name 'agent_fleet*' -exec rm -rf {} +"
    install = f"{shlex.quote(python)} -m pip install -q --no-input --target . {words}"
    return f'(cd "$lib" && {ours} && {install})'


def _warnings(known: dict[str, str], before: float, after: float) -> Iterator[str]:
    free = int(known.get("disk") or 0) * 1024
    if free < LEAST_DISK:
        yield f"only {free / 1e9:.1f} GB are free there"
    clock = float(known.get("clock") or 0)
    skew = before - clock if clock < before else clock - after
    if skew > SKEW + 1:
        yield f"its clock is {skew:.0f} s off"


@contextmanager
def ssh_to(box: str, env: Mapping[str, str]) -> Iterator[SshShell]:
    shell = SshShell(box, env)
    try:
        yield shell
    finally:
        shell.close()


def tailnet(env: Mapping[str, str]) -> list[dict[str, Any]]:
    """The machines that `tailscale status --json` lists."""
    try:
        done = run(["tailscale", "status", "--json"], Path("/"), env=env, timeout=TAILSCALE_SECONDS)
    except Missing:
        fix = "Install Tailscale, or name a machine that ssh knows: fleet host add BOX"
        raise Unavailable("The program tailscale is not on PATH.", fix=fix) from None
    try:
        return peers_of(json.loads(done.out))
    except ValueError:
        raise Unavailable(f"tailscale status failed: {done.words}", fix="tailscale up") from None


def peers_of(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that are online first; without other people's shared machines."""
    peers = [
        {
            "name": str(peer.get("DNSName", "")).partition(".")[0] or peer.get("HostName", ""),
            "address": next(iter(peer.get("TailscaleIPs") or ()), ""),
            "system": str(peer.get("OS", "")),
            "online": bool(peer.get("Online")),
        }
        for peer in (status.get("Peer") or {}).values()
        if not peer.get("ShareeNode")
    ]
    return sorted(peers, key=lambda peer: (not peer["online"], peer["name"]))
