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
PARAMETER = re.compile(r"(?<!:):([a-z]\w*)")
WAKE_MILLISECONDS = 100  # at least, between two times that anybody wakes those who wait
CLAIM_EVENT = ("type", "version", "actor", "at", "data")  # its task and run are those of the claim
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
        "given": ", ".join(f"{name} {kind}" for name, kind in _claim_columns().items()),
        "task_updates": _of_claims("task", statement["task_update_any"]),
        "run_inserts": _of_claims("run", statement["run_insert"]),
        "apart": str(WAKE_MILLISECONDS),
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
        return f"(w -> '{name}')::bigint" if _is_number(table, name) else f"(w ->> '{name}')"

    return PARAMETER.sub(value, _plain(sql))


def _claim_columns() -> dict[str, str]:
    """What `claim` is given of each claim, with its type in SQL."""
    statement = statements()
    columns = {"n": "int", "places": "int[]", "most": "int[]"}
    for table, sql in (("task", statement["task_update_any"]), ("run", statement["run_insert"])):
        for name in sorted(set(PARAMETER.findall(_plain(sql)))):
            columns[f"{table}_{name}"] = "bigint" if _is_number(table, name) else "text"
    return columns | {
        f"event_{name}": "bigint" if name in {"version", "at"} else "text" for name in CLAIM_EVENT
    }


def _of_claims(table: str, sql: str) -> str:
    """The same statement for all claims in `x`."""
    many = PARAMETER.sub(rf"x.{table}_\1", _plain(sql))
    if many.startswith("UPDATE"):
        return many.replace("WHERE", "FROM x WHERE", 1)
    return re.sub(r"VALUES \((.*?)\)", r"SELECT \1 FROM x", many, flags=re.DOTALL)


def _plain(sql: str) -> str:
    """Without comments."""
    return re.sub(r"^--.*$", "", sql, flags=re.MULTILINE).strip()


def _is_number(table: str, name: str) -> bool:
    return name in NUMBERS or (table, name) == ("message", "task")


TABLE = "|".join(
    (*TABLES.values(), "dep", "event", "counter", "meta", "task_words", "task_unsearched")
)
NAMING = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)(\s+)({TABLE})\b")


def qualified(sql: str, schema: str) -> str:
    """The same with the schema of each table: a connection may have been another thread's before."""
    return NAMING.sub(rf"\1\2{schema}.\3", sql)
