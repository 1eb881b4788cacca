"""Show what the agents of this host are doing, and answer their permission dialogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.causes import check_may_allow
from fleet.domain.data import dataclass
from fleet.domain.errors import Mismatch, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Items, TextLimit
from fleet.domain.task import Mode
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import own_task
from fleet.operations.shared.elsewhere import must_be_here
from fleet.operations.shared.names import PAGE, team_in_view, the_run, the_task
from fleet.ports import Subject

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class SightRow:
    """`doing`: such as working, waiting or permission; `by`: the evidence for it.

    `asks`: what it asks permission for; `always`: the answer that allows it from now on, in the
    words of its program, if that offers one. `cpu`: percent of one core; `memory`: bytes.
    """

    task: str
    run: str
    doing: str
    by: str
    asks: str = ""
    screen: str = ""
    exit: int | None = None
    cpu: int | None = None
    memory: int | None = None
    always: str = ""


@dataclass(frozen=True, slots=True)
class LookAtAgents(Request[tuple[SightRow, ...]]):
    """`tasks`: only these; empty: every live run that the caller sees.

    `there`: of one task, whose host is asked if it is another one. Else only this host's are known.
    """

    tasks: Annotated[tuple[str, ...], Items(PAGE)] = ()
    there: bool = False


@dataclass(frozen=True, slots=True)
class PermitRow:
    """`asks`: what it asked permission for, and `allowed` is the answer; `always`: from now on."""

    task: str
    run: str
    asks: str
    allowed: bool
    always: bool = False


@dataclass(frozen=True, slots=True)
class PermitRun(Request[PermitRow]):
    """Answer the permission dialog on an agent's screen.

    `asks`: refuse unless it still asks for this. `always`: allow it from now on, as far as the dialog
    itself offers that: `always` in the rows of `agent.look` and `inbox.list` has its words. Only a coordinator, or a person at this machine,
    can allow; team-leads can refuse.
    """

    task: str
    allow: bool
    asks: Annotated[str, TextLimit(500, what="request")] = ""
    always: bool = False


def look(context: Context, request: LookAtAgents) -> tuple[SightRow, ...]:
    agents, store, team = context.agents(), context.store, team_in_view(context)
    ids = {the_task(context, name, Permission.READ).id for name in request.tasks}
    runs = [r for r in store.live_runs() if not ids or r.task in ids]
    if request.there and len(runs) == len(ids) == 1:
        must_be_here(context, runs[0], "what it does is seen", f"fleet explain {runs[0].task}")
    tasks = store.tasks_by_id([run.task for run in runs])
    subjects = [
        Subject(r.id, r.choice.coder, task.project, _in_terminal(task.spec.mode), r.host == agents.host, live=True)
        for r in runs
        if (task := tasks.get(r.task)) and team in {"", task.team}
    ]  # fmt: skip
    sights = agents.look(subjects) if subjects else {}
    return tuple(
        SightRow(
            subject.run.rpartition(".")[0], subject.run, s.doing, s.by, s.asks, s.screen, s.exit,
            None if s.cpu is None else round(s.cpu), s.memory, s.always,
        )
        for subject in subjects
        if (s := sights.get(subject.run))
    )  # fmt: skip


def _in_terminal(mode: str) -> bool:
    return mode == Mode.TERMINAL


def permit(context: Context, request: PermitRun) -> PermitRow:
    if request.always and not request.allow:
        raise Mismatch(
            "A request cannot be refused from now on.", fix="Leave out `always`, or allow it."
        )
    run = the_run(context, request.task, Permission.ANSWER)
    if request.allow or context.actor.run:
        check_may_allow(context.actor, own_task(context), run.task)
    agents = context.agents()
    if not run.live:
        raise Refused(
            f"{run.task} is not running.", fix=f"`fleet show {run.task}` says how it stands."
        )
    if run.host != agents.host:
        raise Refused(
            f"{run.task} runs on the host {run.host}, and so does its terminal.",
            fix="Answer it on that machine.",
            code="elsewhere",
        )
    asks = agents.permit(run.id, yes=request.allow, expected=request.asks, always=request.always)
    answer = "always" if request.always else "allowed" if request.allow else "denied"
    event = context.event(Kind.RUN_PERMITTED, run.task, run=run.id, answer=answer, asks=asks)
    context.commit([], event)
    return PermitRow(run.task, run.id, asks, request.allow, request.always)


OPERATIONS = (
    Operation("agent.look", LookAtAgents, Permission.READ, look, "Show what the agents are doing.",
              outside=True),
    Operation("run.permit", PermitRun, Permission.ANSWER, permit,
              "Allow or refuse what an agent asks for.", idempotent=False, outside=True),
)  # fmt: skip
