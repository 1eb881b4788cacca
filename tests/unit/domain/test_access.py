from __future__ import annotations

import pytest

from fleet.domain.access import GRANTS, Actor, Permission, Role, allow
from fleet.domain.errors import Forbidden

P = Permission
MATRIX = {  # permission: who has it
    P.READ: "coordinator team-lead worker monitor notifier merger",
    P.ADD: "coordinator team-lead worker",
    P.CLAIM: "coordinator team-lead worker",
    P.COMPLETE: "coordinator team-lead worker",
    P.SEND: "coordinator team-lead worker",
    P.ASK: "coordinator team-lead worker",
    P.ANSWER: "coordinator team-lead",
    P.ASSIGN: "coordinator team-lead",
    P.SPAWN: "coordinator team-lead",
    P.ATTACH: "coordinator",
    P.DISMISS: "coordinator team-lead",
    P.BROADCAST: "coordinator team-lead",
    P.COMMIT: "coordinator team-lead worker merger",
    P.MERGE: "coordinator team-lead merger",
    P.PUSH: "coordinator team-lead merger",
    P.BOARD: "coordinator team-lead worker",
    P.MAIL: "coordinator team-lead worker",
    P.CHECKPOINT: "coordinator team-lead worker",
    P.MEMORY: "coordinator team-lead worker",
    P.ALERT: "coordinator monitor",
    P.NOTIFY: "coordinator notifier",
    P.AUDIT: "coordinator team-lead",
    P.ADMIN: "coordinator",
}


def test_every_permission_is_in_the_table():
    assert set(MATRIX) == set(Permission)
    assert set(GRANTS) == set(Role)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("permission", Permission)
def test_a_role_may_do_what_the_table_says_and_nothing_else(role, permission):
    actor = Actor("someone", role)
    if role in MATRIX[permission].split():
        allow(actor, permission)
    else:
        with pytest.raises(Forbidden, match=f"may not {permission}"):
            allow(actor, permission)


def test_only_a_coordinator_acts_in_another_team():
    allow(Actor("c", Role.COORDINATOR, "red"), P.READ, team="blue")
    allow(Actor("l", Role.TEAM_LEAD, "red"), P.READ, team="red")
    with pytest.raises(Forbidden, match="in team red, not in blue"):
        allow(Actor("l", Role.TEAM_LEAD, "red"), P.READ, team="blue")


def test_a_run_acts_on_its_own_task():
    assert Actor("t-3.2", Role.WORKER, run="t-3.2").task == "t-3"
    assert Actor("me", Role.COORDINATOR).task == ""
