from __future__ import annotations

import pytest

from fleet.cli.agents.views import agent_table
from fleet.cli.terminal.layout import lines
from fleet.cli.terminal.measure import width
from fleet.operations.tasks.rows import UsageRow

SECOND = 1_000_000
AGENT = {
    "branch": "fleet/t-31-mend-the-login", "task": "t-31", "doing": "working", "status": "running",
    "coder": "claude", "model": "qwen2.5-coder:32b-instruct", "cpu": 12.0, "memory": 700 << 20,
    "usage": UsageRow(input=90_000, output=4_000, cost=1_250_000), "batch": "b7",
    "title": "Mend the login of people who have changed their names", "started_at": SECOND,
    "ended_at": None, "last": "", "added": 120, "removed": 3,
}  # fmt: skip


def drawn(room, **changed):
    return lines(
        agent_table([AGENT | changed], 90 * SECOND, grouped=False), room=room, colour=False
    )


@pytest.mark.parametrize("room", [80, 100, 120, 200])
def test_the_list_of_agents_fits_the_terminal(room):
    assert all(width(line) <= room for line in drawn(room))


def test_a_narrow_terminal_shows_which_agent_does_what_how_long_and_for_how_much():
    assert drawn(80)[0].split() == ["BRANCH", "TASK", "STATE", "TIME", "COST", "CHANGES", "TITLE"]


def test_a_pipe_gets_every_column_also_an_empty_one():
    head, row = drawn(None, memory=None, batch="")
    assert head.split()[-5:] == ["TIME", "TOKENS", "COST", "CHANGES", "TITLE"]
    assert AGENT["title"] in row


@pytest.mark.parametrize("room", [80, 120])
def test_agents_of_every_project_name_their_project_on_a_narrow_terminal(room):
    view = agent_table([AGENT | {"project": "/srv/shop"}], 0, grouped=False, everywhere=True)
    head, row = lines(view, room=room, colour=False)
    assert head.split()[2] == "PROJECT"
    assert " shop " in row
    assert max(width(head), width(row)) <= room
