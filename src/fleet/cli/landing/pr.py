"""`fleet pr`: the pull request of a task on its forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_tasks
from fleet.cli.terminal.connect import connect, unsupervised
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Pairs, Result, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.operations.forges.pulls import PullRow

task_argument = click.argument("task", metavar="TASK", shell_complete=complete_tasks)


@group()
def pr() -> None:
    """Open and follow the pull request of a task, on GitHub, GitLab, Gitea or Forgejo.

    The work is merged with the branch as it is now and tested by the gate. What passes is pushed to
    the task's own branch, a pull request is opened for it, and the gate is reported as the status of
    its commit. The task lands when the pull request is merged.

    The token comes from FLEET_FORGE_TOKEN, from `gh` or `glab`, or from git's credential helper.
    """


def _one(config: Path | None, request: Any) -> PullRow:
    row: PullRow = connect(config=config).call(request)
    return row


@pr.command("open", config=True)
@task_argument
@click.option("--title", default="", help="The title of the pull request. Default: the task's.")
@click.option("--body", default="", help="The description of the pull request.")
@click.option("--onto", "--base", default="", metavar="BRANCH", help="The branch to merge into.")
@click.option("--merge", is_flag=True, help="Merge it as soon as the forge allows it.")
def open_(
    *, task: str, title: str, body: str, onto: str, merge: bool, config: Path | None
) -> Result:
    """Open a pull request for the work of TASK, or change the title and body of the one it has."""
    from fleet.operations.forges.pulls import OpenPull

    client = connect(config=config)
    row = client.call(OpenPull(task, title, body, onto, merge))
    hint = unsupervised(client, "no pull request is opened")
    text = f"{row.task}: {row.url}" if row.url else f"{row.task} waits for its pull request."
    return Result("pull_request", row, Text(text), hint)


@pr.command(config=True)
@task_argument
def show(*, task: str, config: Path | None) -> Result:
    """Show the pull request of TASK, as the forge last described it."""
    from fleet.operations.forges.pulls import ShowPull

    return _pairs(_one(config, ShowPull(task)))


def _pairs(row: PullRow) -> Result:
    pairs = [
        ("task", row.task), ("state", row.state), ("url", row.url or None),
        ("branch", row.branch or None), ("onto", row.onto), ("head", row.head[:12] or None),
        ("merge", "as soon as the forge allows it" if row.merge else None),
        ("why", row.why or None), ("landing", row.landing),
    ]  # fmt: skip
    known = [(name, value) for name, value in pairs if value]
    return Result("pull_request", row, Pairs(known))


@pr.command(config=True)
@task_argument
def sync(*, task: str, config: Path | None) -> Result:
    """Ask the forge about the pull request of TASK now. The supervisor asks every 20 seconds."""
    from fleet.operations.forges.pulls import SyncPull

    return _pairs(_one(config, SyncPull(task)))


@pr.command(config=True)
@task_argument
def merge(*, task: str, config: Path | None) -> Result:
    """Merge the pull request of TASK as soon as its gate has passed and the forge allows it.

    Only the commit that was tested is merged: if a person has pushed to it, Fleet does not merge it.
    """
    from fleet.operations.forges.pulls import MergePull

    row = _one(config, MergePull(task))
    return Result(
        "pull_request", row, Text(f"{row.task} is merged as soon as the forge allows it.")
    )


@pr.command(config=True)
@task_argument
def close(*, task: str, config: Path | None) -> Result:
    """Close the pull request of TASK without a merge; the task stays done."""
    from fleet.operations.forges.pulls import ClosePull

    row = _one(config, ClosePull(task))
    where = f" ({row.url})" if row.url else ""
    return Result("pull_request", row, Text(f"The pull request of {row.task} is closed{where}."))
