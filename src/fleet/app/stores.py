"""Open the store of an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.home.bell import Bell
    from fleet.ports import Store


def open_store(
    url: str, bell: Bell | None = None, *, taken: Callable[[str], bool] | None = None
) -> Store:
    """`sqlite:///PATH` or `postgresql://…`; the store never gives out an id that is `taken`."""
    from fleet.adapters.stores.sql import SqlStore

    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        from fleet.adapters.stores.sqlite import Sqlite

        path = Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)
        return SqlStore(Sqlite(path, bell=bell), taken=taken)
    if scheme in {"postgresql", "postgres"}:
        try:
            from fleet.adapters.stores.postgres import Postgres
        except ImportError as error:
            raise BadInput(
                "The store is PostgreSQL, and its driver is not installed.",
                fix="pip install 'agent-fleet[postgres]'",
            ) from error
        return SqlStore(Postgres(url, bell=bell), taken=taken)
    raise BadInput(f"'{scheme}' is not a kind of store.", fix="Use sqlite:///… or postgresql://…")
