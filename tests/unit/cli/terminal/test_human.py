import pytest

from fleet.cli.terminal.human import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    ago,
    counted,
    duration,
    moment,
    money,
    tokens,
)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (850_000, "850ms"),
        (SECOND, "1s"),
        (59_999_999, "59s"),
        (3 * MINUTE + 12 * SECOND, "3m12s"),
        (MINUTE, "1m00s"),
        (2 * HOUR + 5 * MINUTE, "2h05m"),
        (4 * DAY + 3 * HOUR, "4d03h"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_a_duration_has_two_units_at_most(micros, text):
    assert duration(micros) == text


def test_an_age_is_said_in_its_largest_unit():
    now = 1_700_000_000 * SECOND
    assert ago(now - 3 * MINUTE - 50 * SECOND, now) == "3m ago"
    assert ago(now + 2 * HOUR, now) == "in 2h"
    assert ago(now - 10, now) == "now"
    assert ago(None, now) == "-"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_345, "12.3k"),
        (999_949, "999.9k"),
        (999_960, "1.0M"),
        (4_100_000, "4.1M"),
        (2 * 10**12, "2.0T"),
    ],
)
def test_tokens_are_short(count, text):
    assert tokens(count) == text


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (None, "-"),
        (0, "$0.00"),
        (4_200, "$0.0042"),
        (1_200_000, "$1.20"),
        (1_234_560_000, "$1,234.56"),
        (-500_000, "-$0.50"),
    ],
)
def test_money_shows_cents_or_what_is_less_than_one(micros, text):
    assert money(micros) == text


def test_a_moment_is_local_time(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment(0) == "1970-01-01 09:00:00"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert moment(None) == "-"


def test_one_of_a_thing_has_no_s():
    assert [counted(n, "file") for n in (0, 1, 2, 1200)] == [
        "0 files", "1 file", "2 files", "1,200 files",
    ]  # fmt: skip
