"""What the relay does when a model, a runner or an answer is bad, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import json

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from fleet.adapters.relay.connections import Connections, why_of
from fleet.adapters.relay.plan import RelaySettings, plan_of, relay_config
from fleet.adapters.relay.reply import UNREAD
from fleet.domain.fleet import Fleet, Gateway
from fleet.domain.nodes.trace import read
from fleet.testing.fake_node.manner import FakeModel
from fleet.testing.fake_node.recorded import RECORDED
from tests.integration.virtual_relay import MODEL, UPSTREAM, VirtualRelay, run, said
from tests.wait import LIMIT

OTHER = "llama3.3:70b"
TOO_BIG = "model requires more system memory (45.1 GiB) than is available (20.2 GiB)"
OPENAI = "/v1/chat/completions"


def warm(it):
    for node in it.nodes.values():
        for name in node.models:
            node.load(name, 32_768)


def test_a_model_that_its_node_cannot_load_leaves_its_neighbours_alone():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", models=[UPSTREAM, OTHER], slots=2)
            await it.nodes["a"].change(broken={OTHER: TOO_BIG})
            big = it.model("big", it.serving("a", OTHER))
            await it.open(it.model(MODEL, it.serving("a")), big)
            bad = [await it.chat(model="big") for _ in range(6)]
            good = [await it.chat() for _ in range(20)]
            status = (await it.status())["nodes"]["a"]
            await it.nodes["a"].change(broken={})
            await asyncio.sleep(70)
            return bad, good, status, await it.chat(model="big")

    bad, good, status, later = run(scenario())
    assert [each.status for each in good] == [200] * 20
    assert [each.status for each in bad[:3]] == [500] * 3
    assert "llama3.3:70b on a is shut off" in bad[-1].text
    assert TOO_BIG in bad[-1].text
    assert (status["breaker"], status["servings"][OTHER]["breaker"]) == ("closed", "open")
    assert TOO_BIG in status["servings"][OTHER]["why"]
    assert later.good, "it is tried again"


def test_a_model_that_its_node_does_not_have_waits_until_it_is_pulled(tmp_path):
    """The first client hears what the node said; tasks lose no attempt to it."""
    traces = tmp_path / "traces.jsonl"

    async def scenario():
        async with VirtualRelay(traces) as it:
            await it.node("a", models=[UPSTREAM])
            await it.open(
                it.model(MODEL, it.serving("a")), it.model("gone", it.serving("a", OTHER))
            )
            bad = [await it.chat(model="gone", stream=False) for _ in range(3)]
            good = await it.chat()
            it.nodes["a"].models[OTHER] = FakeModel(OTHER)
            await asyncio.sleep(70)
            return bad, good, await it.chat(model="gone")

    bad, good, later = run(scenario())
    assert [each.status for each in bad] == [404, 503, 503]
    assert f"{OTHER} on a is shut off" in bad[1].text
    assert "not found" in bad[1].text
    assert good.good
    assert later.good, "it is tried again"
    first = read(traces.read_text().partition("\n")[0])
    assert first is not None
    assert (first.status, first.is_fault_of_nodes) == (404, True)


def test_a_path_that_a_node_does_not_know_shuts_off_no_model():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", kind="vllm")
            await it.open()
            await it.nodes["a"].change(status=404, message="Not Found", only="/v1/embeddings")
            wrong = await it.post("/v1/embeddings", {"input": "Hello"})
            right = await it.post(OPENAI, {"messages": [said("Hello")]})
            return wrong.status, right.status

    assert run(scenario()) == (404, 200)


def test_a_refused_key_is_named_and_tried_again():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", kind="vllm")
            await it.open()
            await it.nodes["a"].change(status=401, message="Invalid API key", only=OPENAI)
            ask = {"messages": [said("Hello")]}
            bad = [await it.post(OPENAI, ask) for _ in range(2)]
            await it.nodes["a"].change(status=0)
            await asyncio.sleep(70)
            return bad, await it.post(OPENAI, ask)

    bad, later = run(scenario())
    assert [each.status for each in bad] == [401, 503]
    assert "shut off (it answered with status 401: Invalid API key)" in bad[1].text
    assert later.status == 200


def test_a_node_that_was_restarted_is_warmed_and_has_traffic_within_ten_seconds():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, decode=50, output=50, load=4.0)
            warm(it)
            await it.open()
            await it.many(4, at_once=2)
            await it.nodes["a"].change(refuse=True)
            await it.many(3, at_once=2)
            await it.nodes["a"].change(refuse=False)
            back, got = it.time, []
            while it.time < back + 20:
                got += [(it.time - back, each.node) for each in await it.many(2, at_once=2)]
            return got

    got = run(scenario())
    first = min((at for at, node in got if node == "a"), default=99)
    assert first < 10
    assert {node for _, node in got[-6:]} == {"a", "b"}


def test_a_node_that_stayed_up_and_lost_its_model_is_warmed_as_well():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, decode=50, output=50, load=4.0)
            warm(it)
            await it.open()
            await it.many(4, at_once=2)
            it.nodes["a"].held.forget()
            await asyncio.sleep(30)
            return it.nodes["a"].resident, await it.chat()

    resident, got = run(scenario())
    assert resident == {UPSTREAM: 32_768}
    assert "load 0.00" in got.route


NOTHING = ["{}", "[]", "null", '{"error": {"message": "no credit", "code": 402}}', '{"error": "x"}']


@pytest.mark.parametrize("body", NOTHING)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/api/chat", OPENAI, "/v1/messages", "/v1/responses"])
def test_200_with_nothing_in_it_is_no_answer(path, stream, body):
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name)
            warm(it)
            await it.open()
            await it.nodes["a"].change(body=body, only=path)
            got = []
            for n in range(8):
                ask = {"messages": [said(f"{n}")], "input": f"{n}", "stream": stream}
                got.append(await it.post(path, ask))
            return got, (await it.status())["nodes"]["a"]["servings"][UPSTREAM]["breaker"]

    got, breaker = run(scenario())
    assert [each.node for each in got] == ["b"] * 8
    assert all(" 8" in each.text for each in got)
    assert breaker == "open"


FIRST_BYTES = [
    ": OPENROUTER PROCESSING\n\n",
    "garbage",
    "{}",
    '{"error": {"message": "overloaded"}}',
    'data: {"error": {"message": "overloaded"}}\n\n',
    'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n',
    "data: [DONE]\n\n",
    "event: ping\ndata: {}\n\n",
]


@pytest.mark.parametrize("events", FIRST_BYTES)
def test_before_the_first_word_of_an_answer_another_node_is_asked(events):
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, kind="openrouter")
            await it.open()
            await it.nodes["a"].change(events=events, only="/v1/chat")
            ask = {"messages": [said("Hello")], "stream": True}
            return [await it.post(OPENAI, ask) for _ in range(4)]

    for each in run(scenario()):
        assert (each.status, each.node) == (200, "b")
        assert "[DONE]" in each.text
        assert " 8" in each.text


def test_a_comment_or_an_opening_before_the_answer_is_passed_on_with_it():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", kind="vllm", prefill=1, decode=10)
            await it.open()
            return await it.post(OPENAI, {"messages": [said("Hello")], "stream": True})

    got = run(scenario())
    assert '"role": "assistant"' in got.text
    assert got.text.rstrip().endswith("data: [DONE]")


def test_a_client_reads_why_a_reply_broke_off_before_the_connection_breaks():
    """LiteLLM's own client drops what it has not read yet when the connection breaks."""

    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=50)
            await it.open()
            await it.nodes["a"].change(die=3)
            url = f"http://127.0.0.1:{it.port}/m/{MODEL}/api/chat"
            body = {"messages": [said("Hello")], "stream": True}
            async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
                text, broken = "", False
                while not broken:
                    try:
                        text += (await answer.content.readline()).decode()
                    except aiohttp.ClientPayloadError:
                        broken = True
                    await asyncio.sleep(0.01)  # it is busy with each line for a while
                return text

    assert "broke off in the middle of its reply" in run(scenario())


