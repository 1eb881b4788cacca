"""The results of an eval as a page of Markdown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fleet.domain.evals.judge import preferred
from fleet.domain.evals.result import FRONTIER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.evals.judge import Agreement
    from fleet.domain.evals.result import CaseResult, EvalResult, Evaluation

EXPLAINED = (
    "Eight coding tasks, each sent once to every system. The score is the share of the hidden tests "
    "that the code of the answer passes when it is run; a task is solved when all of them pass. "
    "Latency is the mean time until an answer is complete."
)


def page(evaluation: Evaluation, remark: str = "") -> str:
    """The page. `remark`: a paragraph below the title."""
    at = datetime.fromtimestamp(evaluation.at / 1_000_000, UTC)
    is_comparison = evaluation.kind == FRONTIER
    title = "Frontier comparison" if is_comparison else f"Eval: {evaluation.suite}"
    parts = [f"# {title}, {at:%Y-%m-%d}"]
    parts += [remark] if remark else []
    parts += [EXPLAINED] if is_comparison else []
    parts.append(f"Code of answers was run under: {evaluation.isolation}.")
    parts.append(_sums(evaluation) if is_comparison else _cases(evaluation.rows))
    if is_comparison:
        parts += [_judged(evaluation), "## By task", _by_task(evaluation.rows), "## Why not"]
        parts.append(_reasons(evaluation.rows))
    return "\n\n".join(parts) + "\n"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def judged_words(judge: str, agreed: Agreement) -> str:
    """How far the judge agreed with itself and with the tests, in one or two sentences."""
    if not judge:
        return "There was no judge: --judge MODEL asks one for a second opinion."
    words = f"The judge, {judge}, saw {agreed.pairs} pairs of answers without names, in both "
    words += f"orders, and gave the same verdict in {agreed.agreed}. "
    if not agreed.decided:
        return words + "In none of these do it and the tests both prefer one answer."
    decided = f"Where it and the tests both prefer one answer ({agreed.decided}), "
    return words + f"{decided}it prefers the one that passes more tests in {agreed.with_tests}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(each) for each in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _sums(evaluation: Evaluation) -> str:
    head = ("system", "score", "solved", "judge prefers", "latency", "cost")
    rows = [
        (
            row.name,
            percent(row.score),
            f"{row.passed} of {len(row.cases)}",
            percent(preferred(evaluation.opinions, row.name)),
            f"{row.latency:.1f} s",
            dollars(row.cost),
        )
        for row in evaluation.rows
    ]
    return _table(head, rows)


def _judged(evaluation: Evaluation) -> str:
    return f"{judged_words(evaluation.judge, evaluation.agreement)} A verdict that changes with the order of the answers does not count."


def _by_task(rows: Sequence[EvalResult]) -> str:
    tasks = [case.case for case in rows[0].cases] if rows else []
    columns = {row.name: {case.case: case for case in row.cases} for row in rows}
    return _table(
        ("task", *columns),
        [(task, *(_figures(cases[task]) for cases in columns.values())) for task in tasks],
    )


def _figures(case: CaseResult) -> str:
    return f"{percent(case.score)}, {case.seconds:.1f} s, {dollars(case.cost)}"


def _reasons(rows: Sequence[EvalResult]) -> str:
    failed = [(row.name, case.case, case.why) for row in rows for case in row.cases if case.why]
    if not failed:
        return "Every answer passed all tests."
    quoted = [(name, task, f"`{why.replace('`', chr(39))}`") for name, task, why in failed]
    return _table(("system", "task", "the first thing that failed"), quoted)


def _cases(rows: Sequence[EvalResult]) -> str:
    lines = [
        (
            row.model,
            row.node,
            case.case,
            "passed" if case.passed else "failed",
            f"{case.right} of {case.items}",
            f"{case.seconds:.1f} s",
            f"`{case.why.replace('`', chr(39))}`" if case.why else "",
        )
        for row in rows
        for case in row.cases
    ]
    return _table(("model", "node", "case", "result", "right", "time", "why"), lines)
