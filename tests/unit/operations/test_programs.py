"""Every field by which a request names a program, a command or a directory is asked about."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import get_args, get_type_hints

import pytest

from fleet.config.settings import RunSettings, Settings
from fleet.domain.access import Role
from fleet.domain.errors import FleetError
from fleet.operations.catalogue import perform
from tests.unit.operations.samples import DECLARED, sample

EVIL = {  # by the name of a field: what no team-lead may ask for
    "agent": "scripted", "agents": ("scripted",), "coder": "scripted", "judge": "scripted",
    "gate": "id", "test": "id", "command": "id", "in_place": True, "cwd": "/etc", "project": "/etc",
}  # fmt: skip
DIRECTORIES = {"cwd", "project"}
REFUSALS = {"not_declared", "not_from_outside", "no_such_place"}
OTHERWISE = {  # fields with such a name that start nothing
    "memory.store agent": "whose memory it is",
    "model.warm agent": "whose models are loaded",
    "checkpoint.save summary.test": "words for whoever goes on",
}


def named(kind: type, before: str = "") -> list[str]:
    """The paths of these fields in a request."""
    found = []
    for field, of in get_type_hints(kind).items():
        inner = next((part for part in (of, *get_args(of)) if is_dataclass(part)), None)
        if inner is not None:
            found += named(inner, f"{before}{field}.")
        elif field in EVIL and not before.endswith("limits."):  # how many agents at once
            found.append(before + field)
    return found


def asked() -> list[tuple[str, str]]:
    writes = [operation for operation in DECLARED.values() if not operation.is_read]
    pairs = [(o.name, path) for o in writes for path in named(o.request)]
    return [pair for pair in pairs if " ".join(pair) not in OTHERWISE]


def with_field(value, path: str, given):
    """The request with this field set; of a list, in its first part."""
    name, _, rest = path.partition(".")
    if isinstance(value, tuple):
        return (with_field(value[0], path, given), *value[1:])
    old = getattr(value, name)
    return replace(value, **{name: with_field(old, rest, given) if rest else given})


def plain(request):
    """Without the programs and commands that it names itself, which would be refused first."""
    for path in named(type(request)):
        field = path.rpartition(".")[2]
        if field not in DIRECTORIES:
            request = with_field(request, path, type(EVIL[field])())
    return request


def as_lead(office, request):
    """What a team-lead of red is refused for; empty: for nothing of the kind."""
    lead = replace(office.person(Role.TEAM_LEAD, "red"), remote=True)
    context = office.context(lead)._replace(offers=lambda _, directory: directory != "/etc")
    before = office.snapshot()
    try:
        perform(context, request)
    except FleetError as error:
        assert office.snapshot() == before
        return error.code if error.code in REFUSALS else ""
    return ""


@pytest.mark.parametrize(("name", "path"), asked())
def test_a_lead_names_no_program_command_or_directory_of_its_own(name, path, office):
    run = RunSettings(gate="true")  # by which races are tested
    office.world.settings = Settings(coder="claude", run=run)  # no program of prompts
    request = plain(sample(name, office, "red"))
    assert as_lead(office, with_field(request, path, EVIL[path.rpartition(".")[2]]))
    assert not as_lead(office, request)


def test_there_are_such_fields():
    assert ("race.start", "rules.judge") in asked()
    assert ("task.add_all", "tasks.spec.coder") in asked()
    assert all(fields(DECLARED[name].request) for name, _ in asked())
