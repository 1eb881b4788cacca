"""What we send to GitHub, and what our stand-in answers, is what GitHub describes (`@octokit/openapi`)."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from openapi_schema_validator import OAS30Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4

from fleet.adapters.forges.github import GitHub
from fleet.adapters.forges.rest import Rest
from fleet.domain.errors import Conflict, Refused
from fleet.domain.forges.pull import GateNote, PullDraft
from tests.contract.checkouts import commit, git, make_repo
from tests.forges.fake_forge import TOKEN, FakeForge, Issue

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real
URN = "urn:github"


@cache
def description():
    ran = subprocess.run([ROOT / "scripts" / "forges"], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"npm cannot install the description: {ran.stderr[-200:]}")
    folder = Path(ran.stdout.strip()) / "node_modules/@octokit/openapi/generated"
    return json.loads((folder / "api.github.com.json").read_text())


def resolved(node):
    while "$ref" in node:
        path, node = node["$ref"].removeprefix("#/").split("/"), description()
        for part in path:
            node = node[part]
    return node


def problems(schema, value) -> list[str]:
    registry = Registry().with_resource(URN, DRAFT4.create_resource(description()))
    absolute = json.loads(json.dumps(schema).replace('"#/', f'"{URN}#/'))
    checker = OAS30Validator(absolute, registry=registry)
    return [f"{e.json_path}: {e.message[:200]}" for e in checker.iter_errors(value)]


def operation_of(method: str, path: str):
    for template, operations in description()["paths"].items():
        pattern = re.sub(r"\\{[^}]+\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in operations:
            return operations[method.lower()]
    raise AssertionError(f"GitHub has no {method} {path}")


def check(exchange) -> None:
    operation = operation_of(exchange.method, exchange.path)
    known = {resolved(p)["name"] for p in operation["parameters"] if resolved(p)["in"] == "query"}
    assert set(exchange.query) <= known, exchange.path
    if exchange.body is not None:
        schema = resolved(operation["requestBody"]["content"]["application/json"]["schema"])
        assert set(exchange.body) <= set(schema["properties"]), exchange.path
        assert problems(schema, exchange.body) == [], exchange.path
    assert str(exchange.status) in operation["responses"], (exchange.path, exchange.status)
    reply = resolved(operation["responses"][str(exchange.status)])
    if exchange.status in {200, 201}:
        schema = reply["content"]["application/json"]["schema"]
        assert problems(schema, exchange.reply) == [], exchange.path


@pytest.fixture
def forge(tmp_path):
    made = FakeForge("github", tmp_path / "forge")
    repo = make_repo(tmp_path / "shop")
    made.adopt(repo)
    git(repo, "checkout", "-q", "-b", "fleet/t-1")
    made.work = commit(repo, "work", **{"a.txt": "x\n"})
    git(repo, "push", "-q", "origin", "fleet/t-1")
    made.issues.append(Issue(1, "Wrong prices", "All.", labels=("fleet",)))
    yield made
    made.close()


def test_every_request_and_reply_is_as_github_describes_it(forge):
    rest = Rest(f"http://{forge.host}/api/v3", lambda: {"Authorization": f"Bearer {TOKEN}"})
    github = GitHub(rest, "shop/web")
    draft = PullDraft("Prices", "All of them.", "fleet/t-1", "main")
    assert github.find("fleet/t-1", "main") is None
    number = github.open(draft).number
    with pytest.raises(Refused):
        github.open(draft)
    github.update(number, draft._replace(title="Prices!"))
    assert github.find("fleet/t-1", "main").title == "Prices!"
    github.report(forge.work, GateNote(passed=True, text="Passes."))
    github.comment(number, "Look.", "t-1 look")
    with pytest.raises(Conflict):
        github.merge(number, "0" * 40, "merge")
    github.merge(number, forge.work, "squash")
    assert github.show(number).state == "merged"
    github.ticket(1)
    assert len(github.search("label:fleet prices", 5)) == 1
    github.close(number)
    kinds = {(e.method, re.sub(r"[0-9a-f]{40}|\d+", "N", e.path)) for e in forge.exchanges}
    assert len(kinds) == 10
    for exchange in forge.exchanges:
        check(exchange)
