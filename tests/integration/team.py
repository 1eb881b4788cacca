"""A server, and those who talk to it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from functools import cache

import msgspec

from fleet.server.claude_fleet.described import described
from tests.integration.test_server import Served
from tests.wait import LIMIT

COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")


@cache
def _described():
    """Those without a parameter first: `/mail/x/unread` is no `/mail/{handle}`."""
    known = [(d.method, _pattern(d.path), d.reply) for d in described()]
    return sorted(known, key=lambda one: one[1].count("+"))


def _pattern(path: str) -> str:
    return re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+:path\}", ".+", path))


def described_reply(method: str, path: str):
    plain = path.partition("?")[0]
    return next((r for m, p, r in _described() if m == method and re.fullmatch(p, plain)), None)


class Team:
    """Ann leads red, where Bob works; Eve leads blue."""

    kind = Served

    def __init__(self, root) -> None:
        self.repo = root / "repo"
        self.repo.mkdir()
        for words in (("init", "-q", "-b", "main"), COMMIT):
            subprocess.run(["git", *words], cwd=self.repo, check=True)
        self.served = self.kind(root)
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
        assert status in {200, 201}, (path, said)
        if kind := described_reply(method, path):
            msgspec.convert(said, kind)  # it is as `/openapi.json` says
        return said

    def asked(self, who: str, method: str, path: str):
        """With the headers of the reply."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=LIMIT)
        connection.request(method, path, headers={"Authorization": f"Bearer {self.tokens[who]}"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said, answer.headers
