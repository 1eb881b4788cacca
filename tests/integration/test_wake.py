"""A node that sleeps until the packet comes, on loopback."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest

from fleet.adapters.nodes.pulse import NodePulses
from fleet.adapters.nodes.survey import Prober
from fleet.adapters.nodes.warm_up import Warming
from fleet.domain.fleet import Node, Serving
from fleet.testing.fake_node.node import FakeNode
from tests.wait import LIMIT, until

MAC = "02:00:5e:10:00:01"
PACKET = b"\xff" * 6 + bytes.fromhex("02005e100001") * 16


@contextmanager
def sleeping(*, deaf=False):
    """The node, as declared, and the packets that came."""
    packets: list[bytes] = []
    with (
        FakeNode(["m"]) as fake,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
    ):
        fake.set(refuse=True)
        ear.bind(("127.0.0.1", 0))

        def listen():
            while True:
                packet = ear.recv(2000)
                if packet == b"end":
                    return
                packets.append(packet)
                if packet == PACKET and not deaf:
                    fake.heal()

        thread = threading.Thread(target=listen)
        thread.start()
        address = f"127.0.0.1:{ear.getsockname()[1]}"
        limit = 1 if deaf else LIMIT
        node = Node(
            "n", "ollama", fake.url, wake_on_lan=MAC, wake_address=address, wake_seconds=limit
        )
        yield node, packets
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"end", ear.getsockname())
        thread.join()


def warmed(node, tmp_path):
    serving = Serving(node, "m", 4096, 20.0, 1)
    warming = Warming([("m", serving)], Prober({}, tmp_path, frozenset()).speaking)
    assert warming.wait(LIMIT)
    return warming.rows()[0]


def test_a_warm_up_wakes_the_node_and_waits_for_it(tmp_path):
    with sleeping() as (node, packets):
        assert warmed(node, tmp_path).state == "ok"
        assert packets[0] == PACKET


def test_a_warm_up_of_a_node_that_does_not_wake_up_fails_in_the_end(tmp_path):
    with sleeping(deaf=True) as (node, packets):
        row = warmed(node, tmp_path)
        assert (row.state, bool(packets)) == ("failed", True)
        assert row.why == "it did not wake up within 1 s"


def test_a_node_is_woken_once_however_many_of_its_models_are_loaded(tmp_path):
    with sleeping(deaf=True) as (node, packets):
        wanted = [(name, Serving(node, name, 4096, 20.0, 1)) for name in ("m", "n", "o")]
        warming = Warming(wanted, Prober({}, tmp_path, frozenset()).speaking)
        assert warming.wait(LIMIT)
        assert {row.why for row in warming.rows()} == {"it did not wake up within 1 s"}
        assert len(packets) < 3


def test_a_warm_up_sends_nothing_to_a_node_that_is_awake(tmp_path):
    with sleeping() as (node, packets), FakeNode(["m"]) as awake:
        assert warmed(node._replace(endpoint=awake.url), tmp_path).state == "ok"
        assert packets == []


def test_a_node_that_a_task_waits_for_is_woken(tmp_path):
    with sleeping() as (node, _packets):
        pulses = NodePulses(lambda: None, tmp_path)
        until(lambda: pulses.pulse(node).up)


def test_what_is_done_about_a_sleeping_node_can_be_read(tmp_path):
    with sleeping(deaf=True) as (node, _packets):
        pulses = NodePulses(lambda: None, tmp_path)
        until(lambda: "it is being woken" in pulses.pulse(node).why)
        until(lambda: "it did not wake up within 1 s" in pulses.pulse(node).why)


@pytest.mark.parametrize("mac", ["nonsense", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:fg"])
def test_only_a_hardware_address_is_taken(tmp_path, mac):
    from fleet.config.keys.kinds import Wrong, take
    from fleet.config.keys.lookup import resolve

    with pytest.raises(Wrong, match="is not a hardware address"):
        take(resolve("nodes.n.wake_on_lan")[0], mac)
