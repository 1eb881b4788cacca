"""A home, a scratch git repository and a shell, in which a line is typed as its document says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fleet.adapters.home.bd_program import bd_folder
from fleet.adapters.tmux.tmux import Tmux
from fleet.testing.fake_node.node import FakeNode
from tests.free_ports import free_ports
from tests.wait import LIMIT, until
from tests.warm import type_fleet

BIN = Path(sys.executable).parent
EXAMPLES = Path(__file__).parents[3] / "examples"
STANDS_FOR_A_TASK = ("<task_id>", "fleet-newtask", "fleet-abc", "<id>")
FLEET_YAML = """\
project:
  name: local-dev
nodes:
  m5-local:
    endpoint: http://localhost:11434
    tags: [controller, local, fast]
  m4-mini-64gb:
    endpoint: http://192.168.1.50:11434
models:
  heavy-coder:
    node: m4-mini-64gb
    ollama_model: qwen2.5-coder:32b
    litellm_alias: claude-sonnet-local
agents:
  implementer:
    model: heavy-coder
    description: Use for implementation, bug fixes, refactors, and patch creation.
    tools: [Read, Grep, Glob, Edit, Bash]
"""
LEGACY_TOML = """\
[project]
name = "my-awesome-project"
[setup]
credential_files = [".env"]
commands = ["npm install"]
"""


class Sandbox:
    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.cwd = place / "project"
        self.user = place / "user"
        for folder in (self.cwd, self.user):
            folder.mkdir(parents=True)
        editor = self.user / "editor"
        editor.write_text('#!/bin/sh\nls "$@" >"$HOME/edited"\n')
        editor.chmod(0o755)
        self.task = self.newer = ""
        self.index: ThreadingHTTPServer | None = None
        self.nodes: list[FakeNode] = []
        self.examples = STANDS_FOR_A_TASK
        self.env = {
            "PATH": f"{BIN}:{bd_folder(place)}:/usr/local/bin:/usr/bin:/bin",  # `bd` as in a run
            "HOME": str(self.user),
            "FLEET_HOME": str(self.home),
            "EDITOR": str(self.user / "editor"),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "FLEET_CI_MARK": os.environ.get("FLEET_CI_MARK", ""),
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{who}_NAME": "Fleet", f"GIT_{who}_EMAIL": "fleet@example.invalid"}

    def given(self, world: str) -> None:
        self.must("git init -q -b main && git commit -q --allow-empty -m 'Begin'")
        kind, _, name = world.partition(" ")
        if kind in NAMED:
            NAMED[kind](self, name)
        else:
            WORLDS[world](self)

    def clear(self) -> None:
        """No agent goes on, no server of its terminals, and no node."""
        for node in self.nodes:
            node.stop()
        if self.index is not None:
            self.index.shutdown()
            self.index.server_close()
        if (self.home / "server").exists():
            self.type("fleet serve --stop")
        if (self.home / "runs").exists():
            type_fleet(["kill", "*", "--force"], cwd=self.cwd, env=self.env, timeout=LIMIT)

    def fill(self, text: str) -> str:
        return text.format(home=self.home, cwd=self.cwd, task=self.task)

    def line(self, typed: str) -> str:
        typed = typed.replace("fleet-newtask", self.newer or "fleet-newtask")
        for example in self.examples:
            typed = typed.replace(example, self.task or example)
        return typed

    def type(self, typed: str) -> subprocess.CompletedProcess[str]:
        """Run one line in the shell; what it wrote to stderr is in its output too."""
        argv = ["bash", "-c", self.line(typed)]
        sits = typed.startswith("fleet attach") and "--help" not in typed
        if sits:  # at a terminal, until Ctrl-B and D are pressed
            seated = f"tmux -L {Tmux(self.home).socket} list-clients 2>/dev/null | grep -q ."
            keys = f"(until {seated}; do sleep 0.1; done; printf '\\002d'; sleep 0.5)"
            argv = ["bash", "-c", f"{keys} | script -qec {shlex.quote(self.line(typed))} /dev/null"]
        return subprocess.run(
            argv,
            cwd=self.cwd,
            env=self.env | ({"TERM": "xterm"} if sits else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def must(self, typed: str) -> str:
        done = self.type(typed)
        assert done.returncode == 0, f"$ {typed}\n{done.stdout}"
        return done.stdout

    def fleet(self, *words: str, status: int = 0) -> str:
        """What only makes or clears a world need not go by the shell."""
        done = type_fleet(words, cwd=self.cwd, env=self.env, timeout=LIMIT)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout.decode()

    def doings(self) -> set[str]:
        return {a["doing"] for a in json.loads(self.fleet("list", "--json"))["data"]}

    def start(self, typed: str) -> Going:
        said = self.user / "said"
        with said.open("w") as out:
            process = subprocess.Popen(
                ["bash", "-c", f"{typed}\nwait"],
                cwd=self.cwd,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Going(process, said)


@dataclass
class Going:
    process: subprocess.Popen[bytes]
    output: Path

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def over(self) -> bool:
        """Whether no process of that terminal is left."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def end(self, number: int) -> bool:
        """Send this signal; false if something had to be killed."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        try:
            until(self.over)
        except AssertionError:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(LIMIT)
        return True


def _write(name: str, text: str):
    def world(sandbox: Sandbox) -> None:
        file = sandbox.cwd / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    return world


def _task(sandbox: Sandbox) -> None:
    added = sandbox.fleet("add", "Implement feature X", "--json")
    sandbox.task = json.loads(added)["data"]["id"]


def _question(sandbox: Sandbox) -> None:
    _task(sandbox)
    words = ("--timeout", "0", "--task", sandbox.task)
    sandbox.fleet("ask", *words, "Which database?", status=3)


def _two_tasks(sandbox: Sandbox) -> None:
    _task(sandbox)
    sandbox.newer, sandbox.task = sandbox.task, ""
    _task(sandbox)


def _blocked(sandbox: Sandbox) -> None:
    """It asks as its agent does by the document: with bd, so that Q&A.md has the question."""
    _task(sandbox)
    sandbox.must('bd update <task_id> --status blocked --notes "QUESTION: Which database?"')


def _answered(sandbox: Sandbox) -> None:
    """A person has appended the answer to the file, in the document's form."""
    _blocked(sandbox)
    file = sandbox.home / "tasks" / sandbox.task / "artifacts" / "Q&A.md"
    with file.open("a", encoding="utf-8") as out:
        out.write("\n## A: 2026-01-31 17:05\n\nPostgreSQL.\n")


