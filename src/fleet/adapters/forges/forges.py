"""The forges that this machine can speak to, by the remotes of its repositories."""

from __future__ import annotations

import threading
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fleet.adapters.forges.addresses import (
    KNOWN,
    RepositoryAddress,
    api_of,
    kind_of,
    kinds_of,
    parse,
)
from fleet.adapters.forges.rest import Rest
from fleet.adapters.forges.tickets import HostTickets
from fleet.adapters.forges.token import TokenSource
from fleet.adapters.git.landing.merge_and_push import public
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Refused
from fleet.domain.forges.kinds import FORGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from fleet.adapters.forges.gitea import Gitea
    from fleet.adapters.forges.github import GitHub
    from fleet.adapters.forges.gitlab import GitLab
    from fleet.adapters.forges.jira import Jira
    from fleet.adapters.forges.linear import Linear

    AnyForge: TypeAlias = GitHub | GitLab | Gitea
    AnyTracker: TypeAlias = Linear | Jira


class HostForges:
    """`hosts`: the setting `forge.hosts`. Make one for each process, as it caches replies."""

    def __init__(self, env: Mapping[str, str], hosts: Callable[[], Sequence[str]]) -> None:
        self._env, self._hosts = env, hosts
        self._rests: dict[str, Rest] = {}
        self._lock = threading.Lock()

    def of(self, repository: str, remote: str) -> AnyForge:
        repo = Repo.at(Path(repository))
        done = repo.git("remote", "get-url", "--push", "--", remote, check=False)
        if done.status:
            raise Refused(
                f"{repo.checkout} has no remote '{remote}'.",
                fix=f"git remote add {remote} URL",
                code="no_remote",
            )
        url = done.out.strip()
        address = parse(url)
        if address is None:
            raise Refused(
                f"The remote '{remote}' is {public(url)}, which is not a repository on a forge.",
                fix=f"git remote set-url {remote} https://HOST/OWNER/NAME, or land with --push",
                code="no_forge",
            )
        return self.at(address)

    def at(self, address: RepositoryAddress) -> AnyForge:
        kind = self.kind_of(address.host)
        if kind not in FORGES:
            raise _unknown(address.host)
        forge: AnyForge = _module(kind).Client(self._rest(address, kind), address.path)
        return forge

    def tracker(self, kind: str, address: RepositoryAddress) -> AnyTracker:
        tracker: AnyTracker = _module(kind).Client(self._rest(address, kind))
        return tracker

    def kind_of(self, host: str) -> str:
        """Return the kind of forge at this host; empty: neither declared nor known."""
        return kind_of(host, self._hosts())

    def host_of(self, kind: str) -> str:
        """Return the only host of this kind; raise `Refused` when there are none or several."""
        own = [host for host, is_kind in kinds_of(self._hosts()).items() if is_kind == kind]
        declared = [host for host in own if host not in KNOWN] or own
        if len(declared) == 1:
            return declared[0]
        raise Refused(
            f"{len(declared)} {kind} hosts are declared, so Fleet does not know which one is meant.",
            fix=f"fleet config set 'forge.hosts=[\"HOST={kind}\"]'",
            code="unknown_forge",
        )

    @cached_property
    def tickets(self) -> HostTickets:
        return HostTickets(self)

    def _rest(self, address: RepositoryAddress, kind: str) -> Rest:
        with self._lock:
            rest = self._rests.get(address.host)
            if rest is None:
                token = TokenSource(address.host, kind, self._env, address.scheme)
                headers = _module(kind).headers
                rest = Rest(api_of(address, kind), lambda: headers(token()))
                self._rests[address.host] = rest
        return rest


def _module(kind: str) -> ModuleType:
    return import_module(f"{__package__}.{kind}")


def _unknown(host: str) -> Refused:
    return Refused(
        f"Fleet does not know what kind of forge {host} is, so it sends nothing there.",
        fix=f"fleet config set 'forge.hosts=[\"{host}={FORGES[0]}\"]' (or {', '.join(FORGES[1:])})",
        code="unknown_forge",
    )
