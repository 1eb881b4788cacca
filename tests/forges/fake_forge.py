"""A forge for tests: real pushes by `git http-backend`, and the REST of GitHub, GitLab or Gitea.

What it answers has the fields that the vendors' own descriptions require: for GitHub
`github_replies.json`, made from `@octokit/openapi`, and `tests/real/test_forge_descriptions.py` checks
every request and reply against that package; for Gitea and GitLab the shapes in `shapes.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.contract.checkouts import git

TOKEN = "s3cret-forge-token"
API = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
REPLIES = json.loads(Path(__file__).with_name("github_replies.json").read_text())
MERGED, OPEN, CLOSED = "merged", "open", "closed"
WHEN = "2026-01-01T00:00:00Z"


@dataclass
class Pull:
    number: int
    title: str
    body: str
    branch: str
    base: str
    state: str = OPEN
    head: str = ""
    merged_as: str = ""


@dataclass
class Issue:
    number: int
    title: str
    body: str
    author: str = "mallory"
    labels: tuple[str, ...] = ()
    state: str = OPEN


@dataclass
class Exchange:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    reply: Any
    headers: dict[str, str]


@dataclass
class FakeForge:
    """`kind`: github, gitlab or gitea. One repository, `shop/web`."""

    kind: str
    place: Path
    pulls: list[Pull] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    comments: dict[int, list[str]] = field(default_factory=dict)
    statuses: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    refusals: dict[str, tuple[int, dict[str, str], Any]] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)  # by pattern: called before the effect
    after: dict[str, Any] = field(default_factory=dict)  # and after it, before the answer
    not_mergeable: str = ""
    token: str = TOKEN

    def __post_init__(self) -> None:
        self.bare = self.place / "shop" / "web.git"
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"forge": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/shop/web.git"

    def adopt(self, repo: Path, remote: str = "origin") -> None:
        """Have this repository's commits, and be its remote."""
        git(repo.parent, "clone", "-q", "--bare", str(repo), str(self.bare))
        git(self.bare, "config", "http.receivepack", "true")
        git(repo, "remote", "add", remote, self.url)

    def tip(self, branch: str) -> str:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "-q", f"refs/heads/{branch}"],
            cwd=self.bare, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip()

    def head(self, pull: Pull) -> str:
        return pull.head if pull.state == MERGED else self.tip(pull.branch)

    def merge(self, number: int, how: str = "merge") -> str:
        """As a person does with the button there."""
        pull = self.pulls[number - 1]
        base, head = self.tip(pull.base), self.tip(pull.branch)
        tree = git(self.bare, "merge-tree", "--write-tree", base, head)
        parents = ["-p", base] if how == "squash" else ["-p", base, "-p", head]
        who = ("-c", "user.name=forge", "-c", "user.email=forge@example.com")
        commit = git(self.bare, *who, "commit-tree", tree, *parents, "-m", pull.title)
        git(self.bare, "update-ref", f"refs/heads/{pull.base}", commit, base)
        pull.state, pull.head, pull.merged_as = MERGED, head, commit
        return commit

    def called(self, method: str, pattern: str) -> list[Exchange]:
        return [e for e in self.exchanges if e.method == method and re.search(pattern, e.path)]

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        with self._lock:
            return _DIALECTS[self.kind](self, method, path, query, body)

    def web_of(self, pull: Pull) -> str:
        kinds = {"github": "pull", "gitlab": "-/merge_requests", "gitea": "pulls"}
        return self.web(kinds[self.kind], pull.number)

    def web(self, kind: str, number: int) -> str:
        return f"http://{self.host}/shop/web/{kind}/{number}"


def _first(table: dict[str, Any], line: str) -> Any:
    return next((value for pattern, value in table.items() if re.search(pattern, line)), None)


