"""The built-in suite. Its numbers, words and places come from a seed, so no model can know them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from fleet.domain.evals.case import (
    ARITHMETIC,
    CLASSIFICATION,
    CODE,
    LONG_CONTEXT,
    REASONING,
    REVIEW,
    STREAMING,
    TOOLS,
    Case,
    CaseCall,
    Counting,
    EvalItem,
    Exact,
    Label,
    Number,
    Passing,
    Review,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
LONGEST_DOCUMENT = 6000  # tokens of the long document; half of the context if that is less
WORDS_PER_TOKEN = 0.7
FINISH = "End your reply with a line `ANSWER: ` and the number alone."


class Draws:
    """Numbers that follow from a seed alone: a run can be repeated with `--seed`."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def between(self, low: int, high: int) -> int:
        self._count += 1
        digest = sha256(f"{self._seed}:{self._count}".encode()).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)

    def shuffled(self, values: Sequence[T]) -> list[T]:
        left, mixed = list(values), []
        while left:
            mixed.append(left.pop(self.between(0, len(left) - 1)))
        return mixed


def builtin(seed: int, context: int) -> tuple[Case, ...]:
    """The cases. `context`: of the model to be tested; the long document fits into it."""
    draws = Draws(seed)
    return (
        _arithmetic(draws),
        _code(draws),
        _review(),
        _classification(draws),
        _reasoning(draws),
        _tools(draws),
        _long_context(draws, context),
        _streaming(draws),
    )


def _arithmetic(draws: Draws) -> Case:
    items = []
    for sign in ("+", "-", "+", "*"):
        top = 29 if sign == "*" else 899
        a, b = draws.between(11, top), draws.between(11, top)
        value = a + b if sign == "+" else a - b if sign == "-" else a * b
        items.append(EvalItem(f"What is {a} {sign} {b}? {FINISH}", Number(value)))
    return Case("arithmetic", ARITHMETIC, tuple(items), need=3)


CODE_PROMPT = """\
Write a Python function `{name}(items)` that returns a list of runs: each run is a tuple
(value, count) for equal neighbours of `items`, in order, but only runs of at least {least} are kept.
An empty list gives an empty list. Reply with one Python code block and nothing else."""
CODE_TESTS = """\
def test_runs_are_counted():
    assert {name}([1] * {least} + [2] * {more}) == [(1, {least}), (2, {more})]
def test_short_runs_are_left_out():
    assert {name}(["a"] * {less} + ["b"] * {least}) == [("b", {least})]
def test_equal_values_that_are_apart_are_two_runs():
    assert {name}([3] * {least} + [4] + [3] * {more}) == [(3, {least}), (3, {more})]
def test_nothing_gives_nothing():
    assert {name}([]) == []
def test_the_last_run_counts():
    assert {name}([0, 0, 0, 0, 0, 5]) == [(0, 5)]
def test_its_input_is_left_as_it_was():
    given = [7] * {more}
    {name}(given)
    assert given == [7] * {more}
"""


def _code(draws: Draws) -> Case:
    least = draws.between(2, 4)
    words = {"name": f"runs_{draws.between(10, 99)}", "least": least, "more": least + 1}
    words["less"] = least - 1
    item = EvalItem(CODE_PROMPT.format(**words), Passing(CODE_TESTS.format(**words)))
    return Case("code", CODE, (item,), need=1, output=700)


REVIEW_PROMPT = """\
Review this Python function. {contract}

```python
{code}```

If it does what it should, reply with the line `ANSWER: OK`. If it has a bug, reply with the line
`ANSWER: BUG` and then the whole corrected function in one Python code block."""
PAGES = """\
def page(items, number, size):
    start = {start}
    return items[start:start + size]
"""
PAGES_CONTRACT = "Pages are numbered from 1, and each has at most `size` items."
PAGES_TESTS = """\
def test_first():
    assert page(list(range(10)), 1, 4) == [0, 1, 2, 3]
def test_last():
    assert page(list(range(10)), 3, 4) == [8, 9]
def test_beyond():
    assert page([1, 2], 2, 2) == []
"""
MEDIAN = """\
def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2
"""
MEDIAN_TESTS = """\
def test_odd():
    assert median([9, 1, 5]) == 5
def test_even():
    assert median([4, 1, 3, 2]) == 2.5
def test_two():
    assert median([10, 20]) == 15
"""
MEDIAN_CONTRACT = "It should return the median of a list that is not empty."
BROKEN_PAGES = PAGES.format(start="number * size")
SOUND_PAGES = PAGES.format(start="(number - 1) * size")


def _review() -> Case:
    items = (
        EvalItem(
            REVIEW_PROMPT.format(contract=PAGES_CONTRACT, code=BROKEN_PAGES),
            Review(sound=False, tests=PAGES_TESTS),
        ),
        EvalItem(
            REVIEW_PROMPT.format(contract=MEDIAN_CONTRACT, code=MEDIAN),
            Review(sound=False, tests=MEDIAN_TESTS),
        ),
        EvalItem(
            REVIEW_PROMPT.format(contract=PAGES_CONTRACT, code=SOUND_PAGES),
            Review(sound=True, tests=PAGES_TESTS),
        ),
    )
    return Case("review", REVIEW, items, need=3, output=500)


