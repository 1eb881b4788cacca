"""The same in containers of real Docker and Podman, with this machine's own programs in them.

No image is fetched: Docker's is a few empty folders, with /usr and /etc mounted; Podman has this
machine's root, with changes thrown away.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.contained import Contained
from tests.integration.supervised_home import SupervisedHome
from tests.wait import until

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("containers")]

IMAGE = "fleet-empty:1"
CONF = """\
[engine]
runtime = "{runtime}"
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
"""


@pytest.fixture(scope="module")
def docker():
    """A daemon of our own, without networks; its settings."""
    if os.geteuid() or not shutil.which("dockerd"):
        pytest.skip("dockerd is not installed, or we are not root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        url = f"unix://{folder}/docker.sock"
        words = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
        words += ["-H", url, "--pidfile", f"{folder}/pid", "--bridge", "none", "--iptables=false"]
        with Path(folder, "log").open("wb") as log:
            daemon = subprocess.Popen([*words, "--ip6tables=false"], stdout=log, stderr=log)
        try:
            env = os.environ | {"DOCKER_HOST": url}
            answers = ["docker", "version"]
            until(lambda: not _fails(answers, env) or daemon.poll() is not None)
            if daemon.poll() is not None:
                pytest.skip(f"dockerd does not run here: {Path(folder, 'log').read_text()[-300:]}")
            _import(folder, env)
            yield {"DOCKER_HOST": url, "FLEET_WORKSPACE_CONTAINER_IMAGE": IMAGE}
        finally:
            daemon.terminate()
            daemon.wait()
            _fails(["umount", f"{folder}/exec/netns/default"], os.environ.copy())


def _fails(words: list[str], env: dict[str, str]) -> int:
    return subprocess.run(words, env=env, capture_output=True, check=False).returncode


def _import(folder: str, env: dict[str, str]) -> None:
    root = Path(folder, "root")
    for name in ("usr", "etc", "sbin", "proc", "sys", "dev", "tmp", "root", "run", "var"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    tar = subprocess.run(["tar", "c", "-C", root, "."], capture_output=True, check=True)
    subprocess.run(["docker", "import", "-", IMAGE], input=tar.stdout, env=env, check=True)


@pytest.fixture(scope="module")
def podman():
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder, "containers.conf")
        runtime = next((name for name in ("runc", "crun") if shutil.which(name)), "")
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        conf.write_text(CONF.format(runtime=runtime, files=files))
        env = {"CONTAINERS_CONF": str(conf)}
        words = ["podman", "run", "--rm", "--init", "--network", "none", "--memory", "64m"]
        if _fails([*words, "--rootfs", "/:O", "true"], os.environ | env):
            pytest.skip("podman does not run here")
        yield env | {"FLEET_WORKSPACE_CONTAINER_IMAGE": "/:O"}


@pytest.fixture
def supervised(tmp_path):
    made = SupervisedHome(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["docker", "podman"])
def contained(request, supervised):
    env = request.getfixturevalue(request.param)
    mounts = ["/usr:ro", "/etc:ro"] if request.param == "docker" else []
    mounts += [f"{path}:ro" for path in _programs()]
    env |= {"FLEET_WORKSPACE_CONTAINER_PROGRAM": request.param}
    env |= {"FLEET_WORKSPACE_CONTAINER_MOUNTS": "\n".join(mounts)}
    made = Contained(supervised, **env)
    yield made
    made.end()


def _programs() -> list[str]:
    """Where this Python and this source tree are."""
    top = Path(__file__).parents[2]
    return [p for p in (str(top), sys.base_prefix) if not p.startswith("/usr")]


def test_an_agent_asks_is_answered_and_commits(contained):
    contained.serve()
    contained.check_asking()


def test_its_words_reach_it_after_the_supervisor_was_killed(contained):
    contained.serve()
    contained.check_words_after_a_kill()


def test_an_agent_in_a_terminal_works_and_stops(contained):
    contained.serve()
    contained.check_terminal()


def test_a_run_that_exceeds_its_memory_ends_so_and_not_for_ever(contained):
    contained.serve(FLEET_WORKSPACE_LIMITS_MEMORY="64MiB")
    contained.check_memory()


def test_a_fork_bomb_is_stopped_by_the_cap(contained):
    contained.serve(FLEET_WORKSPACE_LIMITS_PIDS="40")
    contained.check_pids(named=False)


def test_without_a_network_it_reaches_nothing_outside_but_can_ask(contained):
    contained.serve(FLEET_WORKSPACE_CONTAINER_NETWORK="none")
    contained.check_no_network()
    contained.check_asking("t-2")


def test_with_the_gateway_it_reaches_that_alone(contained):
    contained.check_gateway()


def test_the_doctor_tries_it(contained):
    assert "ended" in contained.doctor()