def _github(
    forge: FakeForge, method: str, path: str, query: dict[str, str], body: Any
) -> tuple[int, Any]:
    repo = "/repos/shop/web"
    match method, path.removeprefix(repo).split("/")[1:]:
        case "GET", ["pulls"]:
            _, _, branch = query["head"].partition(":")
            rows = [p for p in forge.pulls if (p.branch, p.base) == (branch, query["base"])]
            return 200, [_github_pull(forge, p, "pull-request-simple") for p in rows[::-1]][:1]
        case "POST", ["pulls"]:
            return _opened(
                forge, body["title"], body["body"], body["head"], body["base"], _github_pull
            )
        case "GET", ["pulls", number]:
            return 200, _github_pull(forge, forge.pulls[int(number) - 1])
        case "PATCH", ["pulls", number]:
            _changed(forge.pulls[int(number) - 1], body, "body")
            return 200, _github_pull(forge, forge.pulls[int(number) - 1])
        case "PUT", ["pulls", number, "merge"]:
            status, words = _merged(forge, int(number), body["sha"], body["merge_method"])
            if status != 200:
                return status, {"message": words, "documentation_url": "https://docs.example.com"}
            return 200, {
                "sha": words,
                "merged": True,
                "message": "Pull Request successfully merged",
            }
        case "POST", ["statuses", sha]:
            forge.statuses.setdefault(sha, []).append(body)
            return 201, deepcopy(REPLIES["status"]) | body
        case _, ["issues", *rest]:
            return _issue_answer(forge, method, rest, query, body, _github_issue, _github_comment)
    if method == "GET" and path == "/search/issues":
        found = [i for i in forge.issues if _wanted(i, query["q"])]
        items = [REPLIES["issue-search-result-item"] | _github_issue(forge, i) for i in found]
        return 200, {
            "total_count": len(items),
            "incomplete_results": False,
            "items": items,
            "search_type": "lexical",
        }
    return 404, {"message": "Not Found"}


def _wanted(issue: Issue, query: str) -> bool:
    words = [w for w in query.split() if not w.startswith(("repo:", "is:"))]
    labels = [w.removeprefix("label:") for w in words if w.startswith("label:")]
    plain = [w for w in words if not w.startswith("label:")]
    text = f"{issue.title} {issue.body}".lower()
    has = set(labels) <= set(issue.labels) and all(w.lower() in text for w in plain)
    return issue.state == OPEN and has


def _issue_answer(
    forge: FakeForge,
    method: str,
    rest: list[str],
    query: dict[str, str],
    body: Any,
    issue: Any,
    comment: Any,
) -> tuple[int, Any]:
    match method, rest:
        case "GET", [number]:
            return 200, issue(forge, forge.issues[int(number) - 1])
        case "GET", [number, _]:
            if int(query.get("page", "1")) > 1:
                return 200, []
            return 200, [comment(forge, text) for text in forge.comments.get(int(number), [])]
        case "POST", [number, _]:
            forge.comments.setdefault(int(number), []).append(body["body"])
            return 201, comment(forge, body["body"])
    return 404, {"message": "Not Found"}


def _opened(
    forge: FakeForge, title: str, body: str, branch: str, base: str, shown: Any
) -> tuple[int, Any]:
    open_already = [p for p in forge.pulls if (p.branch, p.base, p.state) == (branch, base, OPEN)]
    if open_already or not forge.tip(branch):
        words = "A pull request already exists" if open_already else "head is invalid"
        return {"github": 422, "gitlab": 409, "gitea": 409}[forge.kind], {"message": words}
    pull = Pull(len(forge.pulls) + 1, title, body, branch, base)
    forge.pulls.append(pull)
    return 201, shown(forge, pull)


def _changed(pull: Pull, body: dict[str, Any], text: str) -> None:
    pull.title = body.get("title", pull.title)
    pull.body = body.get(text, pull.body)
    if body.get("state") == CLOSED or body.get("state_event") == "close":
        pull.state = CLOSED


def _merged(forge: FakeForge, number: int, sha: str, how: str) -> tuple[int, str]:
    if forge.not_mergeable:
        return 405, forge.not_mergeable
    if forge.tip(forge.pulls[number - 1].branch) != sha:
        return 409, "Head branch was modified. Review and try the merge again."
    return 200, forge.merge(number, how)


def _github_pull(forge: FakeForge, pull: Pull, shape: str = "pull-request") -> Any:
    row = deepcopy(REPLIES[shape])
    row |= {
        "number": pull.number, "title": pull.title, "body": pull.body,
        "html_url": forge.web("pull", pull.number),
        "state": OPEN if pull.state == OPEN else CLOSED,
        "merged_at": WHEN if pull.state == MERGED else None,
        "merge_commit_sha": pull.merged_as or None,
    }  # fmt: skip
    if shape == "pull-request":
        row["merged"] = pull.state == MERGED
    row["head"] |= {"ref": pull.branch, "sha": forge.head(pull), "label": f"shop:{pull.branch}"}
    row["base"] |= {"ref": pull.base, "sha": forge.tip(pull.base), "label": f"shop:{pull.base}"}
    return row


def _github_issue(forge: FakeForge, issue: Issue) -> Any:
    user = deepcopy(REPLIES["pull-request"]["user"]) | {"login": issue.author}
    return deepcopy(REPLIES["issue"]) | {
        "number": issue.number, "title": issue.title, "body": issue.body, "state": issue.state,
        "html_url": forge.web("issues", issue.number), "user": user,
        "labels": [{"name": name} for name in issue.labels],
    }  # fmt: skip