LABELS = ("bug", "feature", "docs")
TICKETS = (
    ("bug", "The server crashes with a KeyError when the config file is empty."),
    ("bug", "Since the last release the export button does nothing."),
    ("bug", "Totals are off by one cent when a discount is applied twice."),
    ("bug", "Login fails for passwords with a percent sign."),
    ("feature", "Please add a dark theme to the settings page."),
    ("feature", "It would be great to sort the list by size."),
    ("feature", "Support OAuth sign-in besides passwords."),
    ("feature", "Let users download all reports as one ZIP file."),
    ("docs", "The README still shows the old install command."),
    ("docs", "The second link in the tutorial leads to an old page."),
    ("docs", "Explain in the manual what the --force flag does."),
    ("docs", "The API reference has no example for pagination."),
)
TICKET_PROMPT = """\
Classify this ticket as one of: bug, feature, docs.

Ticket: {text}

Reply with the one word alone."""


def _classification(draws: Draws) -> Case:
    """Ten tickets, of which eight must be right; guessing achieves that once in 300 runs."""
    items = [
        EvalItem(TICKET_PROMPT.format(text=text), Label(label, LABELS))
        for label, text in draws.shuffled(TICKETS)[:10]
    ]
    return Case("classification", CLASSIFICATION, tuple(items), need=8, output=128)


REASONING_PROMPTS = (
    (
        "A test suite has {a} tests. A third machine runs {b} of them, and the others are divided evenly "
        "over two machines. Each test takes {c} seconds, and a machine runs one at a time. After how many "
        "seconds is the machine that takes longest done?"
    ),
    (
        "Ann's branch has {a} commits more than Ben's, and Ben's has {c} times as many as Cleo's. Cleo's "
        "has {b}. How many commits do the three branches have together?"
    ),
    (
        "A queue has {a} jobs. Each minute a worker finishes {c} of them and {d} new ones arrive at the "
        "end of the minute. How many jobs are in the queue after {b} minutes?"
    ),
)


def _reasoning(draws: Draws) -> Case:
    half, other, each = draws.between(20, 60), draws.between(10, 40), draws.between(2, 5)
    more, cleo, times = draws.between(3, 15), draws.between(4, 12), draws.between(2, 4)
    done, new, minutes = draws.between(5, 9), draws.between(1, 4), draws.between(3, 8)
    queue = draws.between(100, 200)
    sums = (
        ({"a": other + 2 * half, "b": other, "c": each}, max(half, other) * each),
        ({"a": more, "b": cleo, "c": times}, cleo + 2 * cleo * times + more),
        ({"a": queue, "b": minutes, "c": done, "d": new}, queue - minutes * (done - new)),
    )
    items = [
        EvalItem(f"{text.format(**values)} Think step by step. {FINISH}", Number(value))
        for text, (values, value) in zip(REASONING_PROMPTS, sums, strict=True)
    ]
    return Case("reasoning", REASONING, tuple(items), need=2, output=600)


def _tool(name: str, about: str, **arguments: str) -> dict[str, object]:
    properties = {key: {"type": kind} for key, kind in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    function = {"name": name, "description": about, "parameters": parameters}
    return {"type": "function", "function": function}


def _tools(draws: Draws) -> Case:
    tools = (
        _tool("list_branches", "List the branches of a repository.", repository="string"),
        _tool("read_build", "Read how the tests of one build ended.", build="integer"),
    )
    items = []
    for outcome, other in (("failed", "passed"), ("passed", "failed")):
        build, count = draws.between(1000, 9999), draws.between(11, 99)
        result = f'{{"{outcome}": {count}, "{other}": {draws.between(100, 999)}}}'
        prompt = f"How many tests {outcome} in build {build}? Use a tool to find out. {FINISH}"
        items.append(EvalItem(prompt, CaseCall("read_build", {"build": build}, result, count)))
    return Case("tool call", TOOLS, tuple(items), need=2, tools=tools)


FILLER = (
    "The committee met again in the small room behind the library and spoke about the garden.",
    "Nobody could say when the old clock in the hall had stopped, or who had wound it last.",
    "On market days the road was full of carts, and the dogs slept in the shade of the wall.",
    "She put the letters back into the drawer and looked for a while at the rain on the river.",
    "In autumn the boats were drawn up on the shore, and the men mended nets until evening.",
    "The teacher asked for silence, and for once the children at the back were quiet at once.",
)
CITIES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Accra", "Perth")


def _long_context(draws: Draws, context: int) -> Case:
    """Ask for two of four codes in a long document: one early in it, one late."""
    words, lines = 0, []
    while words < min(LONGEST_DOCUMENT, context // 2) * WORDS_PER_TOKEN:
        lines.append(FILLER[draws.between(0, len(FILLER) - 1)])
        words += len(lines[-1].split())
    codes = {city: f"{draws.between(10_000, 99_999)}" for city in draws.shuffled(CITIES)[:4]}
    for depth, city in zip((0.9, 0.6, 0.4, 0.15), codes, strict=True):
        note = f"The access code of the {city} office is {codes[city]}."
        lines.insert(int(len(lines) * depth), note)
    document = "\n".join(lines)
    late, _, _, early = codes
    items = [
        EvalItem(
            f"{document}\n\nWhat is the access code of the {city} office? Reply with the code alone.",
            Exact(codes[city]),
        )
        for city in (early, late)
    ]
    return Case("long context", LONG_CONTEXT, tuple(items), need=2, output=128)


def _streaming(draws: Draws) -> Case:
    first = draws.between(20, 60)
    prompt = f"Count from {first} to {first + 14}, one number on each line, and write nothing else."
    return Case("streaming", STREAMING, (EvalItem(prompt, Counting(first, first + 14)),), need=1)
