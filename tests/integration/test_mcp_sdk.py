"""The official MCP SDK as a client of `/mcp` and of `fleet mcp`, as agents' programs use it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import ClientSession, MCPError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.team import Team
from tests.integration.test_server import FLEET
from tests.wait import LIMIT


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("sdk"))
    yield made
    made.served.end()


@asynccontextmanager
async def over_http(team, who):
    headers = {"Authorization": f"Bearer {team.tokens[who]}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=LIMIT) as client,
        streamable_http_client(
            f"http://127.0.0.1:{team.served.port}/mcp", http_client=client
        ) as streams,
        ClientSession(*streams[:2], read_timeout_seconds=LIMIT) as session,
    ):
        yield session


@asynccontextmanager
async def over_stdio(team, who):
    """With a token it asks the server; else it acts for whoever is at this machine."""
    env = dict(team.served.env)
    if who:
        env |= {
            "FLEET_URL": f"http://127.0.0.1:{team.served.port}",
            "FLEET_TOKEN": team.tokens[who],
        }
    program = StdioServerParameters(command=FLEET, args=["mcp"], env=env, cwd=team.served.cwd)
    async with (
        stdio_client(program) as streams,
        ClientSession(*streams[:2], read_timeout_seconds=LIMIT) as session,
    ):
        yield session


WAYS = [over_http, over_stdio]


def with_session(way, team, who, steps):
    async def run():
        async with way(team, who) as session:
            greeting = await session.initialize()
            return await steps(session, greeting)

    return asyncio.run(run())


@pytest.mark.parametrize("way", WAYS)
def test_the_sdk_agrees_on_a_version_and_lists_the_tools_of_a_role(team, way):
    async def steps(session, greeting):
        assert greeting.server_info.name == "fleet"
        assert greeting.capabilities.tools is not None
        return {tool.name: tool for tool in (await session.list_tools()).tools}

    lead = with_session(way, team, "ann", steps)
    worker = with_session(way, team, "bob", steps)
    assert {"team_status", "team_spawn", "blackboard_post"} <= lead.keys()
    assert "team_spawn" not in worker
    schema = lead["mail_send"].input_schema
    assert schema["required"] == ["to", "body"]
    assert schema["properties"]["subject"] == {"type": "string", "maxLength": 200}
    assert schema["properties"]["body"]["minLength"] == 1
    assert lead["checkpoint_create"].input_schema["properties"]["next"]["maxItems"] == 200
    assert lead["team_status"].annotations.read_only_hint is True
    assert lead["swarm_kill"].annotations.destructive_hint is True


@pytest.mark.parametrize("way", WAYS)
def test_a_call_replies_with_text_and_structured_content(team, way):
    async def steps(session, _greeting):
        made = await session.call_tool(
            "memory_store", {"key": f"k-{way.__name__}", "value": "5433"}
        )
        again = await session.call_tool("memory_recall", {"key": f"k-{way.__name__}"})
        return made, again

    made, again = with_session(way, team, "ann", steps)
    for reply in (made, again):
        assert not reply.is_error
        assert reply.structured_content["data"]["value"] == "5433"
        assert '"5433"' in reply.content[0].text


WRITES = {
    "tasks_add": {"tasks": [{"title": "Fix the login"}]},
    "team_assign": {"agent": "bob", "task": "Fix the door"},
    "mail_send": {"to": "bob", "body": "Look."},
    "team_claim": {"file": "src/login.py"},
    "checkpoint_create": {"goal": "Login", "now": "Half done", "to_handle": "bob"},
    "swarm_create": {"name": "s"},
    "memory_store": {"key": "port", "value": "5433", "tags": ["db"]},
    "memory_search": {"query": "port"},
    "task_search": {"text": "login"},
    "team_broadcast": {"message": "Noon."},
}


def test_the_sdk_finds_every_reply_as_its_tool_says_it_is(team):
    """It refuses structured content that does not fit the tool's output schema."""

    async def steps(session, _greeting):
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        replies = {name: await session.call_tool(name, given) for name, given in WRITES.items()}
        for name, tool in tools.items():
            if tool.annotations.read_only_hint and not tool.input_schema["required"]:
                replies[name] = await session.call_tool(name, {})
        return tools, replies

    tools, replies = with_session(over_http, team, "ann", steps)
    assert [name for name, tool in tools.items() if not tool.output_schema] == []
    good = {name for name, reply in replies.items() if not reply.is_error}
    assert WRITES.keys() | {"team_status", "team_tasks", "team_workers", "inbox_list"} <= good
    assert len(good) > 25
    data = replies["team_status"].structured_content["data"]
    assert data["tasks"]
    assert set(data) == set(tools["team_status"].output_schema["properties"]["data"]["required"])


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_call_is_an_error_that_its_agent_can_read(team, way):
    async def steps(session, _greeting):
        calls = [
            ("mail_send", {"to": "bob", "body": "x", "subject": "x" * 201}),
            ("mail_send", {"to": "bob"}),
            ("memory_search", {"query": "x", "limit": 5000}),
            ("team_nothing", {}),
        ]
        return [await session.call_tool(name, given) for name, given in calls]

    long, missing, many, unknown = with_session(way, team, "ann", steps)
    assert all(reply.is_error for reply in (long, missing, many, unknown))
    assert long.structured_content["code"] == "bad_input"
    assert "201 characters; the limit is 200" in long.content[0].text
    assert "needs 'body'" in missing.content[0].text
    assert "must be from 1 to 200" in many.content[0].text
    assert "There is no tool" in unknown.content[0].text


@pytest.mark.parametrize("way", WAYS)
def test_what_a_role_may_not_is_refused(team, way):
    async def steps(session, _greeting):
        return await session.call_tool("team_spawn", {"handle": "x"})

    reply = with_session(way, team, "bob", steps)
    assert reply.is_error
    assert reply.structured_content["code"] == "forbidden"


@pytest.mark.parametrize("way", WAYS)
def test_the_session_goes_on_after_a_cancellation_an_unknown_method_and_asking_for_progress(
    team, way
):
    async def steps(session, _greeting):
        calling = asyncio.create_task(session.call_tool("team_status", {}))
        await asyncio.sleep(0)
        calling.cancel()  # the SDK then tells the server so
        await asyncio.gather(calling, return_exceptions=True)
        over = types.CancelledNotification(
            params=types.CancelledNotificationParams(request_id=1, reason="Enough.")
        )
        await session.send_notification(over)
        with pytest.raises(MCPError, match="There is no method"):
            await session.list_resources()
        heard = []

        async def progress(*words):
            heard.append(words)

        reply = await session.call_tool("team_status", {}, progress_callback=progress)
        await session.send_ping()
        return reply, heard

    reply, heard = with_session(way, team, "ann", steps)
    assert not reply.is_error
    assert {"members", "tasks"} <= reply.structured_content["data"].keys()
    assert heard == []  # each call is one short request: there is none to tell of


def test_without_a_server_the_person_at_the_machine_is_answered_all_the_same(tmp_path):
    class Alone:
        served = type("Home", (), {"env": {"FLEET_HOME": str(tmp_path)}, "cwd": tmp_path})

    async def steps(session, _greeting):
        return await session.call_tool("team_tasks", {"filter": "all"})

    reply = with_session(over_stdio, Alone, "", steps)
    assert (reply.is_error, reply.structured_content) == (False, {"data": []})
