"""`fleet land`: bring the work of tasks to its branch, tested."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_landed, complete_landings, complete_tasks_to_land
from fleet.cli.terminal.connect import connect, say_warnings, unsupervised
from fleet.cli.terminal.frame import FleetGroup
from fleet.cli.terminal.human import counted
from fleet.cli.terminal.view import Column, ItemStream, Pairs, Result, Table, Text
from fleet.domain.errors import BadInput
from fleet.domain.landing.landing import HOWS, MERGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from fleet.client import Client
    from fleet.operations.landing.landing import CandidateRow, LandingRow, LandTasks
    from fleet.operations.landing.trains import TrainRow

MOST_AT_ONCE = 100  # tasks that one request queues
MOST_LISTED = 1000  # tasks of one page
NOW_SECONDS = 24 * 3600.0


class LandGroup(FleetGroup):
    """`fleet land t-3` is `fleet land add t-3`."""

    usual = "add"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {"--help", *self.list_commands(ctx)}:
            args = [self.usual, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        tasks = (
            complete_tasks_to_land(ctx, self.params[0], incomplete) if incomplete[:1] != "-" else []
        )
        return [*super().shell_complete(ctx, incomplete), *tasks]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """With those of `add`, which is what most people type here."""
        usual = self.get_command(ctx, self.usual)
        records = [p.get_help_record(ctx) for p in usual.params] if usual else []
        with formatter.section("Options of fleet land TASK…"):
            formatter.write_dl([record for record in records if record])
        super().format_options(ctx, formatter)


@click.group("land", cls=LandGroup, invoke_without_command=True, json=True, config=True)
@click.pass_context
def land(ctx: click.Context, *, config: Path | None) -> Result | None:
    """Bring the work of tasks to its branch, once it passes there.

    `fleet land TASK…` queues tasks; without a task it lists the queue. Their work is merged onto the
    branch as it is then, the merged tree is tested by the gate, and the branch moves to what passed.
    Work that conflicts or does not pass goes back to its agent.
    """
    return None if ctx.invoked_subcommand else _listed(config, everything=False)


@land.command("add", config=True)
@click.argument("tasks", metavar="TASK…", nargs=-1, shell_complete=complete_tasks_to_land)
@click.option(
    "--all", "everything", is_flag=True, help="All tasks here that are done and not landed."
)
@click.option("--label", default="", help="The tasks with this label that are done and not landed.")
@click.option("--onto", default="", metavar="BRANCH", help="The branch to land on.")
@click.option(
    "--as", "how", type=click.Choice(HOWS), default=MERGE,
    help="One merge commit for each task, or one commit without the task's own commits.",
)  # fmt: skip
@click.option(
    "--push", is_flag=True,
    help="Build on the remote's branch, and push what passes there (land.remote, or origin).",
)  # fmt: skip
@click.option(
    "--pr", is_flag=True,
    help="Open a pull request on the remote's forge; the work lands when that is merged.",
)  # fmt: skip
@click.option("--now", is_flag=True, help="Wait until the work has landed or was sent back.")
@click.option("--force", is_flag=True, help="Also land work that is not done, or fails its gate.")
@click.option("--why", default="", help="The reason for --force.")
def add(
    *,
    tasks: tuple[str, ...],
    everything: bool,
    label: str,
    onto: str,
    how: str,
    push: bool,
    pr: bool,
    now: bool,
    force: bool,
    why: str,
    config: Path | None,
) -> Result:
    """Queue the work of tasks to land."""
    from fleet.operations.landing.landing import LandTasks

    if force and not why.strip():
        raise BadInput("--force needs a reason.", fix="Say it: --why TEXT")
    if why and not force:
        raise BadInput("--why is the reason for --force.", fix="Add --force, or leave --why out.")
    if tasks and (everything or label):
        raise BadInput("Tasks cannot be named with --all or --label.", fix="Give one of them.")
    client = connect(config=config)
    if not (tasks or everything or label):
        raise BadInput("Name the tasks to land.", fix="fleet land TASK…, or fleet land --all")
    wanted = LandTasks(tasks, onto, how, why if force else "", push, pr)
    if not tasks:
        done, waiting = _not_landed(client, label)
        # Who wants no more than that they land goes on with those that were queued before.
        names = done + waiting if now and wanted == LandTasks(()) else done
        if not names:
            return _nothing_to_land(client, len(waiting))
        wanted = replace(wanted, tasks=names)
    parts = [replace(wanted, tasks=part) for part in _batches(wanted.tasks)]
    if now:
        queued = [row for part in parts for row in _queued_by_now(client, part)]
        return _wait_for(client, queued)
    rows = tuple(row for part in parts for row in client.call(part))
    return Result(
        "landings", rows, Text("\n".join(map(_queued, rows))), unsupervised(client, "nothing lands")
    )


def land_now(client: Client, tasks: tuple[str, ...], onto: str) -> Result:
    """Queue these tasks, and wait until they have landed or were sent back."""
    from fleet.operations.landing.landing import LandTasks

    return _wait_for(client, _queued_by_now(client, LandTasks(tasks, onto)))


def _queued_by_now(client: Client, wanted: LandTasks) -> tuple[LandingRow, ...]:
    """Queue what is not queued yet; who wants more than that it lands is refused as always."""
    from fleet.operations.landing.landing import ReleaseLanding, ShowLanding
    from fleet.operations.tasks.list import ListTasks

    known = {row.id: row for row in client.call(ListTasks(all=True, tasks=wanted.tasks))}
    landings = {name: row.landing for name, row in known.items() if row.landing}
    rows = {name: client.call(ShowLanding(landing)) for name, landing in landings.items()}
    waiting = {
        n: row for n, row in rows.items() if row.state == "queued" and _is_wanted(row, wanted)
    }
    others = tuple(name for name in wanted.tasks if name not in waiting)
    queued = client.call(replace(wanted, tasks=others)) if others else ()
    return (*(client.call(ReleaseLanding(row.id)) for row in waiting.values()), *queued)


def _is_wanted(row: LandingRow, wanted: LandTasks) -> bool:
    """Whether it is queued as it is wanted now; who says no more than that it lands wants it so."""
    branch = row.onto.removeprefix(f"{row.remote}/") if row.remote else row.onto
    onto = wanted.onto in {"", branch}
    pushed = not wanted.push or bool(row.remote and not row.pr)
    proposed = not wanted.pr or row.pr
    how = wanted.how in {MERGE, row.how} and wanted.force in {"", row.force}
    return onto and pushed and proposed and how


def _wait_for(client: Client, queued: Sequence[LandingRow]) -> Result:
    rows = _landed(client, queued)
    failed = any(row.state != "landed" and not _is_proposed(row) for row in rows)
    return Result("landings", rows, Text("\n".join(map(_end, rows))), exit_status=int(failed))


def _is_proposed(row: LandingRow) -> bool:
    """Whether the rest is up to those who merge its pull request."""
    return row.state == "queued" and bool(row.pull)


def _batches(tasks: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tasks[n : n + MOST_AT_ONCE] for n in range(0, len(tasks), MOST_AT_ONCE)]


def _nothing_to_land(client: Client, queued: int) -> Result:
    text = "Nothing here is done and not landed."
    if not queued:
        return Result("landings", (), Text(text))
    waiting = f"{counted(queued, 'task')} in the queue to land: fleet land list"
    return Result("landings", (), Text(f"{text} {waiting}"), unsupervised(client, "nothing lands"))


def _not_landed(client: Client, label: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tasks here that are done, and those of them that wait in the queue already; oldest first."""
    from fleet.operations.landing.landing import ListLandings
    from fleet.operations.tasks.list import ListTasks

    query = ListTasks(statuses=("done",), project=client.project, limit=MOST_LISTED)
    rows = page = client.call(query)
    while len(page) == MOST_LISTED:
        page = client.call(replace(query, before=page[-1].id))
        rows += page
    wanted = [row for row in rows[::-1] if row.run and row.run.branch]
    wanted = [row for row in wanted if not label or label in row.labels]
    waiting: set[str] = set()
    if any(row.status == "landing" for row in wanted):
        landings = client.call(ListLandings(limit=MOST_LISTED))
        waiting = {row.task for row in landings if row.state == "queued" and not row.pull}
    done = tuple(row.id for row in wanted if row.status == "done")
    return done, tuple(row.id for row in wanted if row.id in waiting)


