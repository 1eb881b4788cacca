"""A stand-in for a model that can do every job of the built-in suite, and the tasks of the comparison.

node.set(reply=answer)                     # right in everything
node.set(reply=without("Classify"))  # wrong in one job
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from fleet.domain.evals.builtin import MEDIAN, SOUND_PAGES, TICKETS

SOLUTIONS = Path(__file__).with_name("eval_solutions")
TASKS = {  # by a word of the prompt
    "first_at_least": "fix-binary-search",
    "LRUCache": "lru-cache",
    "RateLimiter": "rate-limiter",
    "shelves(db)": "n-plus-one",
    "ASGI": "asgi-endpoint",
    "def merge(intervals)": "write-unit-tests",
    "parse_duration": "parse-duration",
    "build_order": "build-order",
}
SLIPS = {  # in each solution, one thing that a hurried programmer gets wrong
    "fix-binary-search": ("values[middle] < wanted", "values[middle] <= wanted"),
    "lru-cache": ("        self._values.move_to_end(key)\n        return", "        return"),
    "rate-limiter": ("max(0.0, now - then)", "(now - then)"),
    "n-plus-one": ("LEFT JOIN", "JOIN"),
    "asgi-endpoint": ('more = event.get("more_body", False)', "more = False"),
    "write-unit-tests": ("    assert raises([(2, 2)])\n", ""),
    "parse-duration": ("if not is_first and int(digits)", "if False and int(digits)"),
    "build-order": ("heapq.heappop(free)", "free.pop()"),
}
RUNS = """```python
def {name}(items):
    runs = []
    for item in items:
        if runs and runs[-1][0] == item:
            runs[-1] = (item, runs[-1][1] + 1)
        else:
            runs.append((item, 1))
    return [run for run in runs if run[1] >= {least}]
```"""


def answer(body: dict) -> str | dict:
    """The right answer to a request, as a model would write it."""
    messages = body["messages"]
    prompt = messages[0]["content"]
    if body.get("tools"):
        if messages[-1]["role"] == "tool":
            outcome = re.search(r"How many tests (\w+)", prompt)[1]
            return f"ANSWER: {json.loads(messages[-1]['content'])[outcome]}"
        build = int(re.search(r"build (\d+)", prompt)[1])
        return {"name": "read_build", "arguments": {"build": build}}
    for word, task in TASKS.items():
        if word in prompt and "<answer-A>" not in prompt:
            return f"Here it is:\n\n```python\n{(SOLUTIONS / f'{task}.py').read_text()}```\n"
    return plain(prompt)


def plain(prompt: str) -> str:
    numbers = [int(each) for each in re.findall(r"\d+", prompt)]
    if sign := re.search(r"What is (\d+) ([-+*]) (\d+)\?", prompt):
        a, b = int(sign[1]), int(sign[3])
        return f"ANSWER: {a + b if sign[2] == '+' else a - b if sign[2] == '-' else a * b}"
    if "list of runs" in prompt:
        name = re.search(r"`(\w+)\(items\)`", prompt)[1]
        return RUNS.format(name=name, least=re.search(r"at least (\d)", prompt)[1])
    if "Review this" in prompt:
        return review(prompt)
    if "Classify" in prompt:
        return next((label for label, text in TICKETS if text in prompt), "docs")
    if "test suite" in prompt:
        a, b, c = numbers
        return f"<think>Is it 7?</think>So.\nANSWER: {max(b, (a - b) // 2) * c}"
    if "Cleo" in prompt:
        more, times, cleo = numbers
        return f"**ANSWER: {cleo + 2 * cleo * times + more}**"
    if "A queue" in prompt:
        queue, done, new, minutes = numbers
        return f"ANSWER: {queue - minutes * (done - new)}"
    if "access code" in prompt:
        city = re.search(r"What is the access code of the (\w+) office", prompt)[1]
        return re.search(rf"of the {city} office is (\d+)", prompt)[1]
    if counting := re.search(r"Count from (\d+) to (\d+)", prompt):
        return "\n".join(map(str, range(int(counting[1]), int(counting[2]) + 1)))
    return "one two three four five six seven eight nine ten eleven twelve"


def review(prompt: str) -> str:
    if "ordered[middle + 1]" in prompt:
        return f"ANSWER: BUG\n```python\n{MEDIAN.replace('middle + 1]', 'middle - 1]')}```"
    if "number * size" in prompt:
        return f"ANSWER: BUG\n```python\n{SOUND_PAGES}```"
    return "ANSWER: OK"


def without(word: str):
    """As `answer`, but of no use where the prompt has this word."""

    def reply(body: dict) -> str | dict:
        prompt = body["messages"][0]["content"]
        return "I am not sure, sorry." if word in prompt else answer(body)

    return reply


def hasty(body: dict) -> str:
    """The tasks of the comparison, each with one slip."""
    text = str(answer(body))
    for right, wrong in SLIPS.values():
        text = text.replace(right, wrong, 1)
    return text


def longer(body: dict) -> str:
    """A judge that prefers the longer answer, and of two that are as long the first."""
    prompt = body["messages"][0]["content"]
    one, other = (
        prompt.split(f"<answer-{name}>")[1].split(f"</answer-{name}>")[0] for name in "AB"
    )
    return f"ANSWER: {'A' if len(one) >= len(other) else 'B'}"