def test_a_stuck_runner_loses_no_request_while_another_node_is_idle():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=2000, decode=50)
            warm(it)
            await it.open()
            await it.many(4, at_once=2)
            await it.nodes["a"].change(silent=(UPSTREAM,))
            got = [await it.chat(said(f"{n}"), patience=10.0) for n in range(8)]
            status = (await it.status())["nodes"]["a"]
            await it.nodes["a"].change(silent=())
            await asyncio.sleep(20)
            await asyncio.gather(*(it.chat(said(f"later {n}")) for n in range(4)))
            return got, status, (await it.status())["nodes"]["a"]["busy"], it.nodes["a"]

    got, status, busy, node = run(scenario())
    assert all(each.good for each in got)
    assert sum(each.total > 1.0 for each in got) == 1, "one waited for it, and no other was sent"
    assert status["servings"][UPSTREAM]["breaker"] == "open"
    assert "it sent nothing for" in status["servings"][UPSTREAM]["why"]
    assert busy == 0
    assert node.asked("/api/chat")[-1].outcome == "answered", "it is used again"


def test_a_runner_that_is_only_slow_may_still_be_the_first_to_answer():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=2000, decode=50)
            warm(it)
            await it.open()
            await it.many(4, at_once=2)
            await it.nodes["a"].change(lag=5.0)
            await it.nodes["b"].change(prefill=1.0)
            return await it.chat(said("something else " * 20)), await it.status()

    got, status = run(scenario())
    assert got.good
    assert [node["busy"] for node in status["nodes"].values()] == [0, 0]


