"""One real program in one pane of a private tmux, heard by the lines that its hooks write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleet.domain.transcript import Conversation, Said, SaidKind, hear
from tests.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.ports import Launch, Listener

BOOT = """
import json, os, subprocess, sys
argv, env, cwd = json.load(open(sys.argv[1]))
os.environ["PATH"] = env["PATH"]
code = subprocess.Popen(argv, env={**env, "TERM": os.environ["TERM"]}, cwd=cwd).wait()
open(sys.argv[2], "w").write(f"{code}\\n")
"""  # tmux itself does not always notice that a program has ended


@dataclass
class Pane:
    folder: Path
    launch: Launch
    listener: Listener
    heard: Conversation = field(default_factory=Conversation)
    said: list[Said] = field(default_factory=list)
    offset: int = 0
    began: float = 0.0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.socket = f"fleet-test-{os.getpid()}-{os.urandom(3).hex()}"

    def tmux(self, *words: str, text: str | None = None) -> str:
        argv = ["tmux", "-L", self.socket, "-f", "/dev/null", *words]
        ran = subprocess.run(argv, check=True, capture_output=True, text=True, input=text)
        return ran.stdout

    def start(self) -> Pane:
        launch = self.launch
        order = self.folder / "order.json"
        env = {**launch.env, "FLEET_RUN_DIR": str(self.folder)}
        order.write_text(json.dumps([launch.argv, env, launch.cwd]))
        self.began = time.monotonic()
        words = ["new-session", "-d", "-s", "it", "-x", "200", "-y", "50"]
        keep = [";", "set", "-g", "remain-on-exit", "on"]
        boot = [sys.executable, "-I", "-S", "-c", BOOT, str(order), str(self.folder / "exit")]
        self.tmux(*words, *boot, *keep)
        return self

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)

    def screen(self) -> str:
        """Also without the blanks at the ends of its lines."""
        shown = self.tmux("capture-pane", "-p", "-t", "it")
        return "\n".join(line.rstrip() for line in shown.split("\n")).rstrip() + "\n"

    def key(self, *names: str) -> Pane:
        self.tmux("send-keys", "-t", "it", *names)
        return self

    def interrupt(self, times: int) -> Pane:
        time.sleep(0.5)
        for _ in range(times):
            self.key("Escape")
            time.sleep(0.5)
        return self

    def say(self, text: str) -> Pane:
        words = self.listener.words(text)
        assert words is not None
        self.tmux("load-buffer", "-b", "it", "-", text=words)
        self.tmux("paste-buffer", "-p", "-r", "-d", "-b", "it", "-t", "it")
        time.sleep(0.15)
        return self.key("Enter")

    def status(self) -> int | None:
        """How it exited; None while it runs."""
        file = self.folder / "exit"
        told = file.read_text() if file.exists() else ""
        return int(told) if told.endswith("\n") else None

    @property
    def raw(self) -> str:
        file = self.folder / "transcript"
        return file.read_text() if file.exists() else ""

    def step(self) -> None:
        data = self.raw.encode()[self.offset :]
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.decode().split("\n")[:-1]:
            for said in self.listener.hear(line):
                self.said.append(said)
                self.heard = hear(self.heard, said)

    def until(self, so: Callable[[], object], *, why: str = "") -> Pane:
        def stepped() -> object:
            self.step()
            return so()

        until(stepped, why=lambda: f"{why}\n{self.story()}")
        return self

    def story(self) -> str:
        tail = "\n".join(line[:300] for line in self.raw.splitlines()[-6:])
        return f"{self.screen()}\n{tail}"

    def until_said(self, kind: SaidKind, text: str = "") -> Pane:
        def so() -> bool:
            return any(s.kind is kind and text in f"{s.name} {s.text}" for s in self.said)

        return self.until(so, why=f"{kind} {text}")

    def until_turns_end(self, turns: int = 1) -> Pane:
        return self.until(lambda: self.heard.ended_turns >= turns, why=f"turn {turns} ended")

    def until_shown(self, *texts: str) -> Pane:
        return self.until(lambda: all(t in self.screen() for t in texts), why=f"shown {texts}")

    def until_exit(self) -> int:
        self.until(lambda: self.status() is not None, why="it exited")
        self.step()
        status = self.status()
        assert status is not None
        return status

    def texts(self, kind: SaidKind) -> list[str]:
        return [said.text for said in self.said if said.kind is kind]
