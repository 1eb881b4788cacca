"""`fleet discover`, `nodes`, `warmup` and `validate --online`, on stand-in nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest

from fleet.adapters.relay.plan import relay_config
from fleet.config import load
from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import Scratch
from tests.free_ports import free_ports
from tests.wait import LIMIT, until

FLEET = """\
# The machines at home.
project:
  name: local-dev
  gateway: {{port: {port}}}
nodes:
  laptop:
    endpoint: {laptop}   # under the desk
    tags: [fast]
  mini: {{endpoint: "{mini}"}}
models:
  heavy-coder:
    node: mini
    ollama_model: qwen2.5-coder:32b
    litellm_alias: claude-sonnet-local
    context: 32768
  small-coder:
    node: laptop
    ollama_model: qwen2.5-coder:7b
    litellm_alias: claude-haiku-local
    context: 24576
    timeout: 20
agents:
  planner: {{model: small-coder, description: Plans.}}
  implementer: {{model: heavy-coder, description: Does it.}}
"""
FREE = 1  # no gateway listens there, and no relay beside it


class Place:
    def __init__(self, root) -> None:
        self.scratch = Scratch(root)
        self.scratch.env["LITELLM_MASTER_KEY"] = "sk-x"
        self.laptop = FakeNode(["qwen2.5-coder:7b"]).start()
        self.mini = FakeNode(["qwen2.5-coder:32b", "llama3.2:3b"], load=0.2).start()
        self.file = self.scratch.repo / "fleet.yaml"
        self.write()

    def write(self, text: str = FLEET, *, port: int = FREE) -> None:
        self.file.write_text(text.format(laptop=self.laptop.url, mini=self.mini.url, port=port))


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.laptop.stop()
    made.mini.stop()


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_discover_shows_each_node_with_its_models(place):
    said = place.scratch("discover")
    assert table(said) == [
        ["Fleet:", "local-dev"],
        ["NODE", "STATUS", "MODELS"],
        ["laptop", "online", "qwen2.5-coder:7b"],
        ["mini", "online", "qwen2.5-coder:32b,", "llama3.2:3b"],
    ]


def test_discover_shows_a_node_that_is_down_with_its_reason_and_succeeds(place):
    place.mini.set(refuse=True)
    assert ["mini", "offline", "connection", "refused"] in table(place.scratch("discover"))
    place.mini.set(refuse=False, html=True)
    assert "a web page" in place.scratch("discover")
    verbose = place.scratch("discover", "--verbose")
    assert verbose.splitlines()[1].split()[-2:] == ["MODELS", "ERROR"]
    assert place.mini.url in verbose


def test_a_node_that_hangs_or_drips_ends_with_the_time_that_was_given(place):
    place.laptop.set(hang=True)
    place.mini.set(drip=0.2)
    nodes = place.scratch.data("discover", "--timeout", "0.5")["nodes"]
    assert [node["status"] for node in nodes] == ["offline", "offline"]
    assert [node["error"] for node in nodes] == [
        "no answer within 0.5 s",
        "no whole answer within 0.5 s",
    ]


def test_discover_json_has_the_names_that_older_scripts_read(place):
    document = place.scratch.document("discover")
    assert (document["kind"], document["data"]["fleet"]) == ("discovery", "local-dev")
    laptop = document["data"]["nodes"][0]
    older = {"name", "endpoint", "status", "models", "loaded_models", "latency_ms", "error"}
    assert older <= laptop.keys()
    assert (laptop["kind"], laptop["models"]) == ("ollama", ["qwen2.5-coder:7b"])


def test_discover_write_keeps_the_file_and_its_comments_and_writes_what_it_found(place):
    before = place.file.read_text()
    other = FakeNode(["qwen2.5-coder:7b"], kind="llamacpp").start()
    try:
        place.file.write_text(before.replace(place.laptop.url, other.url))
        asked = place.scratch.type("discover")
        assert "laptop answers like llamacpp, but fleet.yaml does not give its kind" in asked.stderr
        wrote = place.scratch.type("discover", "--write")
    finally:
        other.stop()
    assert "Written to fleet.yaml: nodes.laptop.kind=llamacpp." in wrote.stderr
    expected = before.replace(place.laptop.url, other.url).replace(
        "tags: [fast]\n", "tags: [fast]\n    kind: llamacpp\n"
    )
    assert place.file.read_text() == expected
    kept = json.loads((place.scratch.repo / ".subagent-fleet" / "discovery.json").read_text())
    assert [node["kind"] for node in kept["nodes"]] == ["llamacpp", "ollama"]


def test_discover_write_leaves_a_file_alone_that_says_it_all(place):
    before = place.file.read_bytes()
    place.scratch("discover", "--write")
    assert place.file.read_bytes() == before


def test_a_project_that_is_not_trusted_is_sent_no_key(place):
    place.write(FLEET.replace("tags: [fast]", "api_key: os.environ/LITELLM_MASTER_KEY"))
    place.scratch("discover")
    assert [seen.headers.get("authorization") for seen in place.laptop.seen] == [None] * 3
    place.scratch("trust")
    place.scratch("discover")
    assert place.laptop.seen[-1].headers["authorization"] == "Bearer sk-x"


def test_without_nodes_each_command_says_what_to_do(place):
    place.file.unlink()
    for name in ("discover", "warmup"):
        assert "No nodes are declared here." in place.scratch.fails(name, status=2)
    where = "No nodes are declared. Declare them under `nodes:` in fleet.yaml.\n"
    assert place.scratch("nodes") == where
    assert place.scratch.data("nodes")["nodes"] == []


def test_nodes_shows_nodes_what_is_resident_and_the_routes(place):
    place.mini.load("qwen2.5-coder:32b", 32_768)
    said = place.scratch("nodes")
    assert "qwen2.5-coder:32b  6.6 GB    32768  for ever" in said
    routes = said.split("Agent routing:\n")[1].splitlines()
    assert routes == [
        "planner     -> laptop -> qwen2.5-coder:7b  -> claude-haiku-local",
        "implementer -> mini   -> qwen2.5-coder:32b -> claude-sonnet-local",
    ]


def test_nodes_json_tells_the_route_and_what_is_resident(place):
    place.mini.load("qwen2.5-coder:32b", 32_768)
    place.laptop.set(refuse=True)
    data = place.scratch.data("nodes")
    planner, implementer = data["routes"]
    assert (planner["status"], planner["resident"]) == ("offline", None)
    assert (implementer["node"], implementer["resident"]) == ("mini", True)
    (held,) = data["nodes"][1]["resident"]
    assert (held["name"], held["context"]) == ("qwen2.5-coder:32b", 32_768)
    assert data["relay"] is None


def test_nodes_names_a_model_that_is_not_on_its_node(place):
    place.write(FLEET.replace("qwen2.5-coder:32b", "mistral:7b"))
    said = place.scratch.type("nodes").stderr
    assert "The model heavy-coder is not on its node mini" in said
    assert "`ollama pull mistral:7b` there" in said


@pytest.fixture
def relay(place):
    """The relay of this fleet, as a process; its address."""
    port = free_ports()
    place.write(port=port)
    config = place.scratch.root / "relay.json"
    fleet = load(place.scratch.repo, home=place.scratch.home, env=place.scratch.env).fleet
    config.write_text(json.dumps(relay_config(fleet)))
    argv = [sys.executable, "-m", "fleet.adapters.relay.process", str(config)]
    process = subprocess.Popen(argv, env=place.scratch.env, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port + 1}"
    until(lambda: ask(f"{url}/relay/health"), "the relay")
    yield url
    process.terminate()
    process.wait(LIMIT)


def ask(url: str, body: dict | None = None) -> dict:
    with suppress(OSError):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(url, data, timeout=LIMIT) as answer:
            return json.load(answer)
    return {}


def test_nodes_shows_breakers_and_busy_slots_while_the_relay_runs(place, relay):
    place.laptop.set(refuse=True)
    words = {"model": "x", "messages": [{"role": "user", "content": "Hi."}], "stream": False}
    ask(f"{relay}/m/small-coder/api/chat", words)  # the relay learns of it by being asked
    until(
        lambda: ask(f"{relay}/relay/status")["nodes"]["laptop"]["breaker"] == "open",
        "an open breaker",
    )
    said = place.scratch("nodes")
    rows = {row[0]: row for row in table(said) if len(row) > 6}
    assert rows["NODE"][4:] == ["BUSY", "BREAKER", "MODELS"]
    assert rows["laptop"][1:] == [
        *("offline", place.laptop.url, "-", "0/1", "open", "connection", "refused")
    ]
    assert rows["mini"][4:6] == ["0/1", "closed"]
    laptop = place.scratch.data("nodes")["nodes"][0]["relay"]
    assert (laptop["breaker"], laptop["busy"]) == ("open", 0)


def test_nodes_passes_over_the_relay_of_another_fleet(place, relay):
    place.file.write_text(place.file.read_text().replace("127.0.0.1", "localhost"))
    assert place.scratch.data("nodes")["relay"] is None
    assert "BREAKER" not in place.scratch("nodes")


def test_nodes_watch_goes_on_and_shows_what_changes(place):
    watching = place.scratch.start("nodes", "--watch", "--json")
    try:
        first = json.loads(watching.stdout.readline())["data"]
        place.laptop.set(refuse=True)
        seen = []

        def down() -> bool:
            seen.append(json.loads(watching.stdout.readline())["data"]["nodes"][0]["status"])
            return seen[-1] == "offline"

        until(down, "the laptop to be offline")
    finally:
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=LIMIT)
    assert first["nodes"][0]["status"] == "online"
    assert (watching.returncode, err) == (130, "")


def test_warmup_loads_every_model_with_the_context_that_requests_will_use(place):
    said = place.scratch("warmup")
    assert place.mini.resident == {"qwen2.5-coder:32b": 32_768}
    assert place.laptop.resident == {"qwen2.5-coder:7b": 24_576}
    assert [seen.body["keep_alive"] for seen in place.mini.asked("/api/chat")] == [-1]
    assert said.startswith("Warming models:\n")
    assert ["heavy-coder", "mini", "qwen2.5-coder:32b", "ok"] in [r[:4] for r in table(said)]
    assert said.endswith("2 of 2 are resident.\n")


@pytest.mark.parametrize(
    "words",
    [("--model", "heavy-coder"), ("--model", "claude-sonnet-local"), ("--agent", "implementer")],
)
def test_warmup_of_one_model_or_agent_leaves_the_others(place, words):
    (row,) = place.scratch.data("warmup", *words)
    assert (row["model"], row["node"], row["state"]) == ("heavy-coder", "mini", "ok")
    assert row["resident"]["context"] == 32_768
    assert place.laptop.resident == {}


def test_warmup_tells_what_failed_and_why_and_fails(place):
    place.laptop.set(status=500, message="out of memory", only="/api/chat")
    done = place.scratch.type("warmup")
    assert done.returncode == 1
    rows = {row[0]: " ".join(row[3:]) for row in table(done.stdout) if len(row) > 4}
    assert rows["small-coder"] == "failed it answers with status 500: out of memory"
    assert rows["heavy-coder"].startswith("ok 6.6 GB, context 32768")
    assert done.stdout.endswith("1 of 2 are resident.\n")


def test_warmup_refuses_what_it_does_not_know(place):
    assert "Did you mean 'heavy-coder'?" in place.scratch.fails(
        "warmup", "--model", "heavy-coded", status=2
    )
    assert "There is no agent 'x'" in place.scratch.fails("warmup", "--agent", "x", status=2)
    both = place.scratch.fails("warmup", "--model", "a", "--agent", "b", status=2)
    assert "--model and --agent cannot be used together." in both
    assert "uses no model of fleet.yaml" in place.scratch.fails(
        "warmup", "--agent", "codex", status=2
    )


def test_validate_online_names_what_is_not_there_and_validate_asks_nobody(place):
    place.write(FLEET.replace("qwen2.5-coder:32b", "mistral:7b"))
    place.laptop.set(refuse=True)
    assert place.scratch("validate") == "fleet.yaml is valid.\n"
    assert place.mini.seen == []
    warnings = place.scratch.data("validate", "--online")["warnings"]
    assert warnings[0] == "laptop is offline: connection refused."
    assert warnings[1].startswith("The model heavy-coder is not on its node mini")


def test_validate_warns_of_a_small_context_and_of_tools_that_are_gone(place):
    text = FLEET.replace("24576", "8192").replace(
        "implementer: {{", "implementer: {{tools: [Read, MultiEdit], "
    )
    place.write(text)
    said = place.scratch("validate", env={"FLEET_CODER": "claude"})
    assert said.startswith("fleet.yaml is valid.\n")
    assert "models.small-coder.context: 8192 tokens are too few for Claude Code" in said
    assert "agents.implementer.tools: claude has no MultiEdit" in said


def test_more_at_once_than_a_server_has_slots_is_named(place):
    box = FakeNode(["qwen:7b"], kind="llamacpp", slots=2).start()
    text = FLEET.replace(
        "agents:", "  wide: {{node: box, upstream: 'qwen:7b', max_parallel: 4}}\nagents:"
    )
    try:
        place.write(
            text.replace(
                "models:\n", f"  box: {{{{kind: llamacpp, endpoint: '{box.url}'}}}}\nmodels:\n"
            )
        )
        why = "box works on 2 at once; models.wide.max_parallel is 4"
        assert any(why in each for each in place.scratch.data("validate", "--online")["warnings"])
        assert why in place.scratch.type("doctor").stdout
        place.write(
            place.file.read_text()
            .replace("max_parallel: 4", "max_parallel: 2")
            .replace("{", "{{")
            .replace("}", "}}")
        )
        assert "works on 2 at once" not in place.scratch("validate", "--online")
    finally:
        box.stop()
