from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.web.conftest import filled


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Where these tests act."""
    served = filled(Scratch(tmp_path_factory.mktemp("inbox") / "x"))
    yield served
    served.close()


def test_an_answer_from_the_row_reaches_the_agent(own, tab):
    page = tab(own, own.token()).open("/")
    field = page.get_by_label("Answer t-1")
    field.fill("MIT")
    field.press("Enter")
    page.get_by_text("Answered t-1").wait_for()
    own.scratch.wait_for("t-1", "done")
    page.get_by_text("Which licence").wait_for(state="detached")
    assert own.scratch.git("show", "fleet/t-1:LICENSE").strip() == "MIT"


def test_keys_walk_the_items_and_do_what_the_buttons_do(own, tab):
    page = tab(own, own.token("bo")).open("/")
    current = page.locator("li[aria-current]")
    page.locator("li").filter(has_text="Add up a bill").locator(".words").click()
    current.filter(has_text="Add up a bill").wait_for()
    page.keyboard.press("j")
    current.filter(has_text="onerror").wait_for()
    page.keyboard.press("k")
    current.filter(has_text="Add up a bill").wait_for()
    page.keyboard.press("o")
    page.wait_for_url("**/t/t-3")


def test_a_snoozed_item_goes_away_and_undo_brings_it_back(own, tab):
    page = tab(own, own.token("cy")).open("/")
    words = page.locator("main").get_by_text("onclick=alert(1)")
    words.wait_for()
    page.get_by_role("button", name="Snooze t-7").click()
    words.wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    words.wait_for()


def test_who_may_not_act_is_shown_what_happens_and_no_button(own, tab):
    page = tab(own, own.token("mo", "monitor")).open("/")
    page.locator("main").get_by_text("onclick=alert(1)").wait_for()
    for name in ("Retry", "Cancel", "Accept", "Send back", "Land", "New task"):
        assert page.get_by_role("button", name=name).count() == 0
    assert page.get_by_placeholder("Write an answer").count() == 0


def test_a_review_says_how_much_it_changed_and_how_long_it_took(own, tab):
    page = tab(own, own.token("dot")).open("/")
    row = page.get_by_role("listitem").filter(has_text="Draw the schema")
    row.locator(".work").get_by_text("+1").wait_for()


def test_a_failed_task_is_retried_with_another_agent_from_its_row(own, tab):
    page = tab(own, own.token("eli")).open("/")
    row = page.get_by_role("listitem").filter(has_text="Add up a bill")
    row.get_by_role("button", name="Retry with").click()
    page.get_by_role("textbox", name="Agent").fill("scripted")
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    page.get_by_text("t-3 runs again, with scripted.").wait_for()
    assert own.scratch.data("show", "t-3")["spec"]["agent"] == "scripted"


def test_the_top_bar_has_the_project_the_cost_of_today_and_a_switch_for_all_hosts(own, tab):
    shown = tab(own, own.token("fay"))
    page = shown.open("/")
    top = page.locator(".top")
    top.get_by_role("link", name="shop").wait_for()
    top.get_by_text("$0.42 today").wait_for()
    top.get_by_role("button", name="Start nothing new").click()
    page.get_by_role("dialog").get_by_role("button", name="Start nothing new").click()
    top.get_by_role("button", name="Resume").wait_for()
    assert {row["state"] for row in own.scratch.data("host", "list")} == {"draining"}
    assert shown.faults() == []
    top.get_by_role("button", name="Resume").click()
    top.get_by_role("button", name="Start nothing new").wait_for()
