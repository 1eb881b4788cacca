import asyncio
import json

from fleet.domain.access import Actor, Role
from fleet.server.mcp.protocol import answer
from fleet.server.mcp.tools import ToolReply

LEAD = Actor("ada", Role.COORDINATOR, "local")


async def rows(_actor, _name, _arguments):
    return ToolReply('[{"id": "t-1"}]')


async def refuses(_actor, _name, _arguments):
    return ToolReply("No.", {"code": "refused", "message": "No."}, failed=True)


def asked(method, call=rows, **params):
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return json.loads(asyncio.run(answer(message, LEAD, call)))


def test_a_result_is_there_for_people_and_for_programs():
    result = asked("tools/call", name="team_tasks")["result"]
    assert result["structuredContent"] == {"data": [{"id": "t-1"}]}
    assert (result["content"][0]["text"], result["isError"]) == ('[{"id": "t-1"}]', False)
    refused = asked("tools/call", refuses, name="team_tasks")["result"]
    assert (refused["structuredContent"]["code"], refused["isError"]) == ("refused", True)


def test_every_tool_says_what_it_does_to_the_world():
    tools = {tool["name"]: tool for tool in asked("tools/list")["result"]["tools"]}
    for tool in tools.values():
        assert tool["annotations"]["title"] == tool["title"]
        assert tool["inputSchema"]["type"] == "object"
    assert tools["team_status"]["annotations"]["readOnlyHint"] is True
    assert tools["mail_send"]["annotations"]["readOnlyHint"] is False
    assert tools["mail_send"]["annotations"]["idempotentHint"] is False
    assert tools["team_dismiss"]["annotations"]["destructiveHint"] is True
    assert tools["worktree_push"]["annotations"]["openWorldHint"] is True


def test_what_is_no_request_is_refused_as_json_rpc_says():
    assert json.loads(asyncio.run(answer([], LEAD, rows)))["error"]["code"] == -32600
    assert asked("tools/forget")["error"]["code"] == -32601
    assert asked("tools/call", name="x", arguments=[1])["error"]["code"] == -32602
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert asyncio.run(answer(note, LEAD, rows)) == b""
