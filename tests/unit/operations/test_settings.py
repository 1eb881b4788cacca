"""Finding settings, with where each comes from."""

from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Forbidden
from fleet.operations.settings import FindSettings


def named(office, words: str) -> list[str]:
    return [row.setting for row in office.call(FindSettings(words))]


def test_settings_are_found_by_their_names_first_and_then_by_their_values(office):
    assert named(office, "gate") == ["run.gate", "land.gate", "agents.reviewer.prompt"]
    assert named(office, "make LAND") == ["land.gate"]
    assert named(office, "nothing") == []
    assert len(named(office, "")) == 4
    (row,) = office.call(FindSettings("land.gate"))
    assert (row.text, row.origin) == ("make test", "fleet.yaml:14")


def test_settings_are_shown_to_coordinators_alone(office):
    with pytest.raises(Forbidden):
        office.call(FindSettings("gate"), Actor("lea", Role.TEAM_LEAD, remote=True))
