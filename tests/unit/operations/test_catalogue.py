from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import pytest

from fleet.domain.access import GRANTS, Permission, Role
from fleet.domain.errors import Conflict, Forbidden, NotFound, Refused
from fleet.domain.record_json import dumps
from fleet.operations import catalogue
from fleet.operations.catalogue import Request, find, perform
from fleet.operations.tasks.change import PauseTask
from tests.unit.operations.samples import DECLARED, SAMPLES, sample

BY_NAME = pytest.mark.parametrize("name", DECLARED)


def test_every_operation_has_a_sample_here():
    assert SAMPLES.keys() == DECLARED.keys()


@BY_NAME
def test_an_operation_is_declared_in_full(name):
    operation = DECLARED[name]
    noun, _, verb = name.partition(".")
    assert noun in {
        "eval",
        *("task", "message", "run", "agent", "token", "member", "swarm", "board", "land"),
        *(
            "mail",
            "checkpoint",
            "memory",
            "file",
            "worktree",
            "pull",
            "race",
            "ticket",
            "chat",
            "enrolment",
            "audit",
            "alert",
            "race",
            "inbox",
            "search",
            "setting",
            "stats",
            *("session", "me", "node", "model", "route", "trace", "gateway", "host"),
            *("usage", "budget", "limit", "view", "review"),
        ),
    }
    assert verb.isidentifier()
    assert isinstance(operation.permission, Permission)
    assert operation.summary.endswith(".")
    assert operation.summary[0].isupper()
    assert issubclass(operation.request, Request)
    assert is_frozen(operation.request)
    assert find(operation.request) is operation


def test_names_and_requests_are_each_used_once():
    declared = list(catalogue.operations())
    assert len({o.name for o in declared}) == len(declared)
    assert len({o.request for o in declared}) == len(declared)


def test_what_is_not_declared_is_not_an_operation(office):
    class Stray(Request[str]):
        pass

    with pytest.raises(NotFound):
        office.call(Stray())


def decode(hint, value):
    """JSON as a value of this type, as a server or a client would read it."""
    if get_origin(hint) in {UnionType, Union}:
        (present,) = (a for a in get_args(hint) if a is not NoneType)
        return None if value is None else decode(present, value)
    if get_origin(hint) is tuple:
        return tuple(decode(get_args(hint)[0], item) for item in value)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        assert value.keys() == hints.keys()
        return hint(**{key: decode(hints[key], item) for key, item in value.items()})
    assert hint in {str, int, float, bool}, hint
    assert type(value) is hint, (hint, value)
    return value


def is_frozen(kind) -> bool:
    try:
        object.__new__(kind).whatever = 1
    except FrozenInstanceError:
        return True
    return False


def frozen_through_and_through(hint) -> bool:
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        inside = all(frozen_through_and_through(hints[f.name]) for f in fields(hint))
        return is_frozen(hint) and inside
    if get_origin(hint) in {tuple, UnionType, Union}:
        return all(frozen_through_and_through(a) for a in get_args(hint) if a is not Ellipsis)
    return hint in {str, int, float, bool, NoneType}


@BY_NAME
def test_request_and_reply_survive_a_journey_as_json(name, office):
    operation = DECLARED[name]
    request = sample(name, office)
    assert decode(operation.request, json.loads(dumps(request))) == request
    assert frozen_through_and_through(operation.request)
    reply = office.call(request)
    assert decode(operation.reply, json.loads(dumps(reply))) == reply
    assert frozen_through_and_through(operation.reply)
    assert reply, "the sample should have something to show"


class Untouchable:
    """A store that nobody may even look at."""

    def __getattr__(self, name):
        raise AssertionError(f"the store was asked for {name}")


@pytest.mark.parametrize("role", Role)
@BY_NAME
def test_a_role_may_do_what_it_is_granted_and_nothing_else(role, name, office):
    operation = DECLARED[name]
    request = sample(name, office)
    actor = office.person(role, name="ada")
    if operation.permission in GRANTS[role]:
        office.call(request, actor)
        return
    with pytest.raises(Forbidden) as caught:
        perform(office.context(actor, Untouchable()), request)
    assert str(operation.permission) in caught.value.message
    assert caught.value.fix


@BY_NAME
def test_said_again_an_idempotent_operation_changes_nothing_more(name, office):
    request = sample(name, office)
    first = office.call(request)
    before = office.snapshot()
    try:
        again = office.call(request)
    except Refused:
        again = first
    unchanged = office.snapshot() == before
    assert unchanged is DECLARED[name].idempotent
    if name in {"task.pause", "task.resume", "task.depend", "message.take"}:
        assert again == first


@BY_NAME
def test_an_operation_that_changes_something_says_so_in_the_same_commit(name, office):
    request = sample(name, office)
    records, log = office.snapshot()
    office.call(request)
    same = office.store.records == records
    if DECLARED[name].outside and same:
        return  # what has changed is git's; the log tells of it
    assert same is (office.store.log == log)


def test_a_conflict_that_never_ends_is_told(office):
    class Contested:
        def __init__(self, store):
            self._store, self.tries = store, 0

        def __getattr__(self, name):
            return getattr(self._store, name)

        def commit(self, changes, events):
            self.tries += 1
            raise Conflict("Somebody was quicker.")

    task = office.add()
    store = Contested(office.store)
    with pytest.raises(Conflict):
        perform(office.context(store=store), PauseTask(task))
    assert store.tries == catalogue.MAX_TRIES
