"""Each coder in a pane of its own: a repository, a home as after its first start, a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fleet.ports import Brief
from fleet.testing.model_server import Call, ModelServer, Reply, call
from tests.real.program_pane import Pane
from tests.real.programs import private_env, repository

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN, VERSION = "@opencode-ai/plugin", "1.18.33"
LIST = {
    "claude": call("Bash", command="ls", description="List"),
    "codex": call("exec_command", cmd="ls"),
    "opencode": call("bash", command="ls", description="List"),
}


def asking(program: str, path: Path) -> Reply:
    """To make a file where that takes a person's leave."""
    match program:
        case "claude":
            return call("Bash", command=f"touch {path}", description="Make it")
        case "codex":
            more = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
            return Reply((Call("exec_command", {"cmd": f"touch {path}", **more}),))
    return call("write", filePath=str(path), content="x")


YES = {"claude": "Enter", "codex": "y", "opencode": "Enter"}
STOP = {"claude": 1, "codex": 1, "opencode": 2}  # how often Escape is pressed


def at_home(program: str, home: Path, repository: Path) -> None:
    """The program's own files, as after its first start, with this repository trusted."""
    _HOMES[program](home, repository)


def _claude(home: Path, repository: Path) -> None:
    trusted = {str(repository): {"hasTrustDialogAccepted": True}}
    known = {"hasCompletedOnboarding": True, "projects": trusted}
    (home / ".claude.json").write_text(json.dumps(known))


def _codex(home: Path, repository: Path) -> None:
    (home / ".codex").mkdir()
    trusted = f'[projects."{repository}"]\ntrust_level = "trusted"\n'
    (home / ".codex" / "config.toml").write_text(trusted)


def _opencode(home: Path, _repository: Path) -> None:
    """Its first start fetches a package, which no plugin of ours needs."""
    settings = home / ".config" / "opencode"
    package = settings / "node_modules" / PLUGIN
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": PLUGIN, "version": VERSION}))
    wanted = {"dependencies": {PLUGIN: VERSION}}
    (settings / "package.json").write_text(json.dumps(wanted))
    installed = {f"node_modules/{PLUGIN}": {"version": VERSION}}
    lock = {"name": "opencode", "lockfileVersion": 3, "requires": True}
    for file, packages in (
        (settings / "package-lock.json", {"": wanted, **installed}),
        (settings / "node_modules" / ".package-lock.json", installed),
    ):
        file.write_text(json.dumps({**lock, "packages": packages}))


_HOMES = {"claude": _claude, "codex": _codex, "opencode": _opencode}


class World:
    def __init__(self, place: Path, coder) -> None:
        self.place, self.coder = place, coder
        self.home = place / "home"
        self.cwd = repository(self.home / "repo")
        self.env = private_env(self.home, THE_KEY="sk-scripted", CLAUDE_CODE_MAX_RETRIES="1")
        self.servers: list[ModelServer] = []
        self.panes: list[Pane] = []
        at_home(coder.name, self.home, self.cwd)

    def pane(self, script, *, prompt="Go.", session="", cwd=None, **options) -> Pane:
        server = ModelServer(script)
        self.servers.append(server.__enter__())
        brief = Brief(
            run_id=f"t-1.{len(self.servers)}",
            prompt=prompt,
            cwd=str(cwd or self.cwd),
            task_dir=str(self.place / "task"),
            model="scripted",
            instructions="You are the test's own agent.",
            session=session,
            env=self.env,
            options={"gateway": {"base_url": server.url, "key_env": "THE_KEY"}, **options},
        )
        launch = self.coder.launch_in_terminal(brief)
        folder = self.place / "runs" / brief.run_id
        self.panes.append(Pane(folder, launch, self.coder.watch(launch.opening)))
        return self.panes[-1]

    def close(self) -> None:
        for pane in self.panes:
            pane.close()
        for server in self.servers:
            server.__exit__()
