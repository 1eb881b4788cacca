"""Every screen, in both themes, at three widths: no error, nothing forbidden, readable by all."""

from __future__ import annotations

import pytest

from tests.wait import until
from tests.web.conftest import HOSTILE, VISIBLE
from tests.web.tab import WIDTHS

SCREENS = {
    "/": "Inbox",
    "/tasks": "Tasks",
    "/tasks?as=board": "Tasks",
    "/tasks?as=graph": "Tasks",
    "/t/t-1": "Choose a licence",
    "/t/t-3": "Add up a bill",
    "/t/t-2/transcript": "Read prices from a file",
    "/t/t-6/diff": "Draw the schema",
    "/t/t-6/files": "Draw the schema",
    "/t/t-5/explain": "Write the README",
    "/t/t-7/timeline": "<img src=x onerror=alert(1)>",
}


@pytest.mark.parametrize("path", SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_screen_is_clean(shop, token, tab, path, theme):
    shown = tab(shop, token, theme=theme)
    page = shown.open(path)
    page.get_by_role("heading", name=SCREENS[path], level=1).wait_for()
    page.locator(
        "main li, main .row, main .facts, main .line-said, main .code-line, main .node"
    ).first.wait_for()
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{path} at {width} px"
        assert shown.overflow() <= 0, f"{path} at {width} px"


@pytest.mark.parametrize("width", [360, 768, 1000, 1180, 1440])
def test_no_column_of_the_table_is_cut_off(shop, token, tab, width):
    shown = tab(shop, token, width=width)
    page = shown.open("/tasks?view=all")
    page.locator(".row:not(.heads)").first.wait_for()
    rows = "[...document.querySelectorAll('.row:not(.heads)')]"
    assert shown.run(f"Math.max(...{rows}.map(row => row.scrollWidth - row.clientWidth))") <= 0
    assert (
        shown.run(f"Math.min(...{rows}.map(row => row.querySelector('.c-title').clientWidth))")
        > 120
    )


def test_each_screen_has_a_title_of_its_own_and_the_focus(shop, token, tab):
    page = tab(shop, token).open("/")
    page.get_by_role("link", name="Tasks").click()
    page.get_by_role("heading", name="Tasks", level=1).wait_for()
    until(lambda: page.title().endswith("Tasks · Fleet"), page.title)
    assert page.locator("main:focus").count() == 1
    page.get_by_role("link", name="t-3", exact=True).click()
    page.get_by_role("heading", name="Add up a bill").wait_for()
    until(lambda: page.title().endswith("t-3 Add up a bill · Fleet"), page.title)
    page.get_by_role("link", name="Transcript").first.click()
    page.wait_for_url("**/transcript")
    assert page.locator("main:focus").count() == 0  # a part of the same screen


OPENED = {"New task": "n", "Search and do": "Control+k", "Keys": "?"}  # by a key


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_key_opens_is_clean(shop, token, tab, name, theme):
    shown = tab(shop, token, theme=theme)
    page = shown.open("/tasks")
    page.get_by_role("row").nth(1).wait_for()
    page.keyboard.press(OPENED[name])
    page.get_by_role("dialog", name=name).wait_for()
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{name} at {width} px"
        assert shown.overflow() <= 0, f"{name} at {width} px"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_to_sign_in_is_clean(shop, tab, theme):
    shown = tab(shop, theme=theme)
    page = shown.open("/")
    page.get_by_role("heading", name="Sign in").wait_for()
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{width} px"
        assert shown.overflow() <= 0, f"{width} px"


@pytest.mark.parametrize("path", ["/", "/tasks", "/t/t-1", "/t/t-2/transcript", "/t/t-6/diff", "/land", "/machines", "/costs", "/team"])  # fmt: skip
def test_the_keys_are_listed_on_every_screen_once_each(shop, token, tab, path):
    page = tab(shop, token).open(path)
    page.get_by_role("heading", level=1).first.wait_for()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys").locator("dt")
    keys.first.wait_for()
    names = keys.all_inner_texts()
    assert len(names) == len(set(names)) > 8


def test_hostile_text_is_text(shop, token, tab):
    page = tab(shop, token).open("/")
    page.get_by_text(VISIBLE).first.wait_for()
    assert page.get_by_text(HOSTILE).count() == 0  # nothing turns a line around
    assert page.locator("main img, main script").count() == 0
    assert page.get_by_text("<b onclick=alert(1)>bold</b>").count() > 0


def test_what_the_page_shows_is_what_the_command_line_says(shop, token, tab):
    page = tab(shop, token).open("/tasks?view=all")
    page.get_by_role("row").nth(1).wait_for()
    rows = {row["id"]: row["status"] for row in shop.scratch.data("tasks", "--all")}
    for task, status in rows.items():
        shown = page.get_by_role("row").filter(has=page.get_by_role("link", name=task, exact=True))
        assert shown.locator(".status").inner_text() == status


def test_the_table_is_grouped_and_the_keys_follow_its_order(shop, token, tab):
    shown = tab(shop, token)
    page = shown.open("/tasks?view=all")
    page.get_by_label("Group by").select_option("status")
    heads = page.locator(".row.group")
    heads.first.wait_for()
    assert page.url.endswith("by=status")

    def names() -> list[str]:
        return [text.split()[0] for text in heads.all_inner_texts()]

    wanted = ["asking", "failed", "review"]  # what needs a person comes first
    until(lambda: names()[:3] == wanted and "done" in names(), names)  # three lists, one by one
    below = page.locator(".row:not(.heads)").all_inner_texts()
    assert "failed" in below[below.index(heads.nth(1).inner_text()) + 1]
    page.keyboard.press("j")
    page.locator(".row[data-current] .status").get_by_text("failed", exact=True).wait_for()
    assert shown.faults() == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert shown.overflow() <= 0
