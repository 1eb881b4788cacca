"""What of a list of tasks stays where the terminal is narrow."""

from __future__ import annotations

import pytest

from fleet.cli.tasks.views import task_table
from fleet.cli.terminal.layout import lines
from fleet.cli.terminal.measure import width
from fleet.operations.tasks.rows import RunNow, TaskRow, UsageRow

MINUTE = 60_000_000


def row(number: int, cwd="/home/ada/shop", cost=1_230_000) -> TaskRow:
    usage = UsageRow(input=1000, output=200, context=9000, cost=cost)
    run = RunNow(
        f"t-{number}.1", MINUTE, None, 3 * MINUTE, 120, 9000, usage, "", branch=f"fleet/t-{number}",
        added=120, removed=3,
    )  # fmt: skip
    return TaskRow(
        f"t-{number}", "Make the login remember people for a week", "running", "running", "local",
        2, (), "implementer", "claude", "sonnet", (), cwd, cwd, 0, run,
    )  # fmt: skip


def heads(rows, room) -> list[str]:
    return lines(task_table(rows, 5 * MINUTE), room=room, colour=False)[0].lower().split()


@pytest.mark.parametrize("room", [80, 120])
def test_branch_cost_and_elapsed_stay_and_nothing_is_wider_than_the_terminal(room):
    rows = [row(1), row(2, cwd="/home/ada/another/project/of/mine")]
    drawn = lines(task_table(rows, 5 * MINUTE), room=room, colour=False)
    assert {"task", "status", "elapsed", "cost", "branch", "changes", "title"} <= set(
        heads(rows, room)
    )
    assert all(width(line) <= room for line in drawn)
    assert not any(cell == "…" for line in drawn for cell in line.split())


def test_the_directory_goes_first_and_then_how_long_it_has_been_idle():
    rows = [row(1), row(2, cwd="/home/ada/another/project/of/mine")]
    whole = heads(rows, 250)
    assert {"cwd", "idle"} <= set(whole)
    order = []
    for room in range(250, 70, -1):
        order += [name for name in whole if name not in heads(rows, room) and name not in order]
    assert order[:2] == ["cwd", "idle"]


def test_a_directory_that_all_share_is_not_said_for_each():
    assert "cwd" not in heads([row(1), row(2)], 250)


@pytest.mark.parametrize("room", [80, 120])
def test_tasks_of_every_project_name_their_project_on_a_narrow_terminal(room):
    tasks = [row(1), row(2, "/home/ada/site"), row(3, "/srv/site")]
    drawn = lines(task_table(tasks, 0, everywhere=True), room=room, colour=False)
    assert drawn[0].split()[1] == "PROJECT"
    assert [line.split()[1] for line in drawn[1:]] == ["shop", "ada/site", "srv/site"]
    assert all(width(line) <= room for line in drawn)
