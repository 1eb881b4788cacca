"""A place with a repository, a linked worktree and a scripted model, to try any coder in."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.adapters.processes.keepers import Keepers
from fleet.base import machine
from fleet.domain.transcript import SaidKind
from fleet.ports import Brief
from fleet.testing.model_server import Asked, Call, ModelServer, Reply
from tests.real.programs import Drive, private_env, repository

if TYPE_CHECKING:
    from pathlib import Path

KEY = "THE_KEY"
CONTEXT = 65_536
INSTRUCTIONS = "You are the test's own agent."
WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid"}
WHO |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in WHO.items()}


class Place:
    """Everything is below its home, so that a recording has one path to change."""

    def __init__(self, coder: Any, folder: Path) -> None:
        self.coder = coder
        self.home = folder / "home"
        self.repo = repository(self.home / "repo")
        self.cwd = self.home / "work"
        added = ["git", "worktree", "add", "-q", "-b", "work", str(self.cwd)]
        subprocess.run(added, cwd=self.repo, check=True)
        self.notes = self.home / "task" / "artifacts"
        self.notes.mkdir(parents=True)
        self.keepers = Keepers(folder / "runs")
        self.servers: list[ModelServer] = []
        self.drives: list[Drive] = []

    def drive(self, script: Any, *, env: dict[str, str] | None = None, **fields: Any) -> Drive:
        """`{cwd}` and `{home}` in a script's tool calls are filled in."""
        server = ModelServer(self._filled(script))
        self.servers.append(server.__enter__())
        gateway = {"base_url": server.url, "key_env": KEY, "context": CONTEXT}
        given = private_env(self.home, **{KEY: "sk-scripted"}, **WHO, **(env or {}))
        brief = Brief(
            run_id=f"t-1.{len(self.drives) + 1}",
            prompt=fields.pop("prompt", "Go."),
            cwd=str(self.cwd),
            task_dir=str(self.notes.parent),
            model=fields.pop("model", "scripted"),
            instructions=fields.pop("instructions", INSTRUCTIONS),
            session=fields.pop("session", ""),
            env=given,
            options={"gateway": gateway, **fields},
        )
        self.drives.append(Drive(self.coder, self.keepers, brief))
        return self.drives[-1]

    def again(self, drive: Drive, **changes: Any) -> Drive:
        """The next run of the same conversation, with the same model."""
        session = drive.heard.session
        self.drives.append(drive.again(f"t-1.{len(self.drives) + 1}", session=session, **changes))
        return self.drives[-1]

    @property
    def asked(self) -> list[Asked]:
        return self.servers[-1].turns

    def _filled(self, script: Any) -> Any:
        def fill(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            return value.replace("{cwd}", str(self.cwd)).replace("{home}", str(self.home))

        def part(one: Any) -> Any:
            if isinstance(one, Call) and isinstance(one.input, dict):
                return Call(one.name, {key: fill(value) for key, value in one.input.items()})
            return one

        def reply(one: Reply) -> Reply:
            return replace(one, parts=tuple(map(part, one.parts)))

        if callable(script):
            return lambda asked: reply(script(asked))
        return [reply(one) for one in script]

    def close(self) -> None:
        for drive in self.drives:
            self.keepers.end(drive.brief.run_id)
        for server in self.servers:
            server.__exit__()


def is_quiet(drive: Drive) -> bool:
    """Every turn has ended, and all that was said to it was heard: its input may be closed."""
    heard = drive.heard
    return 0 < heard.ended_turns >= heard.turns and heard.heard_words >= drive.told


def left_of(drive: Drive) -> list[int]:
    """Processes of the run that are still there."""
    folder = drive.keepers.folder(drive.brief.run_id)
    return list(machine.marked(json.loads((folder / "launch.json").read_text())["mark"]))


def assert_replays(drive: Drive) -> None:
    """Another supervisor, with the files alone, hears the same and tells it nothing twice."""
    folder = drive.keepers.folder(drive.brief.run_id)
    again = drive.coder.listen(drive.keepers.opening(drive.brief.run_id))
    said = [one for line in drive.lines for one in again.hear(line)]
    assert said == drive.said
    told = (folder / "input").read_bytes()
    replies = [one for one in said if one.kind is SaidKind.REPLY]
    assert replies
    for one in replies:
        drive.keepers.tell(drive.brief.run_id, one.text, key=one.name)
    assert (folder / "input").read_bytes() == told


def record(drive: Drive, place: Place, folder: Path) -> None:
    """Keep what was said, with the home directory changed to `/home/me`."""
    run = drive.keepers.folder(drive.brief.run_id)
    folder.mkdir(exist_ok=True)
    opening = drive.keepers.opening(drive.brief.run_id)
    for name, text in (("raw.jsonl", (run / "transcript").read_text()), ("opening", opening)):
        home = text.replace(str(place.home), "/home/me")
        (folder / name).write_text(home.replace(str(place.home.parent), "/fleet"))


def tear(drive: Drive, size: int = 200) -> None:
    """As a kill in the middle of a line leaves it."""
    transcript = drive.keepers.folder(drive.brief.run_id) / "transcript"
    transcript.write_bytes(transcript.read_bytes()[:-size])
