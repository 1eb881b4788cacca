"""Above what one page of the server holds, nothing that the screen says is cut without a word."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until
from tests.web.crowd import Crowd

OPEN, DONE, RUNNING, NEEDLES = 1500, 700, 40, 11


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """1,500 open tasks, the oldest of which are those one looks for, and 700 done ones."""
    scratch = Scratch(tmp_path_factory.mktemp("crowd") / "x")
    crowd = Crowd(scratch)
    for n in range(NEEDLES):
        crowd.add(f"Needle {n}", spec={"labels": ("rare",)})
    for n in range(RUNNING):
        crowd.add(f"Work {n}", "running")
    crowd.add("Old and done", "done")
    for n in range(OPEN - NEEDLES):
        crowd.add(f"Hay {n}")
    for n in range(DONE - 1):
        crowd.add(f"Finished {n}", "done")
    crowd.write()
    served = Served(scratch, "--no-run")
    yield served, served.token()
    served.end()  # nothing of it runs


def test_every_count_is_that_of_the_store(crowded, tab):
    served, token = crowded
    page = tab(served, token).open("/tasks")
    views = page.get_by_role("group", name="Which tasks")
    expected = [f"Active{OPEN + RUNNING}", "Needs you0", f"Running{RUNNING}", f"Waiting{OPEN}", f"Done{DONE}", f"All{OPEN + RUNNING + DONE}"]  # fmt: skip

    def shown() -> list[str]:
        return [text.replace("\n", "") for text in views.get_by_role("button").all_inner_texts()]

    until(lambda: shown() == expected, lambda: f"the counts: {shown()}")
    top = page.locator(".top span.figures")  # beside it comes what today cost
    until(lambda: top.inner_text() == f"{RUNNING} running · {OPEN} ready", top.inner_text)
    page = tab(served, token).open("/tasks?as=board")
    board = page.get_by_role("region", name="Board")
    for column, count in {"Waiting": OPEN, "Running": RUNNING, "Done": DONE}.items():
        board.get_by_role("heading", name=f"{column} {count}").wait_for()


def test_a_filter_finds_tasks_that_were_not_loaded(crowded, tab):
    served, token = crowded
    page = tab(served, token).open("/tasks")
    page.get_by_role("row").nth(1).wait_for()
    page.get_by_label("Filter").fill("label:rare")
    rows = page.get_by_role("row").filter(has_text="Needle")
    rows.nth(NEEDLES - 1).wait_for()
    assert rows.count() == NEEDLES
    page.get_by_label("Filter").fill("old and done")
    page.get_by_role("button", name="All").click()
    page.get_by_role("row").filter(has_text="Old and done").wait_for()


def test_views_and_the_board_show_tasks_that_are_older_than_all_that_was_loaded(tmp_path, tab):
    """Its one running task is older than 200 that failed and 200 that wait."""
    scratch = Scratch(tmp_path / "x")
    crowd = Crowd(scratch)
    crowd.add("At work since long", "running")
    for n in range(210):
        crowd.add(f"Failed {n}", "failed")
        crowd.add(f"Hay {n}")
    crowd.write()
    served = Served(scratch, "--no-run")
    page = tab(served, served.token()).open("/tasks?view=running")
    page.get_by_role("row").filter(has_text="At work since long").wait_for()
    page.get_by_role("button", name="Board").click()
    column = page.get_by_role("region", name="Running", exact=True)
    column.get_by_text("At work since long").wait_for()
    served.end()


@pytest.mark.parametrize("width", [1440, 360])
def test_a_table_that_goes_on_is_readable_by_all(crowded, tab, width):
    served, token = crowded
    shown = tab(served, token, width=width)
    page = shown.open("/tasks")
    page.get_by_text("Scroll on for the rest").wait_for()
    assert shown.faults() == []
    assert shown.overflow() <= 0


def test_the_palette_finds_an_old_task_by_its_branch(crowded, tab):
    served, token = crowded
    page = tab(served, token).open("/")
    page.locator(".find").click()
    page.get_by_role("combobox", name="Search").fill(f"fleet/t-{NEEDLES + RUNNING + 1}")
    page.get_by_role("option").filter(has_text="Old and done").wait_for()


def test_one_scrolls_to_the_oldest_task(crowded, tab):
    served, token = crowded
    shown = tab(served, token)
    page = shown.open("/tasks")
    page.get_by_role("row").nth(1).wait_for()
    bottom = "(() => { const list = document.querySelector('.virtual'); list.scrollTop = list.scrollHeight })()"

    def oldest() -> bool:
        shown.run(bottom)
        return page.get_by_role("row").filter(has_text="Needle 0").count() == 1

    until(oldest, "the oldest")


def calls_of(urls: list[str]) -> list[str]:
    return [url.partition("/v1/")[2] for url in urls if "/v1/" in url]


@pytest.mark.parametrize("path", ["/", "/tasks", "/tasks?as=board", "/tasks?as=graph", "/land", "/machines", "/costs"])  # fmt: skip
def test_a_first_screen_asks_at_most_eight_times(crowded, tab, path):
    served, token = crowded
    shown = tab(served, token)
    asked = []
    shown.page.on("request", lambda request: asked.append(request.url))
    page = shown.open(path)
    page.get_by_role("heading", level=1).first.wait_for()
    page.wait_for_load_state("networkidle")
    calls = calls_of(asked)
    assert len(calls) <= 8, calls
    assert not {"usage/report", "host/list"} & {*calls} or path == "/costs", "only after the screen"
    page.locator(".top .today").wait_for()
    lists = [call for call in calls_of(asked) if call == "task/list"]
    assert len(lists) <= 3, calls_of(asked)  # no page of a list twice
