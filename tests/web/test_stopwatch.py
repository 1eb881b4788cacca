"""What a person does within seconds and a few clicks, with 1,000 tasks, at a desk and on a phone.

The clock runs from the cold tab at the first screen, so finding the task counts. On a busy machine
everything takes longer: see `figures`. The machines, the costs and the team: `test_machines`.
"""

from __future__ import annotations

import re
import signal

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until
from tests.web.crowd import Crowd
from tests.web.figures import within

WIDTHS = pytest.mark.parametrize("width", [1440, 390], ids=["desk", "phone"])
WRITES = "write prices.py PRICES = {'tea': 3}\ncommit Prices\nsay All prices are in."
OPTIONS = ("Red", "Blue")
CROWD, RUNNING, ASKING = 1000, 40, 6


class Person:
    """Who does it, and how often they clicked, chose or pressed a key."""

    def __init__(self, tab, served, token: str, width: int) -> None:
        self.shown = tab(served, token, width=width)
        self.page = self.shown.open("/")
        self.acts = 0

    def click(self, target) -> None:
        self.acts += 1
        target.click()

    def press(self, key: str) -> None:
        self.acts += 1
        self.page.keyboard.press(key)

    def find(self, words: str, title: str) -> None:
        """By the palette: two acts, and the words."""
        self.click(self.page.locator(".find"))
        self.page.get_by_role("combobox", name="Search").fill(words)
        self.click(self.page.get_by_role("option").filter(has_text=title))
        self.page.get_by_role("heading", name=title, level=1).wait_for()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A few tasks whose agents really worked, and a crowd around them; nothing starts any more."""
    scratch = Scratch(tmp_path_factory.mktemp("stopwatch") / "x")
    for n in range(4):
        scratch.add(f"Write prices {n}", "--review", script=WRITES)
    for n in range(2):
        scratch.add(f"Write labels {n}", "--branch", f"labels/of-shelf-{n}", script=WRITES)
    scratch.work()
    crowd = Crowd(scratch, first=7)
    for n in range(ASKING):
        crowd.ask(crowd.add(f"Choose a colour {n}"), f"Which colour for shelf {n}?", *OPTIONS)
    for n in range(RUNNING):
        crowd.add(f"Speak at length {n}", "running")
    first = crowd.add("Paint the shelf", "failed", why="The paint is gone.")
    crowd.add("Label the shelf", after=(first,))
    for n in range(CROWD - len(crowd.tasks) - 6):
        crowd.add(f"Tidy shelf {n}", paused=True)
    crowd.write()
    made = Served(scratch, "--no-run")
    yield made
    made.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def token(served):
    return served.token()


@pytest.fixture
def person(served, token, tab):
    """Who opens the first screen. The crowd's runs are on a machine that cannot be asked (409)."""
    made = []

    def open_page(width: int) -> Person:
        made.append(Person(tab, served, token, width))
        return made[-1]

    yield open_page
    for who in made:
        who.shown.wrong = [text for text in who.shown.wrong if "409 (Conflict)" not in text]


def oldest(served, token) -> str:
    """The task whose question is first in the inbox."""
    items = served.ask("POST", "/v1/inbox/list", {"kinds": ["question"]}, token=token)[1]["data"]
    return items[0]["task"]


def answers(served, token, task: str) -> list[str]:
    detail = served.ask("POST", "/v1/task/show", {"task": task}, token=token)[1]["data"]
    return [each["text"] for each in detail["messages"] if each["kind"] == "answer"]


@WIDTHS
def test_see_how_many_need_me_and_answer_the_oldest_question_by_its_button(served, token, person, width):  # fmt: skip
    task = oldest(served, token)
    with within(5, "answer the oldest question"):
        who = person(width)
        assert int(who.page.locator(".badge").first.inner_text()) > 1
        row = who.page.get_by_role("listitem").filter(has=who.page.get_by_role("link", name=task, exact=True))  # fmt: skip
        who.click(row.get_by_role("button", name="Blue"))
        who.page.get_by_text(f"Answered {task}: Blue").wait_for()
    assert who.acts == 1
    assert answers(served, token, task) == ["Blue"]


def test_answer_the_oldest_question_by_its_number(served, token, person):
    task = oldest(served, token)
    with within(5, "answer by a key"):
        who = person(1440)
        who.page.locator("li[aria-current]").filter(has_text="Which colour").wait_for()
        who.press("1")
        who.page.get_by_text(f"Answered {task}: Red").wait_for()
    assert who.acts == 1
    assert answers(served, token, task) == ["Red"]


