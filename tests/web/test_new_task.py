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
    page.get_by_role("button", name="Board").click()
    page.wait_for_url("**/tasks?as=board")
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


def test_several_solutions_of_one_task_are_asked_for(served, tab):
    page = tab(served, served.token("ed")).open("/tasks")
    page.locator(".top .primary").click()  # there once the page knows who may add
    page.get_by_label("Title").fill("Draw a map")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Solutions").fill("3")
    page.get_by_label("Gate").fill("true")
    page.get_by_role("button", name="Add task").click()
    page.get_by_role("heading", name="Draw a map").wait_for()
    batch = page.url.rpartition("/")[2]
    detail = served.scratch.data("show", batch)
    assert len(detail["children"]) == 3


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


def test_the_palette_finds_a_setting_with_where_it_is_set_for_coordinators_alone(served, tab):
    shown = tab(served, served.token("bo"))
    page = shown.open("/")
    page.get_by_text("Nothing needs you").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("retention")
    setting = page.get_by_role("option").filter(has_text="retention.").first
    setting.get_by_text("default").wait_for()
    assert shown.faults() == []
    asked = served.token("lea", "team-lead")
    assert served.ask("POST", "/v1/setting/find", {"words": "retention"}, token=asked)[0] == 403


def test_the_palette_finds_agents_and_does_what_a_phone_has_no_button_for(served, tab):
    served.scratch.add("Water the roses")  # who would do it is the only agent here
    shown = tab(served, served.token("ph"), width=360)
    page = shown.open("/tasks")
    page.get_by_role("heading", name="Tasks", exact=True).wait_for()
    page.get_by_label("Search", exact=True).click()
    page.get_by_role("option", name="Light or dark").click()
    page.locator("html[data-theme=dark]").wait_for()
    assert shown.run("getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.get_by_label("Search", exact=True).click()
    page.get_by_role("combobox", name="Search").fill("scripted")
    page.get_by_role("option", name="scripted", exact=True).click()
    page.wait_for_url("**/tasks?view=all&q=agent:scripted")
    page.get_by_label("Search", exact=True).click()
    page.get_by_role("combobox", name="Search").fill("sign out")
    page.get_by_role("option", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()


def late(page, path: str) -> list:
    """The requests to this address, none of which is answered before `answer`."""
    held = []
    page.route(path, lambda route: held.append(route))  # noqa: PLW0108  # it marks what it calls
    return held


def answer(page, path: str, held: list) -> None:
    for route in held:
        route.continue_()
    page.unroute(path)


def test_the_palette_finds_what_comes_after_it_was_opened(served, tab):
    page = tab(served, served.token("hal")).open("/")
    page.get_by_text("Live", exact=True).wait_for()
    page.locator(".find").click()
    page.get_by_role("combobox", name="Search").fill("codex")
    page.get_by_text("Nothing found.").wait_for()
    served.scratch.add("Rake the leaves", "--agent", "codex")
    page.get_by_role("option", name="codex", exact=True).wait_for()


def test_what_is_chosen_in_the_palette_stays_chosen_when_more_is_found(served, tab):
    served.scratch.add("Sweep the inbox", "--prompt", "Clear the inbox.")
    page = tab(served, served.token("ina")).page
    held = late(page, "**/v1/search/find")
    page.goto(served.url + "/tasks")
    page.get_by_role("row").filter(has_text="Sweep the inbox").wait_for()
    page.keyboard.press("Control+k")
    with page.expect_request("**/v1/search/find"):
        page.get_by_role("combobox", name="Search").fill("inbox")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    chosen.get_by_text("Inbox", exact=True).wait_for()
    served.scratch.add("Paint the inbox")
    page.get_by_role("option").filter(has_text="Paint the inbox").wait_for()
    answer(page, "**/v1/search/find", held)
    assert chosen.inner_text() == "Inbox"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Inbox", level=1).wait_for()


def test_a_key_that_comes_before_it_is_known_who_signed_in_counts(served, tab):
    page = tab(served, served.token("joe")).page
    held = late(page, "**/v1/me/show")
    page.goto(served.url + "/tasks")
    page.get_by_role("heading", name="Tasks", exact=True).wait_for()
    page.keyboard.press("n")
    answer(page, "**/v1/me/show", held)
    page.get_by_role("dialog", name="New task").wait_for()


def test_who_may_not_add_is_asked_for_no_task(served, tab):
    page = tab(served, served.token("mo", "monitor")).open("/tasks")
    page.get_by_text("monitor", exact=True).wait_for()
    page.keyboard.press("n")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    assert page.get_by_role("dialog").count() == 1


def test_keys_stay_with_their_row_when_another_comes_above(served, tab):
    served.scratch.add("Mow the lawn")
    served.scratch.add("Trim the hedge")
    page = tab(served, served.token("kay")).open("/tasks")
    page.get_by_role("row").filter(has_text="Trim the hedge").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    page.keyboard.press("j")
    current = page.locator(".row[data-current]").filter(has_text="Mow the lawn")
    current.wait_for()
    served.scratch.add("Feed the birds")
    page.get_by_role("row").filter(has_text="Feed the birds").wait_for()
    current.wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Mow the lawn").wait_for()


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
