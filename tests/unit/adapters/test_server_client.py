"""What an operation replies survives the way over HTTP, for every operation there is."""

from __future__ import annotations

import json
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from fleet.adapters.server_client import Remote
from fleet.domain.errors import FleetError
from fleet.domain.record_json import dumps, reader
from fleet.operations.catalogue import operations
from fleet.operations.team.sessions import Me, ShowMe


def example(kind: Any) -> Any:
    """Some value of this type, with everything in it that can be."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return example(next(k for k in get_args(kind) if k is not type(None)))
    if origin is tuple:
        return (example(get_args(kind)[0]),)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: example(hints[f.name]) for f in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return {str: "x", int: 3, float: 1.5, bool: True}.get(kind, {"any": 1})


@pytest.mark.parametrize("operation", list(operations()), ids=lambda operation: operation.name)
def test_a_reply_is_the_same_here_as_it_is_there(operation):
    there = example(operation.reply)
    assert reader(operation.reply, strict=False)(json.loads(dumps(there))) == there


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://127.0.0.1:1", "not a url", "http://x\ty", "http://x/a b"]
)
def test_an_address_that_was_typed_is_not_blamed_on_a_variable(url):
    with pytest.raises(FleetError) as caught:
        Remote(url, variable="").call("me.show", ShowMe(), Me)
    assert "FLEET_URL" not in caught.value.fix
    assert caught.value.fix
