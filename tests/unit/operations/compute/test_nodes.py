from __future__ import annotations

from fleet.domain.access import Role
from fleet.domain.errors import Forbidden, NotFound, Refused
from fleet.domain.nodes.inventory import SeenNode
from fleet.domain.nodes.trace import Trace, TraceSource
from fleet.operations.compute.gateway import ReadGatewayLog
from fleet.operations.compute.hosts import ListHosts
from fleet.operations.compute.nodes import ExplainRoute, ListModels, ListNodes, WarmModel
from fleet.operations.compute.traces import ListTraces

PACE = {"slots": 1, "busy": 1, "answered": 4, "prefill": 1000.0, "decode": 50.0, "load": 3.0}


def relay(**given):
    node = {"endpoint": "http://big:11434", "breaker": "closed", "busy": 1, "waiting": 2}
    return {
        "since": 5, "served": 9, "active": 1, "waiting": {"heavy": 2},
        "nodes": {"big": node | {"servings": {"qwen": PACE}} | given},
    }  # fmt: skip


def test_a_node_is_shown_with_what_the_relay_knows_of_it(office):
    office.machines.relay = relay(breaker="open", why="no answer", next_probe=4.5)
    shown = office.call(ListNodes())
    (node,) = shown.nodes
    assert (node.status, node.busy, node.waiting, node.slots) == ("online", 1, 2, 1)
    assert (node.relay.breaker, node.relay.why, node.relay.next_probe) == ("open", "no answer", 4.5)
    assert node.relay.servings[0].decode == 50.0
    assert [(r.agent, r.node, r.resident) for r in shown.routes] == [("implementer", "big", True)]
    assert shown.relay.served == 9


def test_a_relay_of_another_fleet_says_nothing_of_these_nodes(office):
    office.machines.relay = relay(endpoint="http://else:1")
    shown = office.call(ListNodes())
    assert shown.relay is None
    assert shown.nodes[0].relay is None


def test_what_a_relay_of_another_release_says_does_not_break_the_page(office):
    office.machines.relay = relay(servings=["odd"], next_probe="soon", busy=None) | {"waiting": 3}
    assert office.call(ListNodes()).nodes[0].relay.servings == ()


def test_a_model_has_its_servings_agents_and_those_who_wait(office):
    office.machines.relay = relay()
    (model,) = office.call(ListModels())
    assert (model.name, model.agents, model.waiting) == ("heavy", ("implementer",), 2)
    assert (model.servings[0].node, model.servings[0].decode) == ("big", 50.0)


def test_a_route_is_explained_term_by_term(office):
    office.machines.relay = relay()
    explained = office.call(ExplainRoute(agent="implementer", prompt=2000, output=100))
    (estimate,) = explained.estimates
    assert (explained.node, estimate.wait, estimate.prefill, estimate.decode) == ("big", 2, 2, 2)


def test_a_route_over_nodes_that_are_down_says_why(office):
    office.machines.seen = (SeenNode("big", up=False, why="no answer"),)
    explained = office.call(ExplainRoute("heavy"))
    assert (explained.node, explained.estimates) == ("", ())
    assert "big is down (no answer)" in explained.why


def test_who_names_no_model_or_a_wrong_one_is_told_which_there_are(office):
    office.refused(ExplainRoute(), kind=Refused)
    assert "heavy" in office.refused(ExplainRoute("heavi"), kind=NotFound).fix
    office.refused(WarmModel("heavy", node="other"), kind=NotFound)


def test_warming_begins_and_its_progress_is_in_the_list(office):
    (row,) = office.call(WarmModel(agent="implementer"))
    assert (row.model, row.node, row.state) == ("heavy", "big", "loading")
    assert office.call(ListNodes()).warming == (row,)


def test_only_who_may_start_runs_may_load_models(office):
    worker = office.person(Role.WORKER)
    office.refused(WarmModel(), worker, kind=Forbidden)
    assert office.machines.begun == []


def test_traces_come_newest_last(office):
    office.machines.written = [Trace(at, "planner", "t-1.1", node="big") for at in (1, 2, 3)]
    assert [row.at for row in office.call(ListTraces(after=1))] == [2, 3]
    assert office.call(ListTraces())[0].session == "t-1.1"


def test_a_team_sees_the_requests_of_its_own_runs_alone(office):
    tasks = {team: office.add("Work", team=team) for team in ("red", "blue")}
    runs = ["", "t-99.1", *(f"{task}.1" for task in tasks.values())]
    office.machines.written = [
        Trace(at, "planner", node="big", source=TraceSource(run, "/shop"))
        for at, run in enumerate(runs * 2, 1)
    ]
    assert [row.at for row in office.call(ListTraces(), of(office, "red"))] == [3, 7]
    assert [row.at for row in office.call(ListTraces(limit=1), of(office, "blue"))] == [8]
    assert len(office.call(ListTraces())) == 8


def of(office, team):
    return office.person(Role.TEAM_LEAD, team=team)


def test_the_log_is_told_apart_by_severity_and_for_coordinators(office):
    office.machines.log = ["INFO: fine", "ERROR: broken", ""]
    assert [row.text for row in office.call(ReadGatewayLog("error"))] == ["ERROR: broken"]
    assert len(office.call(ReadGatewayLog())) == 2
    office.refused(ReadGatewayLog(), office.person(Role.TEAM_LEAD), kind=Forbidden)


def test_there_is_no_host_before_a_supervisor_ran(office):
    assert office.call(ListHosts()) == ()
