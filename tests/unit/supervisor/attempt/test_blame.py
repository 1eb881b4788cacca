"""Which failed runs are lost instead, and cost no attempt: those whose requests were not answered."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from fleet.domain.fleet import Fleet, Node
from fleet.domain.nodes.trace import Times, Trace, TraceSource
from fleet.domain.run import Choice, Ending, Outcome, Run, RunState
from fleet.domain.task import SECOND
from fleet.supervisor.attempt.settle import RECENT, blame
from fleet.testing.fakes import FakeNodes

BEGAN, NOW = 1_000_000_000, 1_600_000_000
NODES = {name: Node(name, "ollama", f"http://{name}") for name in ("left", "right")}
FLEET = Fleet(name="shop", nodes=MappingProxyType(NODES))


def run(node: str = "left") -> Run:
    choice = Choice("planner", "claude", "coder", node)
    return Run(
        "t-1.1", 1, "t-1", choice=choice, host="here", holder="me", state=RunState.RUNNING,
        claimed_at=BEGAN, started_at=BEGAN,
    )  # fmt: skip


def request(node: str, outcome: str = "failed", status: int = 200, run: str = "t-1.1") -> Trace:
    at = NOW - 1_000_000
    return Trace(
        at, "planner", node=node, source=TraceSource(run), outcome=outcome, status=status, times=Times(total=0.5),
        why={"error": "it closed the connection"},
    )  # fmt: skip


def judged(
    nodes: FakeNodes, node: str = "left", ending: Ending = Ending.FAILED, now: int = NOW
) -> Outcome:
    """Of a run that has worked for ten minutes, at this time of the clock."""
    return blame(Outcome(ending, "Exit status 1."), run(node), FLEET, nodes, now, NOW - BEGAN)


@pytest.fixture
def nodes():
    return FakeNodes()


def test_a_failed_run_is_failed_when_everything_answers(nodes):
    nodes.traces = [request("left", "ok")]
    assert judged(nodes) == Outcome(Ending.FAILED, "Exit status 1.")


def test_the_node_that_the_relay_chose_is_blamed_not_only_the_one_that_was_planned(nodes):
    nodes.down["right"] = "connection refused"
    nodes.traces = [request("right")]
    assert judged(nodes) == Outcome(
        Ending.LOST, "Its node right is down (connection refused). Exit status 1.", outage=True
    )


def test_a_node_that_is_back_already_is_blamed_by_the_request_that_it_broke(nodes):
    nodes.traces = [request("right")]
    lost = judged(nodes)
    assert lost.ending is Ending.LOST
    assert lost.detail.startswith("Its last request was not answered (it closed the connection).")


@pytest.mark.parametrize("status", [401, 402, 404, 429])
def test_a_model_that_is_not_served_is_no_fault_of_the_run(nodes, status):
    nodes.traces = [request("right", "failed", status)]
    assert judged(nodes).ending is Ending.LOST


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_was_wrong_itself_is_the_fault_of_the_run(nodes, status):
    nodes.traces = [request("right", "failed", status)]
    assert judged(nodes).ending is Ending.FAILED


def test_a_request_that_was_answered_in_the_end_excuses_nothing(nodes):
    nodes.traces = [request("right"), request("left", "ok")]
    assert judged(nodes).ending is Ending.FAILED


def test_a_gateway_that_was_away_is_blamed_also_when_it_is_back(nodes):
    nodes.age = 2.0
    assert judged(nodes).detail == "The gateway was started anew meanwhile. Exit status 1."
    nodes.down["gateway"] = "the relay: it has died"
    assert (
        judged(nodes).detail == "The gateway cannot be used: the relay: it has died. Exit status 1."
    )


def test_a_gateway_that_was_started_long_ago_is_not_blamed(nodes):
    nodes.age = RECENT / SECOND + 1
    assert judged(nodes).ending is Ending.FAILED


def test_a_run_that_uses_no_node_has_nobody_to_blame(nodes):
    nodes.age, nodes.down["gateway"] = 0.0, "it has died"
    assert judged(nodes, node="").ending is Ending.FAILED


def test_a_run_that_succeeded_needs_no_excuse(nodes):
    nodes.down["left"] = "connection refused"
    assert judged(nodes, ending=Ending.SUCCEEDED).ending is Ending.SUCCEEDED


def test_a_gateway_that_was_started_before_the_run_is_not_blamed(nodes):
    """The run has worked for ten seconds, the gateway for twenty."""
    nodes.age = 20.0
    outcome = Outcome(Ending.FAILED, "Exit status 1.")
    assert blame(outcome, run(), FLEET, nodes, NOW, 10 * SECOND) == outcome


def test_a_clock_that_was_set_back_in_the_run_hides_no_unanswered_request(nodes):
    """It was set back by an hour: all that the relay wrote since then is from before the run."""
    hour = 3600 * SECOND
    trace = request("right")
    trace.at -= hour
    nodes.traces = [trace]
    assert judged(nodes, now=NOW - hour).ending is Ending.LOST


def test_a_gateway_that_refuses_the_key_of_the_run_was_given_another_meanwhile(nodes):
    nodes.traces = [request("", "refused", 401)]
    assert judged(nodes).ending is Ending.LOST
