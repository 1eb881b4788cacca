"""What waits, in the order in which it would start; what its row says of its parent, context and money."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

SPENDS = "usage 64000 100 0.30\nspeak 60 900"

FAMILY = """tasks:
- {title: Renovate, name: all, join: all}
- {title: Buy wood, parent: all, after: t-1}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("board") / "x")
    scratch.add("Paint the shelf", "--budget", "$0.50", script=SPENDS)
    scratch.add("Choose a colour", script="ask Which colour? | Red | Blue\nsay Thanks.")
    scratch.add("Hang it up", "--after", "t-1")
    scratch.add("Clean the room", "--after", "t-1")
    (scratch.root / "tasks.yaml").write_text(FAMILY)
    scratch("add", "--file", str(scratch.root / "tasks.yaml"))
    served = Served(scratch)
    scratch.wait_for("t-1", "running")
    scratch.wait_for("t-2", "asking")
    yield served
    served.close()


def priority(own, task: str) -> int:
    return own.scratch.data("show", task)["task"]["priority"]


def cards(page, column: str) -> list[str]:
    section = page.get_by_role("region", name=column, exact=True)
    return [text.split()[0] for text in section.locator(".board-card").all_inner_texts()]


def test_a_card_that_waits_is_dragged_to_another_priority(own, tab):
    shown = tab(own, own.token())
    page = shown.open("/tasks?as=board")
    page.locator(".board-card[draggable=true]").filter(has_text="Clean the room").wait_for()
    assert cards(page, "Waiting")[:2] == ["t-3", "t-4"]
    page.locator(".board-card").filter(has_text="Clean the room").hover()
    page.mouse.down()
    page.mouse.move(300, 300)
    band = page.locator(".band").filter(has_text="Priority 0, first")
    band.hover()
    band.hover()  # a browser tells what is dragged over from the second move on
    page.mouse.up()
    page.get_by_text("t-4 has priority 0, first.").wait_for()
    assert priority(own, "t-4") == 0
    until(lambda: cards(page, "Waiting")[0] == "t-4", "it to come first")
    assert shown.faults() == []


def test_keys_change_the_priority_on_the_board_and_in_the_table(own, tab):
    page = tab(own, own.token()).open("/tasks?as=board")
    page.locator(".board-card[draggable=true]").filter(has_text="Hang it up").wait_for()
    page.get_by_role("link", name="Hang it up").focus()
    page.keyboard.press("-")
    page.get_by_text("t-3 has priority 3.").wait_for()
    page.keyboard.press("+")
    page.get_by_text("t-3 has priority 2, normal.").wait_for()
    page.goto(own.url + "/tasks?q=hang")
    page.get_by_role("row").filter(has_text="Hang it up").wait_for()
    page.locator(".top .primary").wait_for()
    page.keyboard.press("+")
    page.get_by_role("row").filter(has_text="Hang it up").get_by_text("P1", exact=True).wait_for()
    assert priority(own, "t-3") == 1


def test_where_there_is_no_mouse_the_page_of_a_task_has_its_priority(own, tab):
    shown = tab(own, own.token(), width=360)
    page = shown.open("/t/t-6")
    page.get_by_label("Priority").select_option("4, last")
    page.get_by_text("t-6 has priority 4, last.").wait_for()
    assert priority(own, "t-6") == 4
    assert shown.overflow() <= 0


def test_who_may_not_assign_moves_no_card(own, tab):
    page = tab(own, own.token("mo", "monitor")).open("/tasks?as=board")
    card = page.locator(".board-card").filter(has_text="Hang it up")
    card.wait_for()
    assert card.get_attribute("draggable") == "false"
    page.get_by_role("link", name="Hang it up").focus()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    assert page.get_by_text("raise its priority").count() == 0
    page.goto(own.url + "/t/t-3")
    page.get_by_text("Priority", exact=True).wait_for()
    page.get_by_text("monitor", exact=True).wait_for()  # it is known who is signed in
    assert page.get_by_label("Priority").count() == 0


def test_a_row_says_what_it_waits_for_how_full_its_context_is_and_what_it_may_cost(own, tab):
    shown = tab(own, own.token())
    page = shown.open("/tasks")
    waits = page.get_by_role("row").filter(has_text="Clean the room")
    waits.get_by_text("after t-1", exact=True).wait_for()
    runs = page.get_by_role("row").filter(has_text="Paint the shelf")
    runs.get_by_role("progressbar", name="Context of t-1 in use").wait_for()
    (row,) = [each for each in own.scratch.data("tasks") if each["id"] == "t-1"]
    part = row["run"]["usage"]["context"] / row["run"]["window"]
    assert runs.locator(".c-context").inner_text().strip() == f"{part:.0%}".replace("%", " %")
    runs.locator(".c-cost").get_by_text("$0.30 of $0.50", exact=True).wait_for()
    assert shown.faults() == []


def test_tasks_are_grouped_below_their_parent(own, tab):
    page = tab(own, own.token()).open("/tasks?by=parent")
    groups = page.locator(".row.group")
    wanted = ["t-5 Renovate 2", "Without a parent 4"]
    until(
        lambda: groups.all_inner_texts() == wanted, groups.all_inner_texts
    )  # two lists, one by one
    rows = page.locator(".virtual .row:not(.heads)").all_inner_texts()
    assert "Renovate" in rows[1]
    assert "Buy wood" in rows[2]


def test_a_question_is_answered_on_its_card(own, tab):
    page = tab(own, own.token()).open("/tasks?as=board")
    card = page.locator(".board-card").filter(has_text="Which colour?")
    card.get_by_role("button", name="Red: t-2").click()
    own.scratch.wait_for("t-2", "done")