def test_a_stuck_runner_that_goes_on_has_traffic_again_within_a_minute():
    """It let nobody know: the connections that it left open stay open."""

    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=50)
            await it.node("b", decode=50)
            warm(it)
            await it.open()
            await it.many(6, at_once=2)
            await it.nodes["a"].change(silent=(UPSTREAM,))
            await it.many(6, at_once=2)
            await it.until(lambda nodes: nodes["a"]["breaker"] == "open")
            await asyncio.sleep(30)
            await it.nodes["a"].change(silent=())
            healed = it.time
            await it.until(lambda nodes: nodes["a"]["breaker"] != "open")
            return it.time - healed, await it.many(8, at_once=2)

    took, got = run(scenario())
    assert took < 75
    assert {each.node for each in got} == {"a", "b"}


def test_without_another_node_a_silent_one_is_waited_for():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", prefill=2000, decode=50)
            await it.open()
            await it.many(2, at_once=1)
            await it.nodes["a"].change(prefill=0.2)
            return await it.chat(said("something else"))

    got = run(scenario())
    assert got.good
    assert got.total > 15


def test_a_client_that_loses_patience_with_a_silent_node_is_traced_as_that(tmp_path):
    traces = tmp_path / "traces.jsonl"

    async def scenario():
        async with VirtualRelay(traces) as it:
            await it.node("a", prefill=2000, decode=50)
            await it.open()
            await it.many(2, at_once=1)
            await it.chat(said("leaves early"), patience=0.05)
            await it.nodes["a"].change(silent=(UPSTREAM,))
            await it.chat(said("something else"), patience=100)
            await asyncio.sleep(1)

    run(scenario())
    *_, early, late = [read(line) for line in traces.read_bytes().splitlines()]
    assert (early.outcome, early.is_fault_of_nodes) == ("cancelled", False)
    assert (late.outcome, late.error[:-3]) == ("cancelled", "a: it sent nothing for 10")
    assert late.is_fault_of_nodes


