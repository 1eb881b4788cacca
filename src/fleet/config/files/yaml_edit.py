"""Change one value in the text of a YAML file and leave every other character alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from fleet.config.files.problems import InvalidConfig, Problems
from fleet.config.files.yaml_read import load_text, plain
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.config.keys.table import Path

# Plain in YAML wherever it stands, in a flow list too; anything else is put in quotes.
WORD = r"[A-Za-z0-9_./~$@%+=-]+(?::[A-Za-z0-9_./~$@%+=-]+)*"
PLAIN = re.compile(rf"(?![-@%=+]){WORD}(?: {WORD})*")
ALIAS = re.compile(r"\s*:\s*(\*[^\s,\]}]+)")


class LineSpan(NamedTuple):
    start: int
    end: int
    text: str


def put(text: str, paths: Sequence[Path], value: Any, *, name: str = "the file") -> str:
    """The text with the value at the first of `paths` that is there, or else at the first.

    Raise `BadConfig` when it is not YAML, `BadInput` when something else in it would change too.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(bom)
    before = _data(text, name) or {}
    root = _compose(text)
    path = next((p for p in paths if _has(before, p)), _nearest(before, paths))
    span = _change(text, root, path, value)
    changed = text[: span.start] + span.text + text[span.end :]
    wanted = _with(before, path, list(value) if isinstance(value, tuple) else value)
    try:
        same = _data(changed, name) == wanted
    except BadInput:
        same = False
    if not same:
        raise _not_alone(path)
    return bom + changed


