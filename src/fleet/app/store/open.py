"""Open the store of an address."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fleet.config.stores import KINDS, examples, kind_of
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleet.adapters.home.bell import Bell
    from fleet.config.stores import StoreKind
    from fleet.ports import Store


def check_backend(env: Mapping[str, str], url: str) -> None:
    """Raise unless the store is of the kind that `STORAGE_BACKEND` names."""
    backend = env.get("STORAGE_BACKEND", "").lower()
    if not backend:
        return
    if backend not in KINDS:
        raise BadInput(
            f"STORAGE_BACKEND: there is no '{backend[:30]}' store here.",
            fix=f"Set it to one of {', '.join(KINDS)}, or leave it out.",
            code="no_such_store",
        )
    if kind_of(url) is not KINDS[backend]:
        raise BadInput(
            f"STORAGE_BACKEND is {backend}, but the store's address is of another kind.",
            fix=f"Set {KINDS[backend].variable}, or `store.url` alone.",
            code="no_such_store",
        )


def the_kind(url: str) -> StoreKind:
    kind = kind_of(url)
    if kind is None:
        scheme = url.partition("://")[0]
        raise BadInput(f"'{scheme}' is not a kind of store.", fix=f"Use {examples()}.")
    return kind


def open_store(
    url: str,
    bell: Bell | None = None,
    *,
    taken: Callable[[str], bool] | None = None,
    schema: str = "fleet",
    most: int = 0,
    copies: Path | None = None,
    copying: bool = False,
) -> Store:
    """The store never gives out an id that is `taken`. With `copying` it may be half-copied.

    `schema` and `most` are for PostgreSQL; `copies` is the folder for copies of what is in a cloud.
    """
    kind = the_kind(url)
    module, _, name = kind.opens.partition(":")
    try:
        opens = getattr(import_module(module), name)
        given = {"schema": schema, "most": most, "copies": copies, "copying": copying}
        store: Store = opens(url, bell, taken, **given)
    except ImportError as error:
        if not kind.extra:
            raise
        raise BadInput(
            f"The driver of the store {kind.like} is not installed.",
            fix=f"pip install 'agent-fleet[{kind.extra}]'",
        ) from error
    return store