def test_a_prompt_that_does_not_fit_is_not_sent_to_a_fallback():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a")
            await it.node("b")
            small = it.model("small", it.serving("b", context=8192))
            big = it.model(MODEL, it.serving("a", context=65_536), fallbacks=(small,))
            await it.open(big, small)
            long, short = said("word " * 40_000), said("word")
            fits = await it.chat(long)
            await it.nodes["a"].change(refuse=True)
            await it.until(lambda nodes: nodes["a"]["breaker"] == "open")
            return (
                fits,
                await it.chat(short),
                await it.chat(long),
                await it.chat(long, model="small"),
            )

    fits, short, long, alone = run(scenario())
    assert (fits.node, short.node) == ("a", "b")
    assert long.status == 503
    assert "b holds 8192 tokens, the prompt has 5000" in long.text
    assert alone.status == 400
    assert "prompt is too long for 'small': b holds 8192 tokens" in json.loads(alone.text)["error"]


def test_pictures_are_no_text_of_a_prompt():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a")
            await it.open(it.model(MODEL, it.serving("a", context=8192)))
            return await it.chat({"role": "user", "content": "Look", "images": ["A" * 400_000]})

    assert run(scenario()).good


def test_many_waiting_for_one_model_do_not_stop_another():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=1.0)
            await it.node("b", models=[OTHER])
            await it.open(
                it.model(MODEL, it.serving("a")), it.model("other", it.serving("b", OTHER))
            )
            crowd = [asyncio.create_task(it.chat()) for _ in range(80)]
            await asyncio.sleep(1)
            got = await it.chat(model="other")
            for each in crowd:
                each.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)
            return got

    got = run(scenario())
    assert got.good
    assert got.total < 1.0


@pytest.mark.parametrize(("callers", "limit"), [(4, 15), (80, 60)])  # 80: more than are looked at
def test_a_low_priority_is_answered_although_high_ones_never_stop(callers, limit):
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=20, output=10)
            await it.open(priorities={"high": 0, "low": 2})

            async def high() -> None:
                while True:
                    await it.chat(headers={"x-fleet-agent": "high"})

            crowd = [asyncio.create_task(high()) for _ in range(callers)]
            await asyncio.sleep(1)
            got = await it.chat(headers={"x-fleet-agent": "low"}, patience=2.0 * limit)
            for each in crowd:
                each.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)
            return got

    got = run(scenario())
    assert got.good
    assert got.total < limit


def test_a_request_without_an_agent_is_ordinary():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=20, output=10)
            await it.open(priorities={"implementer": 2, "planner": 1})
            order = []

            async def ask(agent):
                await it.chat(headers={"x-fleet-agent": agent} if agent else {})
                order.append(agent)

            calls = []
            for agent in ("first", "implementer", "", "planner"):
                calls.append(asyncio.create_task(ask(agent)))
                await asyncio.sleep(0.05)
            await asyncio.gather(*calls)
            return order

    assert run(scenario()) == ["first", "planner", "implementer", ""]


def test_requests_for_two_models_that_do_not_fit_together_are_collated():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", models=[UPSTREAM, OTHER], fits=1, load=2.0, decode=50)
            await it.open(
                it.model(MODEL, it.serving("a")), it.model("other", it.serving("a", OTHER))
            )
            for name in (MODEL, "other", MODEL, "other"):  # it learns that they do not fit
                await it.chat(model=name)
                await asyncio.sleep(1)
            before = len(it.nodes["a"].asked("/api/chat"))
            got = await asyncio.gather(*(it.chat(model=(MODEL, "other")[n % 2]) for n in range(12)))
            asked = [seen.body["model"] for seen in it.nodes["a"].asked("/api/chat")][before:]
            return got, sum(one != two for one, two in itertools.pairwise(asked))

    got, changes = run(scenario())
    assert all(each.good for each in got)
    assert changes <= 2


@pytest.mark.parametrize(("status", "after"), [(402, ""), (429, "30"), (429, "")])
def test_a_hosted_node_without_credit_or_quota_falls_back(status, after):
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("cloud", kind="openrouter")
            await it.node("local", kind="vllm")
            local = it.model("local", it.serving("local"))
            await it.open(it.model(MODEL, it.serving("cloud"), fallbacks=(local,)), local)
            await it.nodes["cloud"].change(status=status, after=after, only="/v1/chat")
            ask = {"messages": [said("Hello")], "stream": True}
            got = [await it.post(OPENAI, ask) for _ in range(6)]
            return got, len(it.nodes["cloud"].asked(OPENAI)), await it.status()

    got, asked, status_now = run(scenario())
    assert [each.node for each in got] == ["local"] * 6
    assert sum(each.total for each in got) < 10
    row = status_now["nodes"]["cloud"]
    assert row["breaker"] == ("open" if status == 402 else "closed")
    if after or status == 402:
        assert asked == 1, "it is left alone for as long as it said"
        assert f"status {status}" in row["why"]