def drop(text: str, paths: Sequence[Path], *, name: str = "the file") -> str:
    """The text without the first of `paths` that is there, and without sections left empty.

    Raise `NotFound` when none is there, and what `put` raises.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(bom)
    before = _data(text, name) or {}
    path = next((p for p in paths if _has(before, p)), None)
    if path is None:
        raise NotFound(
            f"{'.'.join(paths[0])} is not set in {name}.",
            fix="`fleet config --show-origin` shows where each value comes from.",
        )
    span = _pair(text, _compose(text), path)
    changed = text[: span.start] + text[span.end :]
    try:
        same = (_data(changed, name) or {}) == _without(before, path)
    except BadInput:
        same = False
    if not same:
        raise _not_alone(path)
    return bom + changed


def stated(text: str, paths: Sequence[Path], *, name: str = "the file") -> tuple[Any, ...]:
    """Return the value at the first of `paths` that exists, as a 1-tuple; empty: none exists."""
    data = _data(text.removeprefix("\ufeff"), name) or {}
    path = next((p for p in paths if _has(data, p)), None)
    if path is None:
        return ()
    for step in path:
        data = data[step]
    return (data,)


def _not_alone(path: Path) -> BadInput:
    return BadInput(
        f"{'.'.join(path)}: the file is written so that this cannot be changed on its own.",
        fix="Change it by hand: `fleet config edit`.",
    )


def _without(data: Any, path: Path) -> Any:
    name, *rest = path
    mapping = dict(data)
    inner = _without(mapping[name], tuple(rest)) if rest else None
    if inner:
        mapping[name] = inner
    else:
        del mapping[name]
    return mapping


def _pair(text: str, root: yaml.Node | None, path: Path) -> LineSpan:
    """Return the lines of the setting, or of the outermost section that has nothing else."""
    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    node = root
    for name in path:
        assert isinstance(node, yaml.MappingNode)
        pair = next(pair for pair in node.value if pair[0].value == name)
        pairs = [*pairs, pair] if len(node.value) == 1 and pairs else [pair]
        node = pair[1]
    key, value = pairs[0]
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    leaf = _leaf(value)
    end = max(_end(key), _end(value))
    ends_a_line = isinstance(leaf, yaml.ScalarNode) and leaf.style in {"|", ">"}
    return LineSpan(start, end if ends_a_line else _line_end(text, end), "")


def _compose(text: str) -> yaml.Node | None:
    loader = yaml.SafeLoader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def _data(text: str, name: str) -> Any:
    problems = Problems()
    item = load_text(text, name, problems)
    if problems.all:
        raise InvalidConfig(problems.all)
    return None if item is None else plain(item)


def _has(data: Any, path: Path) -> bool:
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True


def _nearest(data: Any, paths: Sequence[Path]) -> Path:
    """Return the path whose section exists already, else the first: `gateway` may be at the top."""
    return next((p for p in paths if len(p) > 1 and _has(data, p[:-1])), paths[0])


def _with(data: Any, path: Path, value: Any) -> Any:
    name, *rest = path
    mapping = dict(data) if isinstance(data, dict) else {}
    mapping[name] = _with(mapping.get(name), tuple(rest), value) if rest else value
    return mapping


def _change(text: str, root: yaml.Node | None, path: Path, value: Any) -> LineSpan:
    if not isinstance(root, yaml.MappingNode):
        return _append(text, len(text), 0, path, value)
    node = root
    for depth, name in enumerate(path):
        pair = next((pair for pair in node.value if pair[0].value == name), None)
        if pair is None:
            return _insert(text, node, path[depth:], value)
        key, value_node = pair
        if depth == len(path) - 1:
            return _replace(text, key, value_node, value)
        if not isinstance(value_node, yaml.MappingNode):
            return _fill(text, key, value_node, _flow(path[depth + 1 :], value))
        node = value_node
    raise AssertionError("a path has a name")


def _replace(text: str, key: yaml.Node, value_node: yaml.Node, value: Any) -> LineSpan:
    column = value_node.start_mark.column
    block = isinstance(value_node, yaml.SequenceNode) and not value_node.flow_style
    if not block or not isinstance(value, (list, tuple)) or value_node.start_mark.index < _end(key):
        return _fill(text, key, value_node, rendered(value))
    if not value:
        deeper = "  " if column <= key.start_mark.column else ""
        return LineSpan(value_node.start_mark.index, _end(value_node), f"{deeper}[]")
    lines = (_newline(text) + " " * column).join(f"- {rendered(item)}" for item in value)
    return LineSpan(value_node.start_mark.index, _end(value_node), lines)


def _fill(text: str, key: yaml.Node, value_node: yaml.Node, new: str) -> LineSpan:
    if value_node.start_mark.index < _end(key):  # an alias: its node is elsewhere
        match = ALIAS.match(text, _end(key))
        return LineSpan(*match.span(1), new) if match else LineSpan(0, 0, new)
    start, end = value_node.start_mark.index, _end(value_node)
    if start == end:
        return LineSpan(start, start, f" {new}")
    if isinstance(value_node, yaml.ScalarNode) and value_node.style in {"|", ">"}:
        end = start + len(text[start:end].rstrip())
    return LineSpan(start, end, new)


def _insert(text: str, node: yaml.MappingNode, path: Path, value: Any) -> LineSpan:
    last = node.value[-1][1] if node.value else None
    if node.flow_style:
        flow = _flow(path, value)[1:-1]
        if last is None:
            return LineSpan(node.end_mark.index - 1, node.end_mark.index - 1, flow)
        end = max(_end(last), _end(node.value[-1][0]))
        return LineSpan(end, end, f", {flow}")
    column = node.value[0][0].start_mark.column
    leaf = _leaf(node)
    end = max(_end(leaf), _end(node.value[-1][0]))
    at_line_start = isinstance(leaf, yaml.ScalarNode) and leaf.style in {"|", ">"}
    if not at_line_start:
        end = _line_end(text, end)
    return _append(text, end, column, path, value)


def _append(text: str, at: int, column: int, path: Path, value: Any) -> LineSpan:
    newline = _newline(text)
    before = newline if at and text[at - 1] not in "\r\n" else ""
    lines = []
    for depth, name in enumerate(path):
        tail = f" {rendered(value)}" if depth == len(path) - 1 else ""
        lines.append(f"{' ' * (column + 2 * depth)}{rendered(name)}:{tail}{newline}")
    return LineSpan(at, at, before + "".join(lines))


def _line_end(text: str, at: int) -> int:
    match = re.compile(r"\r\n|\n|\r").search(text, at)
    return match.end() if match else len(text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _leaf(node: yaml.Node) -> yaml.Node:
    """Return the last node in a block collection, whose own end mark is after the comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return node


def _end(node: yaml.Node) -> int:
    return int(_leaf(node).end_mark.index)


def _flow(path: Path, value: Any) -> str:
    name, *rest = path
    return f"{{{rendered(name)}: {_flow(tuple(rest), value) if rest else rendered(value)}}}"


def rendered(value: Any) -> str:
    """The value on one line, as it can stand anywhere in YAML."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(rendered(item) for item in value)}]"
    if isinstance(value, str):
        return value if _stays_text(value) else _quoted(value)
    return str(yaml.safe_dump(value)).splitlines()[0]


def _stays_text(value: str) -> bool:
    return bool(PLAIN.fullmatch(value)) and bool(yaml.safe_load(value) == value)


def _quoted(value: str) -> str:
    text = yaml.dump(value, default_style='"', allow_unicode=True, width=float("inf"))
    return str(text).rstrip("\n")