def _landed(client: Client, rows: Sequence[LandingRow]) -> tuple[LandingRow, ...]:
    """Wait for them: by the supervisor, or else by ourselves."""
    from fleet.operations.landing.landing import ShowLanding

    def now() -> list[LandingRow]:
        return [client.call(ShowLanding(row.id)) for row in rows]

    def settled() -> bool:
        return all(row.state != "queued" or row.waits or _is_proposed(row) for row in now())

    client.land(settled, patience=NOW_SECONDS)
    return tuple(now())


def _queued(row: LandingRow) -> str:
    return f"{row.task} waits to land on {row.onto} ({row.id})."


def _end(row: LandingRow) -> str:
    if row.state == "landed" and row.nothing:
        return f"{row.task} changed nothing, so {row.onto} stays as it is."
    if row.state == "landed":
        return f"{row.task} landed on {row.onto} ({row.commit[:12]})."
    if _is_proposed(row):
        return f"{row.task}: {row.why}"
    if row.state == "queued":
        why = row.why or "It waits for other work."
        return f"{row.task} has not landed on {row.onto} yet: {why} It stays queued ({row.id})."
    text = f"{row.task} did not land on {row.onto}: {row.why or row.state}"
    if row.state != "returned":
        return text
    apart = " " if text.endswith(".") else "\n"  # a command has no full stop
    return f"{text}{apart}It goes back to its agent, which a supervisor starts."


