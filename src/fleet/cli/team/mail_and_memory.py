"""What somebody keeps in a team: mail, memory, checkpoints, files that they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.swarms_and_boards import (
    LISTED,
    Columns,
    client_of,
    limit_option,
    one_line,
    team_option,
    when,
)
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Column, Pairs, Result, Table, Text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.client import Client
    from fleet.operations.messages.mail import MailRow
    from fleet.operations.team.checkpoints import CheckpointRow
    from fleet.operations.team.memory import MemoryRow


@group(invoke_without_command=True, json=True, config=True)
def mail(config: Path | None) -> Result | None:
    """List and read your mail, and send mail within the team."""
    if click.get_current_context().invoked_subcommand:
        return None
    return _mail(client_of(config), "", LISTED)


@mail.command("send", config=True)
@click.argument("to")
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="", help="The subject of the mail.")
@team_option
def mail_send(
    *, to: str, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to a member, who reads it later."""
    from fleet.operations.messages.mail import SendMail

    sent = client_of(config).call(SendMail(to, " ".join(text), subject, team=team))
    return Result("mail", sent, Text(f"Sent {sent.id} to {sent.to}."))


@mail.command("broadcast", config=True)
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", default="", help="The subject of the mail.")
@team_option
def mail_broadcast(
    *, text: tuple[str, ...], subject: str, team: str, config: Path | None
) -> Result:
    """Send TEXT to every member of the team."""
    from fleet.operations.messages.mail import Broadcast

    sent = client_of(config).call(Broadcast(" ".join(text), subject, team=team))
    rows = [(m.id, m.to) for m in sent]
    return Result("mails", sent, Table(["mail", "to"], rows))


@mail.command("list", config=True)
@click.argument("handle", required=False, default="")
@click.option("--unread", is_flag=True, help="Only unread mail.")
@click.option("--mark-read", is_flag=True, help="Mark your own mail as read.")
@team_option
@limit_option
def mail_list(
    *, handle: str, unread: bool, mark_read: bool, team: str, limit: int, config: Path | None
) -> Result:
    """List your mail; a team-lead can also list that of HANDLE."""
    from fleet.operations.messages.mail import TakeMail

    client = client_of(config)
    if mark_read and not handle:
        return _mails(client.call(TakeMail(unread, team, limit)))
    return _mail(client, handle, limit, unread=unread, team=team)


def _mail(
    client: Client, handle: str, limit: int, *, unread: bool = False, team: str = ""
) -> Result:
    from fleet.operations.messages.mail import ListMail

    return _mails(client.call(ListMail(handle, unread, team, limit=limit)))


def _mails(mails: tuple[MailRow, ...]) -> Result:
    rows = [
        (m.id, when(m.at), m.sender, "" if m.read_at else "new", one_line(m.subject or m.text))
        for m in mails
    ]
    columns: Columns = ["mail", "when", "from", "", Column("subject", flexible=True)]
    return Result("mails", mails, Table(columns, rows, empty="No mail."))


@mail.command("read", config=True)
@click.argument("which", metavar="MAIL")
def mail_read(*, which: str, config: Path | None) -> Result:
    """Show a MAIL and mark it as read."""
    from fleet.operations.messages.mail import ReadMail

    read = client_of(config).call(ReadMail(which))
    pairs = [("mail", read.id), ("from", read.sender), ("to", read.to), ("sent", moment(read.at))]
    return Result("mail", read, Pairs([*pairs, ("subject", read.subject), ("text", read.text)]))


@group(invoke_without_command=True, json=True, config=True)
def memory(config: Path | None) -> Result | None:
    """Store facts for the team and for later runs, and find them again."""
    if click.get_current_context().invoked_subcommand:
        return None
    return _memory(client_of(config), "", LISTED)


@memory.command(config=True)
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@click.option("--type", "kind", default="fact", help="fact, decision, pattern or error.")
@click.option("--tag", "tags", multiple=True, help="A tag of the memory. Repeatable.")
def store(
    *, key: str, value: tuple[str, ...], kind: str, tags: tuple[str, ...], config: Path | None
) -> Result:
    """Store VALUE under KEY, replacing the old value."""
    from fleet.operations.team.memory import StoreMemory

    kept = client_of(config).call(StoreMemory(key, " ".join(value), kind, tags))
    return Result("memory", kept, Text(f"Stored {kept.key} ({kept.type})."))


