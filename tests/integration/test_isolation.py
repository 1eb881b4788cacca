"""An agent that tries to read the server's secrets, under each kind of isolation."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.contract.checkouts import git
from tests.integration.supervised_home import FLEET
from tests.isolation import ALL_KINDS, env_of, works
from tests.wait import LIMIT, until

TRIES = """\
for file in server.key key fleet.db host runs/t-0.1/transcript; do
  head -c 1 "$FLEET_HOME/$file" >/dev/null 2>&1 && echo "read $file"
done
ln "$FLEET_HOME/server.key" linked 2>/dev/null && cat linked
mv "$FLEET_HOME" "$FLEET_HOME-moved" 2>/dev/null && echo moved
for way in environ root cwd; do
  ls "/proc/$SERVER/$way/" >/dev/null 2>&1 && echo "reached $way"
done
tr '\\0' '\\n' < "/proc/$SERVER/environ" 2>/dev/null | grep -q JWT && echo "read environ"
umount -l "$FLEET_HOME" 2>/dev/null && echo unmounted
unshare -Urm sh -c 'umount -l "$FLEET_HOME"; cat "$FLEET_HOME/server.key"' 2>/dev/null
echo forged 2>/dev/null > "$FLEET_HOME/server.key"
echo forged 2>/dev/null > "$FLEET_HOME/worktrees/forged" && echo "wrote worktrees"
for file in wake caps.json; do ln -sf "$FLEET_HOME/server.key" "$FLEET_HOME/runs/t-1.1/$file"; done
"""
STOPPED_BY_BUBBLEWRAP = """\
tmux -L "$(basename "$(ls -d /tmp/tmux-*/fleet-* 2>/dev/null | head -1)")" ls 2>/dev/null
echo '[core]' >> "$(git rev-parse --git-common-dir)/config" && echo "wrote config"
own="$(git rev-parse --git-dir)"
echo /tmp > "$own/commondir" && echo "wrote commondir"
for folder in "$own" "$(dirname "$own")" "$(git rev-parse --git-common-dir)"; do mv "$folder" "$folder-moved" && echo "moved $folder"; done
mkdir "$own/../t-2" && echo "wrote another worktree's record"
echo /tmp > "$own/../other/commondir" && echo "wrote another's commondir"
git config --file "$own/../../modules/lib/config" filter.x.clean x 2>/dev/null && echo "wrote a submodule's config"
git config --file "$own/../../more" filter.x.clean x 2>/dev/null && echo "wrote included settings"
git config gc.auto | grep -qx 0 || echo "packs"
run="$FLEET_HOME/runs/t-1.1"
for file in launch.json keeper.json; do
  echo '{}' > "$run/$file" && echo "wrote $file"
  mv "$run/$file" "$run/moved" && echo "moved $file"
