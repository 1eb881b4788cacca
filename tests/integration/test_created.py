"""What `fleet create` says of an agent that has ended by the time it looks."""

from __future__ import annotations

import pytest

from fleet.cli.agents.create import report
from fleet.domain.errors import Refused


def test_an_agent_that_began_was_created_whether_or_not_it_has_ended_since(supervised):
    task = supervised.add("say Ready.", "exit 3", attempts=1)
    supervised.start()
    supervised.wait(task, state="failed")
    text = report(supervised.client, [task], []).view.text
    assert text.startswith(f"Created fleet/{task} ({task}): scripted")
    assert "It has ended since: " in text


def test_an_agent_whose_program_was_never_started_could_not_start(supervised):
    task = supervised.add("say Ready.", attempts=1)
    supervised.start(FLEET_WORKSPACE_SETUP="false")
    supervised.wait(task, state="failed")
    with pytest.raises(Refused, match="could not start"):
        report(supervised.client, [task], [])
