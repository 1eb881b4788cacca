"""A server whose log is kept, and strangers who do not speak HTTP as they should."""

from __future__ import annotations

import json
import re
import socket
import subprocess

from tests.integration.team import Team
from tests.integration.test_server import FLEET, Served
from tests.wait import LIMIT, until

HOST = b"Host: 127.0.0.1\r\n"


class Logged(Served):
    """What it says goes to a file: there must be no traceback in it at the end."""

    def start(self) -> None:
        self.log = self.cwd / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [FLEET, "serve", "--port", "0", "--no-run"],
                cwd=self.cwd,
                env=self.env,
                stdout=log,
                stderr=log,
            )
        port = until(lambda: re.search(r":(\d+)\. ", self.log.read_text()), why=self.log.read_text)
        self.port = int(port[1])

    def end(self, number: int = 15) -> None:
        self.process.send_signal(number)
        self.process.wait(LIMIT)
        assert "Traceback" not in self.log.read_text(), self.log.read_text()


class HostileTeam(Team):
    kind = Logged


class Answer:
    """What came back over the wire: the last of the answers, if there were several."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        head, _, body = data[data.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.decode().split("\r\n")[1:])
        }
        self.body = body

    def must_be_a_problem(self) -> dict:
        assert 400 <= self.status < 500, self.data[:2000]
        assert self.headers["content-type"] in {"application/problem+json", "application/json"}, (
            self.data[:2000]
        )
        said = json.loads(self.body)
        assert said["status"] == self.status
        assert re.fullmatch("[a-z_]+", said["code"])
        assert said["fix"]
        assert "Traceback" not in said["detail"]
        return said


def over_the_wire(port: int, *parts: bytes, limit: float = 20.0) -> bytes:
    """All that comes back until the other side has ended it, or is done answering."""
    with socket.create_connection(("127.0.0.1", port), timeout=limit) as line:
        try:
            for part in parts:
                line.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while we spoke: the answer is there all the same
        return heard(line)


def heard(line: socket.socket) -> bytes:
    found = b""
    while True:
        try:
            more = line.recv(1 << 16)
        except ConnectionResetError:
            return found
        if not more:
            return found
        found += more


def request(method: str, path: str, *headers: str, body: bytes = b"", token: str = "") -> bytes:
    """One that asks for the connection to be closed after it."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
