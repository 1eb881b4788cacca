"""Where the relay sends a request, with stand-ins that behave as machines do, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter

from fleet.adapters.relay.plan import speed_key
from tests.integration.virtual_relay import UPSTREAM, VirtualRelay, run, said


def test_the_faster_node_is_chosen_once_it_is_known_and_the_choice_is_explained():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("slow", decode=20, output=40)
            await it.node("fast", decode=400, output=40)
            await it.open()
            await asyncio.gather(it.chat(), it.chat())
            return await it.chat()

    got = run(scenario())
    assert got.node == "fast"
    assert got.route.startswith("fast ")
    assert "; slow " in got.route


def test_equal_nodes_with_several_slots_share_the_work():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, slots=4, decode=50, output=50)
            await it.open()
            began = it.time
            got = await it.many(16, at_once=4)
            return it.time - began, Counter(each.node for each in got)

    took, split = run(scenario())
    assert took < 9.0, "8 s is half and half, 16 s is all on one"
    assert min(split["a"], split["b"]) >= 6


def test_a_node_that_batches_is_filled_before_a_slow_one():
    """What slows whom down is learnt: a server that batches takes eight as quickly as one."""

    async def scenario():
        async with VirtualRelay() as it:
            await it.node("batching", slots=8, decode=50, output=50, drag=0.0, kind="vllm")
            await it.node("small", slots=1, decode=20, output=50, kind="llamacpp")
            await it.open()
            for _ in range(2):
                await asyncio.gather(*(ask(it) for _ in range(4)))
            return Counter(
                [each.node for each in await asyncio.gather(*(ask(it) for _ in range(6)))]
            )

    async def ask(it):
        body = {"messages": [said("Hello")], "stream": True}
        return await it.post("/v1/chat/completions", body)

    assert run(scenario())["batching"] >= 5


def test_a_node_that_nobody_has_measured_is_tried_although_another_is_known():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=20, output=40)
            await it.node("b", decode=80, output=40)
            for node in it.nodes.values():
                node.load(UPSTREAM, 32_768)
            await it.open()
            return [(await it.chat(said(f"{n}"))).node for n in range(6)]

    nodes = run(scenario())
    assert nodes[-3:] == ["b"] * 3


def conversation(name: str, turns: int) -> list[dict[str, str]]:
    """A system prompt that all of them share, and words that only this one has."""
    talk = [said("You are a careful engineer. " * 200, "system"), said(f"{name} begins")]
    for turn in range(turns):
        talk += [said(f"{name} {turn} " * 150, "assistant"), said(f"{name} goes on {turn}")]
    return talk


async def talk(it, name, turns=6, offset=0.0, pause=0.5):
    """The nodes and times to the first byte of a conversation that grows."""
    await asyncio.sleep(offset)
    got = []
    for turn in range(turns):
        got.append(await it.chat(*conversation(name, turn), headers={"x-fleet-session": name}))
        await asyncio.sleep(pause)
    return got


def test_two_conversations_with_one_system_prompt_each_keep_a_node():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=2000, decode=50, output=10)
            await it.open()
            return await asyncio.gather(
                talk(it, "x", pause=3.0), talk(it, "y", offset=2.0, pause=3.0)
            )

    x, y = run(scenario())
    homes = [{each.node for each in one[1:]} for one in (x, y)]
    assert [len(home) for home in homes] == [1, 1]
    assert homes[0] != homes[1]
    later = [each.first for each in (*x[2:], *y[2:])]
    assert sum(later) / len(later) < 0.4, "what is new is read in 0.3 s, all of it in 1 s and more"


def test_four_conversations_on_two_nodes_leave_none_idle():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=2000, decode=50, output=10)
            await it.open()
            talks = (talk(it, name, offset=n * 0.3) for n, name in enumerate("wxyz"))
            return [each for got in await asyncio.gather(*talks) for each in got]

    got = run(scenario())
    split = Counter(each.node for each in got)
    assert min(split["a"], split["b"]) >= 10
    assert sum(each.first for each in got) / len(got) < 0.4, "three on one node: 0.46 s"


def test_a_name_without_a_tag_counts_as_loaded():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", models=["m"], decode=50, load=3.0)
            it.nodes["a"].load("m", 32_768)
            await it.open(it.model("coder", it.serving("a", "m")))
            return await it.chat()

    assert "load 0.00" in run(scenario()).route


def test_an_agent_has_at_most_its_limit_at_work_and_the_others_pass():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=50, output=50, slots=4, drag=0)
            await it.open(limits={"greedy": 1})
            await it.chat()

            async def by(agent: str):
                return await it.chat(headers={"x-fleet-agent": agent})

            greedy = [asyncio.create_task(by("greedy")) for _ in range(3)]
            await asyncio.sleep(0.1)
            other = await by("other")
            return [await each for each in greedy], other

    greedy, other = run(scenario())
    assert other.total < 1.5, "it did not wait behind them"
    assert [round(got.total) for got in greedy] == [1, 2, 3]
    assert "it waited: at most 1 of greedy at once" in greedy[1].route
    assert "it waited" not in greedy[0].route


OTHER = "llama3.3:70b"


def test_loading_is_shared_by_those_who_wait():
    """A cold node pays when several wait, though loading takes longer than any one's wait."""

    async def scenario():
        async with VirtualRelay() as it:
            a = await it.node("a", decode=50, output=50)
            a.load(UPSTREAM, 32_768)
            b = await it.node("b", models=(UPSTREAM, OTHER), decode=50, output=50, load=1.0)
            b.load(OTHER, 32_768)  # so that nobody loads it unasked: that might evict the other
            speed = {"prefill": 2000.0, "decode": 50.0, "load": 8.0}
            await it.open(speeds={speed_key(n.url, UPSTREAM): speed for n in it.nodes.values()})
            return await it.many(6, 6, options={"num_predict": 50})

    got = run(scenario())
    assert {each.node for each in got} == {"a", "b"}
    assert max(each.total for each in got) < 5, "one after the other on a: 6 s"


