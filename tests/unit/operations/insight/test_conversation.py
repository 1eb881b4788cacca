from __future__ import annotations

import pytest

from fleet.operations.insight.conversation import ReadSaid


@pytest.fixture
def run(office):
    return office.start(office.add(), *(f"line {n}" for n in range(1, 501)))


def texts(page):
    return [row.text for row in page.rows]


def test_without_a_place_it_is_the_last_lines(office, run):
    page = office.call(ReadSaid(run, limit=3))
    assert texts(page) == ["line 498", "line 499", "line 500"]
    assert (page.first, page.last, page.total) == (498, 500, 500)
    assert [row.line for row in page.rows] == [498, 499, 500]


def test_pages_lead_backwards_and_forwards_without_a_gap(office, run):
    end = office.call(ReadSaid(run, limit=300))
    start = office.call(ReadSaid(run, before=end.first, limit=300))
    assert (start.first, start.last, end.first) == (1, 200, 201)
    after = office.call(ReadSaid(run, after=0, limit=200))
    assert texts(after) == texts(start)
    rest = office.call(ReadSaid(run, after=after.last, limit=1000))
    assert texts(after) + texts(rest) == texts(start) + texts(end)
    assert office.call(ReadSaid(run, after=500)).rows == ()


def test_some_kinds_are_looked_for_until_there_are_enough(office):
    tool = '{"kind": "tool", "name": "Bash", "text": "ls"}'
    run = office.start(office.add(), tool, *("text",) * 900, tool, "text")
    page = office.call(ReadSaid(run, kinds=("tool",), limit=2))
    assert [(row.line, row.kind, row.name) for row in page.rows] == [
        (1, "tool", "Bash"), (902, "tool", "Bash"),
    ]  # fmt: skip


def test_text_is_looked_for_in_any_case_far_beyond_one_page(office):
    run = office.start(office.add(), "The Needle", *("hay",) * 900)
    page = office.call(ReadSaid(run, text="needle", limit=5))
    assert [(row.line, row.text) for row in page.rows] == [(1, "The Needle")]
