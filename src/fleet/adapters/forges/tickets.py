"""Tickets: the issues of forges, of Linear and of Jira, by their addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fleet.adapters.forges.addresses import LOOPBACK, Address
from fleet.adapters.forges.gitlab import GitLab
from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.forges import AnyForge, HostForges
    from fleet.adapters.forges.jira import Jira
    from fleet.adapters.forges.linear import Linear
    from fleet.ports import Ticket

ON_FORGE = re.compile(r"/(?P<path>.+?)(?:/-)?/(?:issues|work_items)/(?P<number>\d{1,9})/?")
ON_LINEAR = re.compile(r"(?:/[^/]+)?/issue/(?P<name>[A-Za-z0-9]+-\d{1,9})(?:/[^/]*)?/?")
ON_JIRA = re.compile(r"/browse/(?P<name>[A-Za-z][A-Za-z0-9_]*-\d{1,9})/?")
LINEAR, JIRA = "linear", "jira"
FIX = "Give the address of an issue on GitHub, GitLab, Gitea, Forgejo, Linear or Jira."


class Where(NamedTuple):
    """`kind`: of the tracker; `name`: of the ticket there; `path`: of its repository."""

    kind: str
    address: Address
    name: str


class HostTickets:
    def __init__(self, forges: HostForges) -> None:
        self._forges = forges

    def read(self, url: str) -> Ticket:
        where = self._parse(url)
        if where.kind in {LINEAR, JIRA}:
            return self._tracker(where).ticket(where.name)
        return self._forges.at(where.address).ticket(int(where.name))

    def search(self, query: str, repository: str, remote: str, limit: int) -> Sequence[Ticket]:
        kind, _, words = query.partition(":")
        if kind not in {LINEAR, JIRA}:
            return self._forge(repository, remote).search(query, limit)
        host = self._forges.host_of(kind)
        where = Where(kind, Address(host, "", _scheme_of(host)), "")
        return self._tracker(where).search(words.strip(), limit)

    def comment(self, url: str, text: str, mark: str) -> None:
        where = self._parse(url)
        if where.kind in {LINEAR, JIRA}:
            self._tracker(where).comment(where.name, text, mark)
            return
        forge = self._forges.at(where.address)
        if isinstance(forge, GitLab):
            forge.comment_on_ticket(int(where.name), text, mark)
        else:
            forge.comment(int(where.name), text, mark)

    def _forge(self, repository: str, remote: str) -> AnyForge:
        return self._forges.of(repository, remote)

    def _tracker(self, where: Where) -> Linear | Jira:
        return self._forges.tracker(where.kind, where.address)

    def _parse(self, url: str) -> Where:
        try:
            parts = urlsplit(url.strip())
            host = parts.hostname or ""
            host = f"{host}:{parts.port}" if parts.port else host
        except ValueError:
            raise NotFound(f"'{url[:100]}' is not an address.", fix=FIX) from None
        kind = self._forges.kind_of(host)
        pattern = {LINEAR: ON_LINEAR, JIRA: ON_JIRA}.get(kind, ON_FORGE)
        match = pattern.fullmatch(parts.path)
        steps_out = match is not None and ".." in unquote(parts.path).split("/")
        if parts.scheme not in {"http", "https"} or match is None or steps_out or not kind:
            fix = FIX
            if host and not kind:
                fix = f"If {host} is one of yours, say so in the setting forge.hosts. {FIX}"
            raise NotFound(
                f"'{url[:100]}' is not the address of a ticket.", fix=fix, code="no_ticket"
            )
        if kind in {LINEAR, JIRA}:
            return Where(kind, Address(host, "", parts.scheme), match["name"].upper())
        return Where(kind, Address(host, match["path"], parts.scheme), match["number"])


def _scheme_of(host: str) -> str:
    bare = host.rpartition(":")[0] if host.count(":") == 1 else host
    return "http" if bare in LOOPBACK else "https"
