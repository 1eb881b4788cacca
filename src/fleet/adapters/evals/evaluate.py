"""Asks models the cases of a suite: machines in parallel, the cases of one machine one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.nodes.http import NoAnswer
from fleet.adapters.nodes.side_by_side import SideBySide
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable
from fleet.domain.evals.case import CaseCall
from fleet.domain.evals.grade import Grade, grade, right_call
from fleet.domain.evals.result import CaseResult, EvalResult, case_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.adapters.evals.speak import Speaker
    from fleet.domain.evals.case import Case, EvalItem
    from fleet.domain.evals.grade import Execute, ModelReply

WRONG = Grade(0.0)


class EvalSubject(NamedTuple):
    """A model that is asked. Those with one `machine` wait for each other.

    `reach` makes the way to it, or raises `Unavailable`; `look` raises it when its node is down.
    """

    row: EvalResult
    machine: str
    cases: tuple[Case, ...]
    reach: Callable[[], Speaker]
    look: Callable[[], None] | None = None


class EvalStep(NamedTuple):
    """How far one subject is. `state`: waiting, asking, passed or failed."""

    row: EvalResult
    total: int
    state: str = "waiting"
    doing: str = ""


class Evaluating(SideBySide[EvalStep]):
    """Starts at once. `output`: tokens of a reply, instead of what each case allows."""

    def __init__(
        self, subjects: Sequence[EvalSubject], execute: Execute, *, output: int = 0
    ) -> None:
        self._subjects, self._execute, self._output = subjects, execute, output
        self.answers: dict[tuple[str, str], str] = {}  # by the row's name and the case's
        steps = [EvalStep(each.row, len(each.cases)) for each in subjects]
        super().__init__([each.machine for each in subjects], steps)
        self.begin()

    def work(self, number: int) -> None:
        subject = self._subjects[number]
        results: list[CaseResult] = []
        down, speaker = "", None
        try:
            if subject.look is not None:
                subject.look()
            speaker = subject.reach()
        except Unavailable as error:
            down = error.message
        for case in subject.cases:
            self._note(number, subject, results, "asking", case.name)
            if down or speaker is None:
                results.append(_unasked(case, down))
                continue
            result, is_lost = self._case(subject, case, speaker)
            if is_lost:
                down = _offline(subject, case)
            results.append(result)
        state = "passed" if all(result.passed for result in results) else "failed"
        self._note(number, subject, results, state, "")

    def _case(self, subject: EvalSubject, case: Case, speaker: Speaker) -> tuple[CaseResult, bool]:
        """The result, and whether the model could not be reached."""
        grades: list[Grade] = []
        replies: list[ModelReply] = []
        why, is_lost = "", False
        for item in case.items:
            try:
                grades.append(self._item(case, item, speaker, replies))
            except Unavailable as error:
                why, is_lost = error.message, isinstance(error, NoAnswer)
                break
        grades += [WRONG] * (len(case.items) - len(grades))
        if replies:
            self.answers[subject.row.name, case.name] = replies[-1].text
        return case_result(case.name, case.job, case.need, grades, replies, why), is_lost

    def _item(
        self, case: Case, item: EvalItem, speaker: Speaker, replies: list[ModelReply]
    ) -> Grade:
        messages = [{"role": "system", "content": case.system}] if case.system else []
        messages.append({"role": "user", "content": item.prompt})
        output = self._output or case.output
        reply = speaker.ask(messages, output, case.tools)
        replies.append(reply)
        if isinstance(item.check, CaseCall):
            called = right_call(item.check, reply)
            if not called.right:
                return called
            messages += speaker.call_and_result(reply, item.check.result)
            reply = speaker.ask(messages, output, case.tools)
            replies.append(reply)
            final = grade(item.check, reply, self._execute)
            return final if final.right else Grade(0.5, f"after the right call: {final.why}")
        return grade(item.check, reply, self._execute)

    def _note(
        self, number: int, subject: EvalSubject, results: list[CaseResult], state: str, doing: str
    ) -> None:
        step = EvalStep(
            subject.row._replace(cases=tuple(results)), len(subject.cases), state, doing
        )
        self.note(number, step)


def _unasked(case: Case, why: str) -> CaseResult:
    return case_result(case.name, case.job, case.need, [WRONG] * len(case.items), [], why)


def _offline(subject: EvalSubject, case: Case) -> str:
    """Why the other cases are not asked; empty when the node answers again."""
    if subject.look is None:
        return ""
    try:
        subject.look()
    except Unavailable as error:
        return f"{subject.row.node} went offline during {case.name}: {error.message}"
    return ""
