"""What a person is told of, by whom, and where it goes on after a restart."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.config import Settings
from fleet.config.settings import NotifySettings
from fleet.domain.errors import Unavailable
from fleet.domain.event import Event, Kind
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.run import Choice, Host, Run, RunState
from fleet.domain.task import Tally, Task, TaskState
from fleet.ports import Put
from fleet.supervisor.notices import Notices, notice_of, notifying_host
from fleet.testing.memory_store import MemoryStore
from tests.wait import LIMIT, until

TASK = Task("t-3", 0, TaskState.OPEN, "Fix the login", "", "/shop", "ada", 1)
ASKED = Message(
    "m-1", 0, "t-3", "t-3.1", MessageKind.QUESTION, "Which\x1b[31m way?", MessageState.OPEN, 1,
    details=Details(options=("left", "right")),
)  # fmt: skip


def settled(state: str) -> Event:
    return Event("task.settled", "t-3", "supervisor", 7, "t-3.1", {"state": state})


def test_a_question_is_told_with_its_options_and_how_to_answer():
    event = Event("message.asked", "t-3", "t-3.1", 7, "t-3.1", {"message": "m-1"})
    told = notice_of(event, TASK, ASKED)
    assert (told.event, told.title, told.state, told.at) == ("asked", "t-3 asks", "asking", 7)
    assert told.text == "Which [31m way?\n1. left\n2. right\nfleet answer t-3 TEXT"


def test_an_ending_is_told_with_the_title_and_the_reason():
    failed = replace(TASK, tally=Tally(why="Exit status 7. " + "x" * 600))
    told = notice_of(settled("failed"), failed, None)
    assert (told.event, told.title) == ("failed", "t-3 failed")
    assert told.text.startswith("Fix the login\nExit status 7. xxx")
    assert told.text.endswith("x…\nfleet retry t-3")
    assert len(told.text) < 540
    assert notice_of(settled("done"), TASK, None)[:4] == (
        "done", "t-3", "t-3 is done", "Fix the login",
    )  # fmt: skip
    review = notice_of(settled("review"), TASK, None)
    assert (review.event, review.title) == ("done", "t-3 waits for your review")
    assert review.text == "Fix the login\nfleet close t-3"


@pytest.mark.parametrize("event", [settled("open"), Event("run.started", "t-3", "supervisor", 7)])
def test_what_needs_nobody_is_not_told(event):
    assert notice_of(event, TASK, None) is None


def test_a_webhooks_body_is_what_slack_and_discord_show():
    body = notice_of(settled("done"), TASK, None).body()
    assert body.keys() == {"event", "task", "title", "text", "content", "state", "at"}
    assert body["text"] == body["content"] == "t-3 is done: Fix the login"


def test_the_body_on_the_page_is_what_is_sent():
    page = Path(__file__).parents[3] / "docs" / "how-to" / "notifications.md"
    (shown,) = re.findall(r"```json\n(.*)\n```", page.read_text("utf-8"))
    event = Event("message.asked", "t-3", "t-3.1", 1_800_000_000_000_000, "t-3.1")
    told = notice_of(event, TASK, replace(ASKED, text="Which way?"))
    assert json.dumps(told.body()) == shown


def host(name: str, until: int = 100, holder: str = "h") -> Host:
    return Host(name, 1, name, holder, "", until)


def test_the_host_of_the_run_tells_and_when_it_is_silent_the_first_that_is_not():
    hosts = {name: host(name) for name in ("a", "b", "c")}
    assert notifying_host(hosts, "b", here="c", now=50) == "b"
    assert notifying_host(hosts, "", here="c", now=50) == "a"
    silent = hosts | {"b": host("b", until=10)}
    assert [notifying_host(silent, "b", here=h, now=50) for h in ("a", "c")] == ["a", "a"]
    assert notifying_host(silent, "b", here="b", now=50) == "b"  # it is awake: it asks
    stopped = hosts | {"b": host("b", until=10_000, holder="")}
    assert notifying_host(stopped, "b", here="c", now=50) == "a"


class Ear:
    name = "ear"

    def __init__(self, fails: int = 0, holds: threading.Event | None = None) -> None:
        self.heard, self.tries, self._fails, self._holds = [], 0, fails, holds

    def send(self, notice) -> None:
        self.tries += 1
        if self._holds is not None:
            self._holds.wait(LIMIT)
        if self.tries <= self._fails:
            raise Unavailable("nobody there")
        self.heard.append(notice["title"])


class Slip:
    """The number, which outlives whoever wrote it."""

    number: int | None = None

    def read(self) -> int | None:
        return self.number

    def write(self, number: int | None) -> None:
        self.number = number


class World:
    def __init__(self) -> None:
        self.store, self.slip, self.warned = MemoryStore(), Slip(), []
        self.ear = Ear()
        self.notify = NotifySettings(desktop=True)
        run = Run("t-1.1", 0, "t-1", RunState.RUNNING, Choice("a", "a"), "box", "h", 1)
        task = replace(TASK, id="t-1", tally=Tally(runs=1))
        self.store.commit([Put(task), Put(run)], [])

    def ends(self, *states: str) -> None:
        now = self.store.now()
        facts = [Event("task.settled", "t-1", "s", now, "t-1.1", {"state": s}) for s in states]
        self.store.commit([], facts)

    def notices(self) -> Notices:
        return Notices(
            self.store,
            host="box",
            settings=lambda: Settings(notify=self.notify),
            notifiers=lambda: [self.ear],
            mark=self.slip,
            warn=self.warned.append,
            clean=lambda text: text.replace("login", "***"),
        )


def told(world: World, count: int) -> list[str]:
    until(lambda: len(world.ear.heard) >= count, why=lambda: str(world.ear.heard))
    return world.ear.heard


def test_it_begins_with_now_and_goes_on_where_it_left_off():
    world = World()
    world.ends("done", "done")
    first = world.notices()
    first.step()
    assert world.slip.number == 2  # nothing of before it was turned on
    world.ends("failed")
    first.step()
    assert told(world, 1) == ["t-1 failed"]
    first.close(5)
    world.ends("done")  # while no supervisor runs
    second = world.notices()
    second.step()
    second.close(5)
    assert world.ear.heard == ["t-1 failed", "t-1 is done"]
    third = world.notices()
    third.step()
    third.close(5)
    assert len(world.ear.heard) == 2


def test_what_was_not_told_in_time_is_told_by_the_next_one():
    world = World()
    world.ear = Ear(holds=threading.Event())
    first = world.notices()
    first.step()
    world.ends("failed")
    first.step()
    first.close(0.05)
    assert world.slip.number == 0
    world.ear = Ear()
    world.notices().step()
    assert told(world, 1) == ["t-1 failed"]


def test_turned_off_it_forgets_and_turned_on_it_begins_with_now():
    world = World()
    notices = world.notices()
    notices.step()
    world.notify = NotifySettings()
    world.ends("failed")
    notices.step()
    assert world.slip.number is None
    world.notify = NotifySettings(webhook="http://x/")
    notices.step()
    world.ends("done")
    notices.step()
    notices.close(5)
    assert world.ear.heard == ["t-1 is done"]


def test_only_what_one_wants_to_hear_about_is_told():
    world = World()
    world.notify = NotifySettings(about=("failed",), desktop=True)
    notices = world.notices()
    notices.step()
    world.ends("done", "failed", "review")
    notices.step()
    notices.close(5)
    assert world.ear.heard == ["t-1 failed"]


def test_a_notifier_that_fails_is_tried_again_and_reported_once():
    world = World()
    world.ear = Ear(fails=1)
    notices = world.notices()
    notices.step()
    world.ends("failed")
    notices.step()
    assert told(world, 1) == ["t-1 failed"]
    assert (world.ear.tries, world.warned) == (2, [])
    world.ear = Ear(fails=99)
    for _ in range(3):
        world.ends("done")
        notices.step()
    notices.close(10)
    assert world.ear.tries == 3 + 1 + 1  # one that is broken gets one try
    assert world.warned == ["ear: t-1 could not be notified: nobody there"]


def test_events_without_news_do_not_make_a_restart_read_them_all_again():
    world = World()
    notices = world.notices()
    notices.step()
    for _ in range(10):
        world.ends(*["open"] * 100)
        notices.step()
    assert world.slip.number >= 500
    notices.close(1)
    assert world.slip.number >= 1000


def test_an_alert_is_told_to_a_person():
    world = World()
    notices = world.notices()
    notices.step()
    data = {"text": "The disk is full.", "subject": "Alert", "team": "red"}
    world.store.commit([], [Event(Kind.ALERT_RAISED, "", "mon", 5, data=data)])
    notices.step()
    assert "Alert from mon" in str(told(world, 1))
