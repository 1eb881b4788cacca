"""Reports of test commands: JUnit XML, TAP, and what is neither."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.landing.report import counted, lost_tests, read_junit, read_tap

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="a" name="ok"/><testcase classname="a" name="bad"><failure>x</failure></testcase>
<testcase name="broken"><error/></testcase><testcase classname="a" name="later"><skipped/></testcase>
</testsuite></testsuites>"""


def test_junit_says_how_each_test_ended():
    assert read_junit(JUNIT) == {
        "a::ok": "passed", "a::bad": "failed", "broken": "failed", "a::later": "skipped",
    }  # fmt: skip


def test_a_test_that_ran_twice_has_its_worse_end():
    twice = '<x><testcase name="a"/><testcase name="a"><failure/></testcase></x>'
    assert read_junit(twice) == {"a": "failed"}


def test_tap_says_how_each_test_ended():
    text = (
        "TAP version 13\n1..4\nok 1 - adds\nnot ok 2 - splits\nok 3 - later # SKIP no net\nok 4\n"
    )
    assert read_tap(text) == {
        "adds": "passed", "splits": "failed", "later": "skipped", "test 4": "passed",
    }  # fmt: skip
    assert read_tap("ok\nok 2 files\n") == {}


def test_a_dtd_is_no_report():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x><testcase name="&a;"/></x>'
    assert read_junit(bomb) == {}
    assert read_junit('<x><testcase name="a"><failure><![CDATA[<]]></failure></testcase></x>')


@given(st.text())
def test_whatever_is_no_report_is_an_empty_one(text):
    assert isinstance(read_junit(text), dict)
    assert isinstance(read_tap(text), dict)


def test_tests_that_vanish_or_are_skipped_are_named():
    before = {"a": "passed", "b": "passed", "c": "skipped"}
    assert lost_tests(before, {"a": "skipped", "c": "skipped", "d": "passed"}) == (("b",), ("a",))
    assert lost_tests(before, {}) == lost_tests({}, before) == ((), ())


def test_a_test_counts_only_if_it_fails_on_the_base():
    base = {"old": "passed", "new": "failed"}
    writer = {"old": "passed", "new": "passed", "other": "passed", "bad": "failed"}
    assert counted(base, writer) == {"new", "other"}
