"""`fleet blackboard`, and what is done with its posts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.lists import Columns, limit_option, one_line, when
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Column, Result, Table, Text
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path


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

    posts = connect(config=config).call(ReadBoard(swarm, kind, priority, unread, limit=limit))
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
    post = connect(config=config).call(Post(swarm, body, kind, to, priority))
    return Result("post", post, Text(f"Posted {post.id} on the board of {post.task}."))


@command("blackboard-read", config=True)
@click.argument("posts", nargs=-1, required=True)
def blackboard_read(*, posts: tuple[str, ...], config: Path | None) -> Result:
    """Mark POSTS of a board as read."""
    from fleet.operations.messages.boards import MarkRead

    read = connect(config=config).call(MarkRead(posts))
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
    from fleet.operations.messages.boards import ArchivePosts

    if bool(posts) is bool(swarm):
        raise BadInput("No posts were named.", fix="Name posts (m-12), or a board with --swarm.")
    archived = connect(config=config).call(ArchivePosts(posts, swarm, hours * 3600))
    return Result(
        "posts",
        archived,
        Table(["post"], [(p.id,) for p in archived], empty="There are no old posts."),
    )
