from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until
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


def test_enter_opens_the_changes_of_what_is_to_be_reviewed(own, tab):
    page = tab(own, own.token("hed")).open("/")
    page.locator("li").filter(has_text="Draw the schema").locator(".words").click()
    page.locator("li[aria-current]").filter(has_text="Draw the schema").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/t-6/diff")


def test_where_an_item_leaves_the_keys_are_for_the_next(own, tab):
    page = tab(own, own.token("ivy")).open("/")
    page.locator("li").filter(has_text="Add up a bill").locator(".words").click()
    page.locator("li[aria-current]").filter(has_text="Add up a bill").wait_for()
    page.keyboard.press("s")
    page.locator("li[aria-current]").filter(has_text="onerror").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.locator("li").filter(has_text="Add up a bill").wait_for()


def test_a_snoozed_item_goes_away_and_undo_brings_it_back(own, tab):
    page = tab(own, own.token("cy")).open("/")
    words = page.locator("main").get_by_text("onclick=alert(1)")
    words.wait_for()
    page.get_by_role("button", name="Snooze t-7").click()
    words.wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    words.wait_for()


def swipe(shown, card, by: int) -> None:
    """With one finger, sideways, as a phone tells it."""
    box = card.bounding_box()
    x, y = box["x"] + box["width"] - 30, box["y"] + 12
    finger = shown.context.new_cdp_session(shown.page)
    for step in range(6):
        kind = "touchMove" if step else "touchStart"
        point = {"x": x + by * step / 5, "y": y}
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_swipe_to_the_left_snoozes_and_a_short_one_does_not(own, tab):
    shown = tab(own, own.token("flo"), width=360)
    page = shown.open("/")
    card = page.locator("li.card").filter(has_text="onclick=alert(1)")
    card.scroll_into_view_if_needed()
    swipe(shown, card, -60)
    assert card.get_attribute("data-swiped") is None
    swipe(shown, card, -240)
    page.get_by_text("Snoozed for 1h.").wait_for()
    card.wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    card.wait_for()


NOTICES = """
window.told = [];
window.Notification = class {
  static permission = "default";
  static requestPermission() { this.permission = "granted"; return Promise.resolve("granted"); }
  constructor(title, { body }) { window.told.push(`${title}: ${body}`); }
};
Object.defineProperty(document, "hidden", { get: () => window.away === true });
"""


def test_who_is_away_is_told_of_a_new_question_by_the_browser(own, tab):
    shown = tab(own, own.token("gil"))
    shown.page.add_init_script(NOTICES)
    page = shown.open("/")
    page.locator("link[rel=icon][href$='/icon-waiting.svg']").wait_for(state="attached")
    page.get_by_role("button", name="Notify me").click()
    page.get_by_role("button", name="Notify me").wait_for(state="detached")
    shown.run("window.away = true")
    task = own.scratch.add("Buy tea", script="ask Which tea? | Green | Black")
    until(lambda: shown.run("window.told") == ["Buy tea: Which tea?"], "the notification")
    own.scratch.wait_for(task, "asking")  # its run ends a moment after it asked


def test_who_may_not_act_is_shown_what_happens_and_no_button(own, tab):
    page = tab(own, own.token("mo", "monitor")).open("/")
    page.locator("main").get_by_text("onclick=alert(1)").wait_for()
    page.get_by_text("monitor", exact=True).wait_for()  # it is known who is signed in
    for name in ("Retry", "Cancel", "Accept", "Send back", "Land", "New task"):
        assert page.get_by_role("button", name=name).count() == 0
    assert page.get_by_placeholder("Write an answer").count() == 0


def test_a_review_says_how_much_it_changed_and_how_long_it_took(own, tab):
    page = tab(own, own.token("dot")).open("/")
    row = page.get_by_role("listitem").filter(has_text="Draw the schema")
    row.locator(".work").get_by_text("+2").wait_for()  # lines of schema.sql


def test_a_failed_task_is_retried_with_another_agent_from_its_row(own, tab):
    page = tab(own, own.token("eli")).open("/")
    row = page.get_by_role("listitem").filter(has_text="Add up a bill")
    row.get_by_role("button", name="Retry with").click()
    page.get_by_role("combobox", name="Agent").fill("scripted")
    page.locator("#choices-of-field option[value=scripted]").wait_for(state="attached")
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
