"""A real sshd on loopback, with keys of its own, in which the user has another home."""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path

from tests.free_ports import free_ports
from tests.wait import until

CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {root}/host_key
AuthorizedKeysFile {root}/user_key.pub
PidFile {root}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
PermitUserEnvironment no
SetEnv HOME={home} PATH={path}
"""
CLIENT = """\
Host box
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {root}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {root}/known_hosts
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""
SSHD = "/usr/sbin/sshd"


class Sshd:
    """`ssh -F FILE box` reaches it. `home`: the directory of its user.

    `under`: a command that starts it, such as one in another network namespace.
    """

    def __init__(
        self, root: Path, path: str, *, address: str = "127.0.0.1", under: tuple[str, ...] = ()
    ) -> None:
        self.root, self.home = root, root / "home"
        self.home.mkdir(parents=True)
        for name in ("host_key", "user_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True
            )
        port = free_ports()
        Path("/run/sshd").mkdir(exist_ok=True)
        (root / "sshd_config").write_text(
            CONFIG.format(port=port, root=root, home=self.home, path=path, address=address)
        )
        user = getpass.getuser()
        (root / "config").write_text(
            CLIENT.format(port=port, root=root, user=user, address=address)
        )
        self.ssh = f"ssh -F {root}/config"
        with (root / "sshd.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*under, SSHD, "-D", "-e", "-f", str(root / "sshd_config")], stderr=log
            )
        until(self._answers, why=(root / "sshd.log").read_text)

    def _answers(self) -> bool:
        return self.run("true").returncode == 0

    def run(self, script: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self.ssh.split(), "box", script], capture_output=True, text=True, check=False,
            env=dict(os.environ),
        )  # fmt: skip

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
