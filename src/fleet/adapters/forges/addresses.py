"""Find the forge and the repository of a git remote's address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused
from fleet.domain.forges.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

KNOWN = {
    host: kind for kind, row in KINDS.items() for host in row.hosts if not host.startswith(".")
}
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SCP = re.compile(r"(?:[^@/:]+@)?(\[[0-9A-Fa-f:]+\]|[^/:@\[\]]+):(?!//)(.+)")


class RepositoryAddress(NamedTuple):
    """`host` with its port, if its address names one; `path`: owner and name, or groups and name."""

    host: str
    path: str
    scheme: str = "https"


def parse(remote: str) -> RepositoryAddress | None:
    """Parse the address of a git remote; None for a local or an invalid one."""
    scheme, host, path = "https", "", ""
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            host, port, path = parts.hostname or "", parts.port, unquote(parts.path)
        except ValueError:
            return None
        if parts.scheme in {"http", "https"}:
            scheme = parts.scheme
            host = f"{host}:{port}" if port else host  # of ssh it is ssh's own port
        elif parts.scheme not in {"ssh", "git+ssh"}:
            return None
    elif match := SCP.fullmatch(remote):
        host, path = match[1].strip("[]").lower(), match[2]
    path = path.strip("/").removesuffix(".git").strip("/")
    if not host or "/" not in path or ".." in path.split("/"):
        return None
    return RepositoryAddress(host, path, scheme)


def kinds_of(declared: Iterable[str]) -> dict[str, str]:
    """Return the kinds of forges by host: the well-known ones and those of `forge.hosts`."""
    pairs = (pair.rpartition("=") for pair in declared)
    return KNOWN | {host.strip().lower(): kind.strip() for host, _, kind in pairs}


def kind_of(host: str, declared: Iterable[str]) -> str:
    """Return the kind of forge at this host; empty: neither declared nor known."""
    known = kinds_of(declared).get(host, "")
    below = (kind for kind, row in KINDS.items() if host.endswith(_domains(row.hosts)))
    return known or next(below, "")


def _domains(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(host for host in hosts if host.startswith("."))


def api_of(address: RepositoryAddress, kind: str) -> str:
    """The address of its API. A token goes over plain http only to this machine."""
    row = KINDS.get(kind)
    if row is not None and row.public_api and address.host == row.hosts[0]:
        return row.public_api
    bare = address.host.rpartition(":")[0] if address.host.count(":") == 1 else address.host
    if address.scheme != "https" and bare not in LOOPBACK:
        raise Refused(
            f"{address.host} uses plain http, so others on the network could read the token.",
            fix="Give the remote an https address: git remote set-url",
            code="plain_http",
        )
    return f"{address.scheme}://{address.host}{row.api if row else ''}"
