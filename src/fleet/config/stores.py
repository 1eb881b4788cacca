"""The kinds of store: one row each.

A new kind is its module in `adapters/stores` and its row here; settings, server and supervisor read the row.
"""

from __future__ import annotations

from fleet.domain.data import NamedTuple


class StoreKind(NamedTuple):
    opens: str  # MODULE:FUNCTION, called as `open_store` does; loaded when it is used
    like: str  # a URL as help texts show it
    shared: bool = False  # whether several hosts can use it at once; then keepers have leases
    extra: str = ""  # the extra of our package that installs its driver
    is_file: bool = False  # its URL is a path after three slashes


POSTGRES = StoreKind(
    "fleet.adapters.stores.postgres:open_url",
    like="postgresql://USER@HOST/NAME",
    shared=True,
    extra="postgres",
)
KINDS = {  # by the scheme of the URL
    "sqlite": StoreKind(
        "fleet.adapters.stores.sqlite:open_url", like="sqlite:///PATH", is_file=True
    ),
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
}


def kind_of(url: str) -> StoreKind | None:
    return KINDS.get(url.partition("://")[0])


def examples() -> str:
    return " or ".join(dict.fromkeys(kind.like for kind in KINDS.values()))
