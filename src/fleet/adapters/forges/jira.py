"""Jira by REST: version 2, whose texts are plain."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from fleet.adapters.forges.common import has_mark, marked, reading
from fleet.adapters.forges.rest import escaped
from fleet.ports import Ticket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.rest import Rest

PAGE = 100
FIELDS = "summary,description,reporter,labels,status"


def headers(token: str) -> dict[str, str]:
    """Return the headers for `EMAIL:TOKEN` (Jira Cloud) or a personal access token (others)."""
    if ":" in token:
        return {"Authorization": f"Basic {b64encode(token.encode()).decode()}"}
    return {"Authorization": f"Bearer {token}"}


class Jira:
    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._site = rest.base

    def ticket(self, name: str) -> Ticket:
        row = self._rest.get(f"/rest/api/2/issue/{escaped(name)}", fields=FIELDS)
        with reading(self._rest.host):
            return self._ticket(row)

    def search(self, query: str, limit: int) -> Sequence[Ticket]:
        """Search by JQL; Jira Cloud has the newer path, self-hosted Jira only the older one."""
        cloud = self._rest.host.endswith(".atlassian.net")
        path = "/rest/api/2/search/jql" if cloud else "/rest/api/2/search"
        answer = self._rest.get(path, jql=query, maxResults=min(limit, PAGE), fields=FIELDS)
        with reading(self._rest.host):
            return [self._ticket(row) for row in answer["issues"]]

    def comment(self, name: str, text: str, mark: str) -> None:
        path = f"/rest/api/2/issue/{escaped(name)}/comment"

        def notes(page: int) -> Sequence[str]:
            rows = self._rest.get(path, startAt=(page - 1) * PAGE, maxResults=PAGE)
            return [str(row["body"]) for row in rows["comments"]]

        if not has_mark(notes, mark, PAGE):
            self._rest.send("POST", path, {"body": marked(text, mark)})

    def _ticket(self, row: Any) -> Ticket:
        fields = row["fields"]
        status = (fields.get("status") or {}).get("statusCategory") or {}
        return Ticket(
            url=f"{self._site}/browse/{row['key']}",
            name=str(row["key"]),
            title=str(fields["summary"]),
            text=str(fields.get("description") or ""),
            author=str((fields.get("reporter") or {}).get("displayName") or "a user"),
            labels=tuple(map(str, fields.get("labels") or ())),
            is_open=status.get("key") != "done",
        )


Client = Jira  # by this name `fleet.adapters.forges.forges` finds it
