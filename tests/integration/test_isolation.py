"""An agent that tries to read the server's secrets, under bubblewrap."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.supervised_home import FLEET
from tests.wait import LIMIT, until


def works() -> bool:
    words = ["bwrap", "--unshare-user", "--dev-bind", "/", "/", "true"]
    return bool(shutil.which("bwrap")) and subprocess.run(words, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not works(), reason="bubblewrap does not work here")

TRIES = """\
for file in server.key key fleet.db host runs/t-0.1/transcript; do
  head -c 1 "$FLEET_HOME/$file" >/dev/null 2>&1 && echo "read $file"
done
tr '\\0' '\\n' < "/proc/$SERVER/environ" 2>/dev/null | grep -q JWT && echo "read environ"
umount -l "$FLEET_HOME" 2>/dev/null && echo unmounted
unshare -Urm sh -c 'umount -l "$FLEET_HOME"; cat "$FLEET_HOME/server.key"' 2>/dev/null
tmux -L "$(basename "$(ls -d /tmp/tmux-*/fleet-* 2>/dev/null | head -1)")" ls 2>/dev/null
echo '[core]' >> "$(git rev-parse --git-common-dir)/config" && echo "wrote config"
echo tried
"""


class Isolated:
    """A server that supervises, with `isolation: bubblewrap`."""

    def __init__(self, supervised) -> None:
        self.supervised = supervised
        supervised.env |= {"FLEET_ISOLATION": "bubblewrap"}
        other = supervised.home / "runs" / "t-0.1"
        other.mkdir(parents=True)
        (other / "transcript").write_text("another's")
        (supervised.place / "tries.sh").write_text(TRIES)
        log = supervised.log.open("wb")
        self.process = subprocess.Popen(
            [FLEET, "serve", "--port", "0"],
            cwd=supervised.repo,
            env=supervised.env | {"JWT_SECRET": "walnut-walnut-walnut"},
            stdout=log,
            stderr=log,
        )
        log.close()
        until(lambda: re.search(r":\d+\. ", supervised.said()), why=supervised.said)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT)


@pytest.fixture
def isolated(supervised):
    made = Isolated(supervised)
    yield made
    made.end()


def test_an_agent_reads_none_of_the_servers_secrets_and_does_its_work(isolated):
    supervised = isolated.supervised
    tries = f"SERVER={isolated.process.pid} sh {supervised.place}/tries.sh > tries.txt 2>&1"
    task = supervised.add(
        f"run sh -c '{tries}'",
        "run fleet comment t-1 From-inside",
        "run sh -c 'echo x > made.txt && git add made.txt tries.txt'",
        "run git -c user.name=a -c user.email=a@b commit -q -m Made",
        "run sh -c 'ls $FLEET_TASK_DIR/task.json && touch $FLEET_ARTIFACT_DIR/seen'",
        "say Ready.",
        "hear 20",
    )
    supervised.heard(task, "Ready.")
    (supervised.home / "server.key").read_bytes()  # it is there
    run = supervised.run(task)
    tried = Path(run.workspace.path, "tries.txt").read_text().splitlines()
    assert [line for line in tried if "cannot" not in line] == ["tried"]
    assert (supervised.home / "tasks" / task / "artifacts" / "seen").exists()
    assert [m.text for m in supervised.store.messages(task)] == ["From-inside"]
    supervised.type("send", task, "Go.")
    supervised.wait(task)
    log = subprocess.run(
        ["git", "log", "-1", "--format=%s", run.workspace.branch],
        cwd=supervised.repo, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert log.stdout.strip() == "Made"


def test_an_agent_in_a_terminal_reads_none_of_them_either(isolated):
    supervised = isolated.supervised
    tries = f"SERVER={isolated.process.pid} sh {supervised.place}/tries.sh > tries.txt 2>&1"
    task = supervised.add(f"run sh -c '{tries}'", "say Ready.", "hear 60", mode="terminal")
    file = Path(supervised.running(task).workspace.path, "tries.txt")
    until(lambda: file.exists() and file.read_text().endswith("tried\n"), why=supervised.said)
    tried = file.read_text().splitlines()
    assert [line for line in tried if "cannot" not in line] == ["tried"]
    assert supervised.type("cancel", task).returncode == 0
    supervised.wait(task, state="cancelled")


def test_a_gate_is_isolated_as_its_agent_is(isolated):
    supervised = isolated.supervised
    task = supervised.add("say Done.", gate='! cat "$FLEET_HOME/server.key"')
    supervised.wait(task)


def test_a_stop_reaches_the_agent_through_the_isolation(isolated):
    supervised = isolated.supervised
    task = supervised.add("say Ready.", "hear 60")
    supervised.heard(task, "Ready.")
    assert supervised.type("cancel", task).returncode == 0
    supervised.wait(task, state="cancelled")


def test_the_doctor_tries_it(supervised):
    supervised.type("tasks")
    supervised.type("token", "create", "bob")

    def line(**env: str) -> dict:
        findings = json.loads(supervised.type("doctor", "--json", **env).stdout)["data"]["findings"]
        return next(row for row in findings if row["check"] == "isolation")

    assert "Agents can read" in line()["said"]
    isolated = line(FLEET_ISOLATION="bubblewrap")
    assert (isolated["state"], isolated["said"].split(" this")[0]) == ("ok", "Agents cannot read")
    without = {"FLEET_ISOLATION": "bubblewrap", "PATH": str(supervised.place)}
    assert "no bwrap" in line(**without)["said"]


def test_a_project_cannot_choose_it(supervised):
    (supervised.repo / "fleet.yaml").write_text("isolation: bubblewrap\n")
    assert "isolation" in supervised.type("tasks").stderr