def _listed(config: Path | None, *, everything: bool) -> Result:
    from fleet.operations.landing.landing import ListLandings

    rows = connect(config=config).call(ListLandings(all=everything, limit=1000))
    columns: list[Column | str] = [
        "landing", "task", "state", "onto", Column("title", flexible=True),
        Column("why", flexible=True, spare=1),
    ]  # fmt: skip
    cells = [(r.id, r.task, _state(r), r.onto, r.title, _why(r)) for r in rows]
    return Result("landings", rows, Table(columns, cells, empty="Nothing waits to land."))


def _why(row: LandingRow) -> str:
    return f"with {row.given}: {row.why}" if row.given else row.why or row.force


def _state(row: LandingRow) -> str:
    if row.state == "landed":
        return f"landed {row.commit[:7]}"
    return "next" if row.ahead == 0 else row.state


@land.command("list", config=True)
@click.option(
    "--all", "everything", is_flag=True, help="Also list landings that have landed or were dropped."
)
def list_(*, everything: bool, config: Path | None) -> Result:
    """List what waits to land, in order."""
    return _listed(config, everything=everything)


def _on_one(config: Path | None, request: Any, sentence: str) -> Result:
    row = connect(config=config).call(request)
    return Result("landing", row, Text(sentence.format(row=row)))


landing_argument = click.argument(
    "landing", metavar="LANDING|TASK", shell_complete=complete_landings
)
landed_argument = click.argument("landing", metavar="LANDING|TASK", shell_complete=complete_landed)


@land.command(config=True)
@landing_argument
@click.option(
    "-f", "--follow", is_flag=True, help="Print what its gate prints, until it has landed."
)
def show(*, landing: str, follow: bool, config: Path | None) -> Result:
    """Show one landing: its state and the reason for it."""
    from fleet.operations.landing.landing import ShowLanding

    client = connect(config=config)
    row = client.call(ShowLanding(landing))
    if follow:
        if row.state == "queued":
            say_warnings(unsupervised(client, "nothing lands"))
        return Result("line", _output(client, row), ItemStream(lambda line: line["text"]))
    pairs = [
        ("landing", row.id), ("task", f"{row.task}  {row.title}"), ("state", _state(row)),
        ("onto", row.onto), ("as", row.how), ("tip", row.tip[:12]),
        ("ahead", row.ahead), ("gate", row.gate or None),
        *(("tested", _tested(one)) for one in row.candidates),
        ("pull request", row.pull or None),
        ("sent back", row.returns or None), ("why", row.why or None),
        ("with", row.given or None),
        ("forced", row.force or None), *_evidence(row), ("by", row.author),
    ]  # fmt: skip
    known = [(name, value) for name, value in pairs if value is not None]
    return Result("landing", row, Pairs(known))


