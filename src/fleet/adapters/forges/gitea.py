"""Gitea and Forgejo (Codeberg) by REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import merging
from fleet.adapters.forges.github_paths import GitHubPaths, ticket_of
from fleet.adapters.forges.rest import GONE, escaped, status_of
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.forges.pull import PullSeen
    from fleet.ports import Ticket

PAGE = 50  # what a server allows unless its settings say otherwise
PAGES = 4  # of pull requests that are looked through for a branch
ALL = 1 << 30  # comments come in one page
NOT_NOW = frozenset({403, 405, 423})


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"token {token}"}


class Gitea(GitHubPaths):
    comments_in_page = ALL

    def find(self, branch: str, base: str) -> PullSeen | None:
        """See `Forge.find`. It pages through the list, which cannot be filtered by branch.

        Gitea's path for one branch returns the oldest of several pull requests.
        """
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

    def merge(self, number: int, head: str, how: str) -> None:
        body = {"do": how, "head_commit_id": head}
        with merging(NOT_NOW):
            self._rest.send("POST", f"{self._pulls}/{number}/merge", body)

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

    def _comments(self, path: str, page: int) -> Any:  # noqa: ARG002  # all come at once
        return self._rest.get(path)

    def _is_merged(self, row: Any) -> bool:
        return bool(row["merged"])


Client = Gitea  # by this name `fleet.adapters.forges.forges` finds it
