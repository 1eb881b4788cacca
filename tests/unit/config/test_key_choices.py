"""A setting with a list of values takes no other."""

from __future__ import annotations

from fleet.config.keys.table import KEYS


def test_a_setting_that_has_choices_is_checked_against_them():
    unchecked = [k.name for k in KEYS if k.choices and k.kind not in {"choice", "texts"}]
    assert unchecked == []
