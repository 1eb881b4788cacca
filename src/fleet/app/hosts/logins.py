"""The logins of machines to this home's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.hosts.database_role import at_address, drop_login, make_login
from fleet.domain.errors import Refused
from fleet.ports import StoreLogin

if TYPE_CHECKING:
    from fleet.app.app import App


class HostLogins:
    """See `StoreLogins`. Where the store or the role makes none, machines share the server's own."""

    def __init__(self, app: App) -> None:
        self._app = app

    def check(self) -> None:
        if not self._app.shared:
            raise Refused(
                "Machines share a queue through PostgreSQL, and the store here is a file.",
                fix="Set store.url to a PostgreSQL database first: see `fleet help config`.",
                code="store_not_shared",
            )

    def make(self, role: str, address: str) -> StoreLogin:
        self.check()
        store = self._app.loaded.settings.store
        login = make_login(store.url, role, role) if self._app.store_kind.has_logins else None
        url = at_address(login.url if login else store.url, address)
        return StoreLogin(url, store.schema, own=login is not None)

    def drop(self, role: str) -> None:
        if self._app.store_kind.has_logins:
            drop_login(self._app.loaded.settings.store.url, role)
