"""The requests and replies of Gitea and GitLab that we use, with the fields that they document.

Gitea: its own `templates/swagger/v1-swagger.generated.json` of August 2026. GitLab: the pages *Merge
requests*, *Commits*, *Issues* and *Notes* of its REST API documentation. By method and path: the fields
that a body or a query may have, and the type of each field of the reply that we read.
"""

from __future__ import annotations

import re

INT, STR, BOOL, LIST, DICT = int, str, bool, list, dict
MAYBE = (str, type(None))
BRANCH = {"label": STR, "ref": STR, "sha": STR}
GITEA_PULL = {
    "number": INT, "html_url": STR, "state": STR, "merged": BOOL, "title": STR, "body": STR,
    "merge_commit_sha": MAYBE, "head": BRANCH, "base": BRANCH,
}  # fmt: skip
GITEA_ISSUE = {
    "number": INT, "html_url": STR, "state": STR, "title": STR, "body": STR, "labels": LIST,
    "user": {"login": STR},
}  # fmt: skip
GITLAB_PULL = {
    "iid": INT, "web_url": STR, "state": STR, "sha": STR, "title": STR, "description": STR,
    "source_branch": STR, "target_branch": STR, "merge_commit_sha": MAYBE, "squash_commit_sha": MAYBE,
}  # fmt: skip
GITLAB_ISSUE = {
    "iid": INT, "web_url": STR, "state": STR, "title": STR, "description": STR, "labels": LIST,
    "author": {"username": STR},
}  # fmt: skip
EDIT = "title body state base"
SHAPES = {
    "gitea": {
        "GET /repos/o/r/pulls": ("base_branch state sort milestone labels poster page limit", [GITEA_PULL]),
        "POST /repos/o/r/pulls": ("title body head base labels assignees", GITEA_PULL),
        "GET /repos/o/r/pulls/N": ("", GITEA_PULL),
        "PATCH /repos/o/r/pulls/N": (EDIT, GITEA_PULL),
        "POST /repos/o/r/pulls/N/merge": ("do head_commit_id delete_branch_after_merge", None),
        "POST /repos/o/r/statuses/N": ("context description state target_url", {"status": STR}),
        "GET /repos/o/r/issues": ("state labels q type page limit", [GITEA_ISSUE]),
        "GET /repos/o/r/issues/N": ("", GITEA_ISSUE),
        "GET /repos/o/r/issues/N/comments": ("since before", [{"body": STR}]),
        "POST /repos/o/r/issues/N/comments": ("body updated_at", {"body": STR}),
    },
    "gitlab": {
        "GET /projects/P/merge_requests": (
            "state order_by sort source_branch target_branch per_page page", [GITLAB_PULL]),
        "POST /projects/P/merge_requests": (
            "title description source_branch target_branch squash labels", GITLAB_PULL),
        "GET /projects/P/merge_requests/N": ("", GITLAB_PULL),
        "PUT /projects/P/merge_requests/N": ("title description state_event target_branch", GITLAB_PULL),
        "PUT /projects/P/merge_requests/N/merge": ("sha squash merge_commit_message", GITLAB_PULL),
        "POST /projects/P/statuses/N": ("state name ref description target_url", {"status": STR}),
        "GET /projects/P/issues": ("state labels search per_page page", [GITLAB_ISSUE]),
        "GET /projects/P/issues/N": ("", GITLAB_ISSUE),
        "GET /projects/P/issues/N/notes": ("sort order_by per_page page", [{"body": STR}]),
        "POST /projects/P/issues/N/notes": ("body", {"body": STR}),
        "GET /projects/P/merge_requests/N/notes": ("sort order_by per_page page", [{"body": STR}]),
        "POST /projects/P/merge_requests/N/notes": ("body", {"body": STR}),
    },
}  # fmt: skip


def name_of(exchange) -> str:
    path = exchange.path.replace("/repos/shop/web", "/repos/o/r")
    path = path.replace("/projects/shop%2Fweb", "/projects/P")
    return f"{exchange.method} {re.sub(r'/([0-9a-f]{40}|[0-9]+)(?=/|$)', '/N', path)}"


def check(kind: str, exchange) -> None:
    """Raise `AssertionError` where it is not as documented."""
    fields, reply = SHAPES[kind][name_of(exchange)]
    sent = {*exchange.query, *(exchange.body or {})}
    assert sent <= set(fields.split()), (name_of(exchange), sent)
    if exchange.status in {200, 201} and reply is not None:
        _fits(exchange.reply, reply, name_of(exchange))


def _fits(value, shape, where: str) -> None:
    if isinstance(shape, list):
        for each in value:
            _fits(each, shape[0], where)
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            _fits(value[name], inner, f"{where} {name}")
    else:
        assert isinstance(value, shape), (where, value)
