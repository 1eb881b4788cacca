from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("new") / "x"), "--no-run")
    yield made
    made.close()


def test_a_task_is_added_with_its_budget_gate_and_labels_and_opens(served, tab):
    shown = tab(served, served.token())
    page = shown.open("/tasks")
    page.get_by_text("No tasks yet").wait_for()
    page.keyboard.press("n")
    page.get_by_label("Title").fill("Paint the fence")
    page.get_by_label("Prompt").fill("say Painted.")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Labels").fill("ui, garden")
    page.get_by_label("Gate").fill("true")
    page.get_by_label("Budget in dollars").fill("1.50")
    page.get_by_text("scripted would start at once").wait_for()
    assert shown.faults() == []
    page.get_by_role("button", name="Add task").click()
    page.get_by_role("heading", name="Paint the fence").wait_for()
    detail = served.scratch.data("show", "t-1")
    assert detail["prompt"] == "say Painted."
    assert detail["spec"]["gate"] == "true"
    assert detail["spec"]["limits"]["budget"]["cost"] == 1_500_000
    assert detail["task"]["labels"] == ["ui", "garden"]


def test_any_word_of_a_title_finds_the_task(served, tab):
    served.scratch.add("Plant the apple tree")
    shown = tab(served, served.token("bo"))
    page = shown.open("/")
    page.get_by_text("Nothing needs you").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("apple")
    page.get_by_role("option").filter(has_text="Plant the apple tree").wait_for()
    assert shown.faults() == []
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Plant the apple tree").wait_for()


def test_the_keys_are_listed(served, tab):
    shown = tab(served, served.token("cy"))
    page = shown.open("/")
    page.get_by_text("Nothing needs you").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("New task").wait_for()
    assert shown.faults() == []
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")


def test_a_filter_is_saved_for_the_team(served, tab):
    served.scratch.add("Label me", "--label", "garden")
    page = tab(served, served.token("dee")).open("/tasks?q=label:garden")
    page.get_by_role("button", name="Save filter").click()
    page.get_by_label("Its name").fill("Garden")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_text("Saved as Garden").wait_for()
    other = tab(served, served.token("eve")).open("/tasks")
    other.get_by_role("button", name="Garden").click()
    other.get_by_text("Label me").wait_for()


def test_the_preview_does_not_promise_a_start_that_others_have_before(served, tab):
    served.scratch.add("First in line", "--priority", "0")
    page = tab(served, served.token("flo")).open("/tasks")
    page.get_by_role("row").nth(1).wait_for()
    page.keyboard.press("n")
    preview = page.locator(".preview")
    until(lambda: "would start after" in preview.inner_text(), "the preview")
    assert "at once" not in preview.inner_text()


def test_what_one_types_stays_while_the_rest_of_the_form_is_filled(served, tab):
    """The page draws the form again with each key; it must not set a field back."""
    served.scratch.add("Of the only project")
    page = tab(served, served.token("gus")).open("/tasks")
    page.get_by_role("row").nth(1).wait_for()
    page.keyboard.press("n")
    project = page.get_by_label("Project")
    assert project.input_value() == str(served.scratch.repo)  # the only one
    project.fill("/srv/other")
    page.get_by_label("Title").fill("Elsewhere")
    assert project.input_value() == "/srv/other"
