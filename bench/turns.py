"""A conversation of six turns on two real llama.cpp nodes: how long until each reply begins.

Ours goes through the relay, which knows where the conversation's prefix is; the peers are round robin
over the two nodes, and one node alone.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from _bench import finish, verdict
from _relay import Place

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.real.llama_server import NAME, LlamaServer

TURNS = 6
WORDS = int(os.environ.get("WORDS", "220"))  # that each turn adds
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = "{:.2f} s"


def first_word(url: str, messages: list[dict[str, str]], session: str) -> tuple[float, str]:
    """Seconds until the reply begins, and the reply."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
    body = {"model": NAME, "messages": messages, "max_tokens": 12, "stream": True}
    headers = {"content-type": "application/json", "x-fleet-session": session}
    began = time.perf_counter()
    connection.request("POST", f"{parts.path}/v1/chat/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    first, text = 0.0, ""
    for raw in answer:
        line = raw.decode().strip()
        if not line.startswith("data: {"):
            continue
        said = json.loads(line.removeprefix("data: "))
        piece = (said.get("choices") or [{}])[0].get("delta", {}).get("content") or ""
        if piece and not first:
            first = time.perf_counter() - began
        text += piece
    connection.close()
    return first, text


def converse(urls: list[str], chance: random.Random, session: str) -> float:
    """The mean of the turns after the first, each at the next of these addresses."""
    messages: list[dict[str, str]] = []
    took = []
    for turn in range(TURNS):
        said = " ".join(f"w{chance.randrange(10_000)}" for _ in range(WORDS // 4))
        messages.append({"role": "user", "content": said})
        first, reply = first_word(urls[turn % len(urls)], messages, session)
        messages.append({"role": "assistant", "content": reply or "."})
        took.append(first)
    return statistics.mean(took[1:])


def main() -> None:
    chance = random.Random(11)
    found: dict[str, list[float]] = {"relay": [], "round robin": [], "one node": []}
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        nodes = [stack.enter_context(LlamaServer(context=8192)).url for _ in range(2)]
        place = stack.enter_context(Place(Path(folder)))
        relay, _ = place.relay(*nodes, kind="llamacpp", upstream=NAME)
        ways = {"relay": [relay], "round robin": nodes, "one node": nodes[:1]}
        for number in range(ROUNDS):
            for name, urls in ways.items():
                found[name].append(converse(urls, chance, f"{name} {number}"))
    middle = {name: statistics.median(times) for name, times in found.items()}
    print(f"  { ({name: [round(t, 2) for t in times] for name, times in found.items()}) }")
    ours = (SECONDS, middle["relay"])
    finish(
        verdict(
            "round robin against ours, turns 2 to 6",
            (SECONDS, middle["round robin"]),
            ours,
            at_least=2,
        ),
        verdict("ours against one node", ours, (SECONDS, middle["one node"]), at_most=1.15),
    )


if __name__ == "__main__":
    main()
