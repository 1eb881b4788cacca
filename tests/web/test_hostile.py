"""Whatever agents and branches are called and say is text, however long it is."""

from __future__ import annotations

import json

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.web.crowd import Crowd

BRANCH = "fix/<img/src=x/onerror=alert(1)>&'\u202egnp"
WORDS = "It says a lot. " * 200
LONG = "x" * (1 << 20) + "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("hostile") / "x")
    scratch.add("Speak", script="say First.\nsay Last.")
    scratch.work()
    with (scratch.home / "runs" / "t-1.1" / "transcript").open("a") as out:
        for text in ("Before the long line.", LONG, "After the long line."):
            out.write(json.dumps({"kind": "text", "text": text}) + "\n")
    crowd = Crowd(scratch, first=2)
    crowd.add("A branch", "running", branch=BRANCH)
    crowd.add("Much to say", "failed", why=WORDS)
    crowd.write()
    made = Served(scratch, "--no-run")
    yield made, made.token()
    made.end()


@pytest.mark.parametrize("width", [1440, 390], ids=["desk", "phone"])
def test_a_branch_with_markup_in_its_name_is_text_and_can_be_found(served, tab, width):
    shown = tab(*served, width=width)
    page = shown.open("/")
    page.locator(".find").click()
    page.get_by_role("combobox", name="Search").fill("<img/src")
    page.get_by_role("option").filter(has_text="A branch").click()
    page.locator("code").filter(has_text="<img/src=x/onerror=alert(1)>").first.wait_for()
    assert page.locator("main img, main script").count() == 0
    assert shown.overflow() <= 0
    shown.wrong = [text for text in shown.wrong if "409 (Conflict)" not in text]  # not on this host


@pytest.mark.parametrize("width", [1440, 390], ids=["desk", "phone"])
def test_a_line_of_a_megabyte_does_not_break_the_transcript(served, tab, width):
    shown = tab(*served, width=width)
    page = shown.open("/t/t-1/transcript")
    page.get_by_text("After the long line.").wait_for()
    page.get_by_text("Before the long line.").wait_for()
    assert page.locator("main script").count() == 0
    assert shown.overflow() <= 0
    longest = shown.run(
        "Math.max(...[...document.querySelectorAll('.line-said')].map((line) => line.textContent.length))"
    )
    assert longest < 200_000  # the rest is cut, or the browser would lay out a megabyte


def test_a_long_reason_does_not_hide_the_title_on_a_phone(served, tab):
    shown = tab(*served, width=360)
    page = shown.open("/t/t-3")
    page.get_by_text("It failed").wait_for()
    page.get_by_role("navigation", name="Of this task").wait_for()
    assert shown.run("document.querySelector('main').scrollTop") == 0
    shown.wrong = [text for text in shown.wrong if "409 (Conflict)" not in text]  # not on this host
