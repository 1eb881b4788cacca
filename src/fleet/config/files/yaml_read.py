"""A YAML file as plain values that know their lines; nothing in it can run or explode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from fleet.config.files.problems import SettingPlace
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.config.files.problems import Problems

MOST_BYTES = 1_000_000
MOST_VALUES = 50_000  # aliases can make a small file mean a huge one
DEEPEST = 50
SUSPICIOUS = 1000  # brackets, or columns of indentation: look before composing
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
STR, NULL, BOOL, INT, FLOAT, STAMP, MERGE = (
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "null", "bool", "int", "float", "timestamp", "merge")
)


class YamlItem(NamedTuple):
    """`value` is None, bool, int, float, str, a list of Items or a dict of Items by text."""

    value: Any
    line: int


class _Unreadable(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def load_file(path: Path, name: str, problems: Problems) -> YamlItem | None:
    """The file's content; None when it is empty, or cannot be read, which is noted as a problem."""
    at = SettingPlace(name)
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        problems.add(at, "", "is a directory, not a file.")
        return None
    except OSError as error:
        problems.add(at, "", f"cannot be read: {error.strerror}.")
        return None
    if len(data) > MOST_BYTES:
        problems.add(at, "", "is larger than a configuration can be (1 MB).")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(SettingPlace(name, line), "", "is not UTF-8 text.", "Save it as UTF-8.")
        return None
    return load_text(text, name, problems)


def load_text(text: str, name: str, problems: Problems) -> YamlItem | None:
    try:
        root = _compose(text)
        return None if root is None else _YamlReader(name, problems).item(root, ())
    except yaml.YAMLError as error:
        problems.add(*_syntax(error, text, name))
    except _Unreadable as stop:
        problems.add(SettingPlace(name, stop.line), "", str(stop))
    except RecursionError:
        problems.add(SettingPlace(name), "", "is nested too deeply.")
    return None


def _compose(text: str) -> yaml.Node | None:
    _refuse_depths(text)
    loader = Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def _refuse_depths(text: str) -> None:
    """The composer of libyaml recurses in C: a file 100,000 levels deep would end the process."""
    brackets = text.count("[") + text.count("{")
    if brackets < SUSPICIOUS and not re.search(rf"^[-? ]{{{SUSPICIOUS}}}", text, re.MULTILINE):
        return
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _Unreadable(event.start_mark.line + 1, "is nested too deeply.")


def _syntax(error: yaml.YAMLError, text: str, name: str) -> tuple[SettingPlace, str, str, str]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else 0
    if mark is None and isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    fix = "Correct it there; brackets and quotes must be closed."
    if "\\t" in reason or "tab" in reason or "\t" in _line_of(text, line):
        fix = "Indent with spaces, not with tabs."
    elif "mapping values are not allowed" in reason:
        fix = "Put quotes around a text that holds ': '."
    return SettingPlace(name, line), "", f"is not valid YAML: {' '.join(reason.split())}.", fix


def _line_of(text: str, line: int) -> str:
    lines = text.splitlines()
    wanted = lines[line - 1] if 0 < line <= len(lines) else ""
    return wanted[: len(wanted) - len(wanted.lstrip())]


class _YamlReader:
    def __init__(self, name: str, problems: Problems) -> None:
        self.name, self.problems = name, problems
        self.values = 0

    def item(self, node: yaml.Node, path: tuple[str, ...]) -> YamlItem:
        line = node.start_mark.line + 1
        self.values += 1
        if self.values > MOST_VALUES or len(path) > DEEPEST:
            raise _Unreadable(line, "is too large when its aliases are expanded.")
        if isinstance(node, yaml.MappingNode):
            return YamlItem(self.mapping(node, path), line)
        if isinstance(node, yaml.SequenceNode):
            items = [self.item(child, (*path, f"[{i}]")) for i, child in enumerate(node.value)]
            return YamlItem(items, line)
        return YamlItem(self.scalar(node, path), line)

    def mapping(self, node: yaml.MappingNode, path: tuple[str, ...]) -> dict[str, YamlItem]:
        own: dict[str, YamlItem] = {}
        merged: dict[str, YamlItem] = {}
        for key, value in node.value:
            if key.tag == MERGE:
                for inherited, item in self.merged(value, path):
                    merged.setdefault(inherited, item)
                continue
            name = self.key(key, path)
            if name is None:
                continue
            line = key.start_mark.line + 1
            if name in own:
                message = f"is there twice; the first is on line {own[name].line}."
                self.problems.add(SettingPlace(self.name, line), dotted((*path, name)), message)
                continue
            own[name] = self.item(value, (*path, name))._replace(line=line)
        return {**{name: item for name, item in merged.items() if name not in own}, **own}

    def merged(self, node: yaml.Node, path: tuple[str, ...]) -> list[tuple[str, YamlItem]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        pairs: list[tuple[str, YamlItem]] = []
        for child in nodes:
            if not isinstance(child, yaml.MappingNode):
                at = SettingPlace(self.name, node.start_mark.line + 1)
                self.problems.add(at, dotted((*path, "<<")), "can only merge mappings.")
                continue
            if len(path) > DEEPEST:
                raise _Unreadable(node.start_mark.line + 1, "merges into itself.")
            pairs += self.item(child, (*path, "")).value.items()
        return pairs

    def key(self, node: yaml.Node, path: tuple[str, ...]) -> str | None:
        at = SettingPlace(self.name, node.start_mark.line + 1)
        if not isinstance(node, yaml.ScalarNode):
            self.problems.add(at, dotted(path), "has a key that is not text.")
        elif node.tag not in {STR, STAMP}:
            fix = f'Put it in quotes: "{node.value}".'
            self.problems.add(at, dotted(path), f"has the key {node.value}, not a text.", fix)
        elif not node.value:
            self.problems.add(at, dotted(path), "has a key with an empty name.")
        else:
            return str(node.value)
        return None

    def scalar(self, node: yaml.Node, path: tuple[str, ...]) -> Any:
        try:
            match node.tag:
                case tag if tag in {STR, STAMP}:  # a date is text here
                    return node.value
                case tag if tag == NULL:
                    return None
                case tag if tag == BOOL:
                    return yaml.SafeLoader.bool_values[node.value.lower()]
                case tag if tag == INT:
                    return _maker().construct_yaml_int(node)
                case tag if tag == FLOAT:
                    return _maker().construct_yaml_float(node)
        except (ValueError, KeyError):
            return node.value
        at = SettingPlace(self.name, node.start_mark.line + 1)
        self.problems.add(at, dotted(path), f"has the tag {node.tag}, which is not supported.")
        return None


def _maker() -> Any:
    return yaml.constructor.SafeConstructor()


def dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")


def plain(item: YamlItem) -> Any:
    """The value without its lines."""
    if isinstance(item.value, dict):
        return {name: plain(child) for name, child in item.value.items()}
    if isinstance(item.value, list):
        return [plain(child) for child in item.value]
    return item.value
