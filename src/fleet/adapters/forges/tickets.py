"""Tickets: the issues of forges and of trackers, by their addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fleet.adapters.forges.addresses import LOOPBACK, RepositoryAddress
from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound
from fleet.domain.forges.kinds import FORGES, ISSUE, KINDS, TITLES, TRACKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.forges.forges import AnyForge, AnyTracker, HostForges
    from fleet.ports import Ticket

FIX = f"Give the address of an issue on {TITLES}."


class TicketAddress(NamedTuple):
    """A ticket's address. `kind`: the tracker's; `name`: the ticket's; `path`: its repository's."""

    kind: str
    address: RepositoryAddress
    name: str


class HostTickets:
    def __init__(self, forges: HostForges) -> None:
        self._forges = forges

    def read(self, url: str) -> Ticket:
        where = self._parse(url)
        if where.kind in TRACKERS:
            return self._tracker(where).ticket(where.name)
        return self._forges.at(where.address).ticket(int(where.name))

    def search(self, query: str, repository: str, remote: str, limit: int) -> Sequence[Ticket]:
        kind, _, words = query.partition(":")
        if kind not in TRACKERS:
            return self._forge(repository, remote).search(query, limit)
        host = self._forges.host_of(kind)
        where = TicketAddress(kind, RepositoryAddress(host, "", _scheme_of(host)), "")
        return self._tracker(where).search(words.strip(), limit)

    def comment(self, url: str, text: str, mark: str) -> None:
        where = self._parse(url)
        if where.kind in TRACKERS:
            self._tracker(where).comment(where.name, text, mark)
            return
        self._forges.at(where.address).comment_on_ticket(int(where.name), text, mark)

    def _forge(self, repository: str, remote: str) -> AnyForge:
        return self._forges.of(repository, remote)

    def _tracker(self, where: TicketAddress) -> AnyTracker:
        return self._forges.tracker(where.kind, where.address)

    def _parse(self, url: str) -> TicketAddress:
        try:
            parts = urlsplit(url.strip())
            host = parts.hostname or ""
            host = f"{host}:{parts.port}" if parts.port else host
        except ValueError:
            raise NotFound(f"'{url[:100]}' is not an address.", fix=FIX) from None
        kind = self._forges.kind_of(host)
        match = re.fullmatch(KINDS[kind].ticket if kind in KINDS else ISSUE, parts.path)
        steps_out = match is not None and ".." in unquote(parts.path).split("/")
        if parts.scheme not in {"http", "https"} or match is None or steps_out or not kind:
            fix = FIX
            if host and not kind:
                fix = f"If {host} is one of yours, say so in the setting forge.hosts. {FIX}"
            raise NotFound(
                f"'{url[:100]}' is not the address of a ticket.", fix=fix, code="no_ticket"
            )
        path = match["path"] if kind in FORGES else ""
        address = RepositoryAddress(host, path, parts.scheme)
        return TicketAddress(kind, address, match["name"].upper())


def _scheme_of(host: str) -> str:
    bare = host.rpartition(":")[0] if host.count(":") == 1 else host
    return "http" if bare in LOOPBACK else "https"
