from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from fleet.adapters.relay.plan import plan_of, read_plan, relay_config
from fleet.domain.errors import BadConfig
from fleet.domain.fleet import Model, Node, Serving
from fleet.testing.fake_node.node import FakeNode
from tests.free_ports import free_ports
from tests.integration.loopback_relay import HELLO, MODEL, UPSTREAM, fleet_of, serving
from tests.wait import LIMIT, until


class Program:
    """The relay as it is started for real."""

    def __init__(self, folder, fleet, **settings):
        self.file = folder / "relay.json"
        self.port = free_ports()
        self.settings = {"port": self.port, "traces": str(folder / "traces.jsonl")} | settings
        self.write(fleet)
        argv = [sys.executable, "-m", "fleet.adapters.relay.process", str(self.file)]
        with (folder / "stderr").open("w") as stderr:
            self.process = subprocess.Popen(argv, stderr=stderr)
        self.until(lambda: self.get("/relay/health")["ok"])

    def write(self, fleet):
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(relay_config(fleet, **self.settings)))
        new.replace(self.file)

    def get(self, path):
        with self.connection() as connection:
            connection.request("GET", path)
            return json.load(connection.getresponse())

    def chat(self, model=MODEL):
        with self.connection() as connection:
            connection.request("POST", f"/m/{model}/api/chat", json.dumps({"messages": HELLO}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def connection(self):
        return closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT))

    def until(self, found):
        until(found, errors=(OSError,))

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT)


@pytest.fixture
def node():
    with FakeNode([UPSTREAM], decode=8) as made:
        yield made


def own(node, name="a", model=MODEL):
    return Model(model, model, (serving(node, name),))


def test_a_new_configuration_counts_without_dropping_a_request(tmp_path, node):
    program = Program(tmp_path, fleet_of(own(node)))
    try:
        assert program.chat("later")[0] == 404
        got = []
        call = threading.Thread(target=lambda: got.append(program.chat()))
        call.start()
        node.until(lambda n: n.busy == 1)
        program.write(fleet_of(own(node), own(node, "a", "later")))
        program.until(lambda: program.chat("later")[0] == 200)
        call.join()
        assert got[0][0] == 200
        assert '"done": true' in got[0][1]
        program.file.write_text("{ not json")
        os.kill(program.process.pid, signal.SIGHUP)
        program.until(lambda: "stays in force" in (tmp_path / "stderr").read_text())
        assert program.chat()[0] == 200
    finally:
        program.stop()


def test_when_told_to_stop_it_lets_what_is_under_way_end(tmp_path, node):
    node.set(decode=2.5)
    program = Program(tmp_path, fleet_of(own(node)))
    try:
        got = []
        call = threading.Thread(target=lambda: got.append(program.chat()))
        call.start()
        node.until(lambda n: n.busy == 1)
        program.process.send_signal(signal.SIGTERM)
        call.join()
        assert '"done": true' in got[0][1]
        assert program.process.wait(LIMIT) == 0
        assert json.loads((tmp_path / "traces.jsonl").read_text())["outcome"] == "ok"
    finally:
        program.stop()


def test_when_told_to_stop_it_does_not_wait_for_ever(tmp_path, node):
    node.set(decode=0.1)
    program = Program(tmp_path, fleet_of(own(node)), grace=0.3)
    try:
        failed = []

        def ask():
            try:
                program.chat()
            except (OSError, http.client.HTTPException) as error:
                failed.append(error)

        call = threading.Thread(target=ask)
        call.start()
        node.until(lambda n: n.busy == 1)
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT) == 0
        call.join()
        assert failed
        node.until(lambda n: n.busy == 0)
    finally:
        program.stop()


def test_the_configuration_says_the_fleet_and_no_key_and_can_be_read_back():
    mac = Node("mac", "ollama", "http://mac:11434", max_parallel=2, tags=("gpu",))
    box = Node("box", "vllm", "http://box:8000", api_key="os.environ/BOX_KEY")
    cloud = Node("cloud", "hosted", "", provider="bedrock")
    small = Model("small", "haiku", (Serving(box, "s", 4096, 60.0, 2),))
    served = (Serving(mac, "qwen:7b", 8192, 300.0, 1), Serving(cloud, "q", 8192, 300.0, 1))
    fleet = fleet_of(Model("big", "sonnet", served, (small,), ("huge",)), small)
    held = json.loads(json.dumps(relay_config(fleet)))
    back = plan_of(held)
    assert back.settings.port == fleet.gateway.port + 1
    assert back.fleet.nodes == {"mac": mac, "box": box}
    big = back.fleet.models["big"]
    assert (big.names, big.servings, big.fallbacks) == (
        ("big", "huge", "sonnet"),
        served[:1],
        (small,),
    )
    assert relay_config(back.fleet) == held


def test_fallbacks_that_lead_in_a_circle_are_followed_once():
    node = Node("a", "ollama", "http://a:1")
    serving_ = Serving(node, "m", 8192, 300.0, 1)
    held = relay_config(fleet_of(Model("x", "x", (serving_,)), Model("y", "y", (serving_,))))
    held["models"]["x"]["fallbacks"] = ["y"]
    held["models"]["y"]["fallbacks"] = ["x"]
    models = plan_of(held).fleet.models
    assert [m.name for m in models["x"].fallbacks] == ["y"]
    assert [m.name for m in models["y"].fallbacks] == ["x"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9}', '{"version": 1}'])
def test_what_is_not_a_configuration_is_refused(tmp_path, text):
    file = tmp_path / "relay.json"
    file.write_text(text)
    with pytest.raises(BadConfig, match="is not a configuration of the relay"):
        read_plan(file)
