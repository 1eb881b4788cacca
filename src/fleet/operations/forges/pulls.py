"""The pull request of a task: open it, look at it, merge or close it.

A pull request is how a landing gets to its branch; see `landing`. The lander of the repository's host
opens and follows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission, allow
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.forges.pull import follow
from fleet.domain.landing.landing import (
    MERGE,
    LandingState,
    LandingWish,
    Proposal,
    landed,
    with_pull,
)
from fleet.domain.limits import TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.landing import GitName, LandingName, queue_landings
from fleet.operations.shared.names import the_task
from fleet.ports import LandingQuery, Put

if TYPE_CHECKING:
    from fleet.domain.landing.landing import Landing, Pull
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Forge

PullTitle = Annotated[str, TextLimit(200, what="title")]
PullBody = Annotated[str, TextLimit(60_000, what="body")]


@dataclass(frozen=True, slots=True)
class PullRow:
    """`number` and `url` are known once it is open. `state`: waiting, open, merged or closed.

    `head`: the commit that was tested and pushed. `merge`: it is merged as soon as the forge allows it.
    """

    task: str
    landing: str
    state: str
    number: int
    url: str
    branch: str
    onto: str
    head: str
    merge: bool
    why: str


@dataclass(frozen=True, slots=True)
class OpenPull(Request[PullRow]):
    """`title`, `body`: empty for the words of the task. `onto`: the branch to merge into.

    Where it is open already, it gets this title and body. `merge`: merge it as soon as the forge allows it.
    """

    task: LandingName
    title: PullTitle = ""
    body: PullBody = ""
    onto: GitName = ""
    merge: bool = False


@dataclass(frozen=True, slots=True)
class ShowPull(Request[PullRow]):
    """As it was when the forge was last asked."""

    task: LandingName


@dataclass(frozen=True, slots=True)
class SyncPull(Request[PullRow]):
    """Ask the forge now."""

    task: LandingName


@dataclass(frozen=True, slots=True)
class MergePull(Request[PullRow]):
    """As soon as the gate has passed on the branch as it is now, and the forge allows it."""

    task: LandingName


@dataclass(frozen=True, slots=True)
class ClosePull(Request[PullRow]):
    """Close it without a merge. The task stays done, and its work stays on its branch."""

    task: LandingName


def open_pull(context: Context, request: OpenPull) -> PullRow:
    task = the_task(context, request.task, Permission.MERGE)
    allow(context.actor, Permission.PUSH)
    title, body = request.title.strip(), request.body
    proposal = Proposal(title, body, merge=request.merge)
    if task.tally.landing:
        return _changed(context, _of(context, task), proposal)

    def wish(_task: Task) -> LandingWish:
        settings = context.world(task.project).settings.land
        pull = replace(proposal, merge=request.merge or settings.merge)
        return LandingWish(context.actor.name, MERGE, remote=settings.remote, pull=pull)

    (row,) = queue_landings(context, [task], request.onto.strip(), wish)
    return _row(context.store.landing(row.id))


def _changed(context: Context, landing: Landing, proposal: Proposal) -> PullRow:
    """Change the proposal; the supervisor then proposes again, and finds the open pull request."""
    earlier = landing.wish.pull
    assert earlier is not None
    opened = replace(earlier.opened, tip="") if earlier.opened else None
    words = (proposal.title or earlier.title, proposal.body or earlier.body)
    after = Proposal(*words, proposal.merge or earlier.merge, earlier.opened)
    if after == earlier:
        return _row(landing)
    changed = replace(landing, wish=replace(landing.wish, pull=replace(after, opened=opened)))
    data = {"landing": landing.id, "onto": landing.onto, "force": ""}
    context.commit([Put(changed)], context.event(Kind.LANDING_QUEUED, landing.task, **data))
    return _row(changed)


def _of(context: Context, task: Task) -> Landing:
    """The newest landing of the task that is a pull request."""
    newest = context.store.landings(LandingQuery(task=task.id, limit=1))
    if not newest or newest[0].wish.pull is None:
        raise NotFound(f"{task.id} has no pull request.", fix=f"Open one: fleet pr open {task.id}")
    return newest[0]


def _open_at_forge(context: Context, landing: Landing) -> tuple[Forge, Pull]:
    if landing.pull is None:
        raise Refused(
            f"The pull request of {landing.task} is not open yet: {landing.why or 'it waits.'}",
            fix=f"fleet land show {landing.task}",
            code="not_open",
        )
    train = context.store.trains()[landing.train]
    return context.trees().forges().of(train.repository, train.remote), landing.pull


def show(context: Context, request: ShowPull) -> PullRow:
    return _row(_of(context, the_task(context, request.task, Permission.READ)))


def sync(context: Context, request: SyncPull) -> PullRow:
    landing = _of(context, the_task(context, request.task, Permission.MERGE))
    forge, pull = _open_at_forge(context, landing)
    if landing.open:
        landing = _followed(context, landing, forge, pull)
    return _row(landing)


def _followed(context: Context, landing: Landing, forge: Forge, pull: Pull) -> Landing:
    """Update the landing from its pull request; if it was merged, the task has landed.

    Raise `Unavailable` when the branch on the remote does not have the merge yet.
    """
    after = follow(landing, forge.show(pull.number))
    if after.state is LandingState.LANDED:
        train = context.store.trains()[landing.train]
        where = (train.repository, train.remote, train.onto)
        if not context.trees().remote_has(*where, after.commit):
            raise Unavailable(
                f"The forge reports {pull.url} as merged, but {landing.branch} does not have"
                f" {after.commit[:12]} yet.",
                code="not_there",
            )
        task = context.store.task(landing.task)
        done = landed(task, after.commit, now=context.store.now())
        data = {"landing": landing.id, "onto": landing.onto, "commit": after.commit}
        context.commit([Put(after), Put(done)], context.event(Kind.TASK_LANDED, task.id, **data))
    elif after.state is not landing.state:
        is_closed = after.state is LandingState.HELD
        kind = Kind.PULL_CLOSED if is_closed else Kind.PULL_OPENED
        data = {"landing": landing.id, "onto": landing.onto, "url": pull.url}
        context.commit([Put(after)], context.event(kind, landing.task, **data))
    return after


def _ended(task: Task, landing: Landing) -> Refused:
    return Refused(
        f"The pull request of {task.id} is {_row(landing).state}.",
        fix=f"fleet pr show {task.id}",
        code="ended",
    )


def merge(context: Context, request: MergePull) -> PullRow:
    task = the_task(context, request.task, Permission.MERGE)
    allow(context.actor, Permission.PUSH)
    landing = _of(context, task)
    if not landing.open:
        raise _ended(task, landing)
    return _changed(context, landing, Proposal(merge=True))


def close(context: Context, request: ClosePull) -> PullRow:
    task = the_task(context, request.task, Permission.MERGE)
    allow(context.actor, Permission.PUSH)
    landing = _of(context, task)
    if not landing.open:
        raise _ended(task, landing)
    pull = landing.pull
    if pull is not None:
        forge, _ = _open_at_forge(context, landing)
        forge.close(pull.number)
        pull = replace(pull, state="closed")
    why = f"{context.actor.name} closed its pull request."
    dropped = with_pull(replace(landing, state=LandingState.DROPPED, why=why), pull)
    data = {"landing": landing.id, "onto": landing.onto}
    without = replace(task, tally=replace(task.tally, landing=""))
    changes: list[Change] = [Put(dropped), Put(without)]
    event = context.event(Kind.LANDING_DROPPED, task.id, **data)
    context.commit(changes, event)
    return _row(dropped)


def _row(landing: Landing) -> PullRow:
    pull, wish = landing.pull, landing.wish.pull
    ended = {LandingState.DROPPED: "closed", LandingState.LANDED: "merged"}.get(landing.state, "")
    return PullRow(
        task=landing.task,
        landing=landing.id,
        state=ended or (pull.state if pull else "waiting"),
        number=pull.number if pull else 0,
        url=pull.url if pull else "",
        branch=pull.branch if pull else "",
        onto=landing.branch,
        head=pull.head if pull else "",
        merge=bool(wish and wish.merge),
        why=landing.why,
    )


_P = Permission
OPERATIONS = (
    Operation(
        "pull.open", OpenPull, _P.MERGE, open_pull, "Open a pull request for a task.", outside=True
    ),
    Operation("pull.show", ShowPull, _P.READ, show, "Show the pull request of a task."),
    Operation(
        "pull.sync", SyncPull, _P.MERGE, sync, "Ask the forge about a pull request.", outside=True
    ),
    Operation("pull.merge", MergePull, _P.MERGE, merge, "Merge a pull request when that is possible."),
    Operation(
        "pull.close", ClosePull, _P.MERGE, close, "Close a pull request without a merge.", outside=True
    ),
)  # fmt: skip