def test_a_client_that_loses_patience_with_a_node_that_rests_is_traced_as_that(tmp_path):
    traces = tmp_path / "traces.jsonl"

    async def scenario():
        async with VirtualRelay(traces) as it:
            await it.node("a")
            await it.open()
            await it.nodes["a"].change(
                status=429, message="Rate limit", after="50", only="/api/chat"
            )
            await it.chat(patience=20)
            await asyncio.sleep(1)

    run(scenario())
    [trace] = [read(line) for line in traces.read_text().splitlines()]
    assert trace is not None
    assert (trace.outcome, trace.is_fault_of_nodes) == ("cancelled", True)
    assert trace.error == "a rests: it answered with status 429: Rate limit"


def test_what_an_answer_cost_is_in_its_trace(tmp_path):
    traces = tmp_path / "traces.jsonl"

    async def scenario():
        async with VirtualRelay(traces) as it:
            await it.node("cloud", kind="openrouter", price=0.001)
            await it.node("local", kind="vllm")
            await it.open(
                it.model(MODEL, it.serving("cloud")), it.model("own", it.serving("local"))
            )
            for stream in (True, False):
                ask = {"messages": [said("Hello")], "stream": stream}
                assert (await it.post(OPENAI, ask)).status == 200
            await it.post(OPENAI, ask, model="own")

    run(scenario())
    *paid, free = [read(line) for line in traces.read_bytes().splitlines()]
    for each in paid:
        assert each.cost == pytest.approx((each.tokens.prompt + each.tokens.output) / 1000)
    assert len(paid) == 2
    assert free.cost is None


@pytest.mark.parametrize("name", RECORDED)
def test_what_real_servers_answer_in_hard_moments_costs_no_request(name):
    """See `fake_node.recorded` for the source of each."""
    recorded = RECORDED[name]

    async def scenario():
        async with VirtualRelay() as it:
            await it.node("first", kind=recorded.kind)
            await it.node("other", kind=recorded.kind)
            other = it.model("other", it.serving("other"))
            await it.open(it.model(MODEL, it.serving("first"), fallbacks=(other,)), other)
            await it.nodes["first"].change(**recorded.manner, times=1)
            path = "/api/chat" if recorded.kind == "ollama" else OPENAI
            stream = "events" in recorded.manner or recorded.kind == "ollama"
            return await it.post(path, {"messages": [said("Hello")], "stream": stream})

    got = run(scenario())
    assert got.status == 200
    assert "error" not in got.text


@pytest.mark.parametrize("stream", [True, False])
def test_a_node_that_says_with_status_200_that_it_is_busy_is_waited_for(stream):
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", kind="sglang")
            await it.open()
            error = '{"error": {"message": "The request queue is full."}}'
            said_so = {"events": f"data: {error}\n\n"} if stream else {"body": error}
            await it.nodes["a"].change(**said_so, only=OPENAI, times=4)
            got = await it.post(OPENAI, {"messages": [said("Hello")], "stream": stream})
            return got, await breakers(it)

    got, states = run(scenario())
    assert got.status == 200
    assert "error" not in got.text
    assert states == {"a": "closed"}


def test_credit_that_is_only_in_use_is_waited_for_as_long_as_it_said():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("cloud", kind="openrouter")
            await it.open()
            manner = RECORDED["openrouter in-flight budget"].manner
            await it.nodes["cloud"].change(**manner, times=1)
            return await it.post(OPENAI, {"messages": [said("Hello")], "stream": True})

    got = run(scenario())
    assert got.status == 200
    assert 5 <= got.total < 10, "not the minute of an empty account"


