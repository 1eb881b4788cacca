"""A setting with a list of values takes no other."""

from __future__ import annotations

from fleet.config.keys.table import KEYS


def test_a_setting_that_has_choices_is_checked_against_them():
    assert [key for key in KEYS if key.choices and key.kind == "text"] == []
