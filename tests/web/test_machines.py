"""Machines, costs, landing and the team, over nodes that answer as Ollama does."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.machines import Machines
from tests.e2e.served import Served
from tests.wait import until
from tests.web.figures import judge
from tests.web.tab import WIDTHS

SPENDS = "say Reading.\nwrite a.py 1\nusage 18000 600 0.42\ncommit Prices"
SCREENS = {
    "/machines": "Machines",
    "/costs": "Costs",
    "/land": "Land",
    "/team": "Team",
    "/team?part=access": "Team",
    "/team?part=talk": "Team",
    "/team?part=roles": "Team",
}
TRACE = (
    '{{"at": {at}, "agent": "planner", "model": "small-coder", "node": "laptop", "outcome": "ok", '
    '"status": 200, "total": 1.5, "why": {{"estimates": [{{"node": "laptop", "wait": 0.5, "load": 0, '
    '"prefill": 0.4, "decode": 0.6}}]}}}}\n'
)


class Office:
    """A home with two nodes, one of which is down, a task that ended and two that run."""

    def __init__(self, root) -> None:
        self.machines = Machines(root)
        self.scratch = self.machines.scratch
        self.machines.mini.stop()
        self.machines.mini = FakeNode([]).start()  # elsewhere: for whoever tidies up
        self.scratch.add("Read prices", "--gate", "true", script=SPENDS)
        self.scratch.add(
            "Rewrite the importer", "--budget", "$2", script="usage 9000 400 1.5\nspeak 2 900"
        )
        self.scratch.add("Translate the menu", script="usage 700 30 0.1\nspeak 2 900")
        self.scratch.add("Needs the big model", "--agent", "implementer", script="say Done.")
        self.served = Served(self.scratch)
        self.scratch.wait_for("t-1", "done")
        for task in ("t-2", "t-3"):
            self.scratch.wait_for(task, "running")
        logs = self.scratch.home / "logs"
        (logs / "traces.jsonl").write_text(TRACE.format(at=time.time_ns() // 1000))
        (logs / f"gateway-{self.machines.port}.log").write_text(
            "INFO: up\nERROR: <b>no</b> route\n"
        )

    def wait_for_node(self, token: str) -> None:
        """Until the supervisor knows that the node is down."""
        wanted = {"kinds": ["node"]}
        until(
            lambda: self.served.ask("POST", "/v1/inbox/list", wanted, token=token)[1]["data"],
            "the node to be known as down",
        )

    def close(self) -> None:
        self.served.close()
        self.machines.close()


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    made = Office(tmp_path_factory.mktemp("machines") / "x")
    yield made
    made.close()


@pytest.fixture(scope="module")
def lead(office):
    return office.served.token("ann")


@pytest.mark.parametrize("path", SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_screen_is_clean(office, lead, tab, path, theme):
    shown = tab(office.served, lead, theme=theme)
    page = shown.open(path)
    page.get_by_role("heading", name=SCREENS[path], level=1).wait_for()
    page.locator("main .panel, main .empty").first.wait_for()
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{path} at {width} px"
        assert shown.overflow() <= 0, f"{path} at {width} px"


@pytest.mark.parametrize("width", [390, 1440])
def test_which_node_is_down_and_what_to_do_within_6_seconds(office, lead, tab, width):
    office.wait_for_node(lead)
    began = time.monotonic()
    page = tab(office.served, lead, width=width).open("/")
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Machines").click()
    mini = page.get_by_role("article", name="mini")
    mini.get_by_text("down", exact=True).wait_for()
    assert mini.locator(".reason").inner_text().strip()
    mini.get_by_text("1 task waits for it.").wait_for()
    page.get_by_role("button", name="Warm laptop").click()
    page.get_by_role("article", name="laptop").get_by_text("in memory").first.wait_for()
    judge("which node is down", time.monotonic() - began, 6, "s")


def test_a_request_appears_by_itself_and_says_why_there(office, lead, tab):
    page = tab(office.served, lead).open("/machines")
    page.get_by_role("cell", name="planner").first.wait_for()
    with (office.scratch.home / "logs" / "traces.jsonl").open("a") as out:
        out.write(TRACE.format(at=time.time_ns() // 1000).replace("planner", "reviewer"))
    page.get_by_role("cell", name="reviewer").wait_for()
    page.get_by_role("button", name="Why laptop").first.click()
    page.get_by_text("The relay expected laptop to answer soonest").wait_for()
    page.locator(".estimate").get_by_text("wait 0.50 s + read 0.40 s + write 0.60 s").wait_for()


def test_a_route_says_where_its_last_request_went_and_what_was_expected(office, lead, tab):
    page = tab(office.served, lead).open("/machines")
    routes = page.get_by_role("region", name="Routes")
    words = "expected 1.50 s (wait 0.50 s + read 0.40 s + write 0.60 s), took"
    routes.get_by_text(words).first.wait_for()


def test_a_machine_says_what_was_checked_and_which_runs_it_has(office, lead, tab):
    shown = tab(office.served, lead)
    page = shown.open("/machines")
    hosts = page.get_by_role("region", name="Hosts")
    hosts.get_by_text(re.compile(r"^[0-9.]+ GB$")).wait_for()  # of its disk
    hosts.get_by_role("button", name="Check").click()
    about = page.get_by_role("dialog")
    about.get_by_text(re.compile("^Its home takes .*(worktrees|runs) .* are free.$")).wait_for()
    about.get_by_text("Its supervisor is awake.").wait_for()
    about.get_by_role("link", name="t-2").wait_for()
    for width in WIDTHS.values():
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.faults() == [], f"{width} px"
        assert shown.overflow() <= 0, f"{width} px"


def test_the_log_of_litellm_is_read_by_severity_and_is_text(office, lead, tab):
    page = tab(office.served, lead).open("/machines")
    page.get_by_role("button", name="Show LiteLLM's log").click()
    page.get_by_role("log").get_by_text("INFO: up").wait_for()
    page.get_by_role("button", name="Errors").click()
    page.get_by_role("log").get_by_text("ERROR: <b>no</b> route").wait_for()
    page.get_by_role("log").get_by_text("INFO: up").wait_for(state="detached")


@pytest.mark.parametrize("width", [390, 1440])
def test_what_today_cost_which_task_burns_most_and_cap_it_within_8_seconds(
    office, lead, tab, width
):
    began = time.monotonic()
    page = tab(office.served, lead, width=width).open("/")
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Costs").click()
    page.get_by_text("Spent").wait_for()
    stats = page.get_by_role("group", name="In that time")
    until(lambda: "$2.02" in stats.inner_text(), "the sum of what ended and what runs")
    page.locator(".budgets li:first-child").filter(has_text="t-2").wait_for()
    page.get_by_role("button", name="Cap t-3").click()
    page.get_by_label("Dollars").fill("little")
    page.get_by_role("button", name="Set the budget").click()
    page.get_by_text("'little' is not an amount in dollars").wait_for()
    page.get_by_role("button", name="Cap t-3").click()
    page.get_by_label("Dollars").fill("3.5")
    page.get_by_role("button", name="Set the budget").click()
    page.locator(".budgets").get_by_text("of $3.50").wait_for()
    judge("what today cost, and cap it", time.monotonic() - began, 8, "s")
    detail = office.scratch.data("show", "t-3")
    assert detail["spec"]["limits"]["budget"]["cost"] == 3_500_000
    page.get_by_role("group", name="Group by").get_by_text("Task").click()
    page.get_by_role("region", name="Where it went").get_by_text("t-2").wait_for()


@pytest.mark.parametrize("width", [390, 1440])
def test_a_colleague_gets_access_within_10_seconds_and_loses_it(office, lead, tab, width):
    name = f"kim{width}"
    began = time.monotonic()
    shown = tab(office.served, lead, width=width)
    page = shown.open("/")
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Team").click()
    page.get_by_role("button", name="Give access").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("textbox", name="Team").fill("blue")
    page.get_by_label("Role").select_option("team-lead")
    page.get_by_label("The link works for").select_option(index=0)
    page.get_by_role("button", name="Make the link").click()
    page.get_by_role("img", name="QR code of the link").locator("path[d*=M]").wait_for()
    link = page.get_by_role("dialog").locator("code").last.inner_text()
    judge("hand a colleague access", time.monotonic() - began, 10, "s")
    assert shown.run("(d => d.scrollWidth - d.clientWidth)(document.querySelector('dialog'))") <= 0
    assert shown.faults() == []
    (made,) = [
        row
        for row in office.served.ask("POST", "/v1/enrolment/list", {}, token=lead)[1]["data"]
        if row["name"] == name
    ]
    assert (made["role"], made["team"]) == ("team-lead", "blue")
    assert made["until"] < f"{datetime.now(UTC) + timedelta(hours=23):%Y-%m-%dT%H:%M}"
    other = tab(office.served)
    there = other.open(link.removeprefix(office.served.url))
    there.get_by_role("heading", name="Inbox").wait_for()
    assert "enrol-" not in there.url
    page.get_by_role("button", name="Done").click()
    page.get_by_role("link", name="Access").click()
    row = page.get_by_role("region", name="Tokens").get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name=re.compile("Revoke")).click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    there.get_by_role("heading", name="Sign in").wait_for()
    other.wrong = [text for text in other.wrong if "401" not in text]


def test_work_that_is_queued_lands_before_the_eyes_and_says_why(office, lead, tab):
    page = tab(office.served, lead).open("/land")
    page.get_by_text("Nothing is to land").wait_for()
    office.scratch("land", "t-1")
    page.get_by_role("region", name="Landed").get_by_text("Read prices").first.wait_for()
    landed = page.get_by_role("region", name="Landed")
    landed.get_by_role("button", name="l-1", exact=True).click()
    page.get_by_role("dialog").get_by_text("Merged onto").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Undo l-1").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    until(lambda: "a.py" not in office.scratch.git("ls-tree", "--name-only", "main"), "the undoing")


def test_mail_chats_and_boards_are_written_from_the_page(office, lead, tab):
    office.served.ask("POST", "/v1/member/seen", {}, token=office.served.token("kim", "worker"))
    swarm = office.served.ask("POST", "/v1/swarm/create", {"name": "importers"}, token=lead)[1]
    shown = tab(office.served, lead)
    page = shown.open("/team?part=talk")
    page.get_by_role("button", name="Write mail").click()
    page.get_by_label("To").fill("kim")
    page.get_by_label("Subject").fill("Release")
    page.get_by_label("Text").fill("Shall we wait for <b>t-2</b>?")
    assert shown.faults() == []
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Sent to kim.").wait_for()
    page.get_by_role("button", name="Start a chat").click()
    page.get_by_label("To").fill("kim")
    page.get_by_label("First line").fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    chat = page.get_by_role("dialog", name="Chat")
    chat.get_by_text("Are you there?").wait_for()
    chat.get_by_label("Say something").fill("It is about t-2.")
    chat.get_by_role("button", name="Send").click()
    chat.get_by_text("It is about t-2.").wait_for()
    assert shown.faults() == []
    page.keyboard.press("Escape")
    page.get_by_label("Post on the board of importers").fill("One pass is enough.")
    page.get_by_role("button", name="Post", exact=True).click()
    page.get_by_text("One pass is enough.").wait_for()
    kim = office.served.token("kim", "worker")
    reader = tab(office.served, kim)
    page = reader.open("/team?part=talk")
    letter = page.get_by_role("listitem").filter(has_text="Shall we wait")
    letter.get_by_text("unread").wait_for()
    letter.get_by_role("button", name="Reply to ann").click()
    assert page.get_by_role("combobox", name="To").input_value() == "ann"
    assert page.get_by_label("Subject").input_value() == "Re: Release"
    page.get_by_label("Text").fill("No.")
    assert reader.faults() == []
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Sent to ann.").wait_for()
    letter.get_by_text("unread").wait_for(state="detached")
    page = tab(office.served, lead).open("/team?part=talk")
    page.get_by_role("button", name="Mark the mail of kim as read").click()
    page.get_by_text("Marked as read.").wait_for()
    letters = office.served.ask("POST", "/v1/mail/list", {}, token=kim)[1]["data"]
    assert letters[0]["text"] == "Shall we wait for <b>t-2</b>?"
    posts = office.served.ask("POST", "/v1/board/read", {"task": swarm["data"]["id"]}, token=lead)[
        1
    ]
    assert posts["data"][0]["payload"] == {"text": "One pass is enough."}


def test_a_role_that_may_not_is_shown_no_such_button_and_answered_nothing(office, tab):
    token = office.served.token("mo", "monitor")
    shown = tab(office.served, token)
    page = shown.open("/machines")
    page.get_by_role("article", name="laptop").wait_for()
    page.get_by_text("monitor", exact=True).wait_for()  # it is known who is signed in
    assert page.get_by_role("button", name="Warm laptop").count() == 0
    assert page.get_by_role("button", name="Show LiteLLM's log").count() == 0
    page = shown.open("/costs")
    page.locator(".budgets li").first.wait_for()
    page.get_by_text("monitor", exact=True).wait_for()
    assert page.get_by_role("button", name="Cap t-2").count() == 0
    page = shown.open("/team?part=access")
    page.get_by_role("region", name="Members").first.wait_for()
    page.locator(".who").get_by_text("monitor", exact=True).wait_for()
    assert page.get_by_role("button", name="Give access").count() == 0
    assert page.get_by_role("link", name="Access").count() == 0
    for path, body in (
        ("model/warm", {}),
        ("gateway/log", {}),
        ("token/list", {}),
        ("enrolment/list", {}),
    ):
        assert office.served.ask("POST", f"/v1/{path}", body, token=token)[0] == 403


def test_the_runs_of_a_task_say_what_the_live_one_has_used(office, lead, tab):
    page = tab(office.served, lead).open("/t/t-2")
    runs = page.get_by_role("region", name="Runs")
    runs.get_by_role("cell", name="$1.50").wait_for()
    runs.get_by_role("cell", name="9.4k").wait_for()


def test_requests_stand_in_the_order_in_which_they_began(office, lead, tab):
    """A request that began first may end last."""
    now = time.time_ns() // 1000
    page = tab(office.served, lead).open("/machines")
    page.get_by_role("region", name="Requests").get_by_role("row").nth(1).wait_for()
    with (office.scratch.home / "logs" / "traces.jsonl").open("a") as out:
        for began, took, agent in ((3, 2.5, "third"), (1, 5.5, "first"), (2, 5.5, "second")):
            line = TRACE.format(at=now + began * 1_000_000).replace("planner", agent)
            out.write(line.replace('"total": 1.5', f'"total": {took}'))
    cells = page.get_by_role("region", name="Requests").locator("tbody td:nth-child(2)")
    page.get_by_role("cell", name="second").wait_for()
    assert cells.all_inner_texts()[:3] == ["third", "second", "first"]
