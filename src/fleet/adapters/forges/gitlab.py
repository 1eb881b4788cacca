"""GitLab by REST: its merge requests are pull requests to us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import CONTEXT, MOST_STATUS, has_mark, marked, merging, reading
from fleet.adapters.forges.github import PAGE
from fleet.adapters.forges.rest import escaped
from fleet.domain.forges.pull import PullSeen, PullState
from fleet.domain.landing.landing import SQUASH
from fleet.ports import Ticket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest
    from fleet.domain.forges.pull import GateNote, PullDraft

NOT_NOW = frozenset({401, 405, 406, 422})
STATES = {"opened": PullState.OPEN, "locked": PullState.OPEN, "merged": PullState.MERGED}


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class GitLab:
    """`path`: of the project, with all its groups."""

    def __init__(self, rest: Rest, path: str) -> None:
        self._rest = rest
        self._project = f"/projects/{escaped(path)}"
        self._requests = f"{self._project}/merge_requests"
        self.name = f"{rest.host}/{path}"

    def find(self, branch: str, base: str) -> PullSeen | None:
        query = {"state": "all", "order_by": "created_at", "sort": "desc", "per_page": 1}
        rows = self._rest.get(self._requests, source_branch=branch, target_branch=base, **query)
        return self._seen(rows[0]) if rows else None

    def open(self, draft: PullDraft) -> PullSeen:
        body = {
            "title": draft.title,
            "description": draft.body,
            "source_branch": draft.branch,
            "target_branch": draft.base,
        }
        return self._seen(self._rest.send("POST", self._requests, body))

    def update(self, number: int, draft: PullDraft) -> None:
        body = {"title": draft.title, "description": draft.body}
        self._rest.send("PUT", f"{self._requests}/{number}", body)

    def show(self, number: int) -> PullSeen:
        return self._seen(self._rest.get(f"{self._requests}/{number}"))

    def report(self, commit: str, note: GateNote) -> None:
        body = {
            "state": "success" if note.passed else "failed",
            "name": CONTEXT,
            "description": note.text[:MOST_STATUS],
        }
        self._rest.send("POST", f"{self._project}/statuses/{escaped(commit)}", body)

    def comment(self, number: int, text: str, mark: str) -> None:
        self._note(f"{self._requests}/{number}/notes", text, mark)

    def comment_on_ticket(self, number: int, text: str, mark: str) -> None:
        self._note(f"{self._project}/issues/{number}/notes", text, mark)

    def _note(self, path: str, text: str, mark: str) -> None:
        def notes(page: int) -> Sequence[str]:
            return [str(row["body"]) for row in self._rest.get(path, per_page=PAGE, page=page)]

        if not has_mark(notes, mark, PAGE):
            self._rest.send("POST", path, {"body": marked(text, mark)})

    def merge(self, number: int, head: str, how: str) -> None:
        body = {"sha": head, "squash": how == SQUASH}
        with merging(NOT_NOW):
            self._rest.send("PUT", f"{self._requests}/{number}/merge", body)

    def close(self, number: int) -> None:
        self._rest.send("PUT", f"{self._requests}/{number}", {"state_event": "close"})

    def ticket(self, number: int) -> Ticket:
        return _ticket(self._rest.get(f"{self._project}/issues/{number}"))

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        labels = [word.removeprefix("label:") for word in query.split() if _is_label(word)]
        words = [word for word in query.split() if not _is_label(word)]
        more = {"labels": ",".join(labels)} if labels else {}
        more |= {"search": " ".join(words)} if words else {}
        path, size = f"{self._project}/issues", min(limit, PAGE)
        return [_ticket(row) for row in self._rest.get(path, state="opened", per_page=size, **more)]

    def _seen(self, row: Any) -> PullSeen:
        with reading(self.name):
            state = STATES.get(row["state"], PullState.CLOSED)
            commit = row.get("merge_commit_sha") or row.get("squash_commit_sha") or ""
            return PullSeen(
                number=int(row["iid"]),
                url=str(row["web_url"]),
                state=state,
                head=str(row["sha"]),
                branch=str(row["source_branch"]),
                base=str(row["target_branch"]),
                merged_as=str(commit) if state is PullState.MERGED else "",
                title=str(row["title"]),
                body=str(row.get("description") or ""),
            )


Client = GitLab  # by this name `fleet.adapters.forges.forges` finds it


def _is_label(word: str) -> bool:
    return word.startswith("label:")


def _ticket(row: Any) -> Ticket:
    return Ticket(
        url=str(row["web_url"]),
        name=f"#{row['iid']}",
        title=str(row["title"]),
        text=str(row.get("description") or ""),
        author=str((row.get("author") or {}).get("username") or "ghost"),
        labels=tuple(map(str, row["labels"])),
        is_open=row["state"] == "opened",
    )
