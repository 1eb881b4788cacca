"""Several relays, and people, on the same nodes: each sees the others by what the nodes say."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.virtual_relay import VirtualRelay, run, said

CHAT = "/v1/chat/completions"


async def ask(it: VirtualRelay, words: str, most: int):
    body = {"messages": [said(words)], "stream": True, "max_tokens": most}
    return await it.post(CHAT, body)


async def two_relays(kind: str, **manner):
    """A long request of one relay, then a short one of the other; where both went, and how long."""
    async with VirtualRelay() as one, VirtualRelay() as other:
        for name in "ab":
            await one.node(name, kind=kind, decode=50, output=500, **manner)
        other.nodes = one.nodes
        await one.open()
        await other.open()
        for it in (one, other):  # both know both nodes
            await asyncio.gather(ask(it, "x", 50), ask(it, "y", 50))
        long = asyncio.create_task(ask(one, "long", 500))
        await one.until(lambda nodes: any(node["busy"] for node in nodes.values()))
        await other.until(lambda nodes: any(node["others"] for node in nodes.values()))
        short = await ask(other, "short", 50)
        return (await long).node, short


@pytest.mark.parametrize("kind", ["llamacpp", "vllm", "sglang"])
def test_a_request_goes_to_the_node_where_no_other_relay_is_at_work(kind):
    node, short = run(two_relays(kind))
    assert short.node != node
    assert short.total < 1.5, "1 s alone, up to 11 s behind the long one"


def test_what_our_own_relay_sent_is_not_taken_for_a_stranger():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", kind="llamacpp", slots=2, decode=50, output=500)
            await it.open()
            both = [asyncio.create_task(ask(it, f"{n}", 500)) for n in range(2)]
            await it.until(lambda nodes: nodes["a"]["busy"] == 2)
            most = 0
            while not all(task.done() for task in both):
                most = max(most, (await it.status())["nodes"]["a"]["others"])
                await asyncio.sleep(0.2)
            return most

    assert run(scenario()) == 0


def test_strangers_who_stay_for_ever_do_not_keep_a_request_from_being_sent():
    """They take every slot as soon as it is free: who waits until all are gone waits for ever."""

    async def scenario():
        async with VirtualRelay() as it, VirtualRelay() as people:
            await it.node("a", kind="llamacpp", decode=50, output=50)
            people.nodes = it.nodes
            await it.open()
            await people.open(people.model("coder", people.serving("a", slots=4)))
            crowd = [asyncio.create_task(ask(people, f"{n}", 50)) for n in range(30)]
            await it.until(lambda nodes: nodes["a"]["others"] > 0)
            got = await ask(it, "ours", 50)
            await asyncio.gather(*crowd)
            return got, [str(each.body) for each in it.nodes["a"].asked(CHAT)]

    got, came = run(scenario())
    assert got.status == 200
    assert "ours" not in came[-1], "it waited in the node, not until everybody was gone"


def test_an_ollama_in_which_others_wait_is_known_by_the_time_that_it_cannot_explain():
    """Ollama has no page that says who is at work. One that waits for long is hedged besides."""

    async def scenario():
        async with VirtualRelay() as one, VirtualRelay() as other:
            for name in "ab":
                await one.node(name, decode=50, output=90)
            other.nodes = one.nodes
            await one.open()
            await other.open()
            for it in (one, other):
                for _ in range(2):
                    await it.chat(options={"num_predict": 50})
            long = asyncio.create_task(one.chat(options={"num_predict": 90}))
            await one.until(lambda nodes: any(node["busy"] for node in nodes.values()))
            first = await other.chat(options={"num_predict": 50})
            second = await other.chat(said("again"), options={"num_predict": 50})
            return (await long).node, first, second

    node, first, second = run(scenario())
    assert first.node == node, "it cannot know: the first is sent as if it were alone"
    assert second.node != node
