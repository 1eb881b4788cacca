"""An agent in a terminal: its dialog is answered from the inbox, its screen is shown, one sits down at it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Ws
from tests.wait import until
from tests.web.tab import WIDTHS


@pytest.fixture
def served(tmp_path):
    scratch = Scratch(tmp_path / "x")
    made = Served(scratch)
    yield made
    for agent in scratch.data("list", "--everywhere"):
        scratch.type("kill", agent["task"], "--force")
    made.close()


def doing(served) -> str:
    return served.scratch.data("list")[0]["doing"]


def test_a_permission_dialog_is_answered_from_the_inbox(served, tab):
    served.scratch("create", "seat", "--prompt", "errand 0 rm -rf build")
    until(lambda: doing(served) == "permission", "its dialog")
    page = tab(served, served.token()).open("/")
    page.get_by_text("Waiting for permission").wait_for()
    screen = page.get_by_label(
        "Its screen, by the rule"
    )  # of the only item, which is the current one
    screen.get_by_text("Do you want to run rm -rf build?").wait_for()
    page.get_by_role("button", name="Allow").click()
    page.get_by_text("Allowed.").wait_for()
    page.get_by_text("Waiting for permission").wait_for(state="detached")


def test_what_is_allowed_from_now_on_in_the_inbox_is_not_asked_for_again(served, tab):
    script = "permission rm -rf build\npermission rm -rf dist"
    served.scratch("create", "seat", "--prompt", script)
    until(lambda: doing(served) == "permission", "its dialog")
    page = tab(served, served.token()).open("/")
    page.get_by_text("Always answers: Yes, always run rm").wait_for()
    page.get_by_role("button", name="Always").click()
    page.get_by_text("Allowed from now on.").wait_for()
    page.get_by_text("Waiting for permission").wait_for(state="detached")
    until(lambda: doing(served) == "waiting", "the end of its turn, with no other dialog")


def is_clean(shown, what: str) -> None:
    for width in WIDTHS.values():
        shown.page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{what} at {width} px"
        assert shown.overflow() <= 0, f"{what} at {width} px"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_sees_the_screen_sits_down_types_and_leaves(served, tab, theme):
    served.scratch("create", "seat", "--prompt", "say Hello there")
    until(lambda: doing(served) == "waiting", "that it rests")
    shown = tab(served, served.token(), theme=theme)
    page = shown.open("/t/t-1/terminal")
    page.get_by_label("Screen", exact=True).get_by_text("Hello there").first.wait_for()
    is_clean(shown, "the screen")
    page.get_by_role("button", name="Type here").click()
    page.get_by_text("seated", exact=True).wait_for()
    page.locator(".xterm-rows").get_by_text("Hello there").first.wait_for()
    is_clean(shown, "the seat")
    page.keyboard.type("say Typed in a browser\n")
    page.locator(".xterm-rows").get_by_text("Typed in a browser").first.wait_for()
    transcript = served.scratch.home / "runs" / "t-1.1" / "transcript"
    until(lambda: "Typed in a browser" in transcript.read_text(), "its agent to read it")
    page.get_by_role("button", name="Leave").click()
    page.get_by_label("Screen", exact=True).wait_for()
    until(lambda: doing(served) == "waiting", "that it goes on")


def test_who_may_not_sit_down_is_neither_shown_the_button_nor_let_in(served, tab):
    served.scratch("create", "seat", "--prompt", "say Hello there")
    until(lambda: doing(served) == "waiting", "that it rests")
    token = served.token("wo", "worker")
    page = tab(served, token).open("/t/t-1")
    page.locator("h1").wait_for()
    page.get_by_text("worker", exact=True).wait_for()  # it is known who is signed in
    assert page.get_by_role("link", name="Terminal").count() == 0
    socket = Ws(served.port, "/ws/terminal")
    socket.send({"type": "auth", "token": token, "run": "t-1"})
    frame = socket.next()
    assert (frame["type"], frame["code"]) == ("error", "forbidden"), json.dumps(frame)
    socket.close()


def test_the_keys_of_a_permission_dialog_answer_it(served, tab):
    served.scratch("create", "seat", "--prompt", "errand 0 rm -rf build")
    until(lambda: doing(served) == "permission", "its dialog")
    page = tab(served, served.token()).open("/t/t-1/terminal")
    page.get_by_text("It asks for permission").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Allow what it asks").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("d")
    page.get_by_text("Denied.").wait_for()
    assert page.url.endswith("/t/t-1/terminal")


def test_a_team_lead_is_told_who_may_allow(served, tab):
    served.scratch("create", "seat", "--prompt", "errand 0 rm -rf build")
    until(lambda: doing(served) == "permission", "its dialog")
    page = tab(served, served.token("lee", "team-lead")).open("/")
    row = page.get_by_role("listitem").filter(has_text="rm -rf build")
    row.get_by_text("Only a coordinator may allow this. You may deny it.").wait_for()
    assert row.get_by_role("button", name="Allow").count() == 0
    row.get_by_role("button", name="Deny").click()
    page.get_by_text("Denied.").wait_for()
