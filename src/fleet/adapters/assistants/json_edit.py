"""Set or remove one member of a JSON file, and leave every other byte as it is.

Comments and commas after the last member, as some programs allow them, are passed over.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_ATOM = re.compile(r"[^\s,\]}/]+")
INDENT = 2


class Member(NamedTuple):
    key: str
    start: int
    value: int  # where its value starts
    end: int


def read(text: str) -> Any:
    """Raise `ValueError` when the text is not JSON."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text)
    return json.loads(_LAST_COMMA.sub(r"\1", plain))


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this member, and with the objects around it that were missing."""
    text = text if text.strip() else "{}\n"
    start, depth = _blank(text, 0), 0
    for depth, key in enumerate(path):  # the depth is used after the loop
        members = {m.key: m for m in _members(text, start)}
        if key not in members:
            break
        if depth == len(path) - 1:
            written = _rendered(value, INDENT * len(path))
            return text[: members[key].value] + written + text[members[key].end :]
        start = members[key].value
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _inserted(text, start, path[depth], value, INDENT * (depth + 1))


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without this member, and without the object around it if that becomes empty."""
    start, around = _blank(text, 0), 0
    for depth, key in enumerate(path):
        around = start
        members = {m.key: m for m in _members(text, start)}
        if key not in members:
            return text
        if depth == len(path) - 1:
            break
        start = members[key].value
    text = _cut(text, around, path[-1])
    if len(path) > 1 and not _members(text, around):
        return without_member(text, path[:-1])
    return text


def _rendered(value: Any, indent: int) -> str:
    return json.dumps(value, indent=INDENT, ensure_ascii=False).replace("\n", "\n" + " " * indent)


def _inserted(text: str, start: int, key: str, value: Any, indent: int) -> str:
    members = _members(text, start)
    written = f"\n{' ' * indent}{json.dumps(key)}: {_rendered(value, indent)}"
    if not members:
        end = _blank(text, start + 1)
        return f"{text[: start + 1]}{written}\n{' ' * (indent - INDENT)}{text[end:]}"
    at = members[-1].end
    comma = _blank(text, at)
    if text[comma : comma + 1] == ",":
        return f"{text[: comma + 1]}{written}{text[comma + 1 :]}"
    return f"{text[:at]},{written}{text[at:]}"


def _cut(text: str, start: int, key: str) -> str:
    members = _members(text, start)
    index = next(n for n, m in enumerate(members) if m.key == key)
    if index:
        return text[: members[index - 1].end] + text[members[index].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    end = _blank(text, members[0].end)
    end = _blank(text, end + 1) if text[end : end + 1] == "," else end
    return text[: start + 1] + text[end:]


def _members(text: str, start: int) -> list[Member]:
    """The members of the object that starts there; raise `ValueError` when none does."""
    if text[start : start + 1] != "{":
        raise ValueError("it is not an object")
    members: list[Member] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise ValueError("it is not JSON")
        colon = _blank(text, key.end())
        value = _blank(text, colon + 1)
        end = _end(text, value)
        members.append(Member(json.loads(key[0]), at, value, end))
        at = _blank(text, end)
        if text[at : at + 1] == ",":
            at = _blank(text, at + 1)
    return members


def _end(text: str, at: int) -> int:
    """The end of the value that starts there."""
    if match := _STRING.match(text, at):
        return match.end()
    if text[at : at + 1] not in {"{", "["}:
        atom = _ATOM.match(text, at)
        if atom is None:
            raise ValueError("it is not JSON")
        return atom.end()
    deep = 0
    while at < len(text):
        if match := _STRING.match(text, at):
            at = match.end()
        else:
            deep += (text[at] in "{[") - (text[at] in "}]")
            at += 1
            if not deep:
                return at
        at = _blank(text, at)
    raise ValueError("it ends too early")


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()
