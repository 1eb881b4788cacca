"""What a real server of models does and a simple stand-in does not, in virtual time."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from fleet.testing.fake_node.node import FakeNode
from fleet.testing.virtual_time import run

ONE, OTHER = "one:7b", "other:7b"


async def ask(node, model=ONE, text="Hello", path="/api/chat", **body):
    """The status, the reply as JSON, and how many seconds it took."""
    now = asyncio.get_running_loop().time
    began = now()
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": False} | body
    async with aiohttp.ClientSession() as client, client.post(node.url + path, json=body) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if text.startswith("{") else text, now() - began


async def page(node, path):
    async with aiohttp.ClientSession() as client, client.get(node.url + path) as answer:
        return await answer.json()


def test_requests_at_work_slow_each_other_down_also_those_for_different_models():
    async def scenario():
        async with FakeNode([ONE, OTHER], slots=4, decode=10, output=20) as node:
            alone = (await ask(node))[2]
            pair = await asyncio.gather(ask(node), ask(node, OTHER))
            four = await asyncio.gather(*(ask(node) for _ in range(4)))
            await node.change(drag=0.0)
            apart = await asyncio.gather(*(ask(node) for _ in range(4)))
            return alone, [p[2] for p in pair], [f[2] for f in four], [a[2] for a in apart], four

    alone, pair, four, apart, replies = run(scenario())
    assert alone == pytest.approx(2.0, rel=0.05)
    assert pair == pytest.approx([4.0] * 2, rel=0.05)
    assert four == pytest.approx([8.0] * 4, rel=0.05)
    assert apart == pytest.approx([2.0] * 4, rel=0.05)
    assert replies[0][1]["eval_duration"] == pytest.approx(8e9, rel=0.05), "as it was, not alone"


def test_one_model_fails_and_its_neighbour_answers():
    async def scenario():
        async with FakeNode([ONE, OTHER]) as node:
            await node.change(broken={ONE: "model requires more system memory (9.1 GiB)"})
            return await ask(node), await ask(node, OTHER)

    bad, good = run(scenario())
    assert bad[:2] == (500, {"error": "model requires more system memory (9.1 GiB)"})
    assert good[0] == 200


def test_after_a_restart_it_is_cold():
    async def scenario():
        async with FakeNode([ONE], load=5.0) as node:
            times = [(await ask(node))[2] for _ in range(2)]
            await node.change(refuse=True)
            await node.change(refuse=False)
            return [*times, (await ask(node))[2]], (await page(node, "/api/ps"))["models"]

    times, _ = run(scenario())
    assert [round(seconds) for seconds in times] == [5, 0, 5]


def test_a_runner_is_silent_and_the_health_page_answers():
    async def scenario():
        async with FakeNode([ONE, OTHER]) as node:
            await node.change(silent=(ONE,), slots=2)
            asking = asyncio.create_task(ask(node))
            await asyncio.sleep(300)
            silent = not asking.done()
            asking.cancel()
            return silent, await page(node, "/api/version"), (await ask(node, OTHER))[0]

    assert run(scenario()) == (True, {"version": "0.14.2"}, 200)


def test_a_slot_caches_one_conversation_and_another_evicts_it():
    async def scenario():
        async with FakeNode([ONE], slots=1) as node:
            for text in ("x" * 4000, "x" * 4000 + "more", "y" * 4000, "x" * 4000):
                await ask(node, text=text)
            await node.change(slots=2)
            for text in ("z" * 4000, "x" * 4000, "z" * 4000):
                await ask(node, text=text)
            return [seen.cached > 900 for seen in node.asked("/api/chat")]

    assert run(scenario()) == [False, True, False, False, False, True, True]


def test_memory_for_one_model_means_that_loading_unloads():
    async def scenario():
        async with FakeNode([ONE, OTHER], fits=1, load=2.0) as node:
            return [round((await ask(node, name))[2]) for name in (ONE, ONE, OTHER, ONE)]

    assert run(scenario()) == [2, 0, 2, 2]


def test_a_name_without_a_tag_is_listed_with_one():
    async def scenario():
        async with FakeNode(["m"]) as node:
            statuses = [(await ask(node, name))[0] for name in ("m", "m:latest")]
            loaded = [model["name"] for model in (await page(node, "/api/ps"))["models"]]
            return statuses, loaded, (await page(node, "/api/tags"))["models"][0]["name"]

    assert run(scenario()) == ([200, 200], ["m:latest"], "m:latest")


def test_it_answers_200_with_an_error_in_it_and_429_with_a_time():
    async def scenario():
        async with FakeNode([ONE]) as node:
            await node.change(body='{"error": {"message": "no credit"}}', only="/api/chat")
            hidden = await ask(node)
            await node.change(body="", events=": OPENROUTER PROCESSING\n\n")
            comment = await ask(node)
            await node.change(events="", status=429, after="7")
            async with (
                aiohttp.ClientSession() as client,
                client.post(node.url + "/api/chat", json={}) as answer,
            ):
                return hidden, comment, answer.headers["retry-after"]

    hidden, comment, after = run(scenario())
    assert hidden[:2] == (200, {"error": {"message": "no credit"}})
    assert comment[:2] == (200, ": OPENROUTER PROCESSING\n\n")
    assert after == "7"
