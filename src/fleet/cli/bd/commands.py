"""`fleet bd`: the command line of bd (beads), over our own queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.bd.frame import BdGroup, answer, bd_client, bd_json_option, version_option
from fleet.cli.bd.links import comment, comments, dep
from fleet.cli.terminal.completion import complete_coders, complete_names, complete_tasks
from fleet.cli.terminal.connect import unsupervised
from fleet.cli.terminal.render import Result, Stack, Text, say
from fleet.domain.errors import FleetError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.client import Client
    from fleet.operations.compat.issues import Issue

STATUSES = "open, in_progress, blocked, deferred, closed."


def _statuses() -> Iterable[str]:
    from fleet.operations.compat.states import BD_STATUSES

    return BD_STATUSES


complete_statuses = complete_names(_statuses)

issues_argument = click.argument("issues", nargs=-1, required=True, shell_complete=complete_tasks)


@click.group("bd", cls=BdGroup)
def bd() -> None:
    """Use this queue with the commands of bd (beads).

    An issue of bd is a task here. The options are those of bd, and --json prints its shapes;
    every error is exit status 1. Inside a run the same program is on the PATH as `bd`.

        fleet bd create "Fix the login" --priority 1 --coder codex --model o3
        fleet bd list --status=blocked
        fleet bd update t-1 --status open --assignee ""
        fleet bd close t-1 --reason "Merged."
    """


bd.params[:0] = [bd_json_option(), version_option()]
for part in (comment, comments, dep):
    bd.add_command(part)


@bd.command("create")
@click.argument("title", required=False)
@click.option("--title", "named", metavar="TITLE", help="The title, if it is not the argument.")
@click.option("-d", "--description", default="", help="The prompt.")
@click.option("-p", "--priority", "urgency", default="2", help="0 to 4, or P0 to P4; 0 is first.")
@click.option("-t", "--type", "kind", default="task", help="task, bug, feature, chore, epic, …")
@click.option(
    "-l", "--labels", multiple=True, metavar="LABELS", help="Labels, separated by commas."
)
@click.option(
    "--deps",
    multiple=True,
    metavar="IDS",
    help="Issues to wait for; with blocks:ID, ID waits for this one.",
)
@click.option("--parent", default="", metavar="ID", help="The epic it belongs to.")
@click.option("-a", "--assignee", default="", help="The member who does it by hand; no run starts.")
@click.option("--coder", default="", shell_complete=complete_coders, help="The coder for the task.")
@click.option("--model", default="", help="The model for the task.")
@click.option(
    "--cwd",
    default="",
    metavar="DIRECTORY",
    help="The directory to work in. Default: the current one.",
)
@click.option("--dry-run", is_flag=True, help="Check the input; create nothing.")
def create(title: str | None, named: str | None, dry_run: bool, **given: Any) -> Result:  # noqa: FBT001  # click passes by name
    """Create an issue: queue a task."""
    from fleet.cli.bd.create import TypedIssue, create_issue, listed, one_title, priority
    from fleet.cli.bd.shapes import issue_of
    from fleet.cli.tasks.add import directory
    from fleet.operations.compat.issues import Issue

    typed = TypedIssue(
        title=one_title(title, named),
        priority=priority(given.pop("urgency")),
        type=given.pop("kind").strip().lower() or "task",
        labels=listed(given.pop("labels")),
        deps=listed(given.pop("deps")),
        **given,
    )
    client = bd_client(directory(typed.cwd or None))
    made = create_issue(client, typed, dry_run=dry_run)
    chosen = [(n, getattr(typed, n)) for n in ("coder", "model") if getattr(typed, n)]
    cwd = made.cwd
    defaults = ", ".join(f"{name}: {value}" for name, value in [("cwd", cwd), *chosen])
    if not isinstance(made, Issue):
        wanted = {"title": typed.title, "status": "open", "priority": typed.priority, "cwd": cwd}
        return answer(wanted, Text(f"Would create: {typed.title}  [{defaults}]"))
    text = f"Created {made.id}: {made.title}  [{defaults}]"
    return answer(issue_of(made), Text(text), notes=_off(client))


bd.add_command(create, "new")


@bd.command("list")
@click.option("-s", "--status", default="", shell_complete=complete_statuses, help=STATUSES)
@click.option("-a", "--assignee", default="", help="Only issues of this member.")
@click.option("--all", "everything", is_flag=True, help="Also list closed issues.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 10_000),
    default=50,
    help="Show at most this many; 0 for all.",
)
def list_(status: str, assignee: str, everything: bool, limit: int) -> Result:  # noqa: FBT001
    """List the issues, newest first."""
    from fleet.cli.bd.shapes import issue_of, issue_table
    from fleet.operations.compat.issues import ListIssues
    from fleet.operations.compat.states import bd_word

    wanted = bd_word(status) if status else ""
    rows = bd_client().call(ListIssues((), wanted, assignee, everything, limit))
    return answer([issue_of(i) for i in rows], issue_table(rows))


@bd.command("show")
@issues_argument
def show(issues: tuple[str, ...]) -> Result:
    """Show issues: fields, question, comments."""
    from fleet.cli.bd.shapes import full_of, issue_view
    from fleet.operations.compat.issues import ListIssues

    client = bd_client()
    rows = client.call(ListIssues(tasks=issues))
    near = tuple(sorted({n for i in rows for n in (*i.after, *i.needed_by)}))
    others = {i.id: i for i in client.call(ListIssues(tasks=near))} if near else {}
    view = issue_view(rows[0]) if len(rows) == 1 else Stack([("", issue_view(i)) for i in rows])
    return answer([full_of(i, others) for i in rows], view)


@bd.command("ready")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 10_000),
    default=100,
    help="Show at most this many; 0 for all.",
)
@click.option("--claim", is_flag=True, help="Claim the first one, to do it by hand.")
@click.option(
    "--unassigned",
    is_flag=True,
    help="Accepted for compatibility with bd; ready tasks are never assigned.",
)
def ready(limit: int, claim: bool, unassigned: bool) -> Result:  # noqa: FBT001
    """List the issues that could start now, in the order in which they start."""
    from fleet.cli.bd.shapes import issue_of, issue_table
    from fleet.operations.compat.issues import ListIssues
    from fleet.operations.tasks.list import ReadyTasks

    del unassigned
    client = bd_client()
    ids = tuple(row.id for row in client.call(ReadyTasks(limit or 10_000)))
    if claim:
        taken = _take_first(client, ids)
        words = f"Claimed {taken[0].id}: {taken[0].title}" if taken else "No ready work."
        return answer([issue_of(i) for i in taken], Text(words))
    rows = client.call(ListIssues(tasks=ids)) if ids else ()
    return answer([issue_of(i) for i in rows], issue_table(rows, empty="No ready work."))


def _take_first(client: Client, ids: tuple[str, ...]) -> tuple[Issue, ...]:
    """Claim the first ready task; one that somebody else was quicker with is passed over."""
    from fleet.operations.compat.issues import ListIssues
    from fleet.operations.tasks.assign import AssignTask

    for task in ids:
        try:
            client.call(AssignTask(task, claim=True, fresh=True))
        except Refused as error:
            if error.code not in {"claimed", "ended"}:
                raise
            continue
        return client.call(ListIssues(tasks=(task,)))
    return ()


@bd.command("blocked")
def blocked() -> Result:
    """List the issues that wait for others."""
    from fleet.cli.bd.shapes import issue_of, issue_table
    from fleet.operations.compat.issues import ListIssues

    client = bd_client()
    rows = [i for i in client.call(ListIssues(limit=0)) if i.status == "waiting"]
    near = tuple(sorted({n for i in rows for n in i.after}))
    done = {i.id for i in client.call(ListIssues(tasks=near)) if i.bd == "closed"} if near else ()
    data = []
    for issue in rows:
        needs = [n for n in issue.after if n not in done]
        data.append(issue_of(issue) | {"blocked_by_count": len(needs), "blocked_by": needs})
    return answer(data, issue_table(rows, empty="No issue waits for another."))


@bd.command("update")
@issues_argument
@click.option("-s", "--status", shell_complete=complete_statuses, help=STATUSES)
@click.option(
    "-a",
    "--assignee",
    help="The member who does it by hand; empty to unassign it, so that it may start.",
)
@click.option("--notes", help="A note; with --status blocked, `QUESTION: …` asks.")
@click.option("--claim", is_flag=True, help="Take it, unless it is assigned to another member.")
@click.option("--title", help="A new title.")
@click.option("-d", "--description", help="The prompt, from the next run on.")
@click.option("-p", "--priority", "urgency", help="0 to 4, or P0 to P4; 0 is first.")
def update(issues: tuple[str, ...], urgency: str | None, **given: Any) -> Result:
    """Change issues.

    --status open reopens an ended task, resumes a paused one, and passes on the answer that you
    wrote below a question in its Q&A.md. A running task is left alone.
    """
    from fleet.cli.bd.create import priority
    from fleet.cli.bd.shapes import issue_of
    from fleet.cli.bd.update import IssueChanges, update_issue
    from fleet.operations.compat.issues import ListIssues

    wish = IssueChanges(**given, priority=priority(urgency) if urgency is not None else None)
    client = bd_client()
    lines = [line for name in issues for line in update_issue(client, name, wish)]
    rows = client.call(ListIssues(tasks=issues))
    notes = _off(client) if any(i.status == "ready" for i in rows) else ()
    return answer([issue_of(i) for i in rows], Text("\n".join(lines)), notes=notes)


@bd.command("close")
@issues_argument
@click.option("-r", "--reason", default="Closed.", help="The reason.")
def close(issues: tuple[str, ...], reason: str) -> Result:
    """Close issues: mark them as done.

    Inside a run, closing the run's own task takes effect when the run ends.
    """
    from fleet.cli.bd.shapes import issue_of
    from fleet.cli.bd.update import close_issue
    from fleet.operations.compat.issues import ListIssues

    client, lines, closed = bd_client(), [], []
    failed: FleetError | None = None
    for name in issues:
        try:
            lines.append(close_issue(client, name, reason))
            closed.append(name)
        except FleetError as error:
            if len(issues) == 1:
                raise
            failed = error
            say(f"{name}: {error.message}", "red")
    rows = client.call(ListIssues(tasks=tuple(closed))) if closed else ()
    status = 1 if failed else 0
    return answer([issue_of(i) for i in rows], Text("\n".join(lines)), exit_status=status)


@bd.command("reopen")
@issues_argument
@click.option("-r", "--reason", help="The reason, kept as a comment.")
def reopen(issues: tuple[str, ...], reason: str | None) -> Result:
    """Reopen closed issues."""
    from fleet.cli.bd.shapes import issue_of
    from fleet.cli.bd.update import IssueChanges, update_issue
    from fleet.operations.compat.issues import ListIssues

    client = bd_client()
    wish = IssueChanges(status="open", notes=reason)
    lines = [line for name in issues for line in update_issue(client, name, wish)]
    rows = client.call(ListIssues(tasks=issues))
    return answer([issue_of(i) for i in rows], Text("\n".join(lines)), notes=_off(client))


@bd.command("delete")
@issues_argument
@click.option(
    "--force", is_flag=True, help="Cancel them; without it, only show what would be cancelled."
)
def delete(issues: tuple[str, ...], force: bool) -> Result:  # noqa: FBT001
    """Cancel issues; their history is kept."""
    from fleet.operations.compat.issues import ListIssues
    from fleet.operations.tasks.change import CancelTask

    client, lines = bd_client(), []
    rows = client.call(ListIssues(tasks=issues))
    for issue in rows:
        if issue.bd == "closed":
            lines.append(f"{issue.id} is {issue.status} already; its history is kept.")
        elif not force:
            lines.append(f"Would cancel {issue.id}: {issue.title}  (--force does it)")
        else:
            client.call(CancelTask(issue.id, "Deleted by bd."))
            lines.append(f"Cancelled {issue.id}: {issue.title}; its history is kept.")
    done = [i.id for i in rows] if force else []
    return answer({"deleted": done, "deleted_count": len(done)}, Text("\n".join(lines)))


@bd.command("prime")
def prime() -> Result:
    """Print how to work with the queue, for an agent's context."""
    from fleet.cli.bd.prime import WORDS

    return answer({"text": WORDS}, Text(WORDS.rstrip("\n")))


def _off(client: Client) -> tuple[str, ...]:
    return () if client.actor.run else unsupervised(client)
