"""`fleet checkpoint`: the state of work that one member hands to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import Columns, limit_option, one_line, team_option, when
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command, group
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Column, Pairs, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.operations.team.checkpoints import CheckpointRow


@command(config=True)
@click.argument("handle", required=False, default="")
@click.option("--status", default="", help="pending, accepted or rejected.")
@team_option
@limit_option
def checkpoints(*, handle: str, status: str, team: str, limit: int, config: Path | None) -> Result:
    """List the checkpoints for HANDLE, or for everyone in the team, newest first."""
    from fleet.operations.team.checkpoints import ListCheckpoints

    listed = connect(config=config).call(ListCheckpoints(handle, status, team, limit=limit))
    rows = [(c.id, when(c.at), c.sender, c.to, c.status, one_line(c.summary.goal)) for c in listed]
    columns: Columns = ["checkpoint", "when", "from", "to", "status", Column("goal", flexible=True)]
    return Result("checkpoints", listed, Table(columns, rows, empty="No checkpoints."))


@group()
def checkpoint() -> None:
    """Save the state of your work, and continue from a saved one."""


@checkpoint.command(config=True)
@click.argument("goal")
@click.argument("now")
@click.option("--to", default="", help="The member who continues from it. Default: you.")
@click.option("--test", default="", help="How to test the work.")
@click.option("--next", "then", multiple=True, help="A next step.")
@click.option(
    "--blocker", "blockers", multiple=True, help="Something that blocks the work. Repeatable."
)
@click.option(
    "--question", "questions", multiple=True, help="A question that is still open. Repeatable."
)
def save(
    *, goal: str, now: str, to: str, test: str, then: tuple[str, ...],
    blockers: tuple[str, ...], questions: tuple[str, ...], config: Path | None,
) -> Result:  # fmt: skip
    """Save a checkpoint: the GOAL, and the state of the work NOW."""
    from fleet.domain.run import Summary
    from fleet.operations.team.checkpoints import SaveCheckpoint

    summary = Summary(goal, now, test, blockers=blockers, questions=questions, next=then)
    saved = connect(config=config).call(SaveCheckpoint(summary, to))
    return Result("checkpoint", saved, Text(f"Saved {saved.id} for {saved.to}."))


@checkpoint.command(config=True)
@click.argument("which", metavar="[CHECKPOINT]", required=False, default="")
@click.option("--for", "handle", default="", help="The newest checkpoint for this member.")
def load(*, which: str, handle: str, config: Path | None) -> Result:
    """Show a CHECKPOINT, or the newest one for you."""
    from fleet.operations.team.checkpoints import LatestCheckpoint, LoadCheckpoint

    client = connect(config=config)
    row = client.call(LoadCheckpoint(which) if which else LatestCheckpoint(handle))
    return Result("checkpoint", row, _checkpoint(row))


def _checkpoint(row: CheckpointRow) -> Pairs:
    """What it says, without what it leaves open."""
    summary = row.summary
    lists = {"blockers": summary.blockers, "questions": summary.questions, "next": summary.next}
    lists |= {"worked": summary.worked, "failed": summary.failed, "files": summary.files}
    done = "\n".join(
        f"{item.task} ({', '.join(item.files)})" if item.files else item.task
        for item in summary.done
    )
    pairs = [
        ("checkpoint", row.id), ("from", row.sender), ("to", row.to), ("saved", moment(row.at)),
        ("status", row.status), ("why", row.why), ("task", row.task), ("goal", summary.goal),
        ("now", summary.now), ("test", summary.test), ("done", done),
        *((label, "\n".join(lines)) for label, lines in lists.items()),
    ]  # fmt: skip
    return Pairs([(label, text) for label, text in pairs if text])


@checkpoint.command(config=True)
@click.argument("which", metavar="CHECKPOINT")
def accept(*, which: str, config: Path | None) -> Result:
    """Accept a CHECKPOINT and continue from it."""
    from fleet.operations.team.checkpoints import AcceptCheckpoint

    done = connect(config=config).call(AcceptCheckpoint(which))
    return Result("checkpoint", done, Text(f"Accepted {done.id} from {done.sender}."))


@checkpoint.command(config=True)
@click.argument("which", metavar="CHECKPOINT")
@click.argument("why", required=False, default="")
def reject(*, which: str, why: str, config: Path | None) -> Result:
    """Reject a CHECKPOINT, with the reason WHY."""
    from fleet.operations.team.checkpoints import RejectCheckpoint

    done = connect(config=config).call(RejectCheckpoint(which, why))
    return Result("checkpoint", done, Text(f"Rejected {done.id} from {done.sender}."))
