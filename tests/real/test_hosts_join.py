"""Three machines join over a network: namespaces with an sshd and a clone of the project each."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.free_ports import free_ports
from tests.postgres import private_postgres
from tests.real.several_hosts import RealHost
from tests.real.sshd import SSHD, Sshd

BAR = 30.0  # seconds in which a machine joins
CALM = 1.0  # load a core up to which the bar is judged
PASSWORD = "of-this-test-alone"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def refusal() -> str:
    """Why there can be no namespaces here."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "network namespaces need root and ip"
    done = subprocess.run(
        ["ip", "netns", "add", f"fl-try-{os.getpid()}"], check=False, capture_output=True
    )
    if done.returncode:
        return f"no network namespaces: {done.stderr.decode().strip()}"
    ip("netns", "del", f"fl-try-{os.getpid()}")
    return ""


pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="needs openssh-server"),
]


class Network:
    """A bridge, and machines at it. This machine has the first address."""

    def __init__(self) -> None:
        self.tag = f"fl{os.getpid() % 100000}"
        self.prefix = f"10.{os.getpid() % 200 + 20}.77"
        self.names: list[str] = []
        ip("link", "add", self.tag, "type", "bridge")
        ip("addr", "add", f"{self.prefix}.1/24", "dev", self.tag)
        ip("link", "set", self.tag, "up")

    @property
    def here(self) -> str:
        return f"{self.prefix}.1"

    def add(self) -> tuple[str, str]:
        """The name of a namespace, and its address."""
        number = len(self.names) + 2
        name, outer, inner = (f"{self.tag}{kind}{number}" for kind in ("n", "o", "i"))
        ip("netns", "add", name)
        self.names.append(name)
        ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        ip("link", "set", inner, "netns", name)
        ip("link", "set", outer, "master", self.tag, "up")
        ip("-n", name, "addr", "add", f"{self.prefix}.{number}/24", "dev", inner)
        ip("-n", name, "link", "set", inner, "up")
        ip("-n", name, "link", "set", "lo", "up")
        return name, f"{self.prefix}.{number}"

    def end(self) -> None:
        for name in self.names:
            ip("netns", "del", name)
        ip("link", "del", self.tag)


@pytest.fixture
def network():
    if why := refusal():
        pytest.skip(why)
    made = Network()
    yield made
    made.end()


@pytest.fixture
def store_url(network):
    port = free_ports()
    with private_postgres(network.here, port) as url:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"ALTER ROLE fleet PASSWORD '{PASSWORD}'")
        yield f"postgresql://fleet:{PASSWORD}@{network.here}:{port}/postgres"


@dataclass
class Box:
    """`clone`: what it has at the path of the project."""

    sshd: Sshd
    clone: Path


@pytest.fixture
def boxes(tmp_path, network, store_url):
    here = RealHost(tmp_path / "here", store_url)
    made = []
    for number in range(3):
        name, address = network.add()
        clone = tmp_path / f"clone-{number}"
        here.git("clone", "-q", str(here.repo), str(clone), cwd=tmp_path)
        # `ip netns exec` has mounts of its own, so that each has its clone at the same path.
        mount = f'mount --bind {clone} {here.repo} && exec "$@"'
        under = ("ip", "netns", "exec", name, "sh", "-c", mount, "sh")
        root = tmp_path / f"box-{number}"
        made.append(Box(Sshd(root, os.environ["PATH"], address=address, under=under), clone))
    yield here, made
    for box in made:
        box.sshd.run("$HOME/.local/bin/fleet run stop --agents")
        box.sshd.end()


def test_three_machines_join_with_one_command_each_and_work_in_clones_of_their_own(boxes):
    here, made = boxes
    hosts = []
    for number, box in enumerate(made):
        here.env["FLEET_SSH"] = box.sshd.ssh
        began = time.monotonic()
        hosts.append(here.data("host", "add", "box", "--label", f"box-{number}")["host"])
        seconds, load = time.monotonic() - began, os.getloadavg()[0] / (os.cpu_count() or 1)
        print(f"box-{number} joined in {seconds:.1f} s, load {load:.1f} a core")
        assert seconds < (BAR if load < CALM else BAR * 10)
        (here.home / "hosts" / "box.json").unlink()  # they are three, and ssh calls each `box`
    assert len(set(hosts)) == 3
    assert {row["state"] for row in here.data("host", "list")} == {"awake"}
    script = "write made.txt x\ncommit made"
    tasks = [here.add(f"On {n}", "--needs", f"box-{n}", script=script) for n in range(3)]
    for task, box in zip(tasks, made, strict=True):
        here.wait_for(task, "done")
        assert here.git("branch", "--list", f"fleet/{task}", cwd=box.clone).strip()
        assert not here.git("branch", "--list", f"fleet/{task}").strip()
