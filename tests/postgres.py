"""A private PostgreSQL for tests: an ordinary user's cluster in a scratch folder, on a Unix socket."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]


@contextlib.contextmanager
def private_postgres(address: str = "", port: int = 5432) -> Iterator[str]:
    """The URL of a cluster that is gone afterwards. fsync is on, as in life.

    `address`: of this machine, at which others of its network reach it, too, with a password.
    """
    found = subprocess.run(
        [ROOT / "scripts" / "postgres"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise RuntimeError(found.stderr.strip())
    programs = Path(found.stdout.strip())
    folder = Path(tempfile.mkdtemp(prefix="fleet-pg-", dir="/tmp"))  # short: a socket's path is
    user = _ordinary_user(folder)

    def run(program: str, *args: str) -> None:
        argv = [*user, str(programs / program), *args]
        subprocess.run(
            argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder
        )

    data = str(folder / "data")
    try:
        run("initdb", "-D", data, "-U", "fleet", "--auth=trust", "--encoding=UTF8", "--no-sync")
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
        options = (
            f"-c listen_addresses='{address}' -c port={port} -c unix_socket_directories={folder}"
        )
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://fleet@/postgres?host={folder}{f'&port={port}' if address else ''}"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ordinary_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
