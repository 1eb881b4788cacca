"""How an eval looks on a terminal: its progress, its result, and the list of stored results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.terminal.view import Cell, Column, Stack, Table, Text
from fleet.domain.evals.judge import Agreement
from fleet.domain.evals.page import dollars, judged_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.app.compute.evaluate import EvalStep
    from fleet.cli.terminal.view import Style, Value, View
    from fleet.operations.compute.evals import EvalCase, EvalDetail, EvalModel, EvalRow

STYLES: dict[str, Style] = {"passed": "green", "failed": "red", "asking": "yellow"}


def progress(steps: Sequence[EvalStep]) -> View:
    rows: list[list[Value]] = [
        [
            step.row.model,
            step.row.node or "hosted",
            Cell(step.state, STYLES.get(step.state, "dim")),
            f"{len(step.row.cases)} of {step.total}",
            step.doing or None,
        ]
        for step in steps
    ]
    columns: list[Column | str] = [
        "model",
        "node",
        "state",
        "cases",
        Column("doing", flexible=True),
    ]
    return Stack([("Asking:", Table(columns, rows))])


def detail_view(detail: EvalDetail) -> View:
    return _comparison(detail) if detail.kind == "frontier" else _suite(detail)


def _suite(detail: EvalDetail) -> View:
    rows = [_cells(model, case) for model in detail.models for case in model.cases]
    right = [Column(name, right=True) for name in ("right", "time")]
    columns: list[Column | str] = ["model", "node", "case", "result", *right]
    columns.append(Column("why", flexible=True))
    cases = [case for model in detail.models for case in model.cases]
    passed = sum(case.passed for case in cases)
    words = f"{passed} of {len(cases)} cases passed. To ask the same again: --seed {detail.seed}."
    table = Table(columns, rows, empty="Nothing was asked.")
    return Stack([("", table), ("", Text(words))]) if cases else table


def _cells(model: EvalModel, case: EvalCase) -> list[Value]:
    result = "passed" if case.passed else "failed"
    right = f"{case.right}/{case.items}" if case.items > 1 else None
    return [
        model.model,
        model.node,
        case.case,
        Cell(result, STYLES[result]),
        right,
        _seconds(case.seconds),
        Cell(case.why, "red") if case.why else None,
    ]


def _comparison(detail: EvalDetail) -> View:
    head = ("score", "solved", "judge prefers", "latency", "cost")
    columns: list[Column | str] = ["system", *(Column(name, right=True) for name in head)]
    sums: list[list[Value]] = [
        [
            _name(model),
            _percent(model.score),
            f"{sum(case.passed for case in model.cases)} of {len(model.cases)}",
            _percent(model.preferred),
            _seconds(model.latency),
            dollars(model.cost),
        ]
        for model in detail.models
    ]
    tasks = [case.case for case in detail.models[0].cases]
    names: list[Column | str] = [Column(_name(m), right=True) for m in detail.models]
    cells: list[list[Value]] = [
        [task, *(_figures(model.cases[n]) for model in detail.models)]
        for n, task in enumerate(tasks)
    ]
    why: list[list[Value]] = [
        [_name(model), case.case, Cell(case.why, "red")]
        for model in detail.models
        for case in model.cases
        if case.why
    ]
    reasons = Table(["system", "task", Column("why", flexible=True)], why, empty="Nothing failed.")
    return Stack(
        [
            ("", Table(columns, sums)),
            ("By task:", Table(["task", *names], cells)),
            ("What failed:", reasons),
            ("", Text(_judged(detail))),
        ]
    )


def _name(model: EvalModel) -> str:
    return f"{model.model} on {model.node}" if model.node else model.model


def _figures(case: EvalCase) -> str:
    return f"{_percent(case.score)} in {_seconds(case.seconds) or '-'}"


def _judged(detail: EvalDetail) -> str:
    agreed = Agreement(detail.pairs, detail.agreed, detail.decided, detail.with_tests)
    return judged_words(detail.judge, agreed)


def list_view(rows: Sequence[EvalRow]) -> View:
    from fleet.cli.terminal.human import moment

    cells: list[list[Value]] = [
        [row.id, moment(row.at), row.suite, f"{row.passed} of {row.cases}", ", ".join(row.models)]
        for row in rows
    ]
    columns: list[Column | str] = ["id", "at", "suite", "passed", Column("models", flexible=True)]
    return Table(columns, cells, empty="No evals yet: `fleet eval` runs one.")


def _seconds(count: float) -> str | None:
    return f"{count:.1f} s" if count else None


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"
