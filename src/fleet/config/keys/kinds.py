"""The kinds of settings' values, and the check of each."""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fleet.config import stores
from fleet.domain.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.config.keys.table import SettingKey

# Patterns are compiled when they are first used: start-up time.
CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
WORD = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
HOST = r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*"
NOT_IN_BRANCH = r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|(^|/)\.|\.lock(/|$)|\.$"
FROM_ENV = "os.environ/"
LISTS = {"texts", "inside", "networks", "pairs"}
MOST_CHARACTERS = 60


class Wrong(Exception):
    """A value that its setting does not accept."""

    def __init__(self, message: str, fix: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.message, self.fix, self.index = message, fix, index


def take(key: SettingKey, raw: Any) -> Any:
    """Return the checked value; raise `Wrong`."""
    return KINDS[key.kind](key, raw)


def described(raw: Any) -> str:
    """Return a wrong value in words for an error message."""
    match raw:
        case None:
            return "nothing"
        case bool():
            return "true" if raw else "false"
        case list() | tuple():
            return "a list"
        case dict():
            return "a mapping"
        case str() if not raw:
            return "an empty text"
    text = " ".join(str(raw).split())
    return f"'{text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + '…'}'"


def _text(_key: SettingKey, raw: Any) -> str:
    if not isinstance(raw, str):
        quoted = "" if isinstance(raw, (list, dict)) else f'Put it in quotes: "{_as_typed(raw)}".'
        raise Wrong(f"needs text, not {described(raw)}.", quoted)
    if "\x00" in raw:
        raise Wrong("holds a NUL character.")
    return raw


def _as_typed(raw: Any) -> str:
    return described(raw).strip("'")


def _line(key: SettingKey, raw: Any) -> str:
    text = _text(key, raw)
    if key.default != "" and not text.strip():
        raise Wrong("is empty.")
    if re.search(CONTROL, text):
        raise Wrong("needs to be one line, without control characters.")
    return text


def _word(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    if not re.fullmatch(WORD, text):
        raise Wrong(f"{described(text)} is not a name.", "Use letters, digits, '.', '_' and '-'.")
    return text


def _choice(key: SettingKey, raw: Any) -> str:
    text = _text(key, raw)
    if text not in key.choices:
        listed = f"It may be {_or(key.choices)}."
        raise Wrong(
            f"{described(text)} is not a valid value.", nearest(text, key.choices) or listed
        )
    return text


def _or(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _whole(key: SettingKey, raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise Wrong(f"needs a whole number{_range(key)}, not {described(raw)}.")
    return int(_within(key, raw))


def _as_number(key: SettingKey, raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not math.isfinite(raw):
        raise Wrong(f"needs a number{_range(key)}, not {described(raw)}.")
    return _within(key, raw)


def _within(key: SettingKey, number: float) -> float:
    if (key.low is not None and number < key.low) or (key.high is not None and number > key.high):
        raise Wrong(f"needs a number{_range(key)}, not {number}.")
    return number


def _range(key: SettingKey) -> str:
    if key.low is not None and key.high is not None:
        return f" from {key.low} to {key.high}"
    return "" if key.low is None else f", at least {key.low}"


def _flag(_key: SettingKey, raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise Wrong(f"needs true or false, not {described(raw)}.")
    return raw


def _texts(key: SettingKey, raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, (list, tuple)):
        fix = f"Write [{raw}]." if isinstance(raw, str) and raw else ""
        raise Wrong(f"needs a list, not {described(raw)}.", fix)
    texts = []
    for index, item in enumerate(raw):
        try:
            text = _text(key, item)
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.fix, index) from None
        if not text.strip():
            raise Wrong("is empty.", index=index)
        if key.choices and text not in key.choices:
            fix = nearest(text, key.choices) or f"Choose one of: {_or(key.choices)}."
            raise Wrong(f"{described(text)} is not a valid value.", fix, index)
        texts.append(text)
    return tuple(texts)


def _inside(key: SettingKey, raw: Any) -> tuple[str, ...]:
    files = _texts(key, raw)
    for index, name in enumerate(files):
        path = PurePosixPath(name)
        if (
            path.is_absolute()
            or ".." in path.parts
            or name.startswith("~")
            or path == PurePosixPath()
        ):
            fix = "Give a path inside the project, such as .env."
            raise Wrong(f"{described(name)} is not inside the project.", fix, index)
    return files


def _networks(key: SettingKey, raw: Any) -> tuple[str, ...]:
    import ipaddress  # noqa: PLC0415 - only for a server behind a proxy

    texts = _texts(key, raw)
    for index, text in enumerate(texts):
        try:
            ipaddress.ip_network(text)
        except ValueError:
            fix = "Write an address such as 127.0.0.1, or a network such as 10.0.0.0/8."
            raise Wrong(f"{described(text)} is not an address or a network.", fix, index) from None
    return texts


def _pairs(key: SettingKey, raw: Any) -> tuple[str, ...]:
    """Check a list of `VALUE=MEANING`; a meaning is one of the key's choices, if it has any."""
    pairs = _texts(key._replace(choices=()), raw)
    for index, pair in enumerate(pairs):
        value, _, meaning = (part.strip() for part in pair.rpartition("="))
        if not value or not meaning:
            raise Wrong(f"{described(pair)} is not of the form VALUE=MEANING.", index=index)
        if key.choices and meaning not in key.choices:
            fix = nearest(meaning, key.choices) or f"Choose one of: {_or(key.choices)}."
            raise Wrong(f"{described(meaning)} is not one of them.", fix, index)
    return pairs


def _path(key: SettingKey, raw: Any) -> str:
    return _line(key, raw)


def _branch(key: SettingKey, raw: Any) -> str:
    text = _text(key, raw)
    if re.search(NOT_IN_BRANCH, text):
        raise Wrong(f"{described(text)} cannot begin a branch's name in git.", "Try 'fleet/'.")
    return text


def _pattern(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    try:
        re.compile(text)
    except re.error as error:
        raise Wrong(f"{described(text)} is not a regular expression: {error}.") from None
    return text


def _host(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    if not re.fullmatch(HOST, text):
        fix = "Give a name or an address alone, such as 127.0.0.1; the port has its own setting."
        raise Wrong(f"{described(text)} is not a host.", fix)
    return text


def _url(key: SettingKey, raw: Any) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for files that name an address

    text = _line(key, raw).strip()
    like = "Write http://HOST:PORT, such as http://localhost:11434."
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Wrong(
            f"{described(text)} is not an address: its host or port is wrong.", like
        ) from None
    if parts.scheme not in {"http", "https"}:
        raise Wrong(f"{described(text)} is not an http or https address.", like)
    if port == 0 or not re.fullmatch(HOST, host):
        raise Wrong(f"{described(text)} is not an address: its host or port is wrong.", like)
    if parts.username is not None or parts.password is not None:
        raise Wrong("holds a user or a password.", "Use `api_key: os.environ/NAME`.")
    if parts.query or parts.fragment or " " in text:
        raise Wrong(f"{described(text)} has more than a scheme, a host, a port and a path.", like)
    return text.rstrip("/")


def _address(key: SettingKey, raw: Any) -> str:
    """An http address with whatever path and query, a reference to one, or nothing."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for files that name an address

    text = _text(key, raw).strip()
    if not text:
        return ""
    if text.startswith(FROM_ENV):
        return _reference(text)
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s]*", text):
        fix = "Write https://HOST/PATH, or os.environ/NAME."
        raise Wrong(f"{described(text)} is not an http or https address.", fix)
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise Wrong(f"{described(masked(text))} is not an address: its host or port is wrong.")
    if "@" in parts.netloc and key.path.startswith("project."):  # a file that others can read
        raise Wrong("holds a user or a password.", "Write os.environ/NAME for the whole address.")
    return text


def _store(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    if text.startswith(FROM_ENV):
        return _reference(text)
    scheme, separator, rest = text.partition("://")
    kind = stores.KINDS.get(scheme)
    if kind is None or not separator or not rest.strip("/"):
        raise Wrong(f"{described(masked(text))} is not a store.", f"Write {stores.examples()}.")
    if kind.is_file and not rest.startswith("/"):
        raise Wrong("the URL of a file has three slashes.", f"Write {scheme}:///{rest}.")
    return text


def _reference(text: str) -> str:
    name = text.removeprefix(FROM_ENV)
    if not re.fullmatch(VARIABLE, name):
        raise Wrong(f"{described(name)} is not the name of a variable.")
    return text


def _variable(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    if not re.fullmatch(VARIABLE, text):
        fix = f"Use letters, digits and '_', such as {key.default}."
        raise Wrong(f"{described(text)} is not the name of a variable.", fix)
    return text


def _secret(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    if text.startswith(FROM_ENV):
        return _reference(text)
    if not text.startswith("file:") or not text.removeprefix("file:").strip():
        raise Wrong(
            "needs a reference to the key, not the key itself.",
            "Write os.environ/NAME, or file:PATH of a file that only you can read.",
        )
    return text


def _size(_key: SettingKey, raw: Any) -> str:
    """Check an amount of memory; return it as written (see `size_bytes`)."""
    text = str(raw).strip() if isinstance(raw, (str, int)) and not isinstance(raw, bool) else "?"
    if size_bytes(text) is None:
        raise Wrong(f"{described(raw)} is not an amount of memory.", "Write 24GB, or 16000MB.")
    return text


def size_bytes(text: str) -> int | None:
    """Return the bytes: 0 for an empty text, None for no amount. GB are powers of two here."""
    match = re.fullmatch(r"(?i)(\d{1,6}(?:\.\d{1,3})?)\s*([MGT])i?B", text)
    if match is None:
        return None if text else 0
    return int(float(match[1]) * (1 << {"m": 20, "g": 30, "t": 40}[match[2].lower()]))


def _mac(key: SettingKey, raw: Any) -> str:
    """YAML reads an address of digits alone as a number; quotes help."""
    text = _text(key, raw).strip()
    if text and not re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", text):
        fix = "Write it as aa:bb:cc:dd:ee:ff. `ip link` or the settings of the machine show it."
        raise Wrong(f"{described(text)} is not a hardware address.", fix)
    return text.lower().replace("-", ":")


def _address_port(key: SettingKey, raw: Any) -> str:
    text = _line(key, raw)
    host, _, port = text.partition(":")
    number = int(port) if re.fullmatch(r"\d{1,5}", port) else 0
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host) or (":" in text and not 0 < number < 1 << 16):
        raise Wrong(f"{described(text)} is not an address.", "Write ADDRESS or ADDRESS:PORT.")
    return text


KINDS: dict[str, Callable[[SettingKey, Any], Any]] = {
    "mac": _mac,
    "address_port": _address_port,
    "text": _text,
    "private": _text,
    "line": _line,
    "word": _word,
    "choice": _choice,
    "coder": _word,
    "whole": _whole,
    "number": _as_number,
    "flag": _flag,
    "texts": _texts,
    "inside": _inside,
    "networks": _networks,
    "pairs": _pairs,
    "path": _path,
    "branch": _branch,
    "pattern": _pattern,
    "host": _host,
    "url": _url,
    "address": _address,
    "store": _store,
    "variable": _variable,
    "secret": _secret,
    "size": _size,
}


def masked(url: str) -> str:
    """Return a store's URL with its password replaced by `***`."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url)
