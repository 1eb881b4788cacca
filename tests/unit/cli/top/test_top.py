"""`fleet top`, driven by Textual's pilot over real operations on a store in memory."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from contextlib import asynccontextmanager

import pytest

from fleet.app import make_coder
from fleet.cli.top.app import Top
from fleet.cli.top.command import check_extra
from fleet.cli.top.lines import wrapped
from fleet.domain.activity import SeenRun
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.run import Checkpoint, Ending, Workspace
from fleet.domain.task import Spec, TaskState
from fleet.operations.worktrees import MergeWorktree
from fleet.ports import Put, Sight
from tests.unit.operations.conftest import Office
from tests.wait import LIMIT


class OfficeClient:
    """Calls operations as a client does; `down` is why nothing answers."""

    is_remote = False

    def __init__(self, office: Office) -> None:
        self.office, self.down = office, ""
        self.delivered = []  # messages that it saw to
        self.has_supervisor = True

    def call(self, request):
        if self.down:
            raise Unavailable(self.down, fix="Start it.")
        return self.office.call(request)

    def now(self):
        return self.office.clock.now()

    def scope(self, *, everywhere):
        return ""

    def deliver(self, message, *, patience):
        del patience
        self.delivered.append(message)

    def state(self, task):
        return str(self.office.show(task).task.state)

    def supervised(self):
        return self.has_supervisor

    def coder(self, name, _project):
        return make_coder(name)

    def opening(self, _run):
        return ""


class Elsewhere:
    """The agents of another machine, whose screens are not seen here."""

    shared = False
    host = "box-1"

    def seen(self, _pairs):
        return {}

    def look(self, _subjects):
        return {}

    def screen(self, run, **_):
        raise Refused(f"{run} has no terminal here.")


@pytest.fixture
def office():
    return Office()


@pytest.fixture
def client(office):
    return OfficeClient(office)


def drawn(app) -> str:
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


@asynccontextmanager
async def opened(client, size=(100, 30)):
    app = Top(lambda: client, scope_name="shop", away=False)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def see(app, pilot, *words: str, absent: str = "") -> str:
    until = time.monotonic() + LIMIT
    while not all(word in drawn(app) for word in words) or (absent and absent in drawn(app)):
        assert time.monotonic() < until, f"{words} not in\n{drawn(app)}"
        await pilot.pause(0.02)
    return drawn(app)


async def until(pilot, is_so) -> None:
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end
        await pilot.pause(0.02)


def play(act) -> None:
    asyncio.run(act())


def asking(office, title="Choose") -> str:
    task = office.add(title)
    office.ask(task, "Which way?", options=("left", "right"))
    return task


def test_what_needs_you_is_first_and_a_number_answers_it(office, client):
    task = asking(office)
    running = office.add("Work on")
    office.start(running, "text Changing the parser")
    waiting = office.add("Later", after=(task,))

    async def act():
        async with opened(client) as (app, pilot):
            screen = await see(app, pilot, "1 needs you · 1 running · 1 waiting · shop")
            places = [screen.index(word) for word in ("Needs you", "Running", "Waiting")]
            assert places == sorted(places)
            assert "1 task waits for it" in screen
            await see(app, pilot, "1) left", "2) right", f"→ fleet answer {task} TEXT")
            await pilot.press("2")
            await see(app, pilot, f"Answered {task}.", absent="Needs you")

    play(act)
    assert [m.text for m in office.show(task).messages][-1] == "right"
    assert office.show(waiting).task.status == "waiting"


def test_an_answer_in_words_and_a_prompt_are_typed_in_a_line(office, client):
    task = asking(office)
    running = office.add("Work on")
    office.start(running)

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Which way?", "Work on")
            await pilot.press("a", *"straight on", "enter")
            await see(app, pilot, f"Answered {task}.")
            app.rows.go_to(next(n for n, r in enumerate(app.rows.rows) if r.task == running))
            await pilot.press("p", *"Hurry", "enter")
            await see(app, pilot, "Queued (m-", f"fleet approve {running}")

    play(act)
    (sent,) = office.show(running).messages
    assert client.delivered == [sent.id]
    assert [m.text for m in office.show(task).messages][-1] == "straight on"
    assert [m.text for m in office.show(running).messages] == ["Hurry"]


def test_a_failed_task_is_tried_again_and_the_next_item_is_selected(office, client):
    failed = [office.add(f"Break {n}") for n in range(2)]
    for task in failed:
        office.finish(task, Ending.FAILED)
        office.clock.advance(1)

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "2 need you", "r retry")
            await pilot.press("r")
            await see(app, pilot, f"{failed[0]} is open again.", "1 needs you")
            assert app.rows.selected.task == failed[1]

    play(act)
    assert office.show(failed[0]).task.status == "ready"


def test_work_that_is_done_is_shown_as_a_diff_and_lands_once_confirmed(office, client):
    task = office.add("Notes")
    run = office.start(task)
    workspace = Workspace("/w", "/w", "fleet/notes", "main")
    office.store.commit([Put(_with(office.store.run(run), workspace))], [])
    office.end(run, checkpoint=Checkpoint(commit="c" * 40))

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "not landed", "diff of Notes", "l land")
            await pilot.press("l")
            await see(app, pilot, f"Land {task}? (y/n)")
            await pilot.press("n")
            await see(app, pilot, "not landed", absent="(y/n)")
            assert ("merge", task) not in office.trees.done
            await pilot.press("l", "y")
            await see(app, pilot, f"Landed {task}.")

    play(act)
    assert ("merge", task) in office.trees.done


def _with(run, workspace):
    from dataclasses import replace

    return replace(run, workspace=workspace)


def test_work_whose_gate_has_not_passed_is_queued_to_land(office, client):
    task = office.add("Notes")
    run = office.start(task)
    workspace = Workspace("/w", "/w", "fleet/notes", "main")
    office.store.commit([Put(_with(office.store.run(run), workspace))], [])
    office.end(run, checkpoint=Checkpoint(commit="c" * 40))
    call = client.call

    def untested(request):
        if isinstance(request, MergeWorktree):
            raise Refused("It has not passed its gate yet.", code="untested")
        return call(request)

    client.call = untested

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "not landed", "l land")
            await pilot.press("l", "y")
            await see(app, pilot, f"{task} waits to land on main (l-1).")

    play(act)
    assert office.show(task).task.status == "landing"


def test_an_agent_whose_turn_has_ended_is_not_shown_as_working(office, client):
    tasks = [office.add(title, spec=Spec(mode="terminal")) for title in ("Talk", "Work")]
    for task in tasks:
        office.start(task)
    context, doing = office.context, {tasks[0]: "waiting", tasks[1]: "working"}

    class Agents(Elsewhere):
        def look(self, subjects):
            return {s.run: Sight(doing[s.run.rpartition(".")[0]], "a test") for s in subjects}

    office.context = lambda *given: context(*given)._replace(agents=Agents)

    async def act():
        async with opened(client) as (app, pilot):
            screen = await see(app, pilot, f"{tasks[0]} waiting", f"{tasks[1]} running")
            assert "Running (2)" in screen
            assert "t attach" in screen

    play(act)


def test_a_drawn_rule_is_cut_and_words_are_wrapped():
    assert wrapped(" " + "─" * 50, 20) == [" " + "─" * 18]
    assert wrapped("word " * 5, 20) == ["word word word ", "word word "]


def test_a_box_that_is_wider_than_the_pane_stays_a_box():
    assert wrapped("╭" + "─" * 50 + "╮", 20) == ["╭" + "─" * 18]
    assert wrapped("│ >" + " " * 48 + "│", 20) == ["│ >"]
    assert wrapped("│ > fix it │", 20) == ["│ > fix it │"]


def test_what_was_said_about_a_row_goes_with_it(office, client):
    for title in ("One", "Two"):
        office.start(office.add(title))

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Running (2)")
            await pilot.press("y")
            await see(app, pilot, "That key does nothing")
            await pilot.press("j")
            await see(app, pilot, "Running (2)", absent="That key does nothing")

    play(act)


def test_an_agent_is_ended_only_when_one_is_sure(office, client):
    task = office.add("Later")

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Waiting (1)")
            await pilot.press("x", "escape")
            await see(app, pilot, "Waiting (1)", absent="(y/n)")
            assert office.show(task).task.state == "open"
            await pilot.press("x", "y")
            await see(app, pilot, f"Cancelled {task}.", "Nothing needs you")

    play(act)
    assert office.show(task).task.state == "cancelled"


def test_what_cannot_be_done_says_why_and_what_to_do(office, client):
    task = office.add("Break")
    office.finish(task, Ending.FAILED)

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "r retry")
            office.put(task, state=TaskState.OPEN)
            await pilot.press("r")
            await see(app, pilot, f"{task} is open, so it needs no retry.")

    play(act)


@pytest.mark.parametrize("size", [(100, 30), (45, 25)])
def test_hostile_text_is_shown_as_text(office, client, size):
    title = "\x1b[31mred [bold]b[/bold] [@click=app.quit]x[/] \u202egnol"
    task = office.add(title)
    office.start(task, "text \x1b[2J[red]gone[/red]")

    async def act():
        async with opened(client, size) as (app, pilot):
            await see(app, pilot, "\\x1b[31mred")
            await pilot.press("enter")
            screen = await see(app, pilot, "\\x1b[2J[red]gone[/red]", "[bold]b[/bold]")
            assert not set(screen) & set("\x1b\u202e")
            assert app.is_running

    play(act)


def test_on_a_phone_there_is_one_pane_at_a_time(office, client):
    task = office.add("Work on")
    office.start(task, "text Changing the parser")

    async def act():
        async with opened(client, (45, 25)) as (app, pilot):
            screen = await see(app, pilot, "Running (1)")
            assert "parser" not in screen
            await pilot.press("enter")
            await see(app, pilot, "Changing the parser", absent="Running (1)")
            await pilot.press("escape")
            screen = await see(app, pilot, "Running (1)", absent="parser")
            assert all(len(line) <= 45 for line in screen.splitlines())
            await pilot.resize_terminal(120, 40)
            await see(app, pilot, "Running (1)", "Changing the parser")

    play(act)


@pytest.mark.parametrize("key", ["y", "n", "r", "c", "l", "1"])
def test_a_key_that_does_nothing_for_a_row_says_which_do(office, client, key):
    task = office.add("Read on")
    office.start(task)

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Running (1)")
            await pilot.press(key)
            keys = "Its keys: p prompt, t attach, x kill."
            await see(app, pilot, f"That key does nothing for {task}. {keys}")

    play(act)


def test_what_waits_for_a_supervisor_is_said(office, client):
    office.add("Read on")
    client.has_supervisor = False

    async def act():
        async with opened(client, (60, 20)) as (app, pilot):
            await see(app, pilot, "0 need you · 0 running · 1 waiting for `fleet run` · shop")
            client.has_supervisor = True
            await see(app, pilot, "0 need you · 0 running · 1 waiting · shop")

    play(act)


def test_every_style_is_of_something_that_is_there(office, client):
    """A selector of a widget that has been renamed matches nothing, and no one is told."""
    office.add("Read on")

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Waiting (1)")
            there = {kind.__name__ for w in app.screen.walk_children() for kind in type(w).__mro__}
            styled = set(re.findall(r"(?<![\w.#:$-])[A-Z]\w+", re.sub(r"{.*?}", "", Top.CSS)))
            assert styled <= there | {type(app.screen).__name__}
            (list_end,) = {row.region.right for row in app.query("Rows")}
            lines = drawn(app).splitlines()
            assert {line[list_end] for line in lines[2:-2] if len(line) > list_end} == {"│"}

    play(act)


def test_of_a_thousand_tasks_only_those_in_view_are_drawn(office, client):
    for number in range(1000):
        office.add(f"Task number {number}")

    async def act():
        async with opened(client, (80, 24)) as (app, pilot):
            await see(app, pilot, "Waiting (1000)")
            render, asked = app.rows.render_line, []
            app.rows.render_line = lambda y: [asked.append(y), render(y)][1]
            await pilot.press("j")
            await pilot.pause()
            assert set(asked) <= set(range(24))  # lines of the screen, not of the list
            assert asked
            await pilot.press("G")
            await see(app, pilot, "Task number 0")
            await pilot.press("slash", *"number 775", "enter")
            await see(app, pilot, "Task number 775", "Waiting (2)")

    play(act)


def test_a_server_that_goes_away_leaves_the_list_and_comes_back(office, client):
    office.add("Later")

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Waiting (1)")
            client.down = "The server does not answer."
            await see(app, pilot, "Not connected, trying again: The server does not", "Later")
            office.add("While away")
            client.down = ""
            await see(app, pilot, "While away", absent="Not connected")

    play(act)


def test_the_selection_stays_while_rows_come_and_go(office, client):
    tasks = [office.add(f"Work {n}") for n in range(3)]

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Waiting (3)")
            await pilot.press("j")
            chosen = app.rows.selected.task
            asking(office, "New")
            await see(app, pilot, "Needs you (1)")
            assert app.rows.selected.task == chosen
            office.ask(chosen)
            await see(app, pilot, "Needs you (2)")
            assert (app.rows.selected.task, app.rows.selected.what) == (chosen, "asks")

    play(act)
    assert len(tasks) == 3


def test_keys_are_listed_and_facts_are_those_of_show(office, client):
    office.add("Later", prompt="Do it properly.")

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "Waiting (1)")
            await pilot.press("question_mark")
            await see(app, pilot, "approve or deny a permission")
            await pilot.press("question_mark", "i")
            await see(app, pilot, "Do it properly.", absent="approve or deny")

    play(act)


def test_without_textual_one_sentence_says_what_to_install(monkeypatch):
    class Finder:
        """Of an environment without it."""

        @staticmethod
        def find_spec(name, _path=None, _target=None):
            return None

    monkeypatch.setattr(sys, "meta_path", [Finder])
    monkeypatch.delitem(sys.modules, "textual", raising=False)
    with pytest.raises(Unavailable) as caught:
        check_extra()
    assert "pip install 'agent-fleet[top]'" in caught.value.fix


def test_a_permission_is_approved_as_it_was_read(office, client):
    task = office.add("Talk", spec=Spec(mode="terminal"))
    office.start(task)
    context = office.context
    answers = []

    class Agents(Elsewhere):
        def permit(self, run, *, yes, expected, always):
            assert not always
            answers.append((run, yes, expected))
            return expected

        def seen(self, pairs):
            return {run.id: SeenRun("permission", "Run make?") for _, run in pairs}

    office.context = lambda *given: context(*given)._replace(agents=Agents)

    async def act():
        async with opened(client) as (app, pilot):
            await see(app, pilot, "permission", "Run make?", "y approve  n deny")
            await pilot.press("y")
            await see(app, pilot, f"Approved {task}.")

    play(act)
    assert answers == [(f"{task}.1", True, "Run make?")]
