"""The client for programs, as its page shows it, against a real server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet import connect, connect_async
from fleet.api import Forbidden, NotFound, Unavailable
from fleet.requests import AddTask, ListTasks, Post, ReadBoard, ShowTask
from tests.integration.team import Team

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "python.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("client"))
    yield made
    made.served.end()


@pytest.fixture
def url(team):
    return f"http://127.0.0.1:{team.served.port}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_page_runs(team, url, example, tmp_path):
    env = team.served.env | {"FLEET_URL": url, "FLEET_TOKEN": team.tokens["ann"]}
    done = subprocess.run(
        [sys.executable, "-c", example], env=env, cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_type_checker_is_content_with_every_example(tmp_path):
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(example)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_rows_come_page_by_page_and_times_are_those_of_the_command_line(team, url):
    fleet = connect(url, team.tokens["eve"])
    made = [fleet.call(AddTask(f"Task {number}")) for number in range(5)]
    assert [row.id for row in fleet.each(ListTasks(limit=2))] == [t.id for t in reversed(made)]
    assert isinstance(made[0].created_at, int)
    fleet.call(Post(made[0].id, '{"tests": "green"}'))
    assert fleet.call(ReadBoard(made[0].id))[0].payload == '{"tests": "green"}'


def test_an_error_has_a_code_and_a_fix(team, url):
    with pytest.raises(NotFound) as raised:
        connect(url, team.tokens["ann"]).call(ShowTask("t-999999"))
    assert (raised.value.code, bool(raised.value.fix)) == ("not_found", True)
    with pytest.raises(Forbidden):
        connect(url, "x").call(ListTasks())
    with pytest.raises(Unavailable):
        connect("http://127.0.0.1:1", tries=1).call(ListTasks())


def test_events_are_iterated_and_awaited(team, url):
    fleet = connect(url, team.tokens["eve"])
    task = fleet.call(AddTask("Heard"))
    assert next(e for e in fleet.events(after=0) if e.task == task.id).type == "task.added"

    async def first() -> str:
        async for event in connect_async(url, team.tokens["eve"]).events(after=0):
            if event.task == task.id:
                return event.type
        return ""

    assert asyncio.run(first()) == "task.added"


def test_the_package_loads_no_client_until_it_is_asked_for():
    words = (
        "import fleet, sys; assert 'fleet.api' not in sys.modules; assert not hasattr(fleet, 'x')"
    )
    subprocess.run([sys.executable, "-c", words], check=True)


def test_the_requests_are_those_of_the_catalogue():
    script = ROOT / "scripts" / "reference_requests.py"
    subprocess.run([sys.executable, script, "--check"], check=True)
