"""The schema of a store: which fleets may read and write it, and bringing it up."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fleet.adapters.stores.migrations import LATEST, READS, UPGRADE, WRITES, may_write
from fleet.app.store.open import check_backend, the_kind
from fleet.domain.data import dataclass
from fleet.domain.errors import BadStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.app.app import App


@dataclass(frozen=True, slots=True)
class Schema:
    """`schema` 0: there is no store yet. `may`: what this fleet may do, `write`, `read` or nothing.

    `reads`, `writes`: what a fleet must know at least to do that.
    """

    kind: str
    schema: int
    known: int = LATEST
    reads: int = READS
    writes: int = WRITES
    may: str = "write"

    @property
    def is_behind(self) -> bool:
        return 0 < self.schema < self.known


def schema_of(app: App, *, migrate: bool = False) -> tuple[Schema, str, str]:
    """The store's schema, what that means, and the next step."""
    if migrate and look_at(app).is_behind:
        app.another_store().close()
    schema = look_at(app)
    return (schema, *sentence(schema))


def look_at(app: App) -> Schema:
    """What the store of these settings is, before anything is changed."""
    settings = app.loaded.settings.store
    check_backend(app.env, settings.url)
    kind = the_kind(settings.url)
    if not kind.peeks:  # a log: each entry has its own format, and each machine makes its own copy
        return Schema(kind.name, LATEST)
    module, _, name = kind.peeks.partition(":")
    meta = getattr(import_module(module), name)(settings.url, schema=settings.schema)
    return Schema(kind.name, 0) if meta is None else _schema(kind.name, meta)


def _schema(kind: str, meta: Mapping[str, str]) -> Schema:
    schema = int(meta.get("schema", "0"))
    reads, writes = (int(meta.get(name, schema)) for name in ("reads", "writes"))
    try:
        may = "write" if may_write("It", schema, meta) else "read"
    except BadStore:
        may = ""
    return Schema(kind, schema, reads=reads, writes=writes, may=may)


def sentence(schema: Schema) -> tuple[str, str]:
    """What a person should know of it, and the next step."""
    if not schema.schema:
        return "There is no store yet: the first task makes one.", ""
    if schema.is_behind:
        text = f"Its schema is {schema.schema}; this fleet brings it to {schema.known} when it opens it."
        return f"{text} A fleet that does not know {WRITES} can no longer write it then.", (
            "Upgrade fleet on every machine, then: fleet store migrate"
        )
    if schema.may == "write":
        return f"Its schema is {schema.schema}, which this fleet reads and writes.", ""
    can = "may only read" if schema.may == "read" else "cannot use"
    newer = f"Its schema is {schema.schema}, of a newer fleet; this one knows {schema.known}"
    return f"{newer} and {can} it.", UPGRADE