def _github_comment(_forge: FakeForge, text: str) -> Any:
    return deepcopy(REPLIES["issue-comment"]) | {"body": text}


def _gitlab(
    forge: FakeForge, method: str, path: str, query: dict[str, str], body: Any
) -> tuple[int, Any]:
    if not path.startswith("/projects/shop%2Fweb/"):
        return 404, {"message": "404 Project Not Found"}
    match method, path.removeprefix("/projects/shop%2Fweb/").split("/"):
        case "GET", ["merge_requests"]:
            wanted = query["source_branch"], query["target_branch"]
            rows = [p for p in forge.pulls if (p.branch, p.base) == wanted]
            return 200, [_gitlab_pull(forge, p) for p in rows[::-1]][:1]
        case "POST", ["merge_requests"]:
            words = (
                body["title"],
                body["description"],
                body["source_branch"],
                body["target_branch"],
            )
            return _opened(forge, *words, _gitlab_pull)
        case "GET", ["merge_requests", number]:
            return 200, _gitlab_pull(forge, forge.pulls[int(number) - 1])
        case "PUT", ["merge_requests", number]:
            _changed(forge.pulls[int(number) - 1], body, "description")
            return 200, _gitlab_pull(forge, forge.pulls[int(number) - 1])
        case "PUT", ["merge_requests", number, "merge"]:
            how = "squash" if body["squash"] else "merge"
            status, words = _merged(forge, int(number), body["sha"], how)
            if status != 200:
                return status, {"message": words}
            return 200, _gitlab_pull(forge, forge.pulls[int(number) - 1])
        case "POST", ["statuses", sha]:
            forge.statuses.setdefault(sha, []).append(body)
            return 201, {"id": 1, "sha": sha, "status": body["state"], "name": body["name"]}
        case "GET", ["issues"]:
            q = " ".join(
                [
                    query.get("search", ""),
                    *(f"label:{x}" for x in query.get("labels", "").split(",") if x),
                ]
            )
            return 200, [_gitlab_issue(forge, i) for i in forge.issues if _wanted(i, q)]
        case _, ["issues" | "merge_requests", *rest] if rest:
            return _issue_answer(forge, method, rest, query, body, _gitlab_issue, _gitlab_note)
    return 404, {"message": "404 Not Found"}


def _gitlab_pull(forge: FakeForge, pull: Pull) -> Any:
    return {
        "id": 1000 + pull.number, "iid": pull.number, "project_id": 3, "title": pull.title,
        "description": pull.body, "web_url": forge.web("-/merge_requests", pull.number),
        "state": {OPEN: "opened"}.get(pull.state, pull.state), "sha": forge.head(pull),
        "source_branch": pull.branch, "target_branch": pull.base,
        "merge_commit_sha": pull.merged_as or None, "squash_commit_sha": None,
        "merged_at": WHEN if pull.state == MERGED else None, "labels": [], "draft": False,
        "created_at": WHEN, "updated_at": WHEN,
    }  # fmt: skip


def _gitlab_issue(forge: FakeForge, issue: Issue) -> Any:
    return {
        "id": 2000 + issue.number, "iid": issue.number, "project_id": 3, "title": issue.title,
        "description": issue.body, "state": "opened" if issue.state == OPEN else CLOSED,
        "web_url": forge.web("-/issues", issue.number), "labels": list(issue.labels),
        "author": {"id": 7, "username": issue.author, "name": issue.author, "state": "active"},
        "created_at": WHEN, "updated_at": WHEN,
    }  # fmt: skip


def _gitlab_note(_forge: FakeForge, text: str) -> Any:
    return {"id": 1, "body": text, "created_at": WHEN, "system": False}


def _gitea(
    forge: FakeForge, method: str, path: str, query: dict[str, str], body: Any
) -> tuple[int, Any]:
    match method, path.removeprefix("/repos/shop/web").split("/")[1:]:
        case "GET", ["pulls"]:
            first = (int(query["page"]) - 1) * int(query["limit"])
            rows = forge.pulls[::-1][first : first + int(query["limit"])]
            return 200, [_gitea_pull(forge, p) for p in rows]
        case "POST", ["pulls"]:
            return _opened(
                forge, body["title"], body["body"], body["head"], body["base"], _gitea_pull
            )
        case "GET", ["pulls", number]:
            return 200, _gitea_pull(forge, forge.pulls[int(number) - 1])
        case "PATCH", ["pulls", number]:
            _changed(forge.pulls[int(number) - 1], body, "body")
            return 201, _gitea_pull(forge, forge.pulls[int(number) - 1])
        case "POST", ["pulls", number, "merge"]:
            status, words = _merged(forge, int(number), body["head_commit_id"], body["do"])
            return status, None if status in {200, 405} else {"message": words, "url": ""}
        case "POST", ["statuses", sha]:
            forge.statuses.setdefault(sha, []).append(body)
            return 201, {"id": 1, "status": body["state"], "context": body["context"]}
        case "GET", ["issues"]:
            q = " ".join(
                [
                    query.get("q", ""),
                    *(f"label:{x}" for x in query.get("labels", "").split(",") if x),
                ]
            )
            return 200, [_gitea_issue(forge, i) for i in forge.issues if _wanted(i, q)]
        case _, ["issues", *rest] if rest:
            return _issue_answer(forge, method, rest, query, body, _gitea_issue, _gitea_comment)
    return 404, {"message": "The target couldn't be found.", "url": ""}


