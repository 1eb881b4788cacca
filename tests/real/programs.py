"""The real coding programs, each in a home of its own, driven as a supervisor would."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.run import Wanted
from fleet.domain.transcript import Conversation, Exit, Said, SaidKind, hear, judge
from fleet.ports import Brief, Presence
from tests.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.adapters.processes.keepers import Keepers
    from fleet.domain.run import Outcome
    from fleet.ports import Coder, Listener

ROOT = Path(__file__).parents[2]
# A tool that ends once `Drive.go_on` was called, and after what was said before had time to arrive.
UNTIL_GO_ON = "until [ -e .go-on ]; do sleep 0.1; done; sleep 1; ls"


@cache
def programs() -> str:
    """The folder of their executables; installed when they are not there yet."""
    ran = subprocess.run(
        [ROOT / "scripts/programs"], check=True, capture_output=True, text=True, timeout=600
    )
    return ran.stdout.strip().splitlines()[-1]


def private_env(home: Path, **more: str) -> dict[str, str]:
    """Nothing of whoever runs the tests but the way to system programs."""
    home.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([programs(), os.environ.get("PATH", os.defpath)])
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **more}


def repository(path: Path) -> Path:
    """A git repository with one commit."""
    path.mkdir(parents=True)
    (path / "hello.txt").write_text("Hello, world.\n")
    who = ["-c", "user.name=Fleet", "-c", "user.email=fleet@example.invalid"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *words], cwd=path, check=True)
    return path


@dataclass
class Drive:
    """One run of one coder under a keeper: what an attempt of the supervisor does, step by step."""

    coder: Coder
    keepers: Keepers
    brief: Brief
    heard: Conversation = field(default_factory=Conversation)
    said: list[Said] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    listener: Listener | None = None
    offset: int = 0
    told: int = 0

    def start(self) -> Drive:
        self.keepers.launch(self.brief.run_id, self.coder.launch(self.brief))
        self.until(lambda: self._look() is not Presence.NEVER, why="its keeper started")
        self.listener = self.coder.listen(self.keepers.opening(self.brief.run_id))
        return self

    def _look(self) -> Presence:
        return self.keepers.look(self.brief.run_id).presence

    def step(self, *, final: bool = False) -> None:
        if self.listener is None:
            return
        chunk = self.keepers.read(self.brief.run_id, self.offset, final=final)
        self.offset = chunk.offset
        for line in chunk.lines:
            self.lines.append(line)
            for said in self.listener.hear(line):
                self.said.append(said)
                self.heard = hear(self.heard, said)
                if said.kind is SaidKind.REPLY:
                    self.keepers.tell(self.brief.run_id, said.text, key=said.name)

    def until(self, so: Callable[[], object], *, why: str = "") -> Drive:
        """Listen until it is so."""
        until(lambda: so() or self.step(), why=lambda: f"{why}\n{self.story()}")
        return self

    def story(self) -> str:
        tail = "\n".join(line[:500] for line in self.lines[-8:])
        return f"{tail}\n{self.keepers.stderr(self.brief.run_id)}"

    def until_said(self, kind: SaidKind, text: str = "") -> Drive:
        def so() -> bool:
            return any(s.kind is kind and text in (s.text or s.name) for s in self.said)

        return self.until(so, why=f"{kind} {text}")

    def until_turn_ends(self, turns: int = 1) -> Drive:
        return self.until(lambda: self.heard.ended_turns >= turns, why=f"turn {turns} ended")

    def say(self, text: str) -> Drive:
        assert self.listener is not None
        words = self.listener.words(text)
        assert words is not None
        self.told += 1
        self.keepers.tell(self.brief.run_id, words, key=f"words {self.told}")
        return self

    def go_on(self) -> Drive:
        """Let the tool `UNTIL_GO_ON` end."""
        Path(self.brief.cwd, ".go-on").touch()
        return self

    def stop(self, grace: float) -> Drive:
        self.keepers.stop(self.brief.run_id, grace=grace)
        return self

    def end(self) -> Outcome:
        """Close its standard input, wait for it to exit, and judge."""
        self.keepers.close(self.brief.run_id)
        return self.over()

    def over(self) -> Outcome:
        self.until(lambda: self._look() is Presence.EXITED, why="it exited")
        self.step(final=True)
        look = self.keepers.look(self.brief.run_id)
        ended = Exit(look.code, look.stderr)
        return judge(self.heard, ended, parked=False, wanted=Wanted.NOTHING, cut=None, commit="")

    def run(self) -> Outcome:
        return self.start().until_turn_ends().end()

    def again(self, run_id: str, **changes: object) -> Drive:
        """The next run, with whatever is different about it."""
        return Drive(self.coder, self.keepers, self.brief._replace(run_id=run_id, **changes))
