"""What GitHub and Gitea have in common: Gitea has taken over most of GitHub's paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import CONTEXT, MOST_STATUS, has_mark, marked, reading
from fleet.adapters.forges.rest import escaped
from fleet.domain.forges.pull import PullSeen, PullState
from fleet.ports import Ticket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest
    from fleet.domain.forges.pull import GateNote, PullDraft


class GitHubPaths:
    """`path`: owner and name of the repository."""

    comments_in_page: int

    def __init__(self, rest: Rest, path: str) -> None:
        self._rest = rest
        self._owner, _, repo = path.partition("/")
        self._repo = f"/repos/{escaped(self._owner)}/{escaped(repo)}"
        self._pulls = f"{self._repo}/pulls"
        self.name = f"{rest.host.removeprefix('api.')}/{path}"

    def open(self, draft: PullDraft) -> PullSeen:
        body = {"title": draft.title, "body": draft.body, "head": draft.branch, "base": draft.base}
        return self._seen(self._rest.send("POST", self._pulls, body))

    def update(self, number: int, draft: PullDraft) -> None:
        body = {"title": draft.title, "body": draft.body}
        self._rest.send("PATCH", f"{self._pulls}/{number}", body)

    def show(self, number: int) -> PullSeen:
        return self._seen(self._rest.get(f"{self._pulls}/{number}"))

    def report(self, commit: str, note: GateNote) -> None:
        state = "success" if note.passed else "failure"
        body = {"state": state, "context": CONTEXT, "description": note.text[:MOST_STATUS]}
        self._rest.send("POST", f"{self._repo}/statuses/{escaped(commit)}", body)

    def comment(self, number: int, text: str, mark: str) -> None:
        path = f"{self._repo}/issues/{number}/comments"

        def notes(page: int) -> Sequence[str]:
            return [str(row.get("body") or "") for row in self._comments(path, page)]

        if not has_mark(notes, mark, self.comments_in_page):
            self._rest.send("POST", path, {"body": marked(text, mark)})

    comment_on_ticket = comment  # a pull request is an issue, too

    def _comments(self, path: str, page: int) -> Any:
        return self._rest.get(path, per_page=self.comments_in_page, page=page)

    def close(self, number: int) -> None:
        self._rest.send("PATCH", f"{self._pulls}/{number}", {"state": "closed"})

    def ticket(self, number: int) -> Ticket:
        return ticket_of(self._rest.get(f"{self._repo}/issues/{number}"))

    def _is_merged(self, row: Any) -> bool:
        raise NotImplementedError

    def _seen(self, row: Any) -> PullSeen:
        with reading(self.name):
            merged = self._is_merged(row)
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
