"""`fleet trace`: the relay's own records, and LiteLLM's log."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.e2e.machines import Machines
from tests.e2e.scratch import Scratch
from tests.wait import LIMIT, until

SECOND = 1_000_000


def record(**given) -> dict:
    made = {
        "at": time.time_ns() // 1000, "agent": "planner", "session": "s-1", "model": "small-coder",
        "wire": "ollama", "node": "laptop", "upstream": "qwen2.5-coder:7b",
        "prompt_tokens": 12_300, "output_tokens": 250, "cached_tokens": 11_000, "wait": 0.25,
        "ttft": 1.5, "total": 4.0, "retries": 0, "outcome": "ok", "status": 200,
        "why": {
            "estimates": [
                {"node": "mini", "wait": 9, "load": 0, "prefill": 1, "decode": 2, "cached": 0},
                {"node": "laptop", "wait": 0, "load": 0, "prefill": 1, "decode": 3, "cached": 11_000},
            ]
        },
    }  # fmt: skip
    return made | given


class Place(Scratch):
    @property
    def traces(self):
        path = self.home / "logs" / "traces.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def record(self, *records: dict, into: str = "") -> None:
        path = self.traces.with_name(self.traces.name + into)
        with path.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in records)


@pytest.fixture
def scratch(tmp_path):
    return Place(tmp_path)


def test_without_a_request_it_says_so_and_what_to_do(scratch):
    assert scratch("trace").startswith("No requests yet. `fleet up` starts")
    assert scratch.data("trace") == []


def test_each_request_is_one_line(scratch):
    scratch.record(record(), record(agent="", node="", outcome="refused", status=503, retries=2))
    head, first, second = scratch("trace").splitlines()
    assert head.split() == [
        *("WHEN", "AGENT", "SESSION", "MODEL", "NODE", "IN/OUT/CACHED"),
        *("WAIT", "FIRST", "TOTAL", "COST", "RETRIES", "OUTCOME"),
    ]
    assert first.split()[1:] == [
        *("planner", "s-1", "small-coder", "laptop", "12.3k/250/11.0k"),
        *("0.25s", "1.50s", "4.00s", "-", "0", "ok"),
    ]
    assert second.split()[1:5] == ["-", "s-1", "small-coder", "-"]
    assert second.split()[-3:] == ["2", "refused", "(503)"]


def test_json_has_whole_numbers_of_microseconds_and_the_estimates(scratch):
    scratch.record(record(cost=0.0042))
    (found,) = scratch.data("trace")
    assert (found["wait"], found["first"], found["total"]) == (250_000, 1_500_000, 4_000_000)
    assert found["cost"] == 4200
    assert [(each["node"], each["total"]) for each in found["estimates"]] == [
        ("laptop", 4 * SECOND),
        ("mini", 12 * SECOND),
    ]


def test_explain_says_why_that_node_term_by_term(scratch):
    scratch.record(record(retries=1), record(node="", outcome="failed", why={"error": "no slot"}))
    scratch.record(record(why={"failed": ["mini: connection refused"]}))
    said = [line.strip() for line in scratch("trace", "--explain").splitlines()]
    chosen = "chosen laptop: 4.00 s = wait 0.00 + load 0.00 + prefill 1.00 + decode 3.00"
    assert f"{chosen}; it held 11000 tokens" in said
    assert "else   mini: 12.00 s = wait 9.00 + load 0.00 + prefill 1.00 + decode 2.00" in said
    assert "error: no slot" in said
    assert "failed before: mini: connection refused" in said


def test_here_shows_the_requests_of_this_project_alone(scratch):
    mine = record(agent="mine", project=str(scratch.repo))
    scratch.record(mine, record(agent="other", project="/elsewhere"), record(agent="old"))
    assert len(scratch.data("trace")) == 3
    assert [each["agent"] for each in scratch.data("trace", "--here")] == ["mine"]


def test_it_is_asked_for_by_agent_node_and_time(scratch):
    now = time.time_ns() // 1000
    scratch.record(
        record(session="old", at=now - 3 * 3600 * SECOND),
        record(session="other", agent="reviewer", at=now - 60 * SECOND),
        record(session="there", node="mini", at=now - 60 * SECOND),
        record(session="new", at=now),
    )

    def sessions(*words: str) -> list[str]:
        return [each["session"] for each in scratch.data("trace", *words)]

    assert sessions("--agent", "planner") == ["old", "there", "new"]
    assert sessions("--node", "mini") == ["there"]
    assert sessions("--since", "1h") == ["other", "there", "new"]
    assert sessions("--since", "2h", "--agent", "planner", "--node", "laptop") == ["new"]
    assert sessions("-n", "1") == ["new"]
    assert scratch("trace", "--agent", "nobody") == "No request matches.\n"
    assert "'soon' is not a time." in scratch.fails("trace", "--since", "soon", status=2)


def test_those_that_were_rotated_away_are_there_too_and_torn_lines_are_passed_over(scratch):
    scratch.record(record(session="oldest"), into=".2")
    scratch.record(record(session="older"), into=".1")
    scratch.record(record(session="newest"))
    with scratch.traces.open("ab") as file:
        file.write(b'\xff\xfe not json\n[1, 2]\n{"at": "x"}\n{"at": 5, "age')
    assert [each["session"] for each in scratch.data("trace")] == ["oldest", "older", "newest"]


def test_what_a_trace_says_is_never_obeyed_by_the_terminal(scratch):
    scratch.record(record(session="\x1b]0;owned\x07\x1b[2J", agent="[/v1/chat]"))
    said = scratch("trace", env={"FORCE_COLOR": "1"})
    assert "\x1b]0" not in said
    assert "\x1b[2J" not in said
    assert "[/v1/chat]" in said


def test_follow_shows_what_comes_through_a_rotation(scratch):
    scratch.record(record(session="before"))
    following = scratch.start("trace", "--follow", "--json", "--agent", "planner")
    seen: list[str] = []

    def next_session() -> str:
        seen.append(json.loads(following.stdout.readline())["data"]["session"])
        return seen[-1]

    try:
        assert next_session() == "before"
        scratch.record(record(session="not asked for", agent="reviewer"), record(session="after"))
        assert next_session() == "after"
        with scratch.traces.open("a") as file:
            file.write(json.dumps(record(session="last of the old"))[:40])
            scratch.traces.replace(scratch.traces.with_name("traces.jsonl.1"))
            file.write(json.dumps(record(session="last of the old"))[40:] + "\n")
        assert next_session() == "last of the old"
        scratch.record(record(session="first of the new"))
        assert next_session() == "first of the new"
    finally:
        following.send_signal(signal.SIGINT)
        _, err = following.communicate(timeout=LIMIT)
    assert (following.returncode, err) == (130, "")


def test_the_relay_records_what_the_gateway_was_asked(tmp_path):
    machines = Machines(tmp_path)
    try:
        machines.scratch("gateway", "start")
        machines.ask("claude-haiku-local", "s-1")
        machines.ask("fleet-implementer", "s-2")
        until(lambda: len(machines.scratch.data("trace")) == 2, "two traces")
        first, second = machines.scratch.data("trace")
        assert (first["node"], first["session"], first["outcome"]) == ("laptop", "s-1", "ok")
        assert (second["node"], second["agent"]) == ("mini", "implementer")
        assert second["estimates"][0]["node"] == "mini"
        assert machines.scratch.data("trace", "--agent", "implementer") == [second]
    finally:
        machines.close()


LOG = [
    json.dumps({"message": "Started.", "level": "INFO", "timestamp": "2026-11-15T14:57:08.2"}),
    json.dumps({"message": '1 - "POST /v1/messages HTTP/1.1" 200', "level": "INFO"}),
    json.dumps({"message": '1 - "POST /v1/messages HTTP/1.1" 500', "level": "INFO"}),
    json.dumps({"message": "It broke.", "level": "ERROR", "stacktrace": "Traceback:\n  here"}),
    'INFO:     127.0.0.1:5 - "POST /chat/completions HTTP/1.1" 429 Too',
    "14:57:19 - LiteLLM Proxy:ERROR: proxy_server.py:1 - \x1b[31m[/v1/chat] failed\x1b[0m",
    "\x1b]0;owned\x07plain words",
]


def test_a_log_is_shown_coloured_by_severity_and_no_escape_of_it_is_obeyed(scratch):
    log = scratch.root / "litellm.log"
    log.write_bytes("\n".join(LOG).encode() + b"\nbad \xff byte\n")
    said = scratch("trace", "--log-file", str(log), env={"FORCE_COLOR": "1"}).splitlines()
    assert said == [
        "14:57:08 INFO Started.",
        '\x1b[32mINFO 1 - "POST /v1/messages HTTP/1.1" 200\x1b[0m',
        '\x1b[31mINFO 1 - "POST /v1/messages HTTP/1.1" 500\x1b[0m',
        "\x1b[31mERROR It broke.",
        "    Traceback:",
        "      here\x1b[0m",
        '\x1b[33mINFO:     127.0.0.1:5 - "POST /chat/completions HTTP/1.1" 429 Too\x1b[0m',
        "\x1b[31m14:57:19 - LiteLLM Proxy:ERROR: proxy_server.py:1 - [/v1/chat] failed\x1b[0m",
        "plain words",
        "bad \N{REPLACEMENT CHARACTER} byte",
    ]
    plain = scratch("trace", "--log-file", str(log), env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b" not in plain
    levels = [each["grave"] for each in scratch.data("trace", "--log-file", str(log))]
    assert levels == [*("plain", "good", "error", "error", "warning", "error", "plain", "plain")]


def test_a_log_is_followed_through_rotation_and_truncation(scratch):
    log = scratch.root / "litellm.log"
    log.write_text("one\ntwo\n")
    following = scratch.start("trace", "--log-file", str(log), "-f", "-n", "1")
    try:
        assert following.stdout.readline() == "two\n"
        with log.open("a") as file:
            file.write("thr")
            file.flush()
            time.sleep(0.5)
            file.write("ee\n")
        assert following.stdout.readline() == "three\n"
        log.replace(scratch.root / "litellm.log.1")
        log.write_text("four, in a new file\n")
        assert following.stdout.readline() == "four, in a new file\n"
        os.truncate(log, 0)
        time.sleep(0.5)
        with log.open("a") as file:
            file.write("five\n")
        assert following.stdout.readline() == "five\n"
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=LIMIT)
    assert following.returncode == 130


def test_a_log_that_is_not_there_or_is_filtered_is_refused(scratch):
    assert "There is no file" in scratch.fails("trace", "--log-file", "litellm.log", status=2)
    said = scratch.fails("trace", "--log-file", "x.log", "--agent", "planner", status=2)
    assert (
        "--log-file cannot be combined with --agent, --node, --since, --here or --explain." in said
    )


def test_traces_of_several_projects_have_a_column_for_it(scratch):
    scratch.record(record(project="/home/me/shop"))
    assert "PROJECT" not in scratch("trace")
    scratch.record(record(project="/home/me/bank"))
    lines = [line.split() for line in scratch("trace").splitlines()]
    assert [line[1] for line in lines] == ["PROJECT", "shop", "bank"]


def test_without_requests_it_says_whether_the_gateway_runs(tmp_path):
    machines = Machines(tmp_path)
    try:
        assert "`fleet up` starts the gateway" in machines.scratch("trace")
        machines.scratch("gateway", "start")
        assert "The gateway runs" in machines.scratch("trace")
    finally:
        machines.close()
