"""The stored results of evals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound
from fleet.domain.evals.judge import preferred
from fleet.domain.limits import Name, Whole
from fleet.operations.catalogue import Operation, Request

if TYPE_CHECKING:
    from fleet.domain.evals.result import CaseResult, EvalResult, Evaluation
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class EvalRow:
    """`kind`: suite or frontier. `passed` of `cases`, over all models."""

    id: str
    at: Time
    kind: str
    suite: str
    models: tuple[str, ...]
    cases: int
    passed: int


@dataclass(frozen=True, slots=True)
class EvalCase:
    """`score`: from 0 to 1. `right` of `items`, `need` of them must be. `cost`: in dollars."""

    case: str
    job: str
    passed: bool
    score: float
    right: int
    items: int
    need: int
    seconds: float
    cost: float | None
    why: str | None


@dataclass(frozen=True, slots=True)
class EvalModel:
    """`node`: empty for a hosted model. `latency`: mean seconds of a case.

    `preferred`: the share of its pairs in which the judge preferred it; None without a judge.
    """

    model: str
    node: str
    upstream: str
    agents: tuple[str, ...]
    score: float
    latency: float
    cost: float | None
    preferred: float | None
    cases: tuple[EvalCase, ...]


@dataclass(frozen=True, slots=True)
class EvalDetail:
    """`isolation`: how the code of answers was kept apart. `judge`: empty when nobody judged.

    The judge gave the same verdict on `agreed` of `pairs` in both orders. In `decided` of them it and the
    tests each prefer one answer; in `with_tests` the same one.
    """

    id: str
    at: Time
    kind: str
    suite: str
    seed: int
    isolation: str
    models: tuple[EvalModel, ...]
    judge: str
    pairs: int
    agreed: int
    decided: int
    with_tests: int


@dataclass(frozen=True, slots=True)
class ListEvals(Request[tuple[EvalRow, ...]]):
    """The newest first, of the server's machine."""

    limit: Annotated[int, Whole(1, 1000)] = 20


@dataclass(frozen=True, slots=True)
class ShowEval(Request[EvalDetail]):
    id: Name


def list_evals(context: Context, request: ListEvals) -> tuple[EvalRow, ...]:
    return tuple(
        EvalRow(
            each.id,
            each.at,
            each.kind,
            each.suite,
            tuple(row.name for row in each.rows),
            sum(len(row.cases) for row in each.rows),
            sum(row.passed for row in each.rows),
        )
        for each in context.machines().evals(limit=request.limit)
    )


def show_eval(context: Context, request: ShowEval) -> EvalDetail:
    evaluation = context.machines().evaluation(request.id)
    if evaluation is None:
        raise NotFound(f"There is no eval '{request.id[:40]}'.", fix="`fleet evals` lists them.")
    return detail_of(evaluation)


def detail_of(evaluation: Evaluation) -> EvalDetail:
    return EvalDetail(
        evaluation.id,
        evaluation.at,
        evaluation.kind,
        evaluation.suite,
        evaluation.seed,
        evaluation.isolation,
        tuple(_model(evaluation, row) for row in evaluation.rows),
        evaluation.judge,
        *evaluation.agreement,
    )


def _model(evaluation: Evaluation, row: EvalResult) -> EvalModel:
    share = preferred(evaluation.opinions, row.name)
    return EvalModel(
        row.model,
        row.node,
        row.upstream,
        row.agents,
        round(row.score, 4),
        round(row.latency, 3),
        row.cost,
        None if share is None else round(share, 4),
        tuple(map(_case, row.cases)),
    )


def _case(case: CaseResult) -> EvalCase:
    counts = (round(case.score, 4), case.right, case.items, case.need, round(case.seconds, 3))
    return EvalCase(case.case, case.job, case.passed, *counts, case.cost, case.why or None)


OPERATIONS = (
    Operation("eval.list", ListEvals, Permission.READ, list_evals,
              "List the kept results of evals.", outside=True),
    Operation("eval.show", ShowEval, Permission.READ, show_eval,
              "Show the result of one eval, case by case.", outside=True),
)  # fmt: skip
