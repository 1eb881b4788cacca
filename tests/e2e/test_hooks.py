"""`POST /hooks/{forge}`: a labelled ticket becomes a task, and nothing else does."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.forges.fake_forge import TOKEN, FakeForge, Issue
from tests.wait import until

SECRET = "hook-s3cret"
GITEA_SECRET = "of-an0ther-forge"


@pytest.fixture
def forge(tmp_path):
    made = FakeForge("github", tmp_path / "forge")
    made.issues += [Issue(1, "Wrong prices", "write a.txt x", labels=("fleet",))]
    yield made
    made.close()


@pytest.fixture
def served(tmp_path, forge):
    scratch = Scratch(tmp_path)
    env = {
        "FLEET_FORGE_HOSTS": f"{forge.host}=github",
        "FLEET_FORGE_TOKEN": TOKEN,
        "FLEET_HOOK_GITHUB": SECRET,
        "FLEET_HOOK_GITEA": GITEA_SECRET,
        "FLEET_HOOKS_SECRETS": '["github=os.environ/FLEET_HOOK_GITHUB", "gitea=os.environ/FLEET_HOOK_GITEA"]',
        "FLEET_HOOKS_PEOPLE": "ada",
    }
    made = Served(scratch, env=env)
    yield made
    made.close()


def event(forge, who: str = "ada", label: str = "fleet", at: float | None = None) -> bytes:
    when = datetime.fromtimestamp(at or time.time(), UTC).isoformat().replace("+00:00", "Z")
    issue = {"html_url": forge.web("issues", 1), "updated_at": when}
    body = {"action": "labeled", "issue": issue, "label": {"name": label}, "sender": {"login": who}}
    return json.dumps(body).encode()


def send(served, body: bytes, secret: str = SECRET, forge: str = "github", delivery: str = "1"):
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Hub-Signature-256": f"sha256={digest}",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": delivery,
    }
    return served.ask("POST", f"/hooks/{forge}", body, headers=headers)


def tasks(served) -> list[str]:
    return [row["id"] for row in served.scratch.data("tasks", "--all")]


def test_a_labelled_ticket_becomes_a_task_once_however_often_it_is_sent(served, forge):
    body = event(forge)
    status, said = send(served, body)
    assert (status, said["data"]) == (200, {"task": "t-1"})
    until(lambda: forge.comments.get(1))  # it ran, and the ticket heard so
    assert send(served, body, delivery="2")[1]["data"] == {"task": "t-1"}
    assert tasks(served) == ["t-1"]
    assert "github:ada" in served.scratch("show", "t-1")


def test_what_is_not_signed_not_fresh_or_not_allowed_is_refused_and_written_down(served, forge):
    refused = {
        "bad_signature": send(served, event(forge), secret="guess"),
        "not_allowed": send(served, event(forge, who="mallory")),
        "stale_hook": send(served, event(forge, at=time.time() - 14 * 3600)),
    }
    assert {said["code"]: status for status, said in refused.values()} == dict.fromkeys(
        refused, 403
    )
    assert send(served, event(forge), forge="gitlab")[0] == 404  # no secret was set for it
    assert send(served, event(forge, label="later"))[1]["data"] == {"task": ""}
    assert tasks(served) == []
    trail = json.dumps(served.scratch.data("audit"))
    assert all(code in trail for code in refused)


def test_one_forge_speaks_of_no_ticket_of_another(served, forge):
    """Its tickets are read with the server's own token, and its people have other names there."""
    issue = json.loads(event(forge))["issue"]
    labels = [{"name": "fleet"}]
    said = {
        "action": "label_updated",
        "issue": issue | {"labels": labels},
        "sender": {"login": "ada"},
    }
    body = json.dumps(said).encode()
    digest = hmac.new(GITEA_SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-Gitea-Signature": digest}
    status, reply = served.ask("POST", "/hooks/gitea", body, headers=headers)
    assert (status, reply["code"]) == (403, "other_forge")
    assert tasks(served) == []


def test_too_much_from_strangers_is_not_read(served, forge):
    assert send(served, b"x" * (600 << 10))[0] == 413
    late = [send(served, b"x" * (500 << 10), secret="guess")[0] for _ in range(40)]
    assert 429 in late
    assert tasks(served) == []


def test_a_lead_cannot_have_a_ticket_done_where_the_server_offers_nothing(served, forge):
    token = served.token("lea", "team-lead", "--team", "red")
    body = {"url": forge.web("issues", 1), "project": "/etc"}
    status, said = served.ask("POST", "/v1/ticket/add", body, token=token)
    assert (status, said["code"]) == (404, "no_such_place")
