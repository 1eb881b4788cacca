import asyncio
import json

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused
from fleet.server.mcp.tool_steps import ToolCaller
from fleet.server.mcp.tools import run_tool

LEAD = ToolCaller(Actor("ada", Role.COORDINATOR, "local"), "/shop")


def run(perform, name, **given):
    return asyncio.run(run_tool(perform, LEAD, name, given))


async def has_nothing(*_):
    return ()


def test_a_tool_of_one_operation_replies_with_what_that_replied():
    reply = run(has_nothing, "team_tasks")
    assert (json.loads(reply.text), reply.failed) == ([], False)


def test_a_tool_of_several_operations_replies_by_their_keys():
    reply = run(has_nothing, "team_status")
    assert list(json.loads(reply.text)) == ["members", "workers", "tasks", "questions"]


def test_what_is_refused_is_told_with_its_fix_and_its_code():
    async def refuses(_operation, _actor, _request):
        raise Refused("t-1 is done.", fix="Retry it.", code="settled")

    reply = run(refuses, "team_tasks")
    assert (reply.text, reply.failed) == ("t-1 is done. Retry it.", True)
    assert reply.data == {"code": "settled", "message": "t-1 is done."}


def test_a_tool_that_does_not_exist_asks_for_no_operation():
    async def never(*_):
        raise AssertionError

    reply = run(never, "team_nothing")
    assert (reply.text, reply.failed) == ("There is no tool 'team_nothing'. List the tools.", True)
