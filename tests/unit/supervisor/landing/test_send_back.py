"""Who mends work that cannot land."""

from __future__ import annotations

import pytest

from fleet.domain.causes import HERE
from fleet.domain.fleet import Agent, Fleet
from fleet.domain.task import Task, TaskState
from fleet.supervisor.landing.send_back import reconciler_of

FLEET = Fleet(agents={"neutral": Agent("neutral", "claude"), "sh": Agent("sh", "scripted")})


@pytest.mark.parametrize(
    ("by", "name", "mends"),
    [
        ("worker", "neutral", "neutral"),
        ("team-lead", "codex", "codex"),
        ("team-lead", "sh", ""),
        ("worker", "scripted", ""),
        ("coordinator", "sh", "sh"),
        (HERE, "scripted", "scripted"),
        (HERE, "", ""),
    ],
)
def test_no_reconciler_carries_out_what_others_wrote_as_a_program(by, name, mends):
    task = Task("t-1", 1, TaskState.DONE, "run id", "run id", "/p", "bob", 0, caused_by=by)
    assert reconciler_of(task, name, FLEET) == mends
