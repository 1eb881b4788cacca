"""Model servers found on loopback: by a network, by Tailscale's list, and by an announcement."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import contextmanager

import pytest
import zeroconf

from fleet.adapters.nodes.scan.mdns import mdns_machines
from fleet.adapters.nodes.scan.servers import find_servers
from fleet.adapters.nodes.scan.tailscale import tailscale_machines
from fleet.domain.errors import BadInput, Unavailable
from fleet.domain.nodes.finding import ProbedAddress, machines_of_network, node_name
from fleet.testing.fake_node.node import FakeNode
from tests.e2e.scratch import Scratch

# The shape of `tailscale status --json` (Tailscale's ipn/ipnstate, type Status), with addresses
# of loopback in the place of 100.64.0.0/10.
TAILNET = {
    "Version": "1.80.2-t1b2c3d4e5",
    "BackendState": "Running",
    "Self": {
        "ID": "n1", "HostName": "laptop", "DNSName": "laptop.tail1234.ts.net.", "OS": "linux",
        "TailscaleIPs": ["127.0.0.9", "fd7a:115c:a1e0::9"], "Online": True,
    },
    "MagicDNSSuffix": "tail1234.ts.net",
    "Peer": {
        "nodekey:aa": {
            "ID": "n2", "HostName": "Mac Studio", "DNSName": "mac-studio.tail1234.ts.net.",
            "OS": "macOS", "TailscaleIPs": ["127.0.0.1", "fd7a:115c:a1e0::1"], "Online": True,
        },
        "nodekey:bb": {
            "ID": "n3", "HostName": "asleep", "DNSName": "asleep.tail1234.ts.net.",
            "TailscaleIPs": ["127.0.0.2"], "Online": False,
        },
        "nodekey:cc": {"ID": "n4", "HostName": "odd", "TailscaleIPs": None, "Online": True},
    },
    "User": {"1": {"LoginName": "ada@example.com"}},
}  # fmt: skip


@pytest.fixture
def node():
    with FakeNode(["m"]) as fake:
        yield fake


@pytest.fixture
def fleet(tmp_path):
    scratch = Scratch(tmp_path)
    (scratch.repo / "fleet.yaml").write_text(
        "# mine\nnodes:  # all of them\n  old: {endpoint: http://127.0.0.1:9}\n"
    )
    return scratch


def with_tailscale(scratch, status, code=0):
    folder = scratch.root / "bin"
    folder.mkdir()
    (scratch.root / "status.json").write_text(status)
    program = folder / "tailscale"
    program.write_text(
        f'#!/bin/sh\n[ "$*" = "status --json" ] || exit 9\ncat {scratch.root}/status.json\nexit {code}\n'
    )
    program.chmod(0o755)
    scratch.env["PATH"] = f"{folder}:{scratch.env['PATH']}"


def test_a_network_is_scanned_and_what_answers_is_added_with_comments_kept(fleet, node):
    words = ("discover", "--scan", "127.0.0.0/28", "--port", str(node.port))
    listed = json.loads(fleet(*words, "--json"))["data"]["found"]
    assert listed == [
        {"name": "node-127-0-0-1", "endpoint": node.url, "kind": "ollama", "by": "network"}
    ]
    assert "127-0-0-1" not in (fleet.repo / "fleet.yaml").read_text()
    assert "--write" in fleet.type(*words).stdout + fleet.type(*words).stderr
    fleet(*words, "--write")
    text = (fleet.repo / "fleet.yaml").read_text()
    assert text.startswith("# mine\nnodes:  # all of them\n  old:")
    assert node.url in text
    assert "No model server that is not in fleet.yaml answered" in "".join(
        (done := fleet.type(*words)).stdout + done.stderr
    )


def test_the_tailnet_is_scanned_by_what_tailscale_lists(fleet, node):
    with_tailscale(fleet, json.dumps(TAILNET))
    words = ("discover", "--scan", "tailscale", "--port", str(node.port), "--json")
    (found,) = json.loads(fleet(*words))["data"]["found"]
    assert (found["name"], found["kind"], found["by"]) == ("mac-studio", "ollama", "tailscale")


@pytest.mark.parametrize(("status", "code"), [("not json", 0), ("{}", 1)])
def test_a_tailscale_that_says_no_is_an_error_with_a_fix(fleet, status, code):
    with_tailscale(fleet, status, code)
    with pytest.raises(Unavailable) as error:
        tailscale_machines(fleet.env)
    assert error.value.code == "no_tailscale"
    assert error.value.fix


def test_only_machines_that_are_online_are_listed(fleet):
    with_tailscale(fleet, json.dumps(TAILNET))
    assert tailscale_machines(fleet.env) == [
        ProbedAddress("laptop", "127.0.0.9"),
        ProbedAddress("mac-studio", "127.0.0.1"),
    ]


@contextmanager
def announced(port):
    """As a server does that announces itself, on loopback alone."""
    kind = "_ollama._tcp.local."
    info = zeroconf.ServiceInfo(
        kind,
        f"Ada's box.{kind}",
        port,
        addresses=[socket.inet_aton("127.0.0.1")],
        server="box.local.",
    )
    with zeroconf.Zeroconf(interfaces=["127.0.0.1"]) as announcing:
        announcing.register_service(info)
        yield


def test_a_server_that_announces_itself_is_found(node):
    with announced(node.port):
        machines = mdns_machines(["127.0.0.1"])
    assert machines == [ProbedAddress("Ada's box", "127.0.0.1", node.port)]
    (found,) = find_servers([("mdns", machines[0])], (), (), ())
    assert (found.name, found.kind, found.endpoint) == ("ada-s-box", "ollama", node.url)


def test_without_the_package_the_error_has_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "zeroconf", None)  # as if it were not there
    with pytest.raises(Unavailable) as error:
        mdns_machines()
    assert error.value.fix == "Install it: pip install 'agent-fleet[discover]'"


@pytest.mark.parametrize(
    ("network", "why"),
    [
        ("10.0.0.0/8", "at most 1024 are scanned"),
        ("8.8.8.0/24", "is not a private network"),
        ("fd00::/64", "at most 1024"),
        ("lan", "is not a network"),
    ],
)
def test_only_a_small_network_of_ones_own_is_scanned(network, why):
    with pytest.raises(BadInput, match=why):
        machines_of_network(network)


def test_a_web_server_is_no_model_server_and_a_declared_node_is_not_found_again(node):
    with FakeNode(["m"]) as other:
        other.set(html=True)
        machine = ProbedAddress("", "127.0.0.1")
        ports = [node.port, other.port]
        found = find_servers([("network", machine)], ports, (), ())
        assert [each.endpoint for each in found] == [node.url]
        assert find_servers([("network", machine)], ports, (), {node.url}) == []


def test_names_are_safe_and_different():
    box = ProbedAddress("../Box 1", "10.0.0.1")
    assert node_name(box, 8000, ()) == "box-1"
    assert node_name(box, 8000, {"box-1"}) == "box-1-8000"