def test_a_quota_is_that_of_the_key_and_not_of_the_node():
    async def scenario():
        async with VirtualRelay() as it:
            for name in ("one", "two"):
                await it.node(name, kind="openrouter")
            await it.node("local", kind="vllm")
            keyed = [it.serving(name) for name in ("one", "two")]
            keyed = [
                s._replace(node=s.node._replace(api_key="os.environ/QUOTA_KEY")) for s in keyed
            ]
            local = it.model("local", it.serving("local"))
            await it.open(it.model(MODEL, *keyed, fallbacks=(local,)), local)
            await it.nodes["one"].change(status=429, after="30", only="/v1/chat")
            got = await it.post(OPENAI, {"messages": [said("Hello")]})
            return got, len(it.nodes["two"].asked(OPENAI))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUOTA_KEY", "sk-quota")
        got, asked = run(scenario())
    assert (got.node, asked) == ("local", 0)


def test_a_node_that_lost_its_model_has_it_again_within_ten_seconds():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=50, output=20)
            b = await it.node("b", decode=50, output=20, load=3.0)
            await it.open()
            await it.many(6, 2)
            assert UPSTREAM in b.resident
            looks = len(b.asked("/api/ps"))
            await it.until(lambda _: len(b.asked("/api/ps")) > looks)  # the next one is far off
            b.held.unload(UPSTREAM)
            began = it.time
            await it.until(lambda _: UPSTREAM in b.resident)
            return it.time - began

    assert run(scenario()) < 10


def test_a_slow_resolver_is_bounded_by_the_connect_limit():
    class Slow(AbstractResolver):
        async def resolve(self, host, port=0, family=0):
            await asyncio.Event().wait()

        async def close(self):
            pass

    async def scenario():
        connections = Connections(RelaySettings(connect=0.1), Slow())
        try:
            post = connections.kept.post
            async with asyncio.timeout(LIMIT):
                with pytest.raises(aiohttp.ConnectionTimeoutError) as caught:
                    await post("http://gpu:1/api/chat", timeout=connections.patience(LIMIT * 9))
            return why_of(caught.value)
        finally:
            await connections.close()

    assert asyncio.run(scenario()) == "nothing answers at its address"


async def breakers(it):
    """By node, the breaker of its model."""
    nodes = (await it.status())["nodes"]
    return {name: node["servings"][UPSTREAM]["breaker"] for name, node in nodes.items()}


def test_a_long_reply_in_one_piece_is_no_silence():
    """It is written for twenty seconds before its first byte."""

    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, decode=20, output=400)
            warm(it)
            await it.open()
            for number in range(4):
                await it.chat(said(f"{number}"), stream=False)
            asked = [seen for node in it.nodes.values() for seen in node.asked("/api/chat")]
            return [seen.outcome for seen in asked], await breakers(it)

    outcomes, states = run(scenario())
    assert outcomes == ["answered"] * 4, "none was asked of a second node"
    assert set(states.values()) == {"closed"}


def test_who_was_asked_later_is_not_blamed_when_the_first_one_answers():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, prefill=4000, decode=50, output=5)
            warm(it)
            await it.open()
            for number in range(4):
                await it.chat(said(f"{number} " * 1000))
            for node in it.nodes.values():
                await node.change(prefill=40)  # each takes 25 s now
            got = await it.chat(said("other " * 660))
            asked = {name: len(node.asked("/api/chat")) for name, node in it.nodes.items()}
            return got, asked, await breakers(it)

    got, asked, states = run(scenario())
    assert got.good
    assert sum(asked.values()) == 6, "the second node was asked, too"
    assert set(states.values()) == {"closed"}


