"""The kinds of store: one row each.

A new kind is its module in `adapters/stores` and its row here; settings, server and supervisor read the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class StoreKind(NamedTuple):
    opens: str  # MODULE:FUNCTION, called as `open_store` does; loaded when it is used
    like: str  # a URL as help texts show it
    shared: bool = False  # whether several hosts can use it at once, so that keepers need leases
    extra: str = ""  # the extra of our package that installs its driver
    is_file: bool = False  # its URL is a path after three slashes
    beside: tuple[str, ...] = ()  # how the names of its other files end
    copies: str = ""  # MODULE:FUNCTION that copies it into a file; empty: `dumps` does
    restores: str = ""  # MODULE:FUNCTION that puts such a file back
    peeks: str = ""  # MODULE:FUNCTION that reads its schema and changes nothing; empty: it has none
    dumps: str = ""  # the service's own command that makes a backup
    loads: str = ""  # the command that restores it; empty: `dumps` explains how
    variable: str = ""  # the variable that names it when `STORAGE_BACKEND` names this kind
    has_logins: bool = False  # whether each machine can have its own login
    good_for: str = ""  # a sentence for `fleet doctor`

    @property
    def name(self) -> str:
        return self.like.partition("://")[0]


def _in_cloud(like: str, variable: str) -> StoreKind:
    """Return a kind whose log is in a cloud service; its URL's scheme is also our extra's name."""
    return StoreKind(
        "fleet.adapters.stores.log.address:open_url",
        like,
        shared=True,
        extra=like.partition("://")[0],
        dumps=SERVICE,
        variable=variable,
        good_for=FEW,
    )


POSTGRES = StoreKind(
    "fleet.adapters.stores.postgres.store:open_url",
    like="postgresql://USER@HOST/NAME",
    shared=True,
    extra="postgres",
    peeks="fleet.adapters.stores.postgres.store:peek_url",
    dumps="pg_dump --format=custom --file=fleet.dump DATABASE",
    loads="pg_restore --clean --if-exists --dbname DATABASE fleet.dump",
    variable="DATABASE_URL",
    has_logins=True,
)
FEW = "It is for a few machines, some dozen commits a second; for more, use PostgreSQL."
SERVICE = "Use the service's own backup, such as versions of the bucket's objects."
KINDS = {  # by the scheme of the URL
    "sqlite": StoreKind(
        "fleet.adapters.stores.sqlite:open_url",
        like="sqlite:///PATH",
        is_file=True,
        beside=("-wal", "-shm"),
        copies="fleet.adapters.stores.backup:copy_url",
        peeks="fleet.adapters.stores.sqlite:peek_url",
        restores="fleet.adapters.stores.backup:restore_url",
        variable="DB_PATH",
    ),
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "s3": _in_cloud("s3://BUCKET/PREFIX", "S3_BUCKET"),
    "dynamodb": _in_cloud("dynamodb://TABLE/PREFIX", "DYNAMODB_TABLE_PREFIX"),
    "firestore": _in_cloud("firestore://PROJECT/PREFIX", "GOOGLE_CLOUD_PROJECT"),
}


def named_by(env: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable that names the cloud store of `STORAGE_BACKEND`, and the store's URL."""
    backend = env.get("STORAGE_BACKEND", "").lower()
    endpoint = env.get("DYNAMODB_ENDPOINT", "")
    rests = {
        "s3": f"/{env.get('S3_PREFIX', '')}",
        "dynamodb": f"log/?endpoint={endpoint}" if endpoint else "log/",
        "firestore": "/fleet",
    }
    if backend not in rests or not (name := env.get(KINDS[backend].variable)):
        return None
    return KINDS[backend].variable, f"{backend}://{name}{rests[backend]}"


def kind_of(url: str) -> StoreKind | None:
    return KINDS.get(url.partition("://")[0])


def files_of(url: str) -> list[str]:
    """Return the store's files; empty unless it is in files on this machine."""
    kind, path = kind_of(url), url.partition("://")[2]
    if path.startswith("//"):  # an absolute path, after the three slashes of the URL
        path = "/" + path.lstrip("/")
    return [path, *(path + end for end in kind.beside)] if kind and kind.is_file else []


def examples() -> str:
    return " or ".join(dict.fromkeys(kind.like for kind in KINDS.values()))
