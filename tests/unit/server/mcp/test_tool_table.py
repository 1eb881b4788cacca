"""Every tool says operations that exist, with fields that they have."""

from __future__ import annotations

import pytest

from fleet.app.identity import lowered
from fleet.domain.access import Actor, Role
from fleet.domain.errors import FleetError
from fleet.server.http.codec import named, request_of
from fleet.server.mcp.tool_steps import ToolCaller
from fleet.server.mcp.tool_table import TOOLS, property_of
from fleet.server.mcp.tools import shown_to, steps_of

EXAMPLES = {
    "string": "t-1",
    "array": ["x"],
    "object": {"a": 1},
    "boolean": True,
    "integer": 3,
    "number": 1.5,
}
RUN = ToolCaller(Actor("t-1.1", Role.COORDINATOR, "local", "t-1.1"), "/somewhere")


# As claude-fleet's agents know them: what each takes, those that must be given first.
KNOWN = """
team_status
team_broadcast message*
team_tasks filter
team_assign agent* task* description
team_complete task_id*
team_claim file*
team_spawn handle* prompt workingDir
team_dismiss handle*
team_workers
team_send handle* message*
mail_send to* body* subject
mail_read filter mark_read
team_handoff to* context*
worktree_commit message*
worktree_push
worktree_pr title* body* base
blackboard_post message_type* payload* swarm_id target_handle priority
blackboard_read swarm_id message_type unread_only priority limit
blackboard_mark_read message_ids*
blackboard_archive swarm_id message_ids max_age_hours
checkpoint_create goal* now* test done_this_session blockers questions next to_handle
checkpoint_load checkpoint_id latest
checkpoint_list status limit
swarm_create name* description max_agents
swarm_list swarm_id include_agents
swarm_kill swarm_id* graceful
swarm_broadcast swarm_id* directive* priority
spawn_request agent_type* task* swarm_id priority depends_on
spawn_status request_id include_queue
spawn_cancel request_id*
memory_store key* value* memory_type tags
memory_recall key*
memory_search query* memory_type limit
"""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_a_tool_is_there_under_its_known_name_with_what_it_takes(line):
    name, *words = line.split()
    tool = next(tool for tool in TOOLS if tool.name == name)
    assert {word.rstrip("*") for word in words} <= tool.takes.keys()
    assert {word[:-1] for word in words if word.endswith("*")} == set(tool.needs)


def test_what_is_handed_over_becomes_a_checkpoint_for_somebody():
    given = {"to": "bob", "context": {"goal": "Login", "next": ["Tests"], "branch": "x", "n": [1]}}
    (step,) = steps_of("team_handoff", RUN, given)
    said = step.fields["summary"]
    assert (step.fields["to"], said["goal"], said["next"]) == ("bob", "Login", ["Tests"])
    assert said["now"] == '{"branch": "x", "n": [1]}'


@pytest.mark.parametrize(
    ("tool", "given", "operation"),
    [
        ("inbox_list", {"kinds": ["question"]}, "inbox.list"),
        ("question_answer", {"question": "t-3", "text": "1"}, "message.answer"),
        ("task_pause", {"task": "t-3"}, "task.pause"),
        ("task_resume", {"task": "t-3"}, "task.resume"),
        ("task_retry", {"task": "t-3"}, "task.retry"),
        ("task_send_back", {"task": "t-3", "text": "Round up."}, "task.send_back"),
    ],
)
def test_what_the_inbox_offers_a_person_a_lead_can_do_by_a_tool(tool, given, operation):
    lead = ToolCaller(Actor("lee", Role.TEAM_LEAD, "local"), "/somewhere")
    (step,) = steps_of(tool, lead, given)
    assert step.operation == operation
    assert tool in {each.name for each in shown_to(lead.actor)}


def example(schema):
    if needed := schema.get("items", {}).get("required"):
        return [dict.fromkeys(needed, "x")]
    if "properties" in schema:
        return {name: example(field) for name, field in schema["properties"].items()}
    return schema["enum"][0] if "enum" in schema else EXAMPLES[schema.get("type", "string")]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("every", [False, True], ids=["least", "most"])
def test_what_a_tool_says_fits_its_operations(tool, every):
    names = tool.takes if every else tool.needs
    given = {name: example(property_of(tool.takes[name])) for name in names}
    steps = steps_of(tool.name, RUN, given)
    assert steps
    for step in steps:
        assert step.operation in tool.operations
        request_of(named(step.operation), step.fields)


@pytest.mark.parametrize("role", Role)
def test_nobody_is_shown_what_they_may_not_do(role):
    actor = Actor("x", role, "local")
    for tool in shown_to(actor):
        given = {name: example(property_of(tool.takes[name])) for name in tool.needs}
        assert steps_of(tool.name, ToolCaller(actor, "/x"), given)
        assert not tool.for_runs


def test_names_are_used_once_and_a_worker_is_shown_few():
    names = [tool.name for tool in TOOLS]
    assert len(names) == len(set(names))
    assert len(shown_to(Actor("w", Role.WORKER, "local"))) <= 12
    assert len(shown_to(Actor("t-1.1", Role.WORKER, "local", "t-1.1"))) <= 15


@pytest.mark.parametrize("name", ["task_done", "note", "ask_human"])
def test_only_a_run_has_a_task_of_its_own(name):
    tool = next(tool for tool in TOOLS if tool.name == name)
    given = dict.fromkeys(tool.needs, "x")
    with pytest.raises(FleetError, match="of its own"):
        steps_of(name, ToolCaller(Actor("me", Role.COORDINATOR, "local")), given)


@pytest.mark.parametrize(
    ("role", "wanted", "found"),
    [
        (Role.COORDINATOR, "", Role.COORDINATOR),
        (Role.COORDINATOR, "team-lead", Role.TEAM_LEAD),
        (Role.COORDINATOR, "monitor", Role.MONITOR),
        (Role.COORDINATOR, "kraken", Role.WORKER),
        (Role.WORKER, "coordinator", Role.WORKER),
        (Role.WORKER, "merger", Role.WORKER),
        (Role.MONITOR, "worker", Role.MONITOR),
    ],
)
def test_a_role_is_only_ever_lowered(role, wanted, found):
    assert lowered(role, wanted) is found