@memory.command(config=True)
@click.argument("key")
@click.option("--agent", default="", help="The member who stored it. Default: you.")
def recall(*, key: str, agent: str, config: Path | None) -> Result:
    """Show the value stored under KEY."""
    from fleet.operations.team.memory import Recall

    kept = client_of(config).call(Recall(key, agent))
    pairs = [("agent", kept.agent), ("key", kept.key), ("type", kept.type)]
    pairs += [("tags", ", ".join(kept.tags))] if kept.tags else []
    pairs += [("stored", moment(kept.changed_at)), ("value", kept.value)]
    return Result("memory", kept, Pairs(pairs))


@memory.command(config=True)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", help="Only what this member stored.")
@limit_option
def search(*, words: tuple[str, ...], agent: str, limit: int, config: Path | None) -> Result:
    """Search the team's memories for those that contain all WORDS."""
    from fleet.operations.team.memory import SearchMemory

    memories = client_of(config).call(SearchMemory(" ".join(words), agent, limit=limit))
    return Result("memories", memories, _memories(memories))


@memory.command("list", config=True)
@click.argument("agent", required=False, default="")
@limit_option
def memory_list(*, agent: str, limit: int, config: Path | None) -> Result:
    """List the memories of AGENT, or of the whole team."""
    return _memory(client_of(config), agent, limit)


def _memory(client: Client, agent: str, limit: int) -> Result:
    from fleet.operations.team.memory import ListMemory

    memories = client.call(ListMemory(agent, limit=limit))
    return Result("memories", memories, _memories(memories))


def _memories(memories: Sequence[MemoryRow]) -> Table:
    rows = [(m.agent, m.key, m.type, one_line(m.value)) for m in memories]
    columns: Columns = ["agent", "key", "type", Column("value", flexible=True)]
    return Table(columns, rows, empty="No memories.")


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
    saved = client_of(config).call(SaveCheckpoint(summary, to))
    return Result("checkpoint", saved, Text(f"Saved {saved.id} for {saved.to}."))


@checkpoint.command(config=True)
@click.argument("which", metavar="[CHECKPOINT]", required=False, default="")
@click.option("--for", "handle", default="", help="The newest checkpoint for this member.")
def load(*, which: str, handle: str, config: Path | None) -> Result:
    """Show a CHECKPOINT, or the newest one for you."""
    from fleet.operations.team.checkpoints import LatestCheckpoint, LoadCheckpoint

    client = client_of(config)
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

    done = client_of(config).call(AcceptCheckpoint(which))
    return Result("checkpoint", done, Text(f"Accepted {done.id} from {done.sender}."))


@checkpoint.command(config=True)
@click.argument("which", metavar="CHECKPOINT")
@click.argument("why", required=False, default="")
def reject(*, which: str, why: str, config: Path | None) -> Result:
    """Reject a CHECKPOINT, with the reason WHY."""
    from fleet.operations.team.checkpoints import RejectCheckpoint

    done = client_of(config).call(RejectCheckpoint(which, why))
    return Result("checkpoint", done, Text(f"Rejected {done.id} from {done.sender}."))


@group(invoke_without_command=True, json=True, config=True)
def claims(config: Path | None) -> Result | None:
    """List and claim files, so that no two members change the same one."""
    if click.get_current_context().invoked_subcommand:
        return None
    return _claims(client_of(config), "", LISTED)


@claims.command("take", config=True)
@click.argument("path")
@click.option(
    "--seconds",
    type=click.IntRange(1, 86400),
    default=600,
    show_default=True,
    help="Seconds until the claim ends by itself.",
)
def take(*, path: str, seconds: int, config: Path | None) -> Result:
    """Claim the file PATH; refused while another member has it."""
    from fleet.operations.team.file_claims import ClaimFile

    claim = client_of(config).call(ClaimFile(path, seconds))
    return Result("file", claim, Text(f"Claimed {claim.path} until {moment(claim.until)}."))


@claims.command(config=True)
@click.argument("path")
def release(*, path: str, config: Path | None) -> Result:
    """Release the file PATH."""
    from fleet.operations.team.file_claims import ReleaseFile

    done = client_of(config).call(ReleaseFile(path))
    return Result("file", done, Text(f"Released {done.path}."))


@claims.command("list", config=True)
@team_option
@limit_option
def claims_list(*, team: str, limit: int, config: Path | None) -> Result:
    """List the files that are claimed now."""
    return _claims(client_of(config), team, limit)


def _claims(client: Client, team: str, limit: int) -> Result:
    from fleet.operations.team.file_claims import ListFiles

    claims = client.call(ListFiles(team=team, limit=limit))
    rows = [(f.path, f.holder, when(f.at), when(f.until)) for f in claims]
    columns: Columns = [Column("file", flexible=True), "holder", "since", "until"]
    return Result("files", claims, Table(columns, rows, empty="No files are claimed."))
