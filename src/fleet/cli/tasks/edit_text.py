"""A task as a small YAML text that a person edits, and what they changed in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from fleet.cli.tasks.add import amounts, budget_of
from fleet.domain.errors import BadInput, nearest
from fleet.domain.task import Budget, Limits, Spec
from fleet.operations.tasks.edit import FIELDS, OF_LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.operations.tasks.show import TaskDetail

MOST_WIDTH = 1 << 30  # of a line: none is wrapped
ALWAYS = ("title", "priority", "labels", "attempts", "review", "prompt")  # also while it runs
QUOTED = re.compile(
    "[^\\t\\n\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd]"
)
TRUTH = {"true": True, "yes": True, "false": False, "no": False, "": False}


def as_text(detail: TaskDetail) -> str:
    """The fields that can be changed now; the prompt is the last, however long it is."""
    task = detail.task
    running = task.state == "running"
    fields = {name: _field_of(detail, name) for name in FIELDS if name != "prompt"}
    kept = {name: value for name, value in fields.items() if not running or name in ALWAYS}
    lines = [
        f"# {task.id} is {task.status}. Change what you want, save, and leave the editor.",
        "# Empty or 0: as the settings say. If you change nothing, nothing is written.",
    ]
    if running:
        lines.append("# Its run keeps its agent, base, gate, limits and what it waited for.")
    lines += [_line(name, value) for name, value in kept.items()]
    return "\n".join([*lines, _block("prompt", detail.prompt)])


def _field_of(detail: TaskDetail, name: str) -> Any:
    """The value of this field, as YAML has it."""
    holder: Any = detail.spec.limits if name in OF_LIMITS else detail.spec
    holder = {"title": detail.task}.get(name, holder)
    value = detail.needs if name == "after" else getattr(holder, name)
    if isinstance(value, Budget):
        return amounts(value)
    return list(value) if isinstance(value, tuple) else value


def _line(name: str, value: object) -> str:
    if value == "":
        return f"{name}:"
    flow = None if isinstance(value, list) else False  # a list on one line
    options: dict[str, Any] = {"allow_unicode": True, "default_flow_style": flow}
    return str(yaml.safe_dump({name: value}, width=MOST_WIDTH, **options)).rstrip("\n")


def _block(name: str, text: str) -> str:
    """As the lines that it has, where YAML can hold them as they are."""
    if not text or QUOTED.search(text):
        return f"{_line(name, text)}\n"
    end = "" if text.endswith("\n") else "-"
    if text.endswith("\n\n") or text == "\n":
        end = "+"
    body = "".join(f"  {line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))
    return f"{name}: |2{end}\n{body}"


def changes(before: str, after: str) -> dict[str, Any]:
    """The fields that differ, as the operation takes them."""
    old, new = _read(before), _read(after)
    for name in new.keys() - old.keys():
        fix = nearest(name, old) or f"It has: {', '.join(old)}."
        raise BadInput(f"'{name[:60]}' is not a field that can be changed here.", fix=fix)
    return {name: value for name, value in new.items() if value != old[name]}


def _read(text: str) -> dict[str, Any]:
    try:
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  # nosec B506  # it makes texts alone
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(error, "problem", "") or "it cannot be read"
        raise BadInput(f"The text is not valid YAML: {where}{what}.", fix="Correct it.") from None
    if not isinstance(document, dict):
        raise BadInput("The text has no fields.", fix="Leave the lines as they were, `title: …`.")
    return {str(name): _value(str(name), value) for name, value in document.items()}


def _value(name: str, value: object) -> Any:
    blank = getattr(Limits() if name in OF_LIMITS else Spec(), name, "")
    if name == "after" or isinstance(blank, tuple | Budget):
        listed = value if isinstance(value, list) else [value] if value else []
        texts = tuple(_one(name, item) for item in listed)
        return budget_of(texts) if name == "budget" else texts
    text = _one(name, value)
    if isinstance(blank, bool):
        return _known(name, text, lambda: TRUTH[text.lower()], "true or false")
    if isinstance(blank, int):
        return _known(name, text, lambda: int(text or blank), "a number")
    return text


def _one(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name} must be one text.", fix="Write it after the colon, in quotes.")
    return value


def _known(name: str, text: str, read: Callable[[], Any], what: str) -> Any:
    try:
        return read()
    except (ValueError, KeyError):
        raise BadInput(f"{name} is '{text[:40]}', not {what}.", fix="Correct that line.") from None
