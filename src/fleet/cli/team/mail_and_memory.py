"""What somebody keeps in a team: mail, memory, checkpoints, files that they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.swarms_and_boards import (
    Columns,
    client_of,
    limit_option,
    one_line,
    team_option,
    when,
)
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Column, Result, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.operations.team.memory import MemoryRow


@group()
def mail() -> None:
    """Send mail to somebody in the team, and read your own."""


@mail.command("send", config=True)
@click.argument("to")
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="")
@team_option
def mail_send(
    *, to: str, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to somebody, who finds it when they look."""
    from fleet.operations.messages.mail import SendMail

    return Result("mail", client_of(config).call(SendMail(to, " ".join(text), subject, team=team)))


@mail.command("broadcast", config=True)
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="")
@team_option
def mail_broadcast(
    *, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to everyone who has been seen in the team."""
    from fleet.operations.messages.mail import Broadcast

    sent = client_of(config).call(Broadcast(" ".join(text), subject, team=team))
    rows = [(m.id, m.to) for m in sent]
    return Result("mails", sent, Table(["mail", "to"], rows))


@mail.command("list", config=True)
@click.argument("handle", required=False, default="")
@click.option("--unread", is_flag=True, help="Only what has not been read.")
@click.option("--mark-read", is_flag=True, help="Say that you have read your own.")
@team_option
@limit_option
def mail_list(
    *, handle: str, unread: bool, mark_read: bool, team: str, limit: int, config: Path | None
) -> Result:
    """List your mail; who leads the team may list that of HANDLE."""
    from fleet.operations.messages.mail import ListMail, TakeMail

    client = client_of(config)
    if mark_read and not handle:
        found = client.call(TakeMail(unread, team, limit))
    else:
        found = client.call(ListMail(handle, unread, team, limit=limit))
    rows = [
        (m.id, when(m.at), m.sender, "" if m.read_at else "new", one_line(m.subject or m.text))
        for m in found
    ]
    columns: Columns = ["mail", "when", "from", "", Column("subject", flexible=True)]
    return Result("mails", found, Table(columns, rows, empty="No mail."))


@mail.command("read", config=True)
@click.argument("which", metavar="MAIL")
def mail_read(*, which: str, config: Path | None) -> Result:
    """Show a MAIL, and say that you have read it."""
    from fleet.operations.messages.mail import ReadMail

    return Result("mail", client_of(config).call(ReadMail(which)))


@group()
def memory() -> None:
    """Keep what should be known in the next run, too, and find it."""


@memory.command(config=True)
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@click.option("--type", "kind", default="fact", help="fact, decision, pattern or error.")
@click.option("--tag", "tags", multiple=True)
def store(
    *, key: str, value: tuple[str, ...], kind: str, tags: tuple[str, ...], config: Path | None
) -> Result:
    """Remember VALUE under KEY, in place of what was there."""
    from fleet.operations.team.memory import StoreMemory

    return Result("memory", client_of(config).call(StoreMemory(key, " ".join(value), kind, tags)))


@memory.command(config=True)
@click.argument("key")
@click.option("--agent", default="", help="Somebody else's.")
def recall(*, key: str, agent: str, config: Path | None) -> Result:
    """Say what was remembered under KEY."""
    from fleet.operations.team.memory import Recall

    return Result("memory", client_of(config).call(Recall(key, agent)))


@memory.command(config=True)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", help="Only what this one remembers.")
@limit_option
def search(*, words: tuple[str, ...], agent: str, limit: int, config: Path | None) -> Result:
    """Find what the team remembers that has all WORDS in it."""
    from fleet.operations.team.memory import SearchMemory

    found = client_of(config).call(SearchMemory(" ".join(words), agent, limit=limit))
    return Result("memories", found, _memories(found))


@memory.command("list", config=True)
@click.argument("agent", required=False, default="")
@limit_option
def memory_list(*, agent: str, limit: int, config: Path | None) -> Result:
    """List what AGENT, or everyone in the team, remembers."""
    from fleet.operations.team.memory import ListMemory

    found = client_of(config).call(ListMemory(agent, limit=limit))
    return Result("memories", found, _memories(found))


def _memories(found: Sequence[MemoryRow]) -> Table:
    rows = [(m.agent, m.key, m.type, one_line(m.value)) for m in found]
    columns: Columns = ["agent", "key", "type", Column("value", flexible=True)]
    return Table(columns, rows, empty="Nothing is remembered.")


@group()
def checkpoint() -> None:
    """Save where you stand for somebody to go on from, or go on from there."""


@checkpoint.command(config=True)
@click.argument("goal")
@click.argument("now")
@click.option("--to", default="", help="Who goes on from it; you if not given.")
@click.option("--test", default="", help="How it is tried.")
@click.option("--next", "then", multiple=True, help="A next step.")
@click.option("--blocker", "blockers", multiple=True)
@click.option("--question", "questions", multiple=True)
def save(
    *, goal: str, now: str, to: str, test: str, then: tuple[str, ...],
    blockers: tuple[str, ...], questions: tuple[str, ...], config: Path | None,
) -> Result:  # fmt: skip
    """Save a checkpoint: the GOAL, and where it stands NOW."""
    from fleet.domain.run import Summary
    from fleet.operations.team.checkpoints import SaveCheckpoint

    summary = Summary(goal, now, test, blockers=blockers, questions=questions, next=then)
    return Result("checkpoint", client_of(config).call(SaveCheckpoint(summary, to)))


@checkpoint.command(config=True)
@click.argument("which", metavar="[CHECKPOINT]", required=False, default="")
@click.option("--for", "handle", default="", help="The newest for this one.")
def load(*, which: str, handle: str, config: Path | None) -> Result:
    """Show a CHECKPOINT, or the newest that is for you."""
    from fleet.operations.team.checkpoints import LatestCheckpoint, LoadCheckpoint

    client = client_of(config)
    if which:
        return Result("checkpoint", client.call(LoadCheckpoint(which)))
    return Result("checkpoint", client.call(LatestCheckpoint(handle)))


@checkpoint.command(config=True)
@click.argument("which", metavar="CHECKPOINT")
def accept(*, which: str, config: Path | None) -> Result:
    """Say that you go on from a CHECKPOINT."""
    from fleet.operations.team.checkpoints import AcceptCheckpoint

    return Result("checkpoint", client_of(config).call(AcceptCheckpoint(which)))


@checkpoint.command(config=True)
@click.argument("which", metavar="CHECKPOINT")
@click.argument("why", required=False, default="")
def reject(*, which: str, why: str, config: Path | None) -> Result:
    """Say that you do not go on from a CHECKPOINT, and WHY."""
    from fleet.operations.team.checkpoints import RejectCheckpoint

    return Result("checkpoint", client_of(config).call(RejectCheckpoint(which, why)))


@group()
def claims() -> None:
    """Claim files for a while, so that two do not change one at once."""


@claims.command("take", config=True)
@click.argument("path")
@click.option("--seconds", type=click.IntRange(1, 86400), default=600, show_default=True)
def take(*, path: str, seconds: int, config: Path | None) -> Result:
    """Claim the file PATH; refused while somebody else has it."""
    from fleet.operations.team.file_claims import ClaimFile

    return Result("file", client_of(config).call(ClaimFile(path, seconds)))


@claims.command(config=True)
@click.argument("path")
def release(*, path: str, config: Path | None) -> Result:
    """Let go of the file PATH."""
    from fleet.operations.team.file_claims import ReleaseFile

    return Result("file", client_of(config).call(ReleaseFile(path)))


@claims.command("list", config=True)
@team_option
@limit_option
def claims_list(*, team: str, limit: int, config: Path | None) -> Result:
    """List the files that are claimed now."""
    from fleet.operations.team.file_claims import ListFiles

    found = client_of(config).call(ListFiles(team=team, limit=limit))
    rows = [(f.path, f.holder, when(f.at)) for f in found]
    columns: Columns = [Column("file", flexible=True), "holder", "since"]
    return Result("files", found, Table(columns, rows, empty="No file is claimed."))
