"""What is tested before it lands: its gate is read while it runs."""

from __future__ import annotations

import re

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served

GATE = "sh -c 'echo 11 of 12 tests pass; while [ ! -e {go} ]; do sleep 0.1; done; echo 12 of 12'"


@pytest.fixture
def served(tmp_path):
    scratch = Scratch(tmp_path / "x")
    scratch("config", "set", "--project", f"land.gate={GATE.format(go=tmp_path / 'go')}")
    scratch.add("Read prices", script="write a.py\ncommit A")
    made = Served(scratch)
    scratch.wait_for("t-1", "done")
    yield made
    (tmp_path / "go").touch()
    made.close()


def test_what_a_gate_prints_is_seen_while_it_runs(served, tab, tmp_path):
    shown = tab(served, served.token())
    page = shown.open("/land")
    page.get_by_text("Nothing is to land").wait_for()
    served.scratch("land", "t-1")
    lines = page.get_by_role("log", name="What the gate of t-1 prints")
    lines.get_by_text("11 of 12 tests pass").wait_for()
    assert shown.faults() == []
    for width in (360, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.overflow() <= 0
        room = shown.run("document.querySelector('.land td.wide').clientWidth")
        assert room >= 200, f"at {width} px a title has {room} px"
    (tmp_path / "go").touch()
    page.get_by_role("region", name="Landed").get_by_text("Read prices").first.wait_for()
    lines.wait_for(state="detached")
    page.goto(served.url + "/t/t-1/timeline")
    page.get_by_role("img", name=re.compile(r"^landing: landed \d+s$")).wait_for()
    page.get_by_role("img", name=re.compile(r"^t-1.1: .*worked")).wait_for()


def test_work_in_the_queue_is_sent_back_to_its_agent(served, tab):
    served.scratch("land", "t-1")
    page = tab(served, served.token()).open("/land")
    page.get_by_role("button", name="Send t-1 back").click()
    page.get_by_role("textbox").fill("Name it prices.py.")
    page.get_by_role("dialog").get_by_role("button", name="Send back").click()
    page.get_by_text("t-1 is with its agent again.").wait_for()
    messages = served.scratch.data("show", "t-1")["messages"]
    assert "Name it prices.py." in [message["text"] for message in messages]


def test_a_landing_that_came_back_is_given_to_a_person_for_whom_it_counts(served, tab):
    served.scratch("land", "t-1")
    served.scratch("land", "hold", "t-1", "--why", "It conflicts in a.py.")
    mary = tab(served, served.token("mary")).open("/")
    mary.get_by_text("It conflicts in a.py.").wait_for()
    shown = tab(served, served.token("ann"))
    page = shown.open("/")
    page.wait_for_function("document.title.startsWith('(1) ')")
    page.get_by_role("button", name="Give to").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").fill("mary")
    dialog.get_by_role("button", name="Give").click()
    page.locator(".card").get_by_text("with mary").wait_for()
    page.wait_for_function("!document.title.startsWith('(')")
    assert shown.faults() == []
    mary.locator(".card").get_by_text("with mary").wait_for()
    assert mary.title().startswith("(1) ")
    assert "with mary: It conflicts in a.py." in served.scratch("land", "list")
    assert "with mary: Read prices: It conflicts in a.py." in served.scratch("inbox")
    assert served.scratch.data("land", "show", "t-1")["given"] == "mary"
