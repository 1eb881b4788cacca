"""The results of an eval: a row for each model on a node, or for each system of a comparison."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from fleet.domain.data import NamedTuple
from fleet.domain.evals.judge import Agreement, Opinion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.evals.grade import Grade, ModelReply

SUITE, FRONTIER = "suite", "frontier"


class CaseResult(NamedTuple):
    """`right` of `items` were right; `need` are needed. `why`: why it failed; empty: it passed."""

    case: str
    job: str
    score: float = 0.0
    right: int = 0
    items: int = 0
    need: int = 0
    seconds: float = 0.0
    first: float = 0.0  # seconds to the first part of the first reply
    output_tokens: int = 0
    cost: float | None = 0.0  # dollars; None: not known
    why: str = ""

    @property
    def passed(self) -> bool:
        return not self.why


class EvalResult(NamedTuple):
    """One model on a node, or at a hosted API; then `node` is empty."""

    model: str
    node: str
    url: str
    upstream: str
    agents: tuple[str, ...]
    cases: tuple[CaseResult, ...]

    @property
    def name(self) -> str:
        return f"{self.model} on {self.node}" if self.node else self.model

    @property
    def score(self) -> float:
        return sum(c.score for c in self.cases) / len(self.cases) if self.cases else 0.0

    @property
    def passed(self) -> int:
        return sum(each.passed for each in self.cases)

    @property
    def latency(self) -> float:
        """The mean seconds of the cases that were answered."""
        times = [each.seconds for each in self.cases if each.seconds]
        return sum(times) / len(times) if times else 0.0

    @property
    def cost(self) -> float | None:
        costs = [each.cost for each in self.cases]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


class Evaluation(NamedTuple):
    """`kind`: `suite` or `frontier`. `isolation`: under what the code of answers was run."""

    id: str
    at: int  # microseconds, UTC
    kind: str
    suite: str
    seed: int
    isolation: str
    rows: tuple[EvalResult, ...]
    judge: str = ""
    opinions: tuple[Opinion, ...] = ()
    agreement: Agreement = Agreement()

    @property
    def failed(self) -> bool:
        return any(not case.passed for row in self.rows for case in row.cases)


def case_result(
    name: str,
    job: str,
    need: int,
    grades: Sequence[Grade],
    replies: Sequence[ModelReply],
    why: str = "",
) -> CaseResult:
    """`why`: why the case was broken off, if it was; the items not asked count as wrong."""
    items = len(grades)
    right = sum(each.right for each in grades)
    wrong = next((each.why for each in grades if each.why), "")
    if not why and right < need:
        why = f"{right} of {items} right, {need} needed: {wrong}" if items > 1 else wrong or "wrong"
    costs = [reply.cost for reply in replies]
    return CaseResult(
        name,
        job,
        sum(each.score for each in grades) / items if items else 0.0,
        right,
        items,
        need,
        sum(reply.seconds for reply in replies),
        replies[0].first if replies else 0.0,
        sum(reply.output_tokens for reply in replies),
        None if None in costs else sum(cost for cost in costs if cost is not None),
        why,
    )


def quality(rows: Iterable[EvalResult]) -> dict[tuple[str, str], dict[str, float]]:
    """The mean score of each job, by the node's address and its name for the model.

    `rows` are newest first; only the newest result of a case counts.
    """
    newest: dict[tuple[str, str], dict[str, CaseResult]] = {}
    for row in rows:
        cases = newest.setdefault((row.url, row.upstream), {})
        for case in row.cases:
            if case.seconds:  # a node that was down says nothing of its model
                cases.setdefault(case.case, case)
    return {key: _by_job(cases.values()) for key, cases in newest.items() if cases}


def _by_job(cases: Iterable[CaseResult]) -> dict[str, float]:
    scores: dict[str, list[float]] = {}
    for case in cases:
        scores.setdefault(case.job, []).append(case.score)
    return {job: sum(each) / len(each) for job, each in scores.items()}


def data_of(evaluation: Evaluation) -> dict[str, Any]:
    return evaluation._asdict() | {
        "rows": [_row_data(row) for row in evaluation.rows],
        "opinions": [
            each._asdict() | {"agrees": each.agrees, "winner": each.winner or None}
            for each in evaluation.opinions
        ],
        "agreement": evaluation.agreement._asdict() if evaluation.judge else None,
    }


def _row_data(row: EvalResult) -> dict[str, Any]:
    cases = [
        {k: round(v, 6) if isinstance(v, float) else v for k, v in case._asdict().items()}
        | {"passed": case.passed}
        for case in row.cases
    ]
    sums = {"score": round(row.score, 4), "passed": row.passed, "latency": round(row.latency, 3)}
    return row._asdict() | {"agents": list(row.agents), "cases": cases} | sums | {"cost": row.cost}


def _row(data: Mapping[str, Any]) -> EvalResult:
    return EvalResult(
        str(data["model"]),
        str(data["node"]),
        str(data["url"]),
        str(data["upstream"]),
        tuple(map(str, data["agents"])),
        tuple(CaseResult(**{k: c[k] for k in CaseResult._fields}) for c in data["cases"]),
    )


def evaluation_of(data: Mapping[str, Any]) -> Evaluation | None:
    """The evaluation in the data of a file; None when it is damaged or not ours."""
    try:
        rows = tuple(map(_row, data["rows"]))
        opinions = tuple(Opinion(*(str(o[k]) for k in Opinion._fields)) for o in data["opinions"])
        return Evaluation(
            str(data["id"]), int(data["at"]), str(data["kind"]), str(data["suite"]),
            int(data["seed"]), str(data["isolation"]), rows, str(data["judge"]), opinions,
            Agreement(**(data["agreement"] or {})),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def junit(evaluation: Evaluation) -> str:
    """The results as CI servers read them: a suite for each model on a node, a test for each case."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for row in evaluation.rows:
        failures = len(row.cases) - row.passed
        seconds = sum(case.seconds for case in row.cases)
        counts = f'tests="{len(row.cases)}" failures="{failures}" time="{seconds:.3f}"'
        lines.append(f"  <testsuite name={quoteattr(row.name)} {counts}>")
        for case in row.cases:
            names = f"classname={quoteattr(row.name)} name={quoteattr(case.case)}"
            head = f'    <testcase {names} time="{case.seconds:.3f}"'
            why = _xml_text(case.why)
            failure = f"<failure message={quoteattr(why)}>{escape(why)}</failure></testcase>"
            lines.append(f"{head}/>" if case.passed else f"{head}>{failure}")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _xml_text(text: str) -> str:
    """The text with a `?` for each character that XML does not allow."""
    return re.sub("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
