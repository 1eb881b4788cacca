from __future__ import annotations

import json

from fleet.adapters.nodes.stream_timing import TimedReply
from fleet.domain.nodes.speed import Timing


def heard(*lines: tuple[float, object], begun: float = 10.0) -> TimedReply:
    reply = TimedReply(begun)
    for at, said in lines:
        reply.hear(said if isinstance(said, bytes) else json.dumps(said).encode() + b"\n", at)
    return reply


def event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n"


def delta(**part: str) -> bytes:
    return event({"choices": [{"delta": part}]})


def test_ollama_is_believed_and_a_thought_is_the_first_piece():
    end = {"done": True, "message": {"content": ""}, "load_duration": 2_000_000_000}
    end |= {"prompt_eval_count": 300, "prompt_eval_duration": 1_500_000_000}
    end |= {"eval_count": 50, "eval_duration": 2_000_000_000}
    reply = heard(
        (11.0, {"message": {"content": "", "thinking": "So"}, "done": False}),
        (13.0, {"message": {"content": "one"}, "done": False}),
        (14.0, end),
    )
    assert (reply.done, reply.failed, reply.empty) == (True, "", False)
    assert reply.sample(0) == (Timing(300, 1.5, 50, 2.0, 2.0), 1.0)


def test_llamacpp_is_believed():
    timings = {"prompt_n": 300, "prompt_ms": 1500.5, "predicted_n": 50, "predicted_ms": 2000.0}
    reply = heard(
        (10.1, delta(role="assistant", content="")),
        (12.0, delta(content="one")),
        (14.0, event({"choices": [], "usage": {"prompt_tokens": 310}, "timings": timings})),
        (14.0, b"data: [DONE]\n"),
    )
    assert reply.done
    assert reply.sample(0) == (Timing(300, 1.5005, 50, 2.0), 2.0)


def test_of_others_our_clock_tells_reading_from_writing():
    usage = {"prompt_tokens": 300, "completion_tokens": 41}
    usage |= {"prompt_tokens_details": {"cached_tokens": 100}}
    pieces = [(12.0, delta(content="one")), (14.0, delta(content="two")), (14.1, b": ping\n")]
    reply = heard(*pieces, (14.2, event({"choices": [], "usage": usage})))
    assert reply.sample(0) == (Timing(200, 2.0, 40, 2.0), 2.0)
    assert heard(*pieces).sample(280) == (Timing(280, 2.0, 1, 2.0), 2.0)


def test_a_reply_without_its_end_is_not_done_and_an_error_within_it_is_told():
    assert not heard((11.0, delta(content="one"))).done
    assert heard((11.0, {"error": "out of memory"})).failed == "out of memory"
    said = event({"error": {"message": "out of memory"}})
    assert heard((11.0, said)).failed == "out of memory"
    assert heard((11.0, b"data: [DONE]\n")).empty