def _gitea_pull(forge: FakeForge, pull: Pull) -> Any:
    def branch(name: str, sha: str) -> Any:
        return {"label": name, "ref": name, "sha": sha, "repo_id": 1}

    return {
        "id": 3000 + pull.number, "number": pull.number, "title": pull.title, "body": pull.body,
        "html_url": forge.web("pulls", pull.number), "merged": pull.state == MERGED,
        "state": OPEN if pull.state == OPEN else CLOSED, "mergeable": True,
        "head": branch(pull.branch, forge.head(pull)),
        "base": branch(pull.base, forge.tip(pull.base)),
        "merge_commit_sha": pull.merged_as or None, "labels": [],
        "merged_at": WHEN if pull.state == MERGED else None, "created_at": WHEN, "updated_at": WHEN,
    }  # fmt: skip


def _gitea_issue(forge: FakeForge, issue: Issue) -> Any:
    return {
        "id": 4000 + issue.number, "number": issue.number, "title": issue.title,
        "body": issue.body, "state": issue.state, "html_url": forge.web("issues", issue.number),
        "user": {"id": 7, "login": issue.author}, "created_at": WHEN, "updated_at": WHEN,
        "labels": [{"id": 1, "name": name} for name in issue.labels],
    }  # fmt: skip


def _gitea_comment(_forge: FakeForge, text: str) -> Any:
    return {"id": 1, "body": text, "created_at": WHEN}


_DIALECTS = {"github": _github, "gitlab": _gitlab, "gitea": _gitea}


class _Handler(BaseHTTPRequestHandler):
    forge: FakeForge
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        data = self._read()
        api = API[self.forge.kind]
        if parts.netloc.startswith("api."):  # we are the proxy of a program that asks GitHub
            self._rest(parts.path, dict(parse_qsl(parts.query)), data)
        elif parts.path.startswith(f"{api}/"):
            self._rest(parts.path.removeprefix(api), dict(parse_qsl(parts.query)), data)
        else:
            self._git(parts.path, parts.query, data)

    do_GET = do_POST = do_PUT = do_PATCH = _serve  # noqa: N815  # the server's own names

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _rest(self, path: str, query: dict[str, str], data: bytes) -> None:
        forge, body = self.forge, json.loads(data) if data else None
        line = f"{self.command} {path}"
        if before := _first(forge.before, line):
            before()
        sent = self.headers.get("Authorization", "").rpartition(" ")[2]
        headers: dict[str, str] = {}
        if sent != forge.token:
            status, reply = 401, {"message": "Bad credentials"}
        elif refusal := _first(forge.refusals, line):
            status, headers, reply = refusal
        else:
            try:
                status, reply = forge.answer(self.command, path, query, body)
            except (IndexError, ValueError):
                status, reply = 404, {"message": "Not Found"}
            if after := _first(forge.after, line):
                after()
        got = {name: value for name, value in self.headers.items() if name != "Authorization"}
        forge.exchanges.append(Exchange(self.command, path, query, body, status, reply, got))
        text = b"" if reply is None else json.dumps(reply).encode()
        etag = f'"{sha256(text).hexdigest()[:16]}"'
        if self.command == "GET" and status == 200:
            headers = {"ETag": etag, **headers}
            if self.headers.get("If-None-Match") == etag:
                status, text = 304, b""
                forge.exchanges[-1].status = 304
        self._send(status, {"Content-Type": "application/json", **headers}, text)

    def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # the caller was killed

    def _git(self, path: str, query: str, data: bytes) -> None:
        env = os.environ | {
            "GIT_PROJECT_ROOT": str(self.forge.place), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": unquote(path), "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(data)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=data, capture_output=True, check=False
        )
        head, _, out = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(": ")[::2] for line in head.decode().split("\r\n") if line]
        headers = dict(fields)
        status = int(headers.pop("Status", "200").split()[0])
        if (
            "receive-pack" in path
            and self.command == "POST"
            and (after := _first(self.forge.after, "PUSH"))
        ):
            after()
        self._send(status, headers, out)
