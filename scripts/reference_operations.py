"""Write docs/reference/operations.md from the catalogue; `--check` only says whether it is stale."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import click

from fleet.base.outside import Json, Time
from fleet.cli.main import COMMANDS, LOCAL
from fleet.cli.root import load
from fleet.domain.access import GRANTS, Permission
from fleet.domain.limits import LARGEST_INTEGER, Items, OneOf, TextLimit, Whole, limit_of
from fleet.operations.catalogue import Operation, operations

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTSIDE = {Time: "time", Json: "JSON object, as text"}
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "operations.md"
HEAD = """\
# Operations

Made from the catalogue by `scripts/reference_operations.py`; do not edit.

An operation is one request that Fleet answers, over the command line, HTTP or MCP. Request and reply are
records whose fields are listed below; in JSON they are objects with the same keys, and
[JSON](json.md) explains how the command line writes values. Over HTTP and MCP a time is RFC 3339 text,
and a JSON object is the object itself.

Fleet first checks whether the actor is permitted. A role is a set of permissions, and everyone but a
coordinator sees and changes only what belongs to their own team. Inside a run the actor is the run, with
the role of a worker; when the run has ended, everything is refused.

Repeating an *idempotent* operation changes nothing more, though it may be refused, so a client that does
not know whether its request arrived can send it again. An operation *at the host* is carried out by the
supervisor on the run's host, and the client waits until it is done.
"""


def reference() -> str:
    declared = list(operations())
    said = said_by()
    records: dict[str, type] = {}
    for operation in declared:
        collect(operation.request, records)
        collect(operation.reply, records)
    for operation in declared:
        del records[operation.request.__name__]
    parts = [HEAD, overview(declared, said)]
    parts += [section(operation, said) for operation in declared]
    parts += ["## Records\n", *(record(records[name]) for name in sorted(records))]
    return "\n".join([*parts, roles()])


def overview(declared: list[Operation], said: dict[str, list[str]]) -> str:
    rows = [
        f"| [{o.name}](#{o.name.replace('.', '')}) | {o.summary} | {commands(said, o)} |"
        for o in declared
    ]
    return "\n".join(["| operation | | command |", "|---|---|---|", *rows]) + "\n"


def commands(said: dict[str, list[str]], operation: Operation) -> str:
    return ", ".join(f"`fleet {name}`" for name in sorted(said.get(operation.request.__name__, [])))


def section(operation: Operation, said: dict[str, list[str]]) -> str:
    facts = [
        f"Permission *{operation.permission}*",
        "idempotent" if operation.idempotent else "not idempotent",
        *(["carried out at the host"] if operation.at_host else []),
        f"replies with {shown(operation.reply)}",
    ]
    if typed := commands(said, operation):
        facts.append(f"said by {typed}")
    about = " ".join([operation.summary, *about_it(operation.request)])
    text = f"## {operation.name}\n\n{about}\n\n{', '.join(facts)}.\n"
    return f"{text}\n{table(operation.request)}"


def record(kind: type) -> str:
    return "\n\n".join([f"### {kind.__name__}", *about_it(kind), table(kind)])


def about_it(kind: type) -> list[str]:
    """What its author says of it, if anything: Python may have written down how it is called."""
    words = inspect.getdoc(kind) or ""
    return [flat(words)] if words and not words.startswith(f"{kind.__name__}(") else []


def table(kind: type) -> str:
    hints = get_type_hints(kind, include_extras=True)
    rows = [
        f"| `{f.name}` | {shown(hints[f.name])} | {default(f)} |"
        for f in fields(kind)  # type: ignore[arg-type]  # it is one
    ]
    return "\n".join(["| field | type | default |", "|---|---|---|", *rows]) + "\n"


def bounds(limit: Any) -> str:
    """A limit in words."""
    match limit:
        case TextLimit(most, some):
            length = f", at most {most:,} characters" if most else ""
            form = f", matching `{limit.pattern}`".replace("|", "\\|") if limit.pattern else ""
            return length + (", not empty" if some else "") + form
        case OneOf(words):
            return f": {', '.join(f'`{word}`' if word else 'empty' for word in words)}"
        case Whole(least, most):
            return f", {least:,} to {most:,}" if most < LARGEST_INTEGER else f", {least:,} or more"
        case Items(most, least):
            return f"; {f'{least} to' if least else 'at most'} {most:,} of them"
    raise TypeError(limit)


def shown(hint: Any) -> str:
    """A type in words."""
    if hint in OUTSIDE:
        return OUTSIDE[hint]
    if get_origin(hint) is Annotated:
        kind, limit = limit_of(hint)
        return f"{shown(kind)}{bounds(limit)}"
    if get_origin(hint) in {UnionType, Union}:
        (present,) = (a for a in get_args(hint) if a is not NoneType)
        return f"{shown(present)}, or null"
    if get_origin(hint) is tuple:
        return f"a list of {shown(get_args(hint)[0])}"
    if is_dataclass(hint):
        name = hint.__name__  # type: ignore[union-attr]  # a class
        return f"[{name}](#{name.lower()})"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[hint]


def default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return ""
    value = field.default
    if is_dataclass(value):
        return "its defaults"
    return {True: "`true`", False: "`false`"}[value] if isinstance(value, bool) else _plain(value)


def _plain(value: object) -> str:
    return "empty" if value in {"", ()} else f"`{value}`"


def flat(text: str) -> str:
    return " ".join(text.split())


def collect(hint: Any, records: dict[str, type]) -> None:
    """This record and those inside it."""
    if is_dataclass(hint) and isinstance(hint, type):
        records[hint.__name__] = hint
        for inner in get_type_hints(hint).values():
            collect(inner, records)
    for inner in get_args(hint):
        collect(inner, records)


def roles() -> str:
    rows = [
        f"| {permission} | " + " | ".join("yes" if permission in g else "" for g in GRANTS.values())
        for permission in Permission
    ]
    head = ["| permission | " + " | ".join(GRANTS) + " |", "|---" * (len(GRANTS) + 1) + "|"]
    return "\n".join(["## Roles\n", *head, *(f"{row} |" for row in rows)]) + "\n"


@cache
def said_by() -> dict[str, list[str]]:
    """By the name of a request: the commands whose code makes one."""
    found: dict[str, list[str]] = {}
    for name, function in callbacks():
        for request in called(function.__name__, function.__module__, set()):
            found.setdefault(request, []).append(name)
    return found


def callbacks() -> Iterator[tuple[str, Any]]:
    for name in COMMANDS.keys() - LOCAL:
        command = load(name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {n}", sub.callback) for n, sub in command.commands.items())
        else:
            yield name, command.callback


def called(function: str, module: str, seen: set[str]) -> set[str]:
    """What a function calls or has called, itself or through other functions of the command line.

    What its decorators call is for the shell's completion.
    """
    seen.add(function)
    tree = parsed(module)
    (body,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    inside = [node for statement in body.body for node in ast.walk(statement)]
    calls = [node for node in inside if isinstance(node, ast.Call)]
    names = {
        node.id for call in calls for node in (call.func, *call.args) if isinstance(node, ast.Name)
    }
    ours = {n.name: module for n in tree.body if isinstance(n, ast.FunctionDef)}
    for node in (*tree.body, *inside):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fleet.cli."):
            ours |= {alias.name: node.module or "" for alias in node.names}
    for name in names & ours.keys() - seen:
        if name in functions(ours[name]):
            seen |= called(name, ours[name], seen)
    return seen | names


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(Path(import_module(module).__file__ or "").read_text(encoding="utf-8"))


@cache
def functions(module: str) -> set[str]:
    found = inspect.getmembers(import_module(module), inspect.isfunction)
    return {name for name, function in found if function.__module__ == module}


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, reference()))
