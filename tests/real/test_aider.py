"""Aider itself, unmodified, under a keeper and from the queue, with a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import ModelServer, fail, hang, say
from tests.real.aider_place import AiderPlace, answering, edit
from tests.real.driver import left_of
from tests.real.programs import private_env, repository

pytestmark = pytest.mark.real

FLEET = Path(sys.executable).with_name("fleet")
FLEET_YAML = """
project: {{name: greetings, gateway: {{host: 127.0.0.1, port: {port}}}}}
nodes: {{here: {{endpoint: {url}}}}}
models: {{scripted: {{node: here, upstream: scripted, alias: scripted-model, context: 60000}}}}
agents: {{greeter: {{coder: aider, model: scripted, description: Greets.}}}}
"""


@pytest.fixture
def place(tmp_path):
    made = AiderPlace(tmp_path)
    yield made
    made.close()


def test_a_task_from_the_queue_is_done_and_committed_in_its_own_worktree(tmp_path):
    repo = repository(tmp_path / "repo")
    with ModelServer(answering([edit("Hello, fleet.", input=2150)]), aside=None) as server:
        port = server.url.rpartition(":")[2]
        (repo / "fleet.yaml").write_text(FLEET_YAML.format(port=port, url=server.url))
        env = private_env(
            tmp_path / "home",
            FLEET_HOME=str(tmp_path / "fleet"),
            LOGNAME="me",
            LITELLM_MASTER_KEY="sk-test",
        )

        def fleet(*words: str) -> str:
            ran = subprocess.run(
                [FLEET, *words],
                cwd=repo, env=env, capture_output=True, text=True, timeout=90, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stdout + ran.stderr
            return ran.stdout

        fleet("add", "Greet the fleet in hello.txt", "--agent", "greeter")
        fleet("run", "--once")
        shown = json.loads(fleet("show", "t-1", "--json"))["data"]
        assert shown["task"]["status"] == "done", (shown, fleet("logs", "t-1", "--raw"))
        assert "[tool] edit hello.txt" in fleet("logs", "t-1")
        assert {asked.model for asked in server.turns} == {"fleet-greeter"}
        assert {a.headers["authorization"] for a in server.turns} == {"Bearer sk-test"}
    done = subprocess.run(
        ["git", "show", "fleet/t-1:hello.txt"], cwd=repo, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Hello, fleet.\n"
    assert (repo / "hello.txt").read_text() == "Hello, world.\n"
    settings = (repo / ".git" / "config").read_text()
    assert "[user]" not in settings


def test_a_later_run_goes_on_with_the_same_conversation_and_runs_no_command(place):
    wish = "I shall remember 7.\n\n```bash\ntouch {cwd}/ran.txt\n```\n"
    first = place.drive([say(wish), say("It was 7.")], prompt="!touch ran.txt; remember 7.")
    assert first.run().ending is Ending.SUCCEEDED
    later = place.again(first, prompt="What was it?")
    outcome = later.run()
    assert (outcome.ending, outcome.detail) == (Ending.SUCCEEDED, "It was 7.")
    assert outcome.checkpoint.session == first.heard.session
    said = "\n".join(place.asked[-1].said)
    assert "remember 7." in said
    assert "What was it?" in said
    assert any("You are the test's own agent." in words for words in place.asked[0].said)
    assert not (place.cwd / "ran.txt").exists()
    assert not [p for p in place.cwd.glob(".aider*") if "tags" not in p.name]


def test_a_429_that_it_retries_by_itself_costs_nothing(place):
    run = place.drive([*[fail(429, "Slow down.", retry_after=0)] * 3, say("At last.")])
    outcome = run.run()
    assert (outcome.ending, outcome.detail) == (Ending.SUCCEEDED, "At last.")
    assert not any(said.kind is SaidKind.LIMIT for said in run.said)


@pytest.mark.slow
def test_a_429_at_the_end_is_a_rate_limit_and_no_failure(place):
    run = place.drive([fail(429, "Slow down.", retry_after=0)])
    outcome = run.start().over()
    assert outcome.ending is Ending.RATE_LIMITED


def test_sigterm_ends_it_and_nothing_of_it_is_left(place):
    run = place.drive([hang()])
    run.start().until_said(SaidKind.TURN).stop(10)
    outcome = run.over()
    assert outcome.ending is Ending.FAILED
    assert run.heard.turns > run.heard.ended_turns
    assert not left_of(run)
