"""What an engine is asked for, and what is ended where no control group can be made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

from fleet.adapters.isolation import enclose
from fleet.adapters.isolation.caps import ContainerLimits
from fleet.adapters.isolation.container import Contained, Container
from fleet.domain.errors import Refused, Unavailable
from fleet.ports import Launch
from tests.contract.checkouts import git, make_repo
from tests.isolation import folder_of_bwrap

LIMITS = ContainerLimits(memory=64 << 20, cpus=1.5, pids=40)


@pytest.fixture
def worktree(tmp_path):
    repo = make_repo(tmp_path / "shop")
    git(repo, "worktree", "add", "-q", str(tmp_path / "home" / "worktrees" / "t-1"))
    return tmp_path / "home" / "worktrees" / "t-1"


def order_of(tmp_path, worktree, container: Container, **launch) -> enclose.Order:
    """What `enclose` is told, with a program that is nobody's engine."""
    program = tmp_path / container.program
    program.touch(mode=0o755)
    contained = Contained.of(container, tmp_path / "home", [], {"PATH": str(tmp_path)})
    env = launch.pop("env", {}) | {"FLEET_WORKSPACE": str(worktree)}
    words = contained.before("t-1.1", Launch(("claude",), str(worktree), env, **launch))
    return enclose.read(words[-1])


def test_docker_is_asked_for_the_caps_the_worktree_and_its_git_directory(tmp_path, worktree):
    order = order_of(tmp_path, worktree, Container("docker", "agents:1", "none", (), LIMITS))
    words = " ".join(order.words)
    assert order.words[0] == str(tmp_path / "docker")
    assert f"--memory {64 << 20} --memory-swap {64 << 20} --cpus 1.5 --pids-limit 40" in words
    assert "--network none" in words
    assert "--cap-drop ALL --security-opt no-new-privileges --pull never" in words
    common = tmp_path / "shop" / ".git"
    assert f"type=bind,source={worktree},target={worktree} " in f"{words} "
    assert f"type=bind,source={common},target={common} " in f"{words} "
    assert f"target={common}/config,readonly" in words
    assert order.image == ["agents:1"]


def test_the_environment_is_passed_by_name_and_the_engines_own_is_not(
    tmp_path, worktree, monkeypatch
):
    order = order_of(tmp_path, worktree, Container("docker", "agents:1"))
    monkeypatch.setattr(os, "environ", {"KEY": "secret", "DOCKER_HOST": "unix:///x"})
    argv = enclose._argv(order, ["claude"])
    passed = [after for word, after in pairwise(argv) if word == "--env"]
    assert [name for name in passed if not name.startswith("GIT_CONFIG")] == ["KEY"]
    assert not any("secret" in word or "DOCKER_HOST" in word for word in argv)
    assert argv[-2:] == ["agents:1", "claude"]


@pytest.mark.parametrize(
    ("network", "ports"), [("none", [4000]), ("gateway", [4000, 4001]), ("full", [])]
)
def test_the_network_has_ways_out_only_to_what_the_setting_says(tmp_path, worktree, network, ports):
    order = order_of(
        tmp_path,
        worktree,
        Container("docker", "agents:1", network),
        env={"FLEET_RUN_SERVER": "http://127.0.0.1:4000/mcp"},
        gateway="http://127.0.0.1:4001",
    )
    assert [way.port for way in order.ways] == ports
    assert ("none" if network != "full" else "host") in order.words


def test_a_gateway_on_another_machine_is_refused_with_a_fix(tmp_path, worktree):
    with pytest.raises(Refused, match="cannot reach gpu"):
        order_of(tmp_path, worktree, Container("docker", "a", "gateway"), gateway="http://gpu:4000")


@pytest.mark.parametrize(("program", "image"), [("docker", ""), ("docker", "/srv/root")])
def test_docker_needs_an_image(tmp_path, worktree, program, image):
    with pytest.raises(Unavailable):
        order_of(tmp_path, worktree, Container(program, image))


def test_podman_takes_a_directory_and_copies_none_of_the_home_into_it(tmp_path, worktree):
    order = order_of(tmp_path, worktree, Container("podman", "/:O"))
    assert order.image == ["--rootfs", "/:O"]
    assert f"{tmp_path / 'home'}:notmpcopyup" in order.words


@pytest.mark.parametrize(
    ("script", "limits", "over"),
    [
        (
            "x = b'x' * (1 << 28)\nimport time\ntime.sleep(60)",
            ContainerLimits(memory=64 << 20),
            "memory",
        ),
        (
            "import os, time\nfor _ in range(60): os.fork() or time.sleep(60)\ntime.sleep(60)",
            ContainerLimits(pids=20),
            "pids",
        ),
        ("pass", ContainerLimits(memory=64 << 20, cpus=1, pids=20), ""),
    ],
)
def test_without_control_groups_it_is_ended_by_looking(tmp_path, script, limits, over):
    if not (folder := folder_of_bwrap()):
        pytest.skip("bubblewrap does not work here")
    bwrap = [f"{folder}/bwrap", "--unshare-user", "--dev-bind", "/", "/"]
    inner = [*bwrap, "--unshare-pid", "--proc", "/proc", "--die-with-parent", "--"]
    order = enclose.Order("fleet-test", str(tmp_path), inner, limits, [])
    words = [*enclose.program(), json.dumps(order._asdict()), sys.executable, "-c", script]
    outer = [*bwrap, "--tmpfs", "/sys/fs/cgroup", "--"]
    done = subprocess.run([*outer, *words], check=False, timeout=60)
    report = json.loads((tmp_path / enclose.REPORT).read_text())
    assert (report["by"], report["over"], bool(done.returncode)) == ("looks", over, bool(over))