@WIDTHS
def test_see_why_a_task_is_not_running_and_what_to_do(person, width):
    with within(5, "why a task is not running"):
        who = person(width)
        who.find("label the", "Label the shelf")
        why = who.page.locator(".why")
        why.get_by_text("Why it is not running").wait_for()
        why.get_by_text("Paint the shelf").or_(
            why.get_by_text(re.compile(r"t-\d+"))
        ).first.wait_for()
    assert who.acts == 2


@WIDTHS
def test_read_what_an_agent_does_right_now(person, width):
    with within(3, "what an agent does now"):
        who = person(width)
        who.find("length 17", "Speak at length 17")
        who.page.get_by_text("Reading the code.").first.wait_for()
    assert who.acts == 2


@WIDTHS
def test_pause_one_task(served, token, person, width):
    title = "Speak at length 13" if width > 500 else "Speak at length 14"
    with within(5, "pause one task"):
        who = person(width)
        who.find(title.lower(), title)
        who.click(who.page.get_by_role("button", name="Pause"))
        who.page.get_by_text("does not start until you resume it").wait_for()
        who.page.get_by_text("pauses after this run").wait_for()
    assert who.acts == 3
    task = who.page.url.rpartition("/")[2]
    _, events = served.ask("POST", "/v1/task/events", {"task": task}, token=token)
    assert "task.paused" in [event["type"] for event in events["data"]]


@WIDTHS
def test_read_the_changes_comment_and_send_them_back(served, token, person, width):
    task = "t-1" if width > 500 else "t-2"
    with within(10, "read the changes and comment"):
        who = person(width)
        page = who.page
        row = page.get_by_role("listitem").filter(
            has=page.get_by_role("link", name=task, exact=True)
        )
        who.click(row.get_by_role("link", name="Changes"))
        who.click(page.get_by_role("button", name="Comment on line 1"))
        page.get_by_label("Comment on prices.py:1").fill("Coffee, too.")
        who.click(page.locator("form.remark button.primary"))
        page.get_by_text("not sent yet").wait_for()
    with within(3, "send them back"):
        who.click(page.get_by_role("button", name="Send back"))
        who.click(page.get_by_role("dialog").get_by_role("button", name="Send back"))
        page.get_by_text("with its agent again").wait_for()
    assert who.acts == 5
    until(lambda: served.scratch.status(task) == "ready", "that it is to run again")


@WIDTHS
def test_accept_a_review_so_that_it_lands(served, person, width):
    task = "t-3" if width > 500 else "t-4"
    with within(5, "land a review"):
        who = person(width)
        page = who.page
        row = page.get_by_role("listitem").filter(
            has=page.get_by_role("link", name=task, exact=True)
        )
        who.click(row.get_by_role("button", name="Accept"))
        page.get_by_text(f"{task} is queued to land").wait_for()
    assert who.acts == 1
    assert served.scratch.status(task) == "landing"


@WIDTHS
def test_land_what_is_done(served, person, width):
    task, title = ("t-5", "Write labels 0") if width > 500 else ("t-6", "Write labels 1")
    with within(5, "land what is done"):
        who = person(width)
        who.find(title.lower(), title)
        who.click(who.page.get_by_role("button", name="Land"))
        who.page.get_by_text(f"{task} is queued to land").wait_for()
    assert who.acts == 3
    assert served.scratch.status(task) == "landing"


@WIDTHS
@pytest.mark.parametrize("words", ["length 31", "fleet/t-44"], ids=["title", "branch"])
def test_find_a_task_by_a_word_of_its_title_or_its_branch(person, width, words):
    with within(3, "find a task"):
        who = person(width)
        who.find(words, "Speak at length 31")
    assert who.acts == 2


@WIDTHS
def test_add_a_task_with_agent_gate_and_budget(served, person, width):
    title = f"Tidy up at {width}"
    with within(10, "add a task"):
        who = person(width)
        page = who.page
        who.click(page.get_by_role("button", name="New task"))
        page.get_by_label("Title").fill(title)
        page.get_by_label("Prompt").fill("say Tidy.")
        page.get_by_label("Agent").fill("scripted")
        who.click(page.get_by_text("More", exact=True))
        page.get_by_label("Gate").fill("true")
        page.get_by_label("Budget in dollars").fill("2")
        who.click(page.get_by_role("button", name="Add task"))
        page.get_by_role("heading", name=title).wait_for()
    assert who.acts == 3
    detail = served.scratch.data("show", page.url.rpartition("/")[2])
    assert detail["spec"]["agent"] == "scripted"
    assert detail["spec"]["gate"] == "true"
    assert detail["spec"]["limits"]["budget"]["cost"] == 2_000_000