def test_a_node_that_lost_its_cache_is_given_the_time_to_read_again():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, decode=50, prefill=500, output=10)
            warm(it)
            await it.open()
            talk, who = [said("word " * 16_000, "system"), said("hi")], {"x-fleet-session": "s"}
            first = await it.chat(*talk, headers=who)
            it.nodes[first.node].held.read.clear()
            again = await it.chat(*talk, said("a", "assistant"), said("more"), headers=who)
            return first, again, [len(node.asked("/api/chat")) for node in it.nodes.values()]

    first, again, asked = run(scenario())
    assert again.node == first.node
    assert again.first > 39, "it read all of it again"
    assert sorted(asked) == [0, 2], "the other node was not made to read it, too"


def test_one_answer_is_billed_once():
    """A company that is slow is waited for; no other is asked the same at the same time."""

    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, kind="openrouter", decode=50, output=10, prefill=1000)
            await it.open()
            body = {"messages": [said("word " * 100)], "stream": True}
            for _ in range(4):
                await it.post(OPENAI, body)
            for node in it.nodes.values():
                await node.change(prefill=1.0)
            body = {"messages": [said("slow " * 20)], "stream": True}
            before = sum(len(node.asked(OPENAI)) for node in it.nodes.values())
            got = await it.post(OPENAI, body)
            return got, sum(len(node.asked(OPENAI)) for node in it.nodes.values()) - before

    got, asked = run(scenario())
    assert got.status == 200
    assert got.first > 20
    assert asked == 1


def test_a_client_that_reads_nothing_gives_its_slot_back():
    async def scenario():
        async with VirtualRelay() as it:
            words = ("word" * 2000 + " ") * 4000  # 32 MB: more than the system keeps for it
            await it.node("a", reply=lambda body: "no" if "other" in str(body) else words)
            await it.open()
            _, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1024)
            body = json.dumps({"messages": [said("x")]}).encode()
            head = f"POST /m/{MODEL}/api/chat HTTP/1.1\r\nHost: localhost\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            writer.transport.pause_reading()
            await it.until(lambda nodes: nodes["a"]["busy"] == 1)
            try:
                return await it.chat(said("other"))
            finally:
                writer.transport.abort()

    got = run(scenario())
    assert got.good
    assert got.total <= UNREAD + 1


def test_a_node_that_goes_silent_within_its_reply_does_not_have_it_answered_twice():
    async def scenario():
        async with VirtualRelay() as it:
            for name in "ab":
                await it.node(name, decode=50, output=10)
            warm(it)
            await it.open(look=1.0, connect=0.5)
            await it.nodes["a"].change(stall=3)
            asking = asyncio.create_task(it.chat())
            await it.until(lambda nodes: nodes["a"]["busy"] == 1)
            await asyncio.sleep(0.5)
            await it.nodes["a"].change(lag=1000.0)  # as a machine that froze
            got = await asking
            return got, len(it.nodes["b"].asked("/api/chat"))

    got, others = run(scenario())
    pieces = [json.loads(line) for line in got.text.splitlines() if line.startswith("{")]
    words = [each["message"]["content"] for each in pieces if "message" in each]
    assert words == [" 1", " 2", " 3"]
    assert "The node 'a' broke off in the middle of its reply" in got.text
    assert others == 0


def test_a_model_that_is_taken_from_the_plan_is_refused_to_those_who_wait_for_it():
    async def scenario():
        async with VirtualRelay() as it:
            await it.node("a", decode=20, output=100)
            await it.open(it.model(MODEL), it.model("gone"))
            asking = [asyncio.create_task(it.chat(said(f"{n}"), model="gone")) for n in range(2)]
            await it.until(lambda nodes: nodes["a"]["busy"] == 1)
            await asyncio.sleep(0.5)
            stays = it.model(MODEL)
            fleet = Fleet("shop", Gateway(), {"a": stays.servings[0].node}, {MODEL: stays})
            config = json.dumps(relay_config(fleet, port=0, heartbeat=0))
            it.relay.adopt(plan_of(json.loads(config)))
            return await asyncio.gather(*asking, it.chat())

    at_work, waited, other = run(scenario())
    assert at_work.good, "what a node is at work on goes on"
    assert waited.status == 503
    assert "fleet.yaml no longer has the model 'gone'" in waited.text
    assert other.good
