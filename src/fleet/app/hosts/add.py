"""Make another machine take tasks from this one's queue; every step can be repeated."""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.adapters.hosts.bundle import EXTRAS, make_bundle, tag
from fleet.adapters.hosts.database_role import at_address, drop_login, role_for
from fleet.adapters.hosts.shell import SshShell
from fleet.adapters.processes.run import Missing, run
from fleet.app.hosts.logins import HostLogins
from fleet.app.hosts.look import HostTools, SetUpStep, look, try_host, wait_for_row
from fleet.base.files import write_atomically
from fleet.domain.errors import FleetError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.app.app import App

TAILSCALE_SECONDS = 10.0
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
        self._root = self._program = self._url = ""

    def steps(self, *, dry: bool) -> Iterator[SetUpStep]:
        HostLogins(self._app).check()
        tools, notes = look(self._shell)
        yield SetUpStep("look", "; ".join(notes))
        bundle = make_bundle()
        same = tools.tag == tag()
        self._root = f"{tools.home}/.local/share/fleet/{bundle.name}"
        self._program = f"{self._root}/bin/fleet"
        size = f"{len(bundle.data) / 1e6:.0f} MB"
        yield SetUpStep("install", f"Fleet {bundle.name} in {self._root} ({size})", done=not dry)
        if dry:
            yield from self._rest()
            return
        self._install(tools, bundle.data, same=same)
        login = self._login()
        yield SetUpStep("settings", login)
        yield SetUpStep("service", self._settled())
        seconds = wait_for_row(self._app, self.host, self._shell.name)
        yield SetUpStep("wait", f"{self.host} is awake after {seconds:.0f} s")
        yield SetUpStep("task", try_host(self._app, self.host))

    def _rest(self) -> Iterator[SetUpStep]:
        yield SetUpStep("settings", "store.url with a database login of its own", done=False)
        yield SetUpStep(
            "service", "a systemd user unit, else a supervisor in the background", done=False
        )
        yield SetUpStep("wait", "until its row is in the store", done=False)
        yield SetUpStep("task", "a task that runs there", done=False)

    def _install(self, tools: HostTools, data: bytes, *, same: bool) -> None:
        from fleet.adapters.hosts.bundle import START

        start = START.format(python=f"{self._root}/bin/python")
        script = UNPACK.format(
            root=shlex.quote(self._root),
            start=shlex.quote(start),
            python=shlex.quote(tools.python),
            lib=tools.lib,
            more="" if same else _from_index(tools.python),
        )
        done = self._shell(script, stdin=data)
        if done.status:
            raise Unavailable(
                f"Fleet could not be installed on {self._shell.name}: {done.words}",
                fix="Fix that there, then repeat this command.",
                code="not_installed",
            )

    def _login(self) -> str:
        """The store for that machine, with a login of its own where that is possible."""
        record = self._record()
        url, role = record.get("url", ""), record.get("role", "")
        if urlsplit(self._store).username:  # somebody made it a login
            url = self._store
        elif url:
            url = at_address(url, self._store)
        else:
            name = role_for(self._shell.name)
            made = HostLogins(self._app).make(name, self._store)
            url, role = made.url, name if made.own else ""
        self._url = url
        self._note({"url": url, "role": role})
        if urlsplit(self._store).username:
            return "store.url as given"
        if not role:
            return "store.url as here: the role of this machine may not create others"
        return f"store.url with the login {role}"

    def _settled(self) -> str:
        settings = {
            "store.url": self._url,
            "store.schema": self._app.loaded.settings.store.schema,
        }
        labels = self._all_labels()
        settings["host.labels"] = json.dumps(labels)
        if self._server:
            settings["host.server"] = self._server
        wish = {
            "token": self._token(),
            "settings": settings, "root": self._root, "program": self._program, "home": self._home,
        }  # fmt: skip
        answer = ask_there(self._shell, self._root, wish)
        self.host = answer["host"]
        self._note({"host": self.host, "root": self._root, "labels": labels})
        if answer["service"] == "background":
            return "a supervisor in the background; after a reboot: fleet run start"
        return f"systemd runs {answer['service']}"

    def _all_labels(self) -> list[str]:
        """The host's labels, with the name by which it was added: often the machine has another one."""
        known = self._labels or self._record().get("labels", ())
        return [*dict.fromkeys([*known, self._shell.name.rpartition("@")[2]])]

    def _token(self) -> str:
        """The token for its supervisor; empty when the one that it has is good."""
        if not self._server:
            return ""
        known = ask_there(self._shell, self._root, {"who": True, "home": self._home})
        return host_token(self._app, known["host"], known["token"])

    def _record(self) -> dict[str, Any]:
        return addition_of(self._app.home.path, self._shell.name)

    def _note(self, more: dict[str, Any]) -> None:
        file = _file(self._app.home.path, self._shell.name)
        self._app.home.ensure()
        file.parent.mkdir(mode=0o700, exist_ok=True)
        done = {"box": self._shell.name, "home": self._home, **self._record(), **more}
        write_atomically(file, json.dumps(done).encode(), mode=0o600)


def host_token(app: App, host: str, known: str) -> str:
    """A token for a host. The running server signs it, if only it has the key."""
    from fleet.app.server_address import signer_of
    from fleet.operations.catalogue import find, perform
    from fleet.operations.compute.joining import CreateHostToken, HostToken

    wish = CreateHostToken(host, known)
    signer = signer_of(app)
    if signer is None:
        return perform(app.context, wish).token
    made: HostToken = signer.call(find(CreateHostToken).name, wish, HostToken)
    return made.token


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
    """The shell command that installs from the host's own package index what was compiled for our Python."""
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
    """The peers, those that are online first, without other people's shared machines."""
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
