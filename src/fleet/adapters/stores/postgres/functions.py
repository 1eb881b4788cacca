"""The functions that the server runs: made of `functions.sql` and the statements of both dialects."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from fleet.adapters.stores.rows import NAMED, TABLES
from fleet.adapters.stores.sql import statements

NUMBERS = {
    "seq",
    "version",
    "priority",
    "created_at",
    "not_before",
    "held",
    "attended",
    "live",
    "pending",
    "until",
}
OFTEN = ("task", "run", "progress", "message", "slots")  # what is written often is looked for first


@cache
def mark() -> str:
    """What the names of our functions end with: it differs from every other text of theirs."""
    text = _template() + _writes()
    return hashlib.sha256(text.encode()).hexdigest()[:10]


@cache
def functions(schema: str) -> str:
    """The script that makes them in this schema, which is a quoted name."""
    statement = statements()
    parts = {
        "writes": _writes(),
        "task_update": _typed("task", statement["task_update_any"]) + ";",
        "run_insert": _typed("run", statement["run_insert"]) + ";",
    }
    text = _template()
    for name, made in parts.items():
        text = text.replace(f"{{{name}}}", made)
    return qualified(text, schema).replace("{s}", schema).replace("{v}", mark())


def _template() -> str:
    return Path(__file__).with_name("functions.sql").read_text("utf-8")


@cache
def _writes() -> str:
    """One branch for each statement that writes a record, or insists on one."""
    tables = sorted(TABLES.values(), key=lambda t: (t not in OFTEN, t))
    branches = [branch for table in tables for branch in _branches(table)]
    return f"CASE w ->> 'do' {' '.join(branches)} END CASE;"


def _branches(table: str) -> list[str]:
    statement = statements()
    update = "task_update_any" if table == "task" else f"{table}_update"
    key = "id = :id" if table in NAMED else "seq = :seq AND id = :id"
    insist = (
        f"PERFORM 1 FROM {table} WHERE {key} AND (version = :version OR :version = 0) FOR SHARE"
    )
    each = {
        f"{table}_update": statement[update],
        f"{table}_insert": statement[f"{table}_insert"],
        f"{table}_version": insist,
    }
    return [f"WHEN '{name}' THEN {_typed(table, sql)};" for name, sql in each.items()]


def _typed(table: str, sql: str) -> str:
    """The parameters are values of the JSON `w`."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        is_number = name in NUMBERS or (table, name) == ("message", "task")
        return f"(w -> '{name}')::bigint" if is_number else f"(w ->> '{name}')"

    return re.sub(
        r"(?<!:):([a-z]\w*)", value, re.sub(r"^--.*$", "", sql, flags=re.MULTILINE).strip()
    )


TABLE = "|".join(
    (*TABLES.values(), "dep", "event", "counter", "meta", "task_words", "task_unsearched")
)
NAMING = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)(\s+)({TABLE})\b")


def qualified(sql: str, schema: str) -> str:
    """The same with the schema of each table: a connection may have been another thread's before."""
    return NAMING.sub(rf"\1\2{schema}.\3", sql)
