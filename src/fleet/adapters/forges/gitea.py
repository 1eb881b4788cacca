"""Gitea and Forgejo (Codeberg) by REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import CONTEXT, MOST_STATUS, has_mark, marked, merging, reading
from fleet.adapters.forges.github import ticket_of
from fleet.adapters.forges.rest import GONE, escaped, status_of
from fleet.domain.errors import Refused
from fleet.domain.forges.pull import PullSeen, PullState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest
    from fleet.domain.forges.pull import Draft, GateNote
    from fleet.ports import Ticket

PAGE = 50  # what a server allows unless its settings say otherwise
PAGES = 4  # of pull requests that are looked through for a branch
ALL = 1 << 30  # comments come in one page
NOT_NOW = frozenset({403, 405, 423})


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"token {token}"}


class Gitea:
    """`path`: owner and name of the repository."""

    def __init__(self, rest: Rest, path: str) -> None:
        self._rest = rest
        owner, _, repo = path.partition("/")
        self._repo = f"/repos/{escaped(owner)}/{escaped(repo)}"
        self._pulls = f"{self._repo}/pulls"
        self.name = f"{rest.host}/{path}"

    def find(self, branch: str, base: str) -> PullSeen | None:
        """The list cannot be asked for a branch, and the other path knows only the oldest of several."""
        for page in range(1, PAGES + 1):
            rows = self._rest.get(self._pulls, state="all", limit=PAGE, page=page)
            for seen in map(self._seen, rows):
                if (seen.branch, seen.base) == (branch, base):
                    return seen
            if not rows:
                return None
        try:
            return self._seen(self._rest.get(f"{self._pulls}/{escaped(base)}/{escaped(branch)}"))
        except Refused as error:
            if status_of(error) == GONE:
                return None
            raise

    def open(self, draft: Draft) -> PullSeen:
        body = {"title": draft.title, "body": draft.body, "head": draft.branch, "base": draft.base}
        return self._seen(self._rest.send("POST", self._pulls, body))

    def update(self, number: int, draft: Draft) -> None:
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

        def notes(_page: int) -> Sequence[str]:
            return [str(row["body"]) for row in self._rest.get(path)]

        if not has_mark(notes, mark, ALL):
            self._rest.send("POST", path, {"body": marked(text, mark)})

    def merge(self, number: int, head: str, how: str) -> None:
        body = {"do": how, "head_commit_id": head}
        with merging(NOT_NOW):
            self._rest.send("POST", f"{self._pulls}/{number}/merge", body)

    def close(self, number: int) -> None:
        self._rest.send("PATCH", f"{self._pulls}/{number}", {"state": "closed"})

    def ticket(self, number: int) -> Ticket:
        return ticket_of(self._rest.get(f"{self._repo}/issues/{number}"))

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        labels = [w.removeprefix("label:") for w in query.split() if w.startswith("label:")]
        words = [word for word in query.split() if not word.startswith("label:")]
        more = {"labels": ",".join(labels)} if labels else {}
        more |= {"q": " ".join(words)} if words else {}
        size = min(limit, PAGE)
        rows = self._rest.get(
            f"{self._repo}/issues", state="open", type="issues", limit=size, **more
        )
        return [ticket_of(row) for row in rows]

    def _seen(self, row: Any) -> PullSeen:
        with reading(self.name):
            merged = bool(row["merged"])
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
