"""One row of the table of settings, and the words that rows are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

from fleet.domain.data import NamedTuple

DEFAULT, USER, PROJECT, ENVIRONMENT, FLAG = LAYERS = (
    "default",
    "user",
    "project",
    "environment",
    "flag",
)
ANYWHERE = (USER, PROJECT, ENVIRONMENT, FLAG)
FILES = (USER, PROJECT, FLAG)  # a path with a chosen name has no environment variable
NOT_PROJECT = (USER, ENVIRONMENT, FLAG)  # one supervisor serves many projects

RUNS = "it runs commands"
WIDENS = "it widens what an agent may do"
SENDS = "it decides where data or keys are sent"
WRITES = "it decides where files are written"
STORES = "it chooses the store"

Path: TypeAlias = tuple[str, ...]


class Key(NamedTuple):
    """`also` are older names for the last word of the path, with the same meaning."""

    path: str
    kind: str
    default: Any
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    layers: tuple[str, ...] = ANYWHERE
    trust: str = ""  # why a project's value counts only after `fleet trust`
    harmless: tuple[Any, ...] = ()  # values that need no trust, besides the default
    also: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # variables that are read besides our own


def in_files(path: str, kind: str, default: Any, doc: str, **rest: Any) -> Key:
    return Key(path, kind, default, doc, layers=FILES, **rest)
