"""A PostgreSQL with a standby that can take its place, and lines to it that can be cut."""

from __future__ import annotations

import selectors
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from tests.postgres import ROOT, _ordinary_user

SOCKET = ".s.PGSQL.5432"
BLOCK = 65536


class Cluster:
    """A primary, and a standby that has every commit before the primary says that it is done."""

    def __init__(self) -> None:
        ran = subprocess.run(
            [ROOT / "scripts" / "postgres"], capture_output=True, text=True, check=True
        )
        self._programs = Path(ran.stdout.strip())
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-pg-", dir="/tmp"))
        self._user = _ordinary_user(self.folder)
        self.primary = self._data("one")
        self._run("initdb", "-D", str(self.primary), "-U", "fleet", "--auth=trust", "--no-sync")
        self._start(self.primary)
        standby = self._data("two")
        self._run(
            "pg_basebackup", "-h", str(self.primary.parent), "-U", "fleet", "-R", "-D", str(standby)
        )
        self._start(standby)
        self.standby: Path | None = standby
        self.restart()  # from now on it waits for the standby

    def _data(self, name: str) -> Path:
        place = self.folder / name
        self._run("sh", "-c", f"mkdir -p {place}", own=True)
        return place / "data"

    def _run(self, program: str, *args: str, own: bool = False) -> None:
        argv = [*self._user, program if own else str(self._programs / program), *args]
        subprocess.run(
            argv, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def _start(self, data: Path, *more: str) -> None:
        sockets = f"-c listen_addresses='' -c unix_socket_directories={data.parent}"
        options = " ".join([sockets, "-c max_connections=200", *more])
        log = str(data.parent / "log")
        self._run("pg_ctl", "-D", str(data), "-w", "-l", log, "-o", options, "start")

    def _stop(self, data: Path, how: str) -> None:
        self._run("pg_ctl", "-D", str(data), "-w", "-m", how, "stop")

    @property
    def socket(self) -> Path:
        return self.primary.parent / SOCKET

    @property
    def url(self) -> str:
        return f"postgresql://fleet@/postgres?host={self.primary.parent}"

    def restart(self, away: float = 0) -> None:
        self._stop(self.primary, "fast")
        time.sleep(away)
        self._start(self.primary, *(["-c synchronous_standby_names=*"] if self.standby else []))

    def promote(self) -> None:
        """The primary dies at once, and the standby takes its place."""
        assert self.standby is not None
        self._stop(self.primary, "immediate")
        self.primary, self.standby = self.standby, None
        self._run("pg_ctl", "-D", str(self.primary), "-w", "promote")

    def close(self) -> None:
        for data in filter(None, (self.standby, self.primary)):
            self._stop(data, "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


class Line:
    """A machine's own way to the primary: a socket in a folder of its own. Cut, it is silent."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        folder.mkdir(parents=True)
        self.url = f"postgresql://fleet@/postgres?host={folder}"
        self._cluster = cluster
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(here,), daemon=True).start()

    def _forward(self, here: socket.socket) -> None:
        self._whole.wait()
        with here, socket.socket(socket.AF_UNIX) as there:
            try:
                there.connect(str(self._cluster.socket))
                self._pump(here, there)
            except OSError:
                return  # the other end is gone, so this one is

    def _pump(self, here: socket.socket, there: socket.socket) -> None:
        ends = {here: there, there: here}
        with selectors.DefaultSelector() as ready:
            for end in ends:
                ready.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    self._whole.wait()
                    end = key.fileobj
                    assert isinstance(end, socket.socket)
                    if not (data := end.recv(BLOCK)):
                        return
                    ends[end].sendall(data)
