"""A suite of evals in a folder: every `NAME.yaml` in it is a case. docs/how-to/evals.md has the keys."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.config.files.problems import Problems, SettingPlace
from fleet.config.files.yaml_read import YamlItem as Entry
from fleet.config.files.yaml_read import load_file, plain
from fleet.domain.errors import BadInput, nearest
from fleet.domain.evals.case import (
    JOBS_OF,
    Case,
    CaseCall,
    EvalItem,
    Exact,
    Label,
    Mutants,
    Number,
    Passing,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.config.files.problems import Problem
    from fleet.domain.evals.case import Check

FRONTIER = Path(__file__).with_name("frontier")
MOST_CASES, MOST_ITEMS, MOST_TOKENS = 200, 100, 32_768
CHECKS = ("number", "answer", "items", "tests", "mutants", "tool")
COMMON = ("about", "job", "roles", "system", "prompt", "output_tokens", "need")
KEYS = (*COMMON, *CHECKS, "tolerance", "labels")
TOOL = ("name", "description", "parameters", "arguments", "result", "number")
SLOT = "{text}"
FIX = "docs/how-to/evals.md describes the format."


class BadSuite(BadInput):
    code = "bad_suite"

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = [str(problem) for problem in problems]
        if len(lines) > 1:
            lines.insert(0, f"The suite has {len(lines)} problems.")
        super().__init__("\n".join(lines), fix=problems[0].fix or FIX)
        self.all = tuple(problems)


def read_suite(folder: Path) -> tuple[Case, ...]:
    """Raise `BadInput`, which names every file and line that is wrong."""
    if not folder.is_dir():
        raise BadInput(
            f"There is no folder {folder}.", fix="--suite builtin, or a folder of cases."
        )
    files = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml"})
    if not files:
        raise BadInput(f"{folder} has no file NAME.yaml.", fix=FIX)
    if len(files) > MOST_CASES:
        raise BadInput(f"{folder} has more than {MOST_CASES} cases.", fix="Divide it into folders.")
    problems = Problems()
    cases = [_SuiteReader(path, problems).case() for path in files]
    if problems.all:
        raise BadSuite(sorted(problems.all, key=lambda problem: problem.place))
    return tuple(case for case in cases if case is not None)


class _SuiteReader:
    def __init__(self, path: Path, problems: Problems) -> None:
        self._path, self._problems = path, problems
        self._file = f"{path.parent.name}/{path.name}"
        self._entries: dict[str, Entry] = {}

    def case(self) -> Case | None:
        before = len(self._problems.all)
        root = load_file(self._path, self._file, self._problems)
        if root is None or not isinstance(root.value, dict):
            if len(self._problems.all) == before:
                self._wrong(1, "", "has no case in it: it must be a mapping.")
            return None
        self._entries = root.value
        self._known(self._entries, KEYS, "")
        checks = [name for name in CHECKS if name in self._entries]
        if len(checks) != 1:
            names = f"has {' and '.join(checks)}" if checks else "has no check"
            self._wrong(root.line, "", f"{names}: one of {', '.join(CHECKS)} is needed.")
            return None
        case = self._made(checks[0], self._text("prompt"))
        return case if len(self._problems.all) == before else None

    def _made(self, kind: str, prompt: str) -> Case:
        items, tools = self._items(kind, prompt)
        need = self._whole("need", len(items), most=max(1, len(items)))
        roles = self._words("roles")
        for role in roles:
            if role not in JOBS_OF:
                fix = nearest(role, JOBS_OF) or f"Roles: {', '.join(JOBS_OF)}."
                self._wrong(self._entries["roles"].line, "roles", f"'{role}' is not a role.", fix)
        return Case(
            self._path.stem,
            self._text("job", self._path.stem),
            tuple(items),
            need,
            self._whole("output_tokens", 512, most=MOST_TOKENS),
            self._text("system", ""),
            tools,
            roles,
        )

    def _items(self, kind: str, prompt: str) -> tuple[list[EvalItem], tuple[dict[str, Any], ...]]:
        for name, of in (("tolerance", "number"), ("labels", "items")):
            if name in self._entries and kind != of:
                self._wrong(self._entries[name].line, name, f"belongs to `{of}`.")
        if kind == "items":
            return self._several(prompt), ()
        if kind == "tool":
            call, tool = self._tool()
            return [EvalItem(prompt, call)], (tool,)
        return [EvalItem(prompt, self._check(kind))], ()

    def _check(self, kind: str) -> Check:
        if kind == "number":
            return Number(self._number("number"), self._number("tolerance", 0.0))
        if kind == "answer":
            return Exact(self._text("answer"))
        if kind == "tests":
            return Passing(self._python("tests", self._entries["tests"], has_tests=True))
        return self._mutants()

    def _mutants(self) -> Mutants:
        entries = self._mapping("mutants", ("reference", "faults"))
        listed = entries["faults"].value if "faults" in entries else []
        if not isinstance(listed, list) or not listed:
            line = self._entries["mutants"].line
            self._wrong(line, "mutants.faults", "must be a list of functions, each with a fault.")
            listed = []
        reference = ""
        if "reference" in entries:
            reference = self._python("mutants.reference", entries["reference"])
        else:
            self._wrong(self._entries["mutants"].line, "mutants", "has no `reference`.")
        return Mutants(
            reference,
            tuple(self._python(f"mutants.faults[{n}]", each) for n, each in enumerate(listed)),
        )

    def _several(self, prompt: str) -> list[EvalItem]:
        labels, entry = self._words("labels"), self._entries["items"]
        if SLOT not in prompt:
            self._wrong(self._entries.get("prompt", entry).line, "prompt", f"must have {SLOT}.")
        if not isinstance(entry.value, list) or not 0 < len(entry.value) <= MOST_ITEMS:
            self._wrong(entry.line, "items", f"must be a list of 1 to {MOST_ITEMS} items.")
            return []
        items = []
        for number, each in enumerate(entry.value):
            path = f"items[{number}]"
            pair = each.value if isinstance(each.value, dict) else {}
            self._known(pair, ("text", "answer"), path)
            if set(pair) != {"text", "answer"} or not all(
                isinstance(part.value, str | int) for part in pair.values()
            ):
                self._wrong(each.line, path, "must have a `text` and an `answer`.")
                continue
            text, answer = str(pair["text"].value), str(pair["answer"].value)
            if labels and answer not in labels:
                message = f"'{answer}' is not one of the labels."
                self._wrong(pair["answer"].line, f"{path}.answer", message, nearest(answer, labels))
            check = Label(answer, labels) if labels else Exact(answer)
            items.append(EvalItem(prompt.replace(SLOT, text), check))
        return items

    def _tool(self) -> tuple[CaseCall, dict[str, Any]]:
        entries = self._mapping("tool", TOOL)
        values = {name: plain(entry) for name, entry in entries.items()}
        line = self._entries["tool"].line
        for name in ("name", "result"):
            if not isinstance(values.get(name), str) or not values[name]:
                self._wrong(line, f"tool.{name}", "must be a text.")
        for name in ("parameters", "arguments"):
            if not isinstance(values.get(name), dict):
                self._wrong(line, f"tool.{name}", "must be a mapping.")
                values[name] = {}
        value = values.get("number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong(line, "tool.number", "must be the number that `result` leads to.")
            value = 0
        properties = {name: {"type": str(kind)} for name, kind in values["parameters"].items()}
        for name in values["arguments"]:
            if name not in properties:
                self._wrong(line, f"tool.arguments.{name}", "is not one of the parameters.")
        parameters = {"type": "object", "properties": properties, "required": list(properties)}
        function = {"name": values.get("name"), "description": str(values.get("description") or "")}
        tool = {"type": "function", "function": {**function, "parameters": parameters}}
        name, result = str(values.get("name")), str(values.get("result"))
        return CaseCall(name, values["arguments"], result, float(value)), tool

    def _python(self, path: str, entry: Entry, *, has_tests: bool = False) -> str:
        text = entry.value
        if not isinstance(text, str) or not text.strip():
            self._wrong(entry.line, path, "must be Python code.")
            return ""
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError) as error:
            offset = getattr(error, "lineno", 0) or 0
            self._wrong(
                entry.line + offset, path, f"is not Python: {getattr(error, 'msg', error)}."
            )
            return ""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        if has_tests and not any(isinstance(n, kinds) and n.name.startswith("test") for n in body):
            self._wrong(entry.line, path, "has no function test_….")
        return text

    def _mapping(self, name: str, known: tuple[str, ...]) -> dict[str, Entry]:
        entry = self._entries[name]
        if not isinstance(entry.value, dict):
            self._wrong(entry.line, name, f"must be a mapping with {', '.join(known)}.")
            return {}
        self._known(entry.value, known, name)
        entries: dict[str, Entry] = entry.value
        return entries

    def _known(self, entries: dict[str, Entry], known: tuple[str, ...], path: str) -> None:
        for name, entry in entries.items():
            if name not in known:
                where = f"{path}.{name}" if path else name
                fix = nearest(name, known) or f"Keys: {', '.join(known)}."
                self._wrong(entry.line, where, "is not a key of a case.", fix)

    def _text(self, name: str, usual: str | None = None) -> str:
        entry = self._entries.get(name)
        if entry is None:
            if usual is None:
                self._wrong(1, name, "is missing.")
            return usual or ""
        if not isinstance(entry.value, str | int) or not re.search(r"\S", str(entry.value)):
            self._wrong(entry.line, name, "must be a text.")
            return ""
        return str(entry.value)

    def _number(self, name: str, usual: float = 0.0) -> float:
        entry = self._entries.get(name)
        if entry is None:
            return usual
        if isinstance(entry.value, bool) or not isinstance(entry.value, int | float):
            self._wrong(entry.line, name, "must be a number.")
            return usual
        return float(entry.value)

    def _whole(self, name: str, usual: int, *, most: int) -> int:
        entry = self._entries.get(name)
        if entry is None:
            return usual
        if not isinstance(entry.value, int) or not 1 <= entry.value <= most:
            self._wrong(entry.line, name, f"must be a whole number from 1 to {most}.")
            return usual
        return int(entry.value)

    def _words(self, name: str) -> tuple[str, ...]:
        entry = self._entries.get(name)
        if entry is None:
            return ()
        if not isinstance(entry.value, list) or not all(
            isinstance(each.value, str) and each.value for each in entry.value
        ):
            self._wrong(entry.line, name, "must be a list of words.")
            return ()
        return tuple(each.value for each in entry.value)

    def _wrong(self, line: int, path: str, message: str, fix: str = "") -> None:
        self._problems.add(SettingPlace(self._file, line), path, message, fix)