def _agent(sandbox: Sandbox, branch: str) -> None:
    sandbox.fleet("create", branch, "--prompt", "say Begun.")
    until(lambda: sandbox.doings() == {"waiting"})


def _fan_out(sandbox: Sandbox, prefix: str) -> None:
    sandbox.fleet("fanout", "3", prefix, "--prompt", "say Begun.")


def _batch(sandbox: Sandbox, name: str) -> None:
    """The document's example id stands for the one that the store gave."""
    _fan_out(sandbox, "some")
    sandbox.task = json.loads(sandbox.fleet("list", "--json"))["data"][0]["batch"]
    sandbox.examples = (*sandbox.examples, name)


def _nodes(sandbox: Sandbox) -> None:
    """The document's nodes, each a stand-in that has its model."""
    text = FLEET_YAML
    for line in [each for each in FLEET_YAML.splitlines() if "endpoint:" in each]:
        sandbox.nodes.append(FakeNode(["qwen2.5-coder:32b"]).start())
        text = text.replace(line, f"    endpoint: {sandbox.nodes[-1].url}")
    (sandbox.cwd / "fleet.yaml").write_text(text, encoding="utf-8")


def _healthy(sandbox: Sandbox) -> None:
    """Nodes that answer, a coder that is here, and a port that nobody else has."""
    _nodes(sandbox)
    port = free_ports()
    sandbox.fleet("config", "set", "coder=scripted", f"gateway.port={port}")


def _generated(sandbox: Sandbox) -> None:
    _write("fleet.yaml", FLEET_YAML)(sandbox)
    sandbox.fleet("generate")


def _examples(sandbox: Sandbox) -> None:
    shutil.copytree(EXAMPLES, sandbox.cwd / "examples")


def _marketplace_root(sandbox: Sandbox) -> None:
    """The document's example path stands for one in the sandbox."""
    sandbox.task = str(sandbox.user / "marketplace-root")
    sandbox.examples = ("/path/to/marketplace-root",)


def _set_config(sandbox: Sandbox) -> None:
    sandbox.fleet("config", "set", "max_concurrent=4")


def _newer_release(sandbox: Sandbox) -> None:
    """An index on loopback, which has one."""
    page = sandbox.user / "simple" / "agent-fleet" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<a href='x'>agent_fleet-99.0.0-py3-none-any.whl</a>\n")
    answer = partial(QuietPages, directory=str(sandbox.user))
    sandbox.index = ThreadingHTTPServer(("127.0.0.1", 0), answer)
    threading.Thread(target=sandbox.index.serve_forever, daemon=True).start()
    sandbox.env["FLEET_INDEX"] = f"http://127.0.0.1:{sandbox.index.server_port}/simple"


class QuietPages(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _own_coder(sandbox: Sandbox) -> None:
    sandbox.must("""fleet config set 'coders.mycoder.command=["true", "{prompt}"]'""")


def _server(sandbox: Sandbox) -> None:
    port = free_ports()
    sandbox.must(f"fleet serve --background --port {port}")


NAMED = {"agent": _agent, "batch": _batch, "fan-out": _fan_out}

# A name that is not here belongs to a part that is not built.
WORLDS = {
    "repository": lambda _sandbox: None,
    "config": _write("fleet.yaml", FLEET_YAML),
    "legacy": _write(".aifleet/config.toml", LEGACY_TOML),
    "python project": _write("uv.lock", "version = 1\n"),
    "nodes": _nodes,
    "healthy": _healthy,
    "generated": _generated,
    "examples": _examples,
    "marketplace root": _marketplace_root,
    "set config": _set_config,
    "task": _task,
    "two tasks": _two_tasks,
    "question": _question,
    "blocked": _blocked,
    "answered": _answered,
    "own coder": _own_coder,
    "newer release": _newer_release,
    "server": _server,
}
