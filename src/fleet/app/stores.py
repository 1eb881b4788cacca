"""Open the store of an address."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fleet.config.stores import examples, kind_of
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.home.bell import Bell
    from fleet.ports import Store


def open_store(
    url: str, bell: Bell | None = None, *, taken: Callable[[str], bool] | None = None
) -> Store:
    """The store never gives out an id that is `taken`."""
    kind = kind_of(url)
    if kind is None:
        scheme = url.partition("://")[0]
        raise BadInput(f"'{scheme}' is not a kind of store.", fix=f"Use {examples()}.")
    module, _, name = kind.opens.partition(":")
    try:
        opens = getattr(import_module(module), name)
    except ImportError as error:
        if not kind.extra:
            raise
        raise BadInput(
            f"The driver of the store {kind.like} is not installed.",
            fix=f"pip install 'agent-fleet[{kind.extra}]'",
        ) from error
    store: Store = opens(url, bell, taken)
    return store
