"""How text looks on a terminal: its width in columns, cut to fit, and made harmless."""

from __future__ import annotations

import re

JOINERS = "\u200c\u200d"  # inside words of some scripts and inside composed emoji
SPACES = re.compile(r"\r\n|[\t\n\r\v\f\u2028\u2029]")


def harmless(text: str, *, lines: bool = False) -> str:
    r"""`text` without anything that a terminal would obey.

    Escape sequences, control characters, bidirectional overrides and undecodable bytes are shown
    as `\x1b`, `\u202e` and the like. Line breaks and tabs become spaces unless `lines`.
    """
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n") if lines else SPACES.sub(" ", text)
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isprintable() or char in JOINERS or char in "\n\t":
        return char
    import unicodedata

    if unicodedata.category(char) in {"Zs", "Co", "Cn"}:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def width(text: str) -> int:
    """The columns `text` takes: wide characters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    import unicodedata

    if unicodedata.category(char) in {"Mn", "Me", "Cf"} or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, room: int, *, tail: bool = False) -> str:
    """`text`, cut with `…` when it is wider than `room`; `tail`: its end is what stays."""
    if width(text) <= room:
        return text
    if tail:
        return fit(text[::-1], room)[::-1]
    used, kept = 0, []
    for char in text:
        used += _columns(char)
        if used > room - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if room > 0 else ""


def wrap(text: str, room: int) -> list[str]:
    """`text` in lines of at most `room` columns, broken at spaces; a longer word stays whole."""
    if width(text) <= room:
        return [text]
    words = text.lstrip(" ").split(" ")
    lines = [" " * (len(text) - len(text.lstrip(" "))) + words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if width(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def pad(text: str, room: int, *, right: bool = False) -> str:
    """`text` filled with spaces to `room` columns; `right` moves it to the right edge."""
    space = " " * (room - width(text))
    return space + text if right else text + space
