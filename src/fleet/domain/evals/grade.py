"""Whether a reply is right. Where the reply is code, `execute` runs it with its tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from fleet.domain.data import NamedTuple
from fleet.domain.evals.case import (
    CaseCall,
    Counting,
    Exact,
    Label,
    Mutants,
    Number,
    Passing,
    Review,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.domain.evals.case import Check

NUMBER = re.compile(r"-?\d[\d,_]*(?:\.\d+)?")
ANSWER = re.compile(r"(?im)^\W*answer\W*:[\s*_`'\"$(]*(.+)$")  # keeps a minus sign
THOUGHTS = re.compile(r"(?s)<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)")
FENCE = re.compile(r"(?ms)^[ \t]*```[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)")
FORGIVEN = 1e-9  # rounding errors of floating point
MOST_CHARACTERS = 80


class ToolCall(NamedTuple):
    name: str
    arguments: Mapping[str, Any]


class ModelReply(NamedTuple):
    """A model's reply. Times are in seconds; `cost` is in dollars, None if it is unknown."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    pieces: int = 0
    first: float = 0.0
    seconds: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class GradedProgram(NamedTuple):
    """Code that a model wrote, and the tests for it."""

    code: str
    tests: str


class Ran(NamedTuple):
    """`passed` of `tests` passed. `why`: the first failure, or why no test was run."""

    passed: int = 0
    tests: int = 0
    why: str = ""


class Grade(NamedTuple):
    """`score` is from 0 to 1, where only 1 is right. `why`: what was wrong."""

    score: float
    why: str = ""

    @property
    def right(self) -> bool:
        return self.score >= 1.0


Execute: TypeAlias = "Callable[[GradedProgram], Ran]"
RIGHT = Grade(1.0)


def grade(check: Check, reply: ModelReply, execute: Execute) -> Grade:
    """Grade a reply. With a `CaseCall`, `reply` is the one after the tool's result; see `right_call`."""
    text = spoken(reply.text)
    match check:
        case Number() | CaseCall():
            return _number(check, text)
        case Label():
            return _label(check, text)
        case Exact():
            return _exact(check, text)
        case Counting():
            return _counting(check, text, reply.pieces)
        case Passing():
            return _share(execute(GradedProgram(code_of(text), check.tests)))
        case Mutants():
            return _mutants(check, code_of(text), execute)
        case Review():
            return _review(check, text, execute)


def spoken(text: str) -> str:
    """The text without the model's thoughts in `<think>` tags."""
    return THOUGHTS.sub("", text).strip()


def answer_of(text: str) -> str:
    """The text after the last `ANSWER:`; without one, the whole text."""
    marked = ANSWER.findall(text)
    return marked[-1].strip() if marked else text


def code_of(text: str) -> str:
    """All Python code blocks of the text; if it has no code block, the whole text."""
    blocks = FENCE.findall(text)
    ours = [
        body for language, body in blocks if language.lower() in {"", "py", "python", "python3"}
    ]
    return "\n".join(ours) if blocks else text


def right_call(check: CaseCall, reply: ModelReply) -> Grade:
    if not reply.calls:
        return Grade(0.0, f"it called no tool, and wrote {_cut(spoken(reply.text))}")
    call = reply.calls[0]
    if call.name != check.name:
        return Grade(0.0, f"it called {call.name}, not {check.name}")
    for name, value in check.arguments.items():
        if str(call.arguments.get(name)) != str(value):
            return Grade(0.0, f"it called {call.name} with {_cut(str(dict(call.arguments)))}")
    return RIGHT


def _number(check: Number | CaseCall, text: str) -> Grade:
    numbers = NUMBER.findall(answer_of(text))
    if not numbers:
        return Grade(0.0, f"no number in {_cut(text)}")
    value = float(numbers[-1].replace(",", "").replace("_", ""))
    tolerance = check.tolerance if isinstance(check, Number) else 0.0
    if abs(value - check.value) <= tolerance + FORGIVEN:
        return RIGHT
    return Grade(0.0, f"{value:g}, not {check.value:g}")


def _label(check: Label, text: str) -> Grade:
    answer = answer_of(text).lower()
    named = [each for each in check.labels if re.search(rf"\b{re.escape(each.lower())}\b", answer)]
    if named == [check.value]:
        return RIGHT
    return Grade(0.0, f"{' and '.join(named) or _cut(answer)}, not {check.value}")


def _exact(check: Exact, text: str) -> Grade:
    answer = answer_of(text)
    if re.search(rf"(?i)(?<!\w){re.escape(check.value)}(?!\w)", answer):
        return RIGHT
    return Grade(0.0, f"{_cut(answer)}, not {check.value}")


def _counting(check: Counting, text: str, pieces: int) -> Grade:
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    if numbers != list(range(check.first, check.last + 1)):
        return Grade(0.0, f"not {check.first} to {check.last}: {_cut(text)}")
    if pieces < check.pieces:
        return Grade(0.0, f"it came in {pieces} pieces, so it was not streamed")
    return RIGHT


def _share(ran: Ran) -> Grade:
    score = ran.passed / ran.tests if ran.tests else 0.0
    counts = f"{ran.passed} of {ran.tests} tests passed" if ran.tests else "no test was run"
    return RIGHT if score == 1.0 else Grade(score, f"{counts}: {ran.why}")


def _mutants(check: Mutants, tests: str, execute: Execute) -> Grade:
    ran = execute(GradedProgram(check.reference, tests))
    if not ran.tests:
        return Grade(0.0, f"it wrote no test that runs: {ran.why}")
    if ran.passed < ran.tests:
        return Grade(0.0, f"a test of its own fails with correct code: {ran.why}")
    caught = 0
    for mutant in check.mutants:
        ran = execute(GradedProgram(mutant, tests))
        caught += ran.passed < ran.tests
    total = len(check.mutants)
    why = "" if caught == total else f"its tests notice {caught} of {total} faults"
    return Grade(caught / total, why)


def _review(check: Review, text: str, execute: Execute) -> Grade:
    marked = ANSWER.findall(text)
    verdict = re.search(r"\b(OK|BUG)\b", marked[-1].upper() if marked else text)
    if verdict is None:
        return Grade(0.0, f"neither OK nor BUG: {_cut(text)}")
    if check.sound:
        return RIGHT if verdict[1] == "OK" else Grade(0.0, "it complains of code that is right")
    if verdict[1] == "OK":
        return Grade(0.0, "it did not see the fault")
    grade = _share(execute(GradedProgram(code_of(text), check.tests)))
    return grade if grade.right else Grade(0.0, f"its correction is wrong: {grade.why}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return (f"{line[:MOST_CHARACTERS]}…" if len(line) > MOST_CHARACTERS else line) or "nothing"
