from __future__ import annotations

import signal
import time

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.free_ports import free_ports
from tests.wait import until
from tests.web.crowd import Crowd
from tests.web.figures import judge
from tests.web.tab import rows_shown

TASKS = 200
STATES = ("open", "running", "review", "failed", "done")


@pytest.fixture
def served(tmp_path):
    made = Served(Scratch(tmp_path / "x"), "--no-run", "--port", str(free_ports()))
    yield made
    made.close()


def other_than_its_end(complaints):
    """What Chromium says of a server that was killed: connections refused, reset, or closed."""
    ends = ("ERR_CONNECTION_RE", "Connection closed before receiving a handshake")
    return [text for text in complaints if not any(end in text for end in ends)]


def test_a_task_that_somebody_adds_appears_by_itself(served, tab):
    page = tab(served, served.token()).open("/tasks")
    page.get_by_text("No tasks yet").wait_for()
    served.scratch.add("Paint the fence")
    page.get_by_text("Paint the fence").wait_for()


def test_a_screen_whose_code_could_not_come_is_there_once_the_server_answers(served, tab):
    shown = tab(served, served.token())
    page = shown.open("/tasks")
    page.get_by_text("No tasks yet").wait_for()
    served.end(signal.SIGKILL)
    page.get_by_role("link", name="Land").click()
    page.get_by_text("This part of the page is not there.").wait_for()
    served.start()
    page.get_by_role("heading", name="Land", exact=True).wait_for()
    shown.wrong = other_than_its_end(shown.wrong)


def test_a_tab_without_a_network_says_so_and_comes_back(served, tab):
    shown = tab(served, served.token())
    page = shown.open("/tasks")
    page.get_by_text("Live", exact=True).wait_for()
    shown.context.set_offline(True)
    page.get_by_text("The server does not answer.").first.wait_for()
    shown.context.set_offline(False)
    page.get_by_text("Live", exact=True).wait_for()
    shown.wrong = [text for text in shown.wrong if "ERR_INTERNET_DISCONNECTED" not in text]


def test_a_server_that_hangs_is_noticed_and_what_it_missed_comes_after(served, tab):
    """It closes nothing: the socket looks alive."""
    shown = tab(served, served.token())
    page = shown.open("/tasks")
    page.get_by_text("No tasks yet").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    served.process.send_signal(signal.SIGSTOP)
    try:
        page.get_by_text("The server does not answer. You see how things stood at").wait_for()
        page.get_by_text("Reconnecting").wait_for()
        served.scratch.add("Paint the fence")
    finally:
        served.process.send_signal(signal.SIGCONT)
    page.get_by_text("Paint the fence").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    shown.wrong = [text for text in shown.wrong if "WebSocket is closed before" not in text]


@pytest.fixture
def crowded(tmp_path):
    scratch = Scratch(tmp_path / "x")
    crowd = Crowd(scratch)
    for n in range(TASKS):
        crowd.add(f"Task {n}", STATES[n % len(STATES)])
    crowd.write()
    made = Served(scratch, "--no-run", "--port", str(free_ports()))
    yield made
    made.end()  # nothing of it runs


def test_after_kill_9_of_the_server_the_rows_are_those_of_the_store(crowded, tab):
    scratch = crowded.scratch
    shown = tab(crowded, crowded.token())
    page = shown.open("/tasks?view=all")
    until(lambda: len(rows_shown(shown)) == TASKS, "all rows to come")
    shown.run("document.querySelector('.virtual').scrollTop = 0")
    crowded.end(signal.SIGKILL)
    page.get_by_text("Reconnecting").wait_for()
    note = page.get_by_text("The server does not answer. You see how things stood at")
    note.wait_for()
    added = scratch.add("Meanwhile")
    changed = [f"t-{n + 1}" for n in range(0, TASKS, len(STATES))][:5]  # open ones
    scratch("pause", *changed)
    crowded.start()
    begun = time.monotonic()
    page.get_by_text("Meanwhile").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    note.wait_for(state="detached")
    judge("back after kill -9", time.monotonic() - begun, 2, "s")
    stored = {row["id"]: row["status"] for row in scratch.data("tasks", "--all", "-n", "500")}
    assert stored[added] == "ready"
    assert {stored[task] for task in changed} == {"paused"}
    until(lambda: rows_shown(shown) == stored, "the rows to be those of the store")
    shown.wrong = other_than_its_end(shown.wrong)
