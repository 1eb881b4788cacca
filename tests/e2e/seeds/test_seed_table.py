from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.seeds.seed_table import COMMANDS, PARTS, SEEDS, pending_row, read_pending

BY_NUMBER = [pytest.param(seed, id=seed.number) for seed in SEEDS]


def test_all_five_documents_have_a_table():
    assert [seed.number for seed in SEEDS] == ["000", "001", "002", "003", "004"]


@pytest.mark.parametrize("seed", BY_NUMBER)
def test_no_row_was_lost(seed):
    assert len(seed.commands) == seed.lines
    assert sum(command.times for command in seed.commands) == seed.printed


@pytest.mark.parametrize("seed", BY_NUMBER)
def test_a_line_has_one_row_in_its_document(seed):
    rows = Counter((command.of, command.line) for command in seed.commands)
    assert [row for row, times in rows.items() if times > 1] == []


def test_every_row_belongs_to_a_part():
    assert {command.part for command in COMMANDS} <= set(PARTS)


@pytest.mark.parametrize("seed", BY_NUMBER)
def test_a_foreign_line_says_why_it_is_not_run(seed):
    foreign = [command for command in seed.commands if command.part == "foreign"]
    assert [c.key for c in foreign if c.why not in seed.reasons] == []
    assert [c.key for c in seed.commands if c.part != "foreign" and c.why] == []


def test_every_row_is_run_or_pending_or_foreign_and_only_one_of_them():
    _, rows = read_pending()
    known = {command.key: pending_row(command) for command in COMMANDS}
    foreign = {command.key for command in COMMANDS if command.part == "foreign"}
    keys = [key for key, _, _ in rows]
    assert len(keys) == len(set(keys))
    assert [row for row in rows if known.get(row[0]) != row] == []
    assert foreign.isdisjoint(keys)


def test_pending_states_how_many_rows_it_has():
    stated, rows = read_pending()
    assert stated == len(rows), "pending.txt may only shrink: lower the number at its top with it"
