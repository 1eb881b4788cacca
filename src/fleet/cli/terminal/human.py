"""Durations, ages, tokens and money, as people read them."""

from __future__ import annotations

import time

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(micros: int) -> str:
    """`850ms`, `7s`, `3m12s`, `2h05m`, `4d03h`: two units at most, never rounded up."""
    if micros < 0:
        return f"-{duration(-micros)}"
    if micros < SECOND:
        return f"{micros // 1000}ms" if micros else "0s"
    if micros < MINUTE:
        return f"{micros // SECOND}s"
    for unit, smaller, names in ((DAY, HOUR, "dh"), (HOUR, MINUTE, "hm"), (MINUTE, SECOND, "ms")):
        if micros >= unit:
            return f"{micros // unit}{names[0]}{micros % unit // smaller:02}{names[1]}"
    raise AssertionError


def ago(then: int | None, now: int) -> str:
    """`3m ago`, `in 2h`, `now`; `-` when there was no such moment."""
    if then is None:
        return "-"
    apart = abs(now - then)
    if apart < SECOND:
        return "now"
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s")):
        if apart >= unit:
            text = f"{apart // unit}{name}"
            return f"{text} ago" if then < now else f"in {text}"
    raise AssertionError


def moment(micros: int | None) -> str:
    """The local time of a moment, to the second; `-` when there is none."""
    if micros is None:
        return "-"
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(micros // SECOND, UTC).astimezone()
    return when.strftime("%Y-%m-%d %H:%M:%S")


def clock(micros: int) -> str:
    """The local time of day of a moment."""
    return time.strftime("%H:%M:%S", time.localtime(micros // SECOND))


def tokens(count: int | None) -> str:
    """`950`, `12.3k`, `4.1M`; `-` when they are not known."""
    if count is None:
        return "-"
    if count < 1000:
        return str(count)
    for size, name in ((1000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        if count < size * 999.95:
            return f"{count / size:.1f}{name}"
    return f"{count / 1_000_000_000_000:.1f}T"


def money(micros: int | None) -> str:
    """Millionths of a dollar as `$1.20`, or `$0.0042` when it is less than a cent; `-` for none."""
    if micros is None:
        return "-"
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    if 0 < size < 10_000:
        return f"{sign}${size / 1_000_000:.4f}"
    return f"{sign}${size / 1_000_000:,.2f}"


def since_of(text: str, now: int) -> int:
    """The moment that `--since` names: `2h` and `7d` ago, or a date or a time; 0 for the empty text."""
    from datetime import UTC, datetime

    from fleet.domain.errors import BadInput

    if not text:
        return 0
    if text[:-1].isdecimal() and text[-1] in UNITS and len(text) < 10:
        return max(0, now - int(text[:-1]) * UNITS[text[-1]])
    try:
        at = datetime.fromisoformat(text)
        moment = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * SECOND)
    except (ValueError, OverflowError):
        raise BadInput(
            f"--since: '{text[:40]}' is not a time.", fix="For example 2h, 7d or 2026-01-31T17:05Z."
        ) from None
    if moment > now:
        raise BadInput(
            f"--since: {text} is in the future.", fix="For example 2h, 7d or 2026-01-31."
        )
    return max(0, moment)