def _output(client: Client, row: LandingRow) -> Iterator[dict[str, str]]:
    """What its gates print, as it comes, and then how it ended."""
    from fleet.operations.landing.landing import ShowLanding
    from fleet.operations.landing.output import ReadGateOutput

    gate, offsets = "", dict[str, int]()  # by gate: up to where it was printed
    while True:
        read = client.call(ReadGateOutput(row.id, gate, offsets.get(gate, 0)))
        if read.gate != gate and read.gate in offsets:
            read = client.call(ReadGateOutput(row.id, read.gate, offsets[read.gate]))
        if read.gate not in offsets and read.live:
            yield {"gate": read.gate, "text": f"The gate tests {_what(row, read.gate)}:"}
        yield from ({"gate": read.gate, "text": line} for line in read.lines)
        gate, offsets[read.gate] = read.gate, read.offset
        if not read.lines:
            if row.state != "queued" or _is_proposed(row):
                break
            client.wait(0.2)
        row = client.call(ShowLanding(row.id))
    yield {"gate": "", "text": _end(row)}


def _what(row: LandingRow, gate: str) -> str:
    tested = (one for one in row.candidates if one.gate == gate)
    return next((f"{' + '.join(one.tasks)} ({one.commit[:12]})" for one in tested), row.task)


def _tested(candidate: CandidateRow) -> str:
    return f"{' + '.join(candidate.tasks)} ({candidate.state}, {candidate.commit[:12]})"


def _evidence(row: LandingRow) -> list[tuple[str, str | None]]:
    proof = row.evidence
    if proof is None:
        return []
    times = f"passed {proof.passed}, failed {proof.failed}" if proof.gate else ""
    ran = f"{proof.gate} ({times}, {proof.took / 1_000_000:.1f} s, tree {proof.tree[:12]})"
    return [
        ("landed as", row.commit[:12] or None), ("merged onto", proof.before[:12] or None),
        ("rule", proof.rule or None), ("tested by", ran if proof.gate else None),
        ("it printed", proof.output or None),
    ]  # fmt: skip


@land.command(config=True)
@click.option("-a", "--all", "everywhere", is_flag=True, help="The branches of every project.")
def forecast(*, everywhere: bool, config: Path | None) -> Result:
    """Say which branches at work or done would conflict, with their branch and each other."""
    from fleet.operations.landing.forecast import ForecastLandings

    client = connect(config=config)
    rows = client.call(ForecastLandings(client.scope(everywhere=everywhere)))
    columns: list[Column | str] = [
        "task", "status", "onto", Column("title", flexible=True, spare=1),
        Column("conflicts in", flexible=True), Column("and with", flexible=True),
    ]  # fmt: skip
    cells = [
        (r.task, r.status, r.onto, r.title, ", ".join(r.conflicts), ", ".join(r.rivals))
        for r in rows
    ]
    return Result("forecast", rows, Table(columns, cells, empty="No branch is at work or done."))


@land.command(config=True)
def trains(*, config: Path | None) -> Result:
    """List the queues of branches, and which merges are tested now."""
    from fleet.operations.landing.trains import ListTrains

    rows = connect(config=config).call(ListTrains())
    columns: list[Column | str] = [
        "onto", Column("waiting", right=True), Column("batch", right=True),
        Column("passed lately", right=True), Column("tested now", flexible=True),
        Column("why", flexible=True),
    ]  # fmt: skip
    cells = [
        (
            r.onto,
            r.waiting,
            r.batch,
            f"{r.rate} %",
            "; ".join(map(_tested, r.candidates)),
            _stop(r),
        )
        for r in rows
    ]
    return Result("trains", rows, Table(columns, cells, empty="No work lands on any branch yet."))


