"""The page, HTTP and the command line say the same of each task, and nobody is offered what is refused."""

from __future__ import annotations

import random

import pytest

from fleet.domain.access import GRANTS, Permission, Role
from fleet.server.http.codec import named
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Ws
from tests.web.crowd import Crowd
from tests.web.tab import rows_shown

COUNT = 200


STATES = ("open", "open", "running", "review", "failed", "done", "cancelled")
CHANGES = {"pause": {}, "cancel": {}, "close": {}, "assign": {"to": "kim"}, "depend": {}}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """200 tasks, each of which was changed at random; nothing runs."""
    scratch = Scratch(tmp_path_factory.mktemp("shelf") / "x")
    crowd, lot = Crowd(scratch), random.Random(7)
    for n in range(COUNT):
        task = crowd.add(f"Task {n}", "open" if n == 0 else lot.choice(STATES))
        if crowd.tasks[-1].state == "open" and lot.random() < 0.2:
            crowd.ask(task, "Which way?", "Left", "Right")
    crowd.write()
    served = Served(scratch, "--no-run")
    token = served.token()
    for number in range(2, COUNT + 1):
        if crowd.tasks[number - 1].state != "open":  # a run elsewhere would be waited for
            continue
        name = lot.choice(["", *CHANGES])
        if not name:
            continue
        more = {"after": [f"t-{lot.randrange(1, number)}"]} if name == "depend" else CHANGES[name]
        served.ask("POST", f"/v1/task/{name}", {"task": f"t-{number}", **more}, token=token)
    yield served, token
    served.end()  # nothing of it runs


def test_the_page_http_and_the_command_line_agree_on_200_tasks(shelf, tab):
    served, token = shelf
    shown = tab(served, token)
    page = shown.open("/tasks?view=all")
    page.locator(".views button").filter(has_text=f"All{COUNT}").wait_for()
    typed = {row["id"]: row["status"] for row in served.scratch.data("tasks", "--all", "-n", "500")}
    asked = {"all": True, "limit": COUNT}
    rows = served.ask("POST", "/v1/task/list", asked, token=token)[1]["data"]
    answered = {row["id"]: row["status"] for row in rows}
    assert {"ready", "running", "asking", "review", "failed", "done", "paused"} <= {*typed.values()}
    assert rows_shown(shown) == answered == typed


SCREENS = ("/", "/tasks", "/tasks?as=board", "/t/t-1", "/t/t-1/explain", "/land", "/machines", "/costs", "/team", "/team?part=talk")  # fmt: skip
ACTIONS = {  # the button, and what it asks for
    "New task": ("task/add", {"title": "x"}),
    "Pause": ("task/pause", {"task": "t-1"}),
    "Pause after this run": ("task/pause", {"task": "t-1"}),
    "Cancel": ("task/cancel", {"task": "t-1"}),
    "Resume": ("task/resume", {"task": "t-1"}),
    "Retry": ("task/retry", {"task": "t-1"}),
    "Retry with …": ("task/retry", {"task": "t-1"}),
    "Land": ("land/add", {"tasks": ["t-1"]}),
    "Accept": ("review/submit", {"task": "t-1", "verdict": "accept"}),
    "Send back": ("task/send_back", {"task": "t-1", "text": "x"}),
    "Allow": ("run/permit", {"task": "t-1", "allow": True}),
    "Always": ("run/permit", {"task": "t-1", "allow": True, "always": True}),
    "Warm all models": ("model/warm", {}),
    "Warm the others": ("model/warm", {}),
    "Drain": ("host/drain", {"host": "x"}),
    "Give access": ("enrolment/create", {"name": "x"}),
    "Write mail": ("mail/send", {"to": "kim", "text": "x"}),
    "Start a chat": ("chat/open", {}),
}


def allowed(name: str, role: Role) -> bool:
    """Allowing what an agent asks for is more than answering it."""
    operation = ACTIONS[name][0].replace("/", ".")
    needed = Permission.ADMIN if name in {"Allow", "Always"} else named(operation).permission
    return needed in GRANTS[role]


@pytest.mark.parametrize("role", ["team-lead", "worker", "merger", "monitor", "notifier"])
def test_a_role_is_offered_what_it_may_do_and_refused_the_rest(shelf, tab, role):
    served, _ = shelf
    token, role = served.token(f"mo-{role}", role), Role(role)
    shown, offered = tab(served, token), set()
    for path in SCREENS:
        page = shown.open(path)
        page.get_by_role("heading", level=1).first.wait_for()
        page.get_by_text(role, exact=True).first.wait_for()  # it is known who is signed in
        page.wait_for_load_state("networkidle")
        names = page.get_by_role("button").all_inner_texts()
        here = {name.strip().split("\n")[0] for name in names} & {*ACTIONS}
        assert {name for name in here if not allowed(name, role)} == set(), path
        if role in {
            Role.WORKER,
            Role.MONITOR,
            Role.NOTIFIER,
        }:  # nothing can be done to many at once
            assert page.get_by_role("checkbox").count() == 0
        offered |= here
    if role is Role.TEAM_LEAD:
        assert {"New task", "Pause", "Accept", "Retry"} <= offered
    running = served.ask("POST", "/v1/task/list", {"statuses": ["running"]}, token=token)[1]["data"]
    for name, (operation, fields) in ACTIONS.items():
        if allowed(name, role):
            continue
        given = {**fields, "task": running[0]["id"]} if name in {"Allow", "Always"} else fields
        status, _ = served.ask("POST", f"/v1/{operation}", given, token=token)
        assert status == 403, name


@pytest.mark.parametrize("role", ["team-lead", "worker", "merger", "monitor", "notifier"])
def test_no_such_role_is_let_in_at_a_terminal_or_shown_its_screen_by_a_socket(shelf, role):
    served, _ = shelf
    token = served.token(f"so-{role}", role)
    seat = Ws(served.port, "/ws/terminal")
    seat.send({"type": "auth", "token": token, "run": "t-1"})
    assert seat.next()["code"] == "forbidden"
    seat.close()
    socket = Ws(served.port)
    socket.send({"type": "auth", "token": token, "state": False})
    assert socket.next()["type"] == "authenticated"
    if named("run.screen").permission not in GRANTS[Role(role)]:
        socket.send({"type": "watch", "screen": "t-1"})
        frame = next(frame for frame in iter(socket.next, None) if frame["type"] == "error")
        assert frame["code"] == "forbidden"
    socket.close()
