"""The landing trains: the queue of each branch, what it tests now, and how to pause it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.landing import MOST_WAITING, CandidateRow, GitName, candidate_row
from fleet.operations.shared.names import team_in_view
from fleet.ports import LandingQuery, Put

if TYPE_CHECKING:
    from fleet.domain.landing.landing import Train
    from fleet.operations.catalogue import Context
    from fleet.ports import Store


@dataclass(frozen=True, slots=True)
class TrainRow:
    """The queue of one branch. `paused`: by whom. `stopped`: what a person must look at first.

    `waits`: what is in its way now. `batch`: how many landings a candidate adds to the one before
    it; it grows when tests pass, and is halved when one fails. `rate`: of the last landings, how
    many passed, in percent. `flaky`: the gate that failed and then passed on the same files, the last time.
    `candidates`: what is tested now. `moving`: the landings with which the branch moves now.
    """

    onto: str
    repository: str
    paused: str
    stopped: str
    waits: str = ""
    host: str = ""
    batch: int = 1
    rate: int = 100
    flaky: str = ""
    waiting: int = 0
    candidates: tuple[CandidateRow, ...] = ()
    moving: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListTrains(Request[tuple[TrainRow, ...]]):
    """The queue of each branch that work of the team lands on. `waiting`: at most 1000."""


@dataclass(frozen=True, slots=True)
class PauseTrain(Request[tuple[TrainRow, ...]]):
    """`onto`: a branch; empty: every branch that work lands on."""

    onto: GitName = ""


@dataclass(frozen=True, slots=True)
class ResumeTrain(Request[tuple[TrainRow, ...]]):
    """`onto`: a branch; empty: every branch that work lands on."""

    onto: GitName = ""


def pause(context: Context, request: PauseTrain) -> tuple[TrainRow, ...]:
    return _each_train(context, request.onto, Kind.TRAIN_PAUSED, context.actor.name)


def resume(context: Context, request: ResumeTrain) -> tuple[TrainRow, ...]:
    return _each_train(context, request.onto, Kind.TRAIN_RESUMED, "")


def list_trains(context: Context, _request: ListTrains) -> tuple[TrainRow, ...]:
    return tuple(_train_row(context, train) for train in _trains(context, ""))


def _trains(context: Context, onto: str) -> list[Train]:
    """Those that work of the actor's team lands with."""
    store, team = context.store, team_in_view(context)

    def is_theirs(train: Train) -> bool:
        return bool(store.landings(LandingQuery(train=train.id, team=team, limit=1)))

    return [t for t in store.trains().values() if onto in {"", t.onto} and is_theirs(t)]


def teams_of(store: Store, train: Train) -> tuple[str, ...]:
    """Those whose work waits to land there: they hear of it. If none does, coordinators do."""
    query = LandingQuery(train=train.id, open_only=True, limit=MOST_WAITING)
    return tuple(sorted({landing.team for landing in store.landings(query)})) or ("",)


def _train_row(context: Context, train: Train) -> TrainRow:
    team = team_in_view(context)
    query = LandingQuery(train=train.id, team=team, open_only=True, limit=MOST_WAITING)
    seen = {landing.id for landing in context.store.landings(query)}
    plan = [one for one in train.plan if seen.intersection(one.members)]
    return TrainRow(
        onto=train.branch,
        repository=train.repository,
        paused=train.paused,
        stopped=train.stopped,
        waits=train.waits,
        host=train.host,
        batch=train.batch,
        rate=round(train.rate * 100),
        flaky=train.flaky,
        waiting=len(seen),
        candidates=tuple(candidate_row(context, one) for one in plan),
        moving=tuple(i for i in train.move.landings if i in seen) if train.move else (),
    )


def _each_train(context: Context, onto: str, kind: Kind, paused: str) -> tuple[TrainRow, ...]:
    trains = _trains(context, onto)
    if not trains:
        where = onto or "any branch"
        raise NotFound(f"No work lands on {where} yet.", fix="`fleet land trains` lists branches.")
    after = [replace(t, paused=paused, stopped=t.stopped if paused else "") for t in trains]
    changed = [new for old, new in zip(trains, after, strict=True) if new != old]
    if changed:
        events = [
            context.event(kind, "", onto=train.onto, team=team)
            for train in changed
            for team in teams_of(context.store, train)
        ]
        context.commit([Put(train) for train in changed], *events)
    return tuple(_train_row(context, train) for train in after)


_P = Permission
OPERATIONS = (
    Operation("land.trains", ListTrains, _P.READ, list_trains, "List the queues of branches, and what is tested now."),
    Operation("land.pause", PauseTrain, _P.MERGE, pause, "Let nothing land on a branch."),
    Operation("land.resume", ResumeTrain, _P.MERGE, resume, "Let work land on a branch again."),
)  # fmt: skip