done
"""


class Isolated:
    """A server that supervises, with the setting `isolation`."""

    def __init__(self, supervised, kind: str) -> None:
        self.supervised = supervised
        supervised.env |= env_of(kind, supervised.env["PATH"])
        supervised.env["FLEET_WORKSPACE_CONTAINER_MOUNTS"] = f"{supervised.place}/tries.sh:ro"
        other = supervised.home / "runs" / "t-0.1"
        other.mkdir(parents=True)
        (other / "transcript").write_text("another's")
        tries = TRIES + (STOPPED_BY_BUBBLEWRAP if kind != "landlock" else "")
        (supervised.place / "tries.sh").write_text(f"{tries}echo tried\n")
        git(supervised.repo, "worktree", "add", "-q", "--detach", str(supervised.place / "other"))
        (supervised.repo / ".git" / "more").write_text("[core]\n")
        git(supervised.repo, "config", "include.path", "more")
        modules = supervised.repo / ".git" / "modules" / "lib"
        modules.mkdir(parents=True)
        (modules / "config").write_text("[core]\n")
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


@pytest.fixture(params=ALL_KINDS)
def kind(request):
    if not works(request.param):
        pytest.skip(f"{request.param} does not work here")
    return request.param


@pytest.fixture
def isolated(supervised, kind):
    made = Isolated(supervised, kind)
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
    key = (supervised.home / "server.key").read_text()
    assert len(key) > len("forged\n")
    run = supervised.run(task)
    tried = Path(run.workspace.path, "tries.txt").read_text().splitlines()
    assert [line for line in tried if "cannot" not in line] == ["tried"]
    assert (supervised.home / "tasks" / task / "artifacts" / "seen").exists()
    assert [m.text for m in supervised.store.messages(task)] == ["From-inside"]
    supervised.type("send", task, "Go.")
    supervised.wait(task)
    assert (supervised.home / "server.key").read_text() == key
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


def test_no_hook_of_git_runs_an_agents_files_outside(isolated):
    supervised = isolated.supervised
    git(supervised.repo, "config", "core.hooksPath", ".husky")
    hook = f"#!/bin/sh\\ncat $FLEET_HOME/server.key > {supervised.place}/stolen\\n"
    task = supervised.add(
        f"run sh -c 'mkdir .husky && printf \"{hook}\" > .husky/pre-commit && chmod +x .husky/*'",
        "say Ready.",
        "hear 60",
    )
    supervised.heard(task, "Ready.")
    done = supervised.type("worktree", "commit", task, "-m", "Mine")
    assert done.returncode == 0, done.stderr
    assert not (supervised.place / "stolen").exists()
    assert supervised.type("cancel", task).returncode == 0
    supervised.wait(task, state="cancelled")


def test_a_stop_reaches_the_agent_through_the_isolation(isolated):
    supervised = isolated.supervised
    task = supervised.add("say Ready.", "hear 60")
    supervised.heard(task, "Ready.")
    assert supervised.type("cancel", task).returncode == 0
    supervised.wait(task, state="cancelled")


def test_without_a_server_an_agents_commands_say_how_to_start_one(supervised, kind):
    supervised.env |= env_of(kind, supervised.env["PATH"])
    task = supervised.add("run sh -c 'fleet comment t-1 Hello > answer.txt 2>&1'", "say Done.")
    supervised.start()
    supervised.wait(task)
    answer = Path(supervised.run(task).workspace.path, "answer.txt").read_text()
    assert "none is running" in answer
    assert "fleet serve --background" in answer


def findings(supervised, **env: str) -> list[dict]:
    """What the doctor says of the isolation."""
    rows = json.loads(supervised.type("doctor", "--json", **env).stdout)["data"]["findings"]
    return [row for row in rows if row["check"] == "isolation"]


def test_the_doctor_tries_it(supervised, kind):
    supervised.type("tasks")
    supervised.type("token", "create", "bob")
    assert "Agents can read" in findings(supervised)[0]["said"]
    isolated = findings(supervised, **env_of(kind, supervised.env["PATH"]))[0]
    assert (isolated["state"], isolated["said"].split(" this")[0]) == ("ok", "Agents cannot read")


def test_the_doctor_says_what_landlock_does_not_stop(supervised, kind):
    tmux = supervised.place / "t" / f"tmux-{os.getuid()}"
    tmux.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmux / "s"))
        server.listen()
        env = env_of(kind, supervised.env["PATH"]) | {"TMUX_TMPDIR": str(tmux.parent)}
        rows = findings(supervised, **env)
        warnings = [row["said"] for row in rows if row["state"] == "warning"]
    if kind != "landlock":
        assert warnings == []
        return
    commands, files = warnings
    assert f"run outside landlock through {tmux / 's'}." in commands
    assert f"cannot create files directly in {supervised.place}, " in files


def test_without_bubblewrap_no_agent_starts(supervised):
    without = {"FLEET_ISOLATION": "bubblewrap", "PATH": str(supervised.place)}
    assert "no bwrap" in findings(supervised, **without)[0]["said"]


def test_a_project_cannot_choose_it(supervised):
    (supervised.repo / "fleet.yaml").write_text("isolation: bubblewrap\n")
    assert "isolation" in supervised.type("tasks").stderr
