"""GitHub, and GitHub Enterprise Server, by REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import CONTEXT, MOST_STATUS, has_mark, marked, merging, reading
from fleet.adapters.forges.rest import escaped
from fleet.domain.forges.pull import PullSeen, PullState
from fleet.ports import Ticket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest
    from fleet.domain.forges.pull import Draft, GateNote

NOT_NOW = frozenset({403, 405, 422})  # not mergeable, checks are missing, a rule forbids it
PAGE = 100


def headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }


class GitHub:
    """`path`: owner and name of the repository."""

    def __init__(self, rest: Rest, path: str) -> None:
        self._rest = rest
        self._owner, _, repo = path.partition("/")
        self._repo = f"/repos/{escaped(self._owner)}/{escaped(repo)}"
        self.name = f"{rest.host.removeprefix('api.')}/{path}"

    def find(self, branch: str, base: str) -> PullSeen | None:
        head = f"{self._owner}:{branch}"
        query = {"state": "all", "sort": "created", "direction": "desc", "per_page": 1}
        rows = self._rest.get(f"{self._repo}/pulls", head=head, base=base, **query)
        return self._seen(rows[0]) if rows else None

    def open(self, draft: Draft) -> PullSeen:
        body = {"title": draft.title, "body": draft.body, "head": draft.branch, "base": draft.base}
        return self._seen(self._rest.send("POST", f"{self._repo}/pulls", body))

    def update(self, number: int, draft: Draft) -> None:
        body = {"title": draft.title, "body": draft.body}
        self._rest.send("PATCH", f"{self._repo}/pulls/{number}", body)

    def show(self, number: int) -> PullSeen:
        return self._seen(self._rest.get(f"{self._repo}/pulls/{number}"))

    def report(self, commit: str, note: GateNote) -> None:
        state = "success" if note.passed else "failure"
        body = {"state": state, "context": CONTEXT, "description": note.text[:MOST_STATUS]}
        self._rest.send("POST", f"{self._repo}/statuses/{escaped(commit)}", body)

    def comment(self, number: int, text: str, mark: str) -> None:
        path = f"{self._repo}/issues/{number}/comments"

        def notes(page: int) -> Sequence[str]:
            rows = self._rest.get(path, per_page=PAGE, page=page)
            return [str(row.get("body") or "") for row in rows]

        if not has_mark(notes, mark, PAGE):
            self._rest.send("POST", path, {"body": marked(text, mark)})

    def merge(self, number: int, head: str, how: str) -> None:
        body = {"sha": head, "merge_method": how}
        with merging(NOT_NOW):
            self._rest.send("PUT", f"{self._repo}/pulls/{number}/merge", body)

    def close(self, number: int) -> None:
        self._rest.send("PATCH", f"{self._repo}/pulls/{number}", {"state": "closed"})

    def ticket(self, number: int) -> Ticket:
        return ticket_of(self._rest.get(f"{self._repo}/issues/{number}"))

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        where = f"repo:{self._repo.removeprefix('/repos/')} is:issue is:open {query}"
        page = self._rest.get("/search/issues", q=where, per_page=min(limit, PAGE))
        return [ticket_of(row) for row in page["items"]]

    def _seen(self, row: Any) -> PullSeen:
        with reading(self.name):
            merged = bool(row.get("merged_at"))
            state = PullState.MERGED if merged else PullState(row["state"])
            return PullSeen(
                number=int(row["number"]),
                url=str(row["html_url"]),
                state=state,
                head=str(row["head"]["sha"]),
                branch=str(row["head"]["ref"]),
                base=str(row["base"]["ref"]),
                merged_as=str(row.get("merge_commit_sha") or "") if merged else "",
                title=str(row["title"]),
                body=str(row.get("body") or ""),
            )


def ticket_of(row: Any) -> Ticket:
    return Ticket(
        url=str(row["html_url"]),
        name=f"#{row['number']}",
        title=str(row["title"]),
        text=str(row.get("body") or ""),
        author=str((row.get("user") or {}).get("login") or "ghost"),
        labels=tuple(
            str(label["name"] if isinstance(label, dict) else label) for label in row["labels"]
        ),
        is_open=row["state"] == "open",
    )