def _stop(row: TrainRow) -> str:
    if row.paused:
        return f"{row.paused} paused it."
    return row.stopped or row.waits or (f"flaky: {row.flaky}" if row.flaky else "")


@land.command(config=True)
@landing_argument
@click.option("--why", default="", help="The reason.")
def hold(*, landing: str, why: str, config: Path | None) -> Result:
    """Hold a landing until it is released."""
    from fleet.operations.landing.landing import HoldLanding

    return _on_one(config, HoldLanding(landing, why), "{row.task} is held ({row.id}).")


@land.command(config=True)
@landing_argument
@click.argument("name", default="")
def give(*, landing: str, name: str, config: Path | None) -> Result:
    """Give a landing that is held to NAME, a member of its team; without NAME, to everybody again."""
    from fleet.operations.landing.landing import GiveLanding

    words = (
        "{row.task} is with {row.given} ({row.id})."
        if name.strip()
        else "{row.task} is with nobody ({row.id})."
    )
    return _on_one(config, GiveLanding(landing, name), words)


@land.command(config=True)
@landing_argument
def release(*, landing: str, config: Path | None) -> Result:
    """Queue a landing again that was held or sent back too often."""
    from fleet.operations.landing.landing import ReleaseLanding

    return _on_one(config, ReleaseLanding(landing), "{row.task} waits to land on {row.onto}.")


@land.command(config=True)
@landing_argument
def drop(*, landing: str, config: Path | None) -> Result:
    """Take a landing out of the queue; the task stays done."""
    from fleet.operations.landing.landing import DropLanding

    return _on_one(config, DropLanding(landing), "{row.task} does not wait to land any more.")


@land.command(config=True)
@landed_argument
@click.option(
    "-a", "--agent", default="", help="The agent that resolves conflicts with later work."
)
def undo(*, landing: str, agent: str, config: Path | None) -> Result:
    """Take landed work out of its branch again, with a task that is tested like any other."""
    from fleet.operations.landing.landing import UndoLanding

    client = connect(config=config)
    row = client.call(UndoLanding(landing, agent))
    how = (
        "waits to land"
        if row.state == "queued"
        else "is done by an agent, as later work is in the way"
    )
    text = f"{row.task} undoes it on {row.onto}: it {how} ({row.id})."
    return Result("landing", row, Text(text), unsupervised(client, "nothing lands"))


@land.command("return", config=True)
@landing_argument
@click.argument("text", default="")
def return_(*, landing: str, text: str, config: Path | None) -> Result:
    """Send the work back to its agent with TEXT and all remarks; then it is queued again."""
    from fleet.operations.landing.landing import ShowLanding
    from fleet.operations.tasks.send_back import SendBack

    client = connect(config=config)
    task = client.call(ShowLanding(landing)).task
    client.call(SendBack(task, text))
    row = client.call(ShowLanding(landing))
    return Result("landing", row, Text(f"Sent {task} back to its agent ({row.id})."))


@land.command(config=True)
@landing_argument
@click.option("--before", default="", metavar="LANDING", help="The landing to move it in front of.")
def move(*, landing: str, before: str, config: Path | None) -> Result:
    """Move a landing to the front of its queue, or before another one."""
    from fleet.operations.landing.landing import MoveLanding

    return _on_one(config, MoveLanding(landing, before), "Moved {row.id} ({row.task}).")


@land.command(config=True)
@click.argument("branch", required=False, default="")
def pause(*, branch: str, config: Path | None) -> Result:
    """Let nothing land on BRANCH, or on any branch, until it is resumed."""
    from fleet.operations.landing.trains import PauseTrain

    rows = connect(config=config).call(PauseTrain(branch))
    return Result("trains", rows, Text(f"Nothing lands on {', '.join(r.onto for r in rows)}."))


@land.command(config=True)
@click.argument("branch", required=False, default="")
def resume(*, branch: str, config: Path | None) -> Result:
    """Let work land on BRANCH, or on every branch, again."""
    from fleet.operations.landing.trains import ResumeTrain

    rows = connect(config=config).call(ResumeTrain(branch))
    return Result("trains", rows, Text(f"Work lands on {', '.join(r.onto for r in rows)} again."))
