"""A team's swarms, boards, checkpoints and members."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

import click

from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Pairs, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.team.swarms import SwarmRow

Columns: TypeAlias = list[Column | str]

LISTED = 50  # rows of a list; of a group alone, too, which lists

limit_option = click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=LISTED,
    show_default=True,
    help="Show at most this many.",
)
team_option = click.option("--team", default="", help="The team. Default: yours.")


def client_of(config: Path | None) -> Client:
    from fleet.cli.terminal.connect import connect

    return connect(config=config)


def when(at: int | None) -> str:
    from fleet.cli.terminal.human import ago

    return ago(at, time.time_ns() // 1000)


def one_line(text: str) -> str:
    return " ".join(text.split())


@command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also list swarms that have ended.")
@team_option
@limit_option
def swarms(*, everything: bool, team: str, limit: int, config: Path | None) -> Result:
    """List the swarms: groups of tasks that share a board and a limit of agents."""
    from fleet.operations.team.swarms import ListSwarms

    listed = client_of(config).call(ListSwarms(team, everything, limit=limit))
    rows = [(s.id, s.name, s.state, f"{s.agents}/{s.max_agents}", s.tasks, s.team) for s in listed]
    columns: Columns = ["swarm", Column("name", flexible=True), "state", "agents", "tasks", "team"]
    return Result("swarms", listed, Table(columns, rows, empty="No swarms."))


@command("swarm-create", config=True)
@click.argument("name")
@click.argument("most", metavar="[MAX]", type=click.IntRange(1, 100), default=10)
@click.option("--description", default="", help="What the swarm is for.")
@team_option
def swarm_create(
    *, name: str, most: int, description: str, team: str, config: Path | None
) -> Result:
    """Create the swarm NAME, with at most MAX agents at work at once.

    Add tasks to it when you create them: fleet bd create "Fix the login" --parent SWARM
    """
    from fleet.operations.team.swarms import CreateSwarm

    client = client_of(config)
    project = client.project
    made = client.call(CreateSwarm(name, most, description, team, project))
    return Result("swarm", made, _swarm(made))


@command("swarm-kill", config=True)
@click.argument("swarm")
def swarm_kill(*, swarm: str, config: Path | None) -> Result:
    """Cancel every task of a SWARM and end its agents; their work is kept."""
    from fleet.operations.team.swarms import KillSwarm, ShowSwarm

    client = client_of(config)
    ended = client.call(KillSwarm(client.call(ShowSwarm(swarm)).id))
    return Result("swarm", ended, _swarm(ended))


def _swarm(row: SwarmRow) -> Pairs:
    return Pairs([
        ("swarm", row.id), ("name", row.name), ("state", row.state),
        ("agents", f"{row.agents}/{row.max_agents}"), ("tasks", row.tasks), ("team", row.team),
    ])  # fmt: skip


@command(config=True)
@click.argument("swarm")
@click.option(
    "--type", "kind", default="", help="request, response, status, directive, checkpoint."
)
@click.option("--priority", default="", help="low, normal, high or critical.")
@click.option("--unread", is_flag=True, help="Only posts that you have not read.")
@limit_option
def blackboard(
    *, swarm: str, kind: str, priority: str, unread: bool, limit: int, config: Path | None
) -> Result:
    """Show the board of a SWARM, or of any task, newest first."""
    from fleet.operations.messages.boards import ReadBoard

    posts = client_of(config).call(ReadBoard(swarm, kind, priority, unread, limit=limit))
    rows = [
        (p.id, when(p.at), p.author, p.to or "all", p.type, p.priority, _words(p.payload))
        for p in posts
    ]
    columns: Columns = ["post", "when", "from", "to", "type", "priority"]
    empty = "Its board is empty."
    return Result(
        "posts", posts, Table([*columns, Column("payload", flexible=True)], rows, empty=empty)
    )


def _words(payload: str) -> str:
    """The text of a post that has nothing else, as `blackboard-post` writes it; else its JSON."""
    import json

    body = json.loads(payload)
    return one_line(str(body["text"])) if body.keys() == {"text"} else payload


@command("blackboard-post", config=True)
@click.argument("swarm")
@click.argument("payload")
@click.option(
    "--type",
    "kind",
    default="status",
    show_default=True,
    help="request, response, status, directive or checkpoint.",
)
@click.option("--to", default="", help="The member who may read it. Default: all.")
@click.option(
    "--priority", default="normal", show_default=True, help="low, normal, high or critical."
)
def blackboard_post(
    *, swarm: str, payload: str, kind: str, to: str, priority: str, config: Path | None
) -> Result:
    """Post a PAYLOAD to the board of a SWARM: a JSON object, or text."""
    import json

    from fleet.operations.messages.boards import Post

    body = payload if payload.lstrip().startswith("{") else json.dumps({"text": payload})
    post = client_of(config).call(Post(swarm, body, kind, to, priority))
    return Result("post", post, Text(f"Posted {post.id} on the board of {post.task}."))


@command("blackboard-read", config=True)
@click.argument("posts", nargs=-1, required=True)
def blackboard_read(*, posts: tuple[str, ...], config: Path | None) -> Result:
    """Mark POSTS of a board as read."""
    from fleet.operations.messages.boards import MarkRead

    read = client_of(config).call(MarkRead(posts))
    return Result("posts", read, Text(f"Read {', '.join(post.id for post in read)}."))


@command("blackboard-archive", config=True)
@click.argument("posts", nargs=-1)
@click.option("--swarm", default="", help="Archive all old posts of this board.")
@click.option(
    "--hours",
    type=click.IntRange(min=0),
    default=24,
    show_default=True,
    help="With --swarm: the age from which posts are archived.",
)
def blackboard_archive(
    *, posts: tuple[str, ...], swarm: str, hours: int, config: Path | None
) -> Result:
    """Archive POSTS, or with --swarm all posts that are older than --hours."""
    from fleet.domain.errors import BadInput
    from fleet.operations.messages.boards import ArchivePosts

    if bool(posts) is bool(swarm):
        raise BadInput("No posts were named.", fix="Name posts (m-12), or a board with --swarm.")
    gone = client_of(config).call(ArchivePosts(posts, swarm, hours * 3600))
    return Result(
        "posts", gone, Table(["post"], [(p.id,) for p in gone], empty="There are no old posts.")
    )


@command(config=True)
@click.argument("handle", required=False, default="")
@click.option("--status", default="", help="pending, accepted or rejected.")
@team_option
@limit_option
def checkpoints(*, handle: str, status: str, team: str, limit: int, config: Path | None) -> Result:
    """List the checkpoints for HANDLE, or for everyone in the team, newest first."""
    from fleet.operations.team.checkpoints import ListCheckpoints

    listed = client_of(config).call(ListCheckpoints(handle, status, team, limit=limit))
    rows = [(c.id, when(c.at), c.sender, c.to, c.status, one_line(c.summary.goal)) for c in listed]
    columns: Columns = ["checkpoint", "when", "from", "to", "status", Column("goal", flexible=True)]
    return Result("checkpoints", listed, Table(columns, rows, empty="No checkpoints."))


@command(config=True)
@click.argument("team", required=False, default="")
@limit_option
def teams(*, team: str, limit: int, config: Path | None) -> Result:
    """List the members of a TEAM."""
    from fleet.operations.team.members import BeSeen, ListMembers

    client = client_of(config)
    client.call(BeSeen())
    members = client.call(ListMembers(team, limit=limit))
    rows = [(m.name, m.role, m.team, when(m.seen_at)) for m in members]
    columns: Columns = [Column("name", flexible=True), "role", "team", "seen"]
    return Result("members", members, Table(columns, rows, empty="No members have been seen yet."))
