"""A server, and those who talk to it."""

from __future__ import annotations

import http.client
import json
import subprocess
import time

from test_server import Served

COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")


class Team:
    """Ann leads red, where Bob works; Eve leads blue."""

    def __init__(self, root) -> None:
        self.repo = root / "repo"
        self.repo.mkdir()
        for words in (("init", "-q", "-b", "main"), COMMIT):
            subprocess.run(["git", *words], cwd=self.repo, check=True)
        self.served = Served(root)
        self.tokens = {}
        for name, role, team in (
            ("root", "coordinator", "local"),
            ("ann", "team-lead", "red"),
            ("bob", "worker", "red"),
            ("eve", "team-lead", "blue"),
        ):
            self.join(name, role, team)

    def join(self, name: str, role: str, team: str) -> None:
        asked = {"name": name, "role": role, "team": team}
        if "root" in self.tokens:
            self.tokens[name] = self.ok("root", "POST", "/v1/token/create", asked)["data"]["token"]
        else:
            self.tokens[name] = self.served.token(name, "--role", role, "--team", team)

    def ask(self, who: str, method: str, path: str, body=None, **given):
        return self.served.ask(method, path, body, token=self.tokens[who], **given)

    def ok(self, who: str, method: str, path: str, body=None, **given):
        status, said = self.ask(who, method, path, body, **given)
        assert status == 200, (path, said)
        return said

    def asked(self, who: str, method: str, path: str):
        """With the headers of the reply."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=20)
        connection.request(method, path, headers={"Authorization": f"Bearer {self.tokens[who]}"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said, answer.headers

    def until(self, holds, limit: float = 20.0) -> None:
        end = time.monotonic() + limit
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.05)
