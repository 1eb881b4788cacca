"""GitHub, and GitHub Enterprise Server, by REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import merging
from fleet.adapters.forges.github_paths import GitHubPaths, ticket_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.forges.pull import PullSeen
    from fleet.ports import Ticket

NOT_NOW = frozenset({403, 405, 422})  # not mergeable, checks are missing, a rule forbids it
PAGE = 100


def headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }


class GitHub(GitHubPaths):
    comments_in_page = PAGE

    def find(self, branch: str, base: str) -> PullSeen | None:
        head = f"{self._owner}:{branch}"
        query = {"state": "all", "sort": "created", "direction": "desc", "per_page": 1}
        rows = self._rest.get(f"{self._repo}/pulls", head=head, base=base, **query)
        return self._seen(rows[0]) if rows else None

    def merge(self, number: int, head: str, how: str) -> None:
        body = {"sha": head, "merge_method": how}
        with merging(NOT_NOW):
            self._rest.send("PUT", f"{self._repo}/pulls/{number}/merge", body)

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        where = f"repo:{self._repo.removeprefix('/repos/')} is:issue is:open {query}"
        page = self._rest.get("/search/issues", q=where, per_page=min(limit, PAGE))
        return [ticket_of(row) for row in page["items"]]

    def _is_merged(self, row: Any) -> bool:
        return bool(row.get("merged_at"))


Client = GitHub  # by this name `fleet.adapters.forges.forges` finds it
