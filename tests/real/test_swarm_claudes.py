"""Two Claude Codes in one swarm answer each other, without looking for mail."""

from __future__ import annotations

import pytest

from fleet.testing.model_server import call, say
from tests.real.test_mcp_runs import ServedDesk, tool

pytestmark = pytest.mark.real

SWARM = "t-1"


def script(asked):
    """Each works (sleeps) until it has heard of the other, and answers."""
    words = "\n".join(asked.said)
    if "You are Ann" in words:
        return ann(asked, words)
    return bob(asked, words)


def work():
    return call("Bash", command="sleep 1", description="Work")


def ann(asked, words):
    if "It is 4000." in words:
        return say("The port is 4000.")
    if asked.number == 0:
        question = {"text": "Which port, Bob?"}
        return tool(
            "claude", "blackboard_post", swarm_id=SWARM, message_type="request", payload=question
        )
    return work()


def bob(asked, words):
    if "Thank you" in words:
        return say("Glad to help.")
    if "Which port, Bob?" in words and not any('"to":"t-3' in result for result in asked.results):
        return tool("claude", "mail_send", to="t-3.1", body="It is 4000.")
    return work()


def test_they_answer_each_other_by_board_and_mail(tmp_path):
    with ServedDesk("claude", tmp_path, script) as scratch:
        assert scratch.data("swarm-create", "pair", "2")["id"] == SWARM
        scratch.add("You are Bob", "--swarm", SWARM)
        scratch.start()
        scratch.until(lambda: scratch.server.turns, why="Bob works")
        scratch.add("You are Ann", "--swarm", SWARM)
        scratch.until(lambda: scratch.status("t-3") == "done", why="Ann has her answer")
        scratch("mail", "send", "t-2", "Thank you, Bob.")
        scratch.until(lambda: scratch.status("t-2") == "done", why="Bob was thanked")
        assert scratch.endings("t-2") == scratch.endings("t-3") == ["succeeded"]
        (post,) = scratch.data("blackboard", SWARM)
        assert (post["author"], post["readers"]) == ("t-3.1", ["t-2.1"])
