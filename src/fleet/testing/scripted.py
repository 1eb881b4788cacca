"""A coding agent without a model: its prompt is its script, one step a line.

    say TEXT            print it                 write PATH TEXT    make a file
    think TEXT          print it as thinking     append PATH TEXT   add a line to a file
    usage IN OUT [USD]  report tokens            commit MESSAGE     commit everything
    run COMMAND         run it (no shell)
    lines N             print N lines            speak PACE SECONDS  print lines steadily
    sleep SECONDS       work for a while         spawn SECONDS      leave a process behind
    ask QUESTION        park until it is answered; later steps may use {answer}
    ask Q | A | B       the same, with options
    hear SECONDS        wait so long for words that are sent to it, and repeat them
    fail N MESSAGE      exit 1 in the first N runs of the task
    limit SECONDS       be turned away by a rate limit
    exit STATUS         end there                ignore-term        hear no SIGTERM
    end [TEXT]          end the turn; the next run goes on after it

Any other line is said. It remembers how far it came in its task's folder, so a later run goes on.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


UNREAD = bytearray()  # of standard input


class ScriptedAgent:
    def __init__(self, memory: Path, heard: str, *, resume: bool) -> None:
        self._memory = memory
        self.answer, self.asking = heard.strip(), False
        self.script, self.next = heard.splitlines(), 0
        if resume:
            with suppress(FileNotFoundError, ValueError):
                self._recall(json.loads(memory.read_text()))

    def _recall(self, saved: dict[str, Any]) -> None:
        """What it hears is the answer when it has asked; else it still knows the one it had."""
        self.script, self.next = saved["script"], saved["next"]
        if not saved["asking"]:
            self.answer = saved["answer"]

    def work(self) -> int:
        emit("session", text=self._memory.parent.name)
        self._remember()  # before it counts as told
        emit("turn")
        while self.next < len(self.script):
            self._remember()
            line = self.script[self.next].replace("{answer}", self.answer)
            try:
                status = self._step(line)
            except (ValueError, OSError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"Line {self.next + 1} of its script failed: {line} ({error})\n")
                return 1
            if status is not None:
                return status
            self.next += 1
        self._remember()
        emit("result", text="Done.")
        return 0

    def _step(self, line: str) -> int | None:
        """An exit status ends the run."""
        verb, _, rest = line.strip().partition(" ")
        match verb:
            case "":
                return None
            case "ask":
                return self._ask(rest)
            case "fail":
                return self._fail(rest)
            case "exit":
                return int(rest)
            case "end":
                self.next += 1
                self._remember()
                emit("result", text=rest or "Done.")
                return 0
            case "limit":
                at = time.time_ns() // 1000 + int(float(rest) * 1_000_000)
                emit("limit", text="Rate limited.", resume_at=at)
                self.next += 1
                self._remember()
                return 1
        act = ACTS.get(verb)
        if act is None:
            emit("text", text=line)
        else:
            act(rest)
        return None

    def _ask(self, question: str) -> int | None:
        self.next += 1  # the answer comes to the next step
        self.asking = True
        self._remember()
        question, *options = question.split(" | ")
        argv = [sys.executable, "-m", "fleet", "ask", "--park", question]
        argv += [word for option in options for word in ("--option", option)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            emit("error", text=done.stderr.strip())
            return 1
        emit("result", text=question)
        return 0

    def _fail(self, rest: str) -> int | None:
        times, _, message = rest.partition(" ")
        number = int(os.environ.get("FLEET_RUN_ID", "t-0.1").rpartition(".")[2])
        if number > int(times):
            return None
        sys.stderr.write((message or "scripted failure") + "\n")
        return 1

    def _remember(self) -> None:
        mine = self._memory.with_suffix(".tmp")
        saved = {"script": self.script, "next": self.next}
        mine.write_text(json.dumps({**saved, "answer": self.answer, "asking": self.asking}))
        mine.replace(self._memory)


def emit(kind: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"kind": kind, **fields}) + "\n")
    sys.stdout.flush()


def _write(rest: str, *, mode: str = "w") -> None:
    name, _, text = rest.partition(" ")
    emit("tool", name="write", text=name)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write(text.replace("\\n", "\n") + "\n")
    emit("tool_result", name="write")


def _run(argv: list[str], name: str) -> None:
    emit("tool", name=name, text=shlex.join(argv))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    emit("tool_result", name=name, text=(done.stdout + done.stderr)[-2000:])


def _commit(message: str) -> None:
    identity = ["-c", "user.name=scripted", "-c", "user.email=scripted@localhost"]
    emit("tool", name="commit", text=message)
    subprocess.run(["git", "add", "-A"], capture_output=True, check=True)
    changed = subprocess.run(["git", "diff", "--cached", "--quiet"], check=False).returncode
    if changed:
        argv = ["git", *identity, "commit", "-q", "-m", message]
        subprocess.run(argv, capture_output=True, check=True)
    emit("tool_result", name="commit")


def _usage(rest: str) -> None:
    taken, made, *cost = rest.split()
    usage = {"input": int(taken), "output": int(made), "context": int(taken)}
    emit("usage", usage={**usage, "usd": float(cost[0]) if cost else 0.0})


def _spawn(seconds: str) -> None:
    subprocess.Popen(["sleep", seconds], stdin=subprocess.DEVNULL, start_new_session=True)


def _speak(rest: str) -> None:
    pace, seconds = map(float, rest.split())
    begun, count = time.monotonic(), 0
    while (now := time.monotonic() - begun) < seconds:
        for number in range(count, int(now * pace)):
            emit("text", text=f"line {number + 1}")
        count = max(count, int(now * pace))
        time.sleep(0.1)
    emit("text", text=f"said {count}")


def _lines(count: str) -> None:
    for number in range(int(count)):
        emit("text", text=f"line {number + 1}")


def _hear(seconds: str) -> None:
    """Its standard input goes on after the prompt: one JSON object a line."""
    line = _next_line(time.monotonic() + float(seconds))
    if line.strip():
        words = str(json.loads(line)["words"])
        emit("heard", text=words)
        emit("text", text=f"Heard: {words}")


def _next_line(until: float) -> bytes:
    """What came with it of the lines after it stays in `UNREAD`."""
    while b"\n" not in UNREAD:
        left = max(0.0, until - time.monotonic())
        patience = None if left == float("inf") else left
        if not select.select([0], [], [], patience)[0] or not (data := os.read(0, 1 << 16)):
            break
        UNREAD.extend(data)
    end = UNREAD.find(b"\n") + 1 or len(UNREAD)
    line = bytes(UNREAD[:end])
    del UNREAD[:end]
    return line


def _prompt() -> str:
    """The first line as JSON, when more may follow; else all that there is."""
    line = _next_line(float("inf"))
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(line)["prompt"])
    return (line + bytes(UNREAD) + sys.stdin.buffer.read()).decode("utf-8", "replace")


ACTS: dict[str, Callable[[str], object]] = {
    "say": lambda rest: emit("text", text=rest),
    "think": lambda rest: emit("thinking", text=rest),
    "usage": _usage,
    "write": _write,
    "append": lambda rest: _write(rest, mode="a"),
    "commit": _commit,
    "run": lambda rest: _run(shlex.split(rest), "run"),
    "sleep": lambda rest: time.sleep(float(rest)),
    "lines": _lines,
    "speak": _speak,
    "spawn": _spawn,
    "hear": _hear,
    "ignore-term": lambda _: signal.signal(signal.SIGTERM, signal.SIG_IGN),
}


def main() -> int:
    resume = "--resume" in sys.argv[1:]
    memory = Path(os.environ.get("FLEET_TASK_DIR", ".")) / "scripted.json"
    return ScriptedAgent(memory, _prompt(), resume=resume).work()


if __name__ == "__main__":
    sys.exit(main())