def test_conversations_do_not_evict_each_other_while_a_slot_is_free_of_them():
    """Four conversations on two nodes of two slots: each keeps its node, and so its cache."""

    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=2000, decode=50, output=10, slots=2, drag=0)
            await it.open()
            talks = (talk(it, name, offset=n * 1.3, pause=4.0) for n, name in enumerate("wxyz"))
            return await asyncio.gather(*talks)

    got = run(scenario())
    homes = [Counter(each.node for each in one[1:]) for one in got]
    assert all(len(home) == 1 for home in homes), homes
    assert Counter(next(iter(home)) for home in homes) == {"a": 2, "b": 2}


async def in_order(it, *agents, pause=0.02):
    """Who was answered, in that order; each asks once, the first in the list first."""
    order = []

    async def ask(number, agent):
        await it.chat(said(f"{number}"), headers={"x-fleet-agent": agent})
        order.append(agent)

    asking = []
    for number, agent in enumerate(agents):
        asking.append(asyncio.create_task(ask(number, agent)))
        await asyncio.sleep(pause)
    await asyncio.gather(*asking)
    return order


def test_an_agent_with_a_long_line_does_not_keep_another_from_the_only_slot():
    async def scenario(count):
        async with VirtualRelay() as it:
            await it.node("a", decode=100, output=100)
            await it.open()
            return await in_order(it, *["greedy"] * count, "modest", pause=0.002)

    assert run(scenario(10)).index("modest") <= 2
    assert run(scenario(100)).index("modest") <= 2, "more wait than are looked at, and wait long"


def test_who_was_refused_by_a_busy_node_keeps_its_place():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=20, output=20)
            await it.open()
            asking = asyncio.create_task(in_order(it, *"abcd"))
            await asyncio.sleep(0.5)
            refusal = {"status": 503, "message": "server busy", "times": 1, "only": "/api/chat"}
            await it.nodes["a"].change(**refusal)
            return await asking

    assert run(scenario()) == list("abcd")
