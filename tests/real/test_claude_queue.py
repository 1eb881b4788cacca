"""Claude Code itself takes tasks from the queue, by the commands that a person types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import private_env, repository

from fleet.testing.model_server import ModelServer, call, say

pytestmark = pytest.mark.real

FLEET = Path(sys.executable).with_name("fleet")
COMMIT = "git -c user.name=A -c user.email=a@example.invalid commit -qam Work"


class Desk:
    def __init__(self, place: Path, script) -> None:
        self.repo = repository(place / "repo")
        self.server = ModelServer(script)
        self.env = private_env(
            place / "home",
            FLEET_HOME=str(place / "fleet"),
            LOGNAME="me",
            ANTHROPIC_BASE_URL=self.server.url,
            ANTHROPIC_AUTH_TOKEN="scripted",
        )

    def fleet(self, *words: str) -> str:
        ran = subprocess.run(
            [FLEET, *words],
            cwd=self.repo, env=self.env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def git(self, *words: str) -> str:
        ran = subprocess.run(
            ["git", *words], cwd=self.repo, capture_output=True, text=True, check=True
        )
        return ran.stdout


@pytest.fixture
def desk(tmp_path):
    open_desks = []

    def sit_down(script) -> Desk:
        made = Desk(tmp_path, script)
        open_desks.append(made.server.__enter__())
        return made

    yield sit_down
    for server in open_desks:
        server.__exit__()


def test_a_task_from_the_queue_is_done_in_its_own_worktree(desk):
    here = desk([
        call("Bash", command=f"sed -i s/world/fleet/ hello.txt && {COMMIT}"),
        say("It greets the fleet."),
    ])  # fmt: skip
    here.fleet("add", "Greet the fleet", "--coder", "claude")
    here.fleet("run", "--once")
    assert "done" in here.fleet("show", "t-1")
    assert here.git("show", "fleet/t-1:hello.txt") == "Hello, fleet.\n"
    assert (here.repo / "hello.txt").read_text() == "Hello, world.\n"
    assert "It greets the fleet." in here.fleet("logs", "t-1")


def test_a_question_from_its_shell_is_answered_in_the_same_conversation(desk):
    here = desk([
        call("Bash", command="fleet ask 'Whom shall I greet?' --park"),
        say("I wait for the answer."),
        call("Bash", command=f"sed -i s/world/moon/ hello.txt && {COMMIT}"),
        say("It greets the moon."),
    ])  # fmt: skip
    here.fleet("add", "Greet someone", "--coder", "claude")
    here.fleet("run", "--once")
    assert "Whom shall I greet?" in here.fleet("questions")
    here.fleet("answer", "t-1", "The moon")
    here.fleet("run", "--once")
    assert here.git("show", "fleet/t-1:hello.txt") == "Hello, moon.\n"
    last = here.server.turns[-1]
    assert len({asked.conversation for asked in here.server.turns}) == 1
    assert any("Greet someone" in words for words in last.said)
    assert any("The moon" in words for words in last.said)
