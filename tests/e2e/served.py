"""`fleet serve` over a scratch home, and what one asks it over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess

from tests.e2e.scratch import FLEET, Scratch
from tests.wait import LIMIT, until


class Served:
    def __init__(self, scratch: Scratch, *words: str, env=None, under=()) -> None:
        """`under`: a command that starts it, such as `nice`."""
        self.scratch, self.words, self.under = scratch, words, under
        self.env = scratch.env | (env or {})
        self.log = scratch.root / "server.log"
        self.start()

    def start(self) -> None:
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*self.under, FLEET, "serve", "--port", "0", *self.words],
                cwd=self.scratch.repo,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(lambda: re.search(r":\d+\. ", self.said()), "the server to come up")
        self.port = int(re.search(r":(\d+)\. ", self.said())[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def said(self) -> str:
        return self.log.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT)

    def token(self, name: str = "ann", role: str = "coordinator", *words: str) -> str:
        said = self.scratch("token", "create", name, "--role", role, *words)
        return re.search(r"^export FLEET_TOKEN=(\S+)$", said, re.MULTILINE)[1]

    def raw(self, method: str, path: str, body=None, *, token: str = "", headers=None):
        """The status, the headers and the text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        said = {"Authorization": f"Bearer {token}"} if token else {}
        text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, text, said | (headers or {}))
        answer = connection.getresponse()
        data = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, data

    def ask(self, method: str, path: str, body=None, **given):
        """The status and the document."""
        status, _, data = self.raw(method, path, body, **given)
        return status, json.loads(data) if data else None

    def close(self) -> None:
        """Nothing of it is left, agents included."""
        for task in self.scratch.data("tasks", "--status", "running"):
            self.scratch.type("cancel", task["id"])  # it may just have ended
        if self.process.poll() is None:
            self.end()
