"""Linear and Jira, on stand-ins that answer in the shapes of their documentation.

Linear: https://linear.app/developers/graphql. Jira: the REST API version 2 of Jira Cloud.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleet.adapters.forges.forges import HostForges
from fleet.domain.errors import BadInput, NotFound, Refused


class Tracker:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str, object, str]] = []
        self.comments: list[str] = []
        tracker = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def serve(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                auth = self.headers.get("Authorization", "")
                tracker.requests.append((self.command, self.path, body, auth))
                data = json.dumps(tracker.answer(self.command, self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = serve  # noqa: N815  # the server's own names

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method, path, body):
        if path == "/graphql":
            return self.linear(body)
        if path.endswith("/comment") and method == "POST":
            self.comments.append(body["body"])
            return {"id": "10000", "body": body["body"]}
        if "/comment" in path:
            return {"startAt": 0, "total": 1, "comments": [{"body": t} for t in self.comments]}
        row = {
            "key": "ENG-3",
            "fields": {
                "summary": "Wrong prices", "description": "All.", "labels": ["fleet"],
                "reporter": {"displayName": "Mallory"},
                "status": {"name": "To Do", "statusCategory": {"key": "new"}},
            },
        }  # fmt: skip
        return {"issues": [row], "total": 1} if "/search" in path else row

    def linear(self, body):
        row = {
            "id": "uuid-3", "identifier": "ENG-3", "url": f"http://{self.host}/shop/issue/ENG-3/prices",
            "title": "Wrong prices", "description": "All.", "state": {"type": "unstarted"},
            "creator": {"name": "Mallory"}, "labels": {"nodes": [{"name": "fleet"}]},
        }  # fmt: skip
        query, variables = body["query"], body["variables"]
        if "commentCreate" in query:
            self.comments.append(variables["c"]["body"])
            return {"data": {"commentCreate": {"success": True}}}
        if "issues(" in query:
            return {"data": {"issues": {"nodes": [row]}}}
        if variables["id"] != "ENG-3":
            return {"errors": [{"message": "Entity not found: Issue"}], "data": None}
        nodes = [{"body": text} for text in self.comments]
        return {"data": {"issue": row | {"comments": {"nodes": nodes}}}}


@pytest.fixture
def tracker():
    made = Tracker()
    yield made
    made.server.shutdown()
    made.server.server_close()


def tickets(tracker, kind: str, token: str):
    env = {"FLEET_LINEAR_TOKEN": token, "FLEET_JIRA_TOKEN": token, "PATH": "/usr/bin:/bin"}
    return HostForges(env, lambda: [f"{tracker.host}={kind}"]).tickets


URLS = {"linear": "http://{}/shop/issue/eng-3/wrong-prices", "jira": "http://{}/browse/ENG-3"}


@pytest.mark.parametrize("kind", URLS)
def test_a_ticket_is_read_searched_for_and_commented_on_once(tracker, kind):
    source = tickets(tracker, kind, "lin_api_x")
    url = URLS[kind].format(tracker.host)
    ticket = source.read(url)
    assert (ticket.name, ticket.title, ticket.text) == ("ENG-3", "Wrong prices", "All.")
    assert (ticket.author, ticket.labels, ticket.is_open) == ("Mallory", ("fleet",), True)
    assert [t.name for t in source.search(f"{kind}:label:fleet prices", "", "", 5)] == ["ENG-3"]
    for _ in range(2):
        source.comment(ticket.url, "t-1 is done.", "t-1 done")
    assert [text.partition("\n")[0] for text in tracker.comments] == ["t-1 is done."]


def test_linear_is_sent_a_personal_key_as_it_is_and_what_it_refuses_is_said(tracker):
    with pytest.raises(Refused, match="Entity not found"):
        tickets(tracker, "linear", "lin_api_x").read(f"http://{tracker.host}/shop/issue/ENG-9")
    assert tracker.requests[-1][3] == "lin_api_x"


def test_jira_cloud_is_sent_a_name_and_a_token(tracker):
    tickets(tracker, "jira", "ada@example.com:t0ken").read(f"http://{tracker.host}/browse/ENG-3")
    sent = b64encode(b"ada@example.com:t0ken").decode()
    assert tracker.requests[-1][3] == f"Basic {sent}"


@pytest.mark.parametrize("path", ["../user", "a/b/../../../orgs", "a/%2E%2E/%2e%2e/user"])
def test_an_address_that_leads_out_of_its_repository_is_no_ticket(tracker, path):
    """Its owner's token would ask for something else there."""
    with pytest.raises((BadInput, NotFound), match="not the address of a ticket"):
        tickets(tracker, "github", "x").read(f"http://{tracker.host}/{path}/issues/1")


def test_an_address_of_another_shape_is_no_ticket(tracker):
    with pytest.raises(BadInput):
        tickets(tracker, "jira", "x").read(f"http://{tracker.host}/projects/ENG")
    assert tracker.requests == []
