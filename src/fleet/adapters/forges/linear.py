"""Linear, by its GraphQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import has_mark, marked, reading
from fleet.domain.errors import NotFound, Refused
from fleet.ports import Ticket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest

FIELDS = """
  id identifier url title description
  state { type } creator { name } labels { nodes { name } }
"""
OVER = frozenset({"completed", "canceled"})
MOST_COMMENTS = 250


def headers(token: str) -> dict[str, str]:
    """Return the headers: a personal key is sent as it is, an OAuth token as a bearer token."""
    return {"Authorization": token if token.startswith("lin_api_") else f"Bearer {token}"}


class Linear:
    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def ticket(self, name: str) -> Ticket:
        return _ticket(self._issue(name))

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        """Search by words of the title, and by `label:NAME`."""
        labels = [word.removeprefix("label:") for word in query.split() if _is_label(word)]
        words = " ".join(word for word in query.split() if not _is_label(word))
        never = {"null": True}
        wanted: dict[str, Any] = {"completedAt": never, "canceledAt": never}
        if words:
            wanted["title"] = {"containsIgnoreCase": words}
        if labels:
            wanted["labels"] = {"some": {"name": {"in": labels}}}
        asks = f"query($f: IssueFilter, $n: Int) {{ issues(filter: $f, first: $n) {{ nodes {{ {FIELDS} }} }} }}"
        data = self._ask(asks, {"f": wanted, "n": limit})
        with reading(self._rest.host):
            return [_ticket(row) for row in data["issues"]["nodes"]]

    def comment(self, name: str, text: str, mark: str) -> None:
        asks = (
            "query($id: String!, $n: Int) { issue(id: $id) {"
            " id comments(first: $n) { nodes { body } } } }"
        )
        issue = self._ask(asks, {"id": name, "n": MOST_COMMENTS})["issue"]
        with reading(self._rest.host):
            notes = [str(row["body"]) for row in issue["comments"]["nodes"]]
        if has_mark(lambda _page: notes, mark, MOST_COMMENTS + 1):
            return
        change = "mutation($c: CommentCreateInput!) { commentCreate(input: $c) { success } }"
        self._ask(change, {"c": {"issueId": issue["id"], "body": marked(text, mark)}})

    def _issue(self, name: str) -> Any:
        asks = f"query($id: String!) {{ issue(id: $id) {{ {FIELDS} }} }}"
        issue = self._ask(asks, {"id": name})["issue"]
        if issue is None:
            raise NotFound(f"Linear has no issue {name[:40]}.")
        return issue

    def _ask(self, query: str, variables: dict[str, Any]) -> Any:
        answer = self._rest.send("POST", "/graphql", {"query": query, "variables": variables})
        with reading(self._rest.host):
            if errors := answer.get("errors"):
                words = " ".join(str(error.get("message", "")) for error in errors)[:300]
                raise Refused(f"Linear refused the request: {words}", code="forge_refused")
            return answer["data"]


Client = Linear  # by this name `fleet.adapters.forges.forges` finds it


def _is_label(word: str) -> bool:
    return word.startswith("label:")


def _ticket(row: Any) -> Ticket:
    return Ticket(
        url=str(row["url"]),
        name=str(row["identifier"]),
        title=str(row["title"]),
        text=str(row.get("description") or ""),
        author=str((row.get("creator") or {}).get("name") or "a user"),
        labels=tuple(str(label["name"]) for label in (row.get("labels") or {}).get("nodes", ())),
        is_open=(row.get("state") or {}).get("type") not in OVER,
    )
