"""A file of tasks: what `fleet add --file` reads and `fleet tasks --export` writes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.tasks.add import MOST_BYTES, amounts, read_text, request
from fleet.cli.terminal.usage import plain_words
from fleet.config.files.problems import Problems, SettingPlace
from fleet.config.files.yaml_read import YamlItem, load_text
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, FleetError, nearest
from fleet.domain.message import order_of
from fleet.domain.task import LANDED, Limits, Spec, need_of
from fleet.operations.shared.branch_names import is_id
from fleet.operations.tasks.add_all import PlannedTask, check_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.cli.tasks.add import TaskPlace
    from fleet.client.local import LocalClient
    from fleet.operations.tasks.graph import TaskNode

    Given = dict[str, Any]

LINKS = ("name", "title", "parent", "join", "assignee")  # besides the options of `fleet add`
NOT_KEYS = {"title", "file", "again", "config", "show_help", "json"}
NOT_OPTIONS = {"limits", "mode", "quick", "agents"}  # fields that `fleet add` does not set
OPTIONS = {"labels": "label"}  # by the field: the option, where their names differ
PATHS = ("cwd", "prompt_file")  # relative to the file
STDIN = "standard input"
SLUG = re.compile(r"[^a-z0-9]+")
MOST_SLUG = 40
PAIR = re.compile(  # a surrogate pair, behind an even number of backslashes
    r"((?<!\\)(?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


class TaskFile(NamedTuple):
    """The tasks of a file, and the line of each."""

    name: str
    tasks: tuple[PlannedTask, ...]
    lines: tuple[int, ...]

    def located(self, error: FleetError) -> FleetError:
        """The error with the place of the task that it is about."""
        index = error.about.get("index")
        if isinstance(index, int) and index < len(self.lines):
            error.message = f"{SettingPlace(self.name, self.lines[index])}: {error.message}"
        return error


def read_plan(
    file: str,
    command: click.Command,
    given: Mapping[str, Any],
    where_of: Callable[[str | None, bool], TaskPlace],
) -> TaskFile:
    """Raise `BadInput` with everything that is wrong in the file.

    `given` are the options on the command line: what a task does not say for itself.
    """
    name = STDIN if file == "-" else file
    text = read_text(file, "tasks")
    if len(text.encode()) >= MOST_BYTES:
        raise BadInput(f"{name} is larger than {MOST_BYTES // 1_000_000} MB.", fix="Split it.")
    problems = Problems()
    base = Path() if file == "-" else Path(file).expanduser().parent
    reader = _PlanReader(name, command, base, problems)
    root = load_text(_as_yaml(text.removeprefix("\ufeff")), name, problems)
    items = reader.tasks(root) if root is not None or not problems.all else []
    read = [(item.line, reader.options(item)) for item in items]
    _refuse(name, problems)
    lines = tuple(line for line, _ in read)
    plan = TaskFile(name, (), lines)
    made = []
    for n, (_, options) in enumerate(read):
        try:
            made.append(_planned({**given, **options}, where_of))
        except FleetError as error:
            error.about = {"index": n}
            raise plan.located(error) from None
    try:
        check_plan(made)
    except FleetError as error:
        raise plan.located(error) from None
    return plan._replace(tasks=tuple(made))


def _as_yaml(text: str) -> str:
    """JSON writes a character beyond U+FFFF as two escapes, which YAML does not know."""
    return PAIR.sub(_joined, text) if text.lstrip()[:1] in {"{", "["} else text


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08X}"


def _planned(options: Given, where_of: Callable[[str | None, bool], TaskPlace]) -> PlannedTask:
    where = where_of(options["cwd"], bool(options["in_place"]))
    made = request(str(options["title"]), options, where)
    spec = made.spec
    if assignee := options.get("assignee"):
        from dataclasses import replace

        spec = replace(spec, assignee=str(assignee))
    return PlannedTask(
        title=made.title,
        name=str(options.get("name") or ""),
        prompt=made.prompt,
        project=made.project,
        spec=spec,
        after=made.after,
        parent=str(options.get("parent") or made.parent),
        join=str(options.get("join") or ""),
        team=made.team,
    )


def check_starts(client: LocalClient, tasks: Sequence[PlannedTask]) -> None:
    """Raise unless each task can have its workspace, before any is queued."""
    names = {task.name for task in tasks}
    checked = set()
    for n, task in enumerate(tasks):
        needs = (need_of(written)[0] for written in task.after if written not in names)
        spec, after = task.spec, tuple(need for need in needs if need not in names)
        key = (spec.cwd, spec.base, spec.branch, task.project, after)
        if spec.in_place or task.join or spec.assignee or key in checked:
            continue
        checked.add(key)
        try:
            client.check_start(spec, task.project, after)
        except FleetError as error:
            error.about = {"index": n}
            raise


def _refuse(name: str, problems: Problems) -> None:
    if not problems.all:
        return
    ordered = sorted(problems.all, key=lambda problem: problem.place)
    if len(ordered) == 1:
        raise BadInput(str(ordered[0]), fix=ordered[0].fix)
    lines = [f"{name} has {len(ordered)} problems. Nothing was added."]
    for problem in ordered:
        lines += [str(problem), *(f"  {line}" for line in problem.fix.splitlines())]
    raise BadInput("\n".join(lines))


class _PlanReader:
    """Takes each value as `fleet add` would take it; notes everything that is wrong."""

    def __init__(self, name: str, command: click.Command, base: Path, problems: Problems) -> None:
        self.name, self.base, self.problems = name, base, problems
        self.context = click.Context(command)
        self.known = {str(p.name): p for p in command.params if p.name not in NOT_KEYS}

    def tasks(self, root: YamlItem | None) -> list[YamlItem]:
        """`tasks:` with a list, or the list alone."""
        items = root
        if root is not None and isinstance(root.value, dict):
            for key, item in root.value.items():
                if key != "tasks":
                    self.wrong(item, key, "is not a key here.", nearest(key, ["tasks"]) or HINT)
            items = root.value.get("tasks")
        if items is None or not isinstance(items.value, list):
            at = items or root or YamlItem(None, 0)
            if not self.problems.all:
                self.wrong(at, "", "has no list of tasks.", HINT)
            return []
        return items.value

    def options(self, item: YamlItem) -> Given:
        if isinstance(item.value, str):
            return {"title": item.value}
        if not isinstance(item.value, dict):
            self.wrong(item, "", "is not a task.", HINT)
            return {}
        options = {}
        for written, child in item.value.items():
            key = written.replace("-", "_")
            if key in LINKS:
                options[key] = self.text(child, written)
            elif key in self.known:
                options[key] = self.value(child, written, self.known[key])
            else:
                names = sorted({*LINKS, *self.known})
                fix = nearest(written, names) or f"Keys: {', '.join(names)}."
                self.wrong(child, written, "is not a key of a task.", fix)
        if not options.get("title") and not any(
            p.place.line == item.line for p in self.problems.all
        ):
            self.wrong(item, "", "has no title.", "Add `title: …`.")
        return options

    def value(self, item: YamlItem, key: str, param: click.Parameter) -> Any:
        if getattr(param, "is_flag", False):
            if not isinstance(item.value, bool):
                self.wrong(item, key, "is neither true nor false.")
            return item.value
        if param.multiple:
            parts = item.value if isinstance(item.value, list) else [item]
            return tuple(self.text(part, key) for part in parts)
        text = self.text(item, key)
        if key.replace("-", "_") in PATHS and text and text != "-":
            return str(self.base / Path(text).expanduser())
        try:
            return param.type.convert(text, param, self.context)
        except click.UsageError as error:
            self.wrong(item, key, plain_words(error.message))
            return None

    def text(self, item: YamlItem, key: str) -> str:
        if isinstance(item.value, bool) or not isinstance(item.value, (str, int, float)):
            self.wrong(item, key, "is not a text.", "Put it in quotes.")
            return ""
        return str(item.value)

    def wrong(self, item: YamlItem, key: str, message: str, fix: str = "") -> None:
        self.problems.add(SettingPlace(self.name, item.line), key, message, fix)


HINT = "Write `tasks:` and a list: `- title: Fix the login`."


def export(nodes: Sequence[TaskNode]) -> tuple[str, list[str]]:
    """The YAML of these tasks, oldest first, and the ids that it leaves out.

    Agents in terminals and swarms are nothing that waits to be done.
    """
    import yaml

    everything = nodes
    nodes = [node for node in nodes if not node.spec.mode and not node.spec.limits.agents]
    names = _names(nodes)
    mentioned = {name for node in everything for name in (node.id, *node.after, node.parent)}
    left_out = sorted(mentioned - names.keys() - {""}, key=order_of)
    tasks = [_exported(node, names) for node in nodes]
    text = yaml.dump(
        {"tasks": tasks},
        Dumper=_dumper(),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return text, left_out


def _names(nodes: Sequence[TaskNode]) -> dict[str, str]:
    """From the titles, so that they stay the same wherever the tasks are added."""
    numbers: Counter[str] = Counter()
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        slug = SLUG.sub("-", node.task.title.lower())[:MOST_SLUG].strip("-") or "task"
        name = slug if not is_id(slug) else f"task-{slug}"
        while name in taken:
            numbers[slug] += 1
            name = f"{slug}-{numbers[slug] + 1}"
        taken.add(name)
        names[node.id] = name
    return names


def _exported(node: TaskNode, names: Mapping[str, str]) -> dict[str, Any]:
    """What differs from a task of which nothing is asked, under the names of the options."""
    spec, limits = node.spec, node.spec.limits
    wanted: dict[str, Any] = {}
    wanted |= {name: getattr(spec, name) for name in Spec.__match_args__ if name not in NOT_OPTIONS}
    wanted |= {n: getattr(limits, n) for n in Limits.__match_args__ if n not in NOT_OPTIONS}
    blank = {name: getattr(Spec(), name, None) for name in wanted}
    values = {
        "name": names[node.id],
        "title": node.task.title,
        "prompt": node.prompt,
        "after": tuple(
            f"{names[need]}{LANDED}" if landed else names[need]
            for need, landed in map(need_of, node.needs)
            if need in names
        ),
        "parent": names.get(node.parent, ""),
        "join": node.join,
        **{
            OPTIONS.get(name, name): value for name, value in wanted.items() if value != blank[name]
        },
        "cwd": _relative(spec, node.task.project),
        "budget": tuple(amounts(limits.budget)),
        "team": node.task.team if node.task.team != "local" else "",
    }
    return {key: _plain(value) for key, value in values.items() if value or key == "priority"}


def _plain(value: object) -> object:
    """The value for YAML; a list with one text is written as that text."""
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else list(value)
    return value


def _relative(spec: Spec, project: str) -> str:
    """Its directory within its project, which may be elsewhere on another machine."""
    if not spec.cwd or not project:
        return spec.cwd
    cwd = Path(spec.cwd)
    inside = cwd.is_relative_to(project)
    return str(cwd.relative_to(project)).removeprefix(".") if inside else spec.cwd


def _dumper() -> Any:
    """Texts of several lines stay readable."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent(dumper: Any, text: str) -> Any:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper
