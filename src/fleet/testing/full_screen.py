"""A coding agent with a screen, without a model: it behaves as the real programs' interfaces do.

    full_screen [--plain] [--slow SECONDS] [--deaf] [--record FILE] [--resume SESSION]

It draws a prompt box on the alternate screen, asks for bracketed paste, and shows a spinner while it
works. What is sent meanwhile waits. A prompt is a script, one step a line, in the words of
`fleet.testing.scripted`, and also:

    permission WHAT     show a dialog that eats every key; Enter says yes, Escape says no
    errand SECONDS WHAT the same, and what was permitted takes so long
    forget              end the turn without a word of it, as a program whose turn has failed
    crash STATUS        end at once, as it is        hang    hear and show nothing any more

`/exit` ends it; Escape or Ctrl-C interrupts a turn. As a real program's hooks would, it appends a
line of JSON to `$FLEET_RUN_DIR/transcript` for each thing that happens. `--plain` does nothing with
a prompt but to take it; `--deaf` ignores SIGTERM; `--record` appends all that came in, as it came.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from fleet.testing import scripted
from fleet.testing.keystrokes import Keystrokes, Kind

ENTER_SCREEN = "\x1b[?1049h\x1b[?2004h\x1b[?25l"
LEAVE_SCREEN = "\x1b[?2004l\x1b[?1049l\x1b[?25h"
SPINNER = "✶✸✹✺✹✷"
POINTER = "❯"  # noqa: RUF001  # as the real programs draw it
BOX = "│ > "
FRAME = 0.1


class Work(threading.Thread):
    """One turn, beside the screen."""

    def __init__(self, program: Program, prompt: str) -> None:
        super().__init__(daemon=True)
        self.program, self.prompt = program, prompt
        self.status: int | None = None
        self.wants = ""
        self.stopped = False
        self.answered = threading.Event()
        self.allowed = False
        self.forgets = False

    def run(self) -> None:
        try:
            for line in [] if self.program.plain else self.prompt.splitlines():
                self._step(line)
                if self.stopped or self.status is not None:
                    return
        except Exception as error:  # noqa: BLE001  # a step that fails is said, as a tool's failure is
            self.program.hook("error", text=str(error))

    def _step(self, line: str) -> None:
        verb, _, rest = line.strip().partition(" ")
        match verb:
            case "permission":
                self._permission(rest)
            case "errand":
                seconds, _, what = rest.partition(" ")
                self._permission(what, float(seconds))
            case "forget":
                self.forgets = True
            case "crash":
                os._exit(int(rest or 1))
            case "hang":
                self.program.hung = True
            case "exit":
                self.status = int(rest or 0)
            case "sleep":
                until = time.monotonic() + float(rest)
                while time.monotonic() < until and not self.stopped:
                    time.sleep(0.02)
            case _ if verb in scripted.ACTS:
                scripted.ACTS[verb](rest)
            case _ if line.strip():
                self.program.hook("text", text=line)

    def _permission(self, what: str, seconds: float = 0.0) -> None:
        self.program.hook("tool", name="run", text=what)
        self.answered.clear()
        self.wants = what
        self.program.hook("wants", name="run", text=what)
        self.answered.wait()
        self.wants = ""
        time.sleep(seconds)
        self.program.hook("tool_result", name="run", text="done" if self.allowed else "denied")


class Program:
    def __init__(self, options: argparse.Namespace, transcript: IO[str]) -> None:
        self.plain: bool = options.plain
        self.transcript = transcript
        self.record: IO[str] | None = open(options.record, "a") if options.record else None  # noqa: SIM115, PTH123  # as long as we live
        self.session: str = options.resume or str(uuid4())
        self.box = ""
        self.waiting: list[str] = []
        self.work: Work | None = None
        self.said = ["A scripted program. /exit ends it."]
        self.hung = False
        self.drawn = ""
        self.keys = Keystrokes()

    def hook(self, kind: str, **said: Any) -> None:
        """In one write, so that lines never mix."""
        self.transcript.write(json.dumps({"kind": kind, **said}) + "\n")
        self.transcript.flush()

    def note(self, what: str, text: str) -> None:
        if self.record is not None:
            self.record.write(json.dumps({what: text}) + "\n")
            self.record.flush()

    def run(self) -> int:
        self.draw()
        self.hook("session", text=self.session)
        while True:
            if self.hung:
                time.sleep(FRAME)
                continue
            ready, _, _ = select.select([0], [], [], FRAME)
            for kind, text in self.keys.take(os.read(0, 65536) if ready else b""):
                if self.take(kind, text):
                    return 0
            if (status := self.tick()) is not None:
                return status
            self.draw()

    def take(self, kind: Kind, text: str) -> bool:
        """One key, or one paste. True ends the program."""
        if self.work is not None and self.work.wants:
            self.note("eaten", text)
            if kind in {Kind.ENTER, Kind.ESCAPE}:
                self.work.allowed = kind is Kind.ENTER
                self.work.answered.set()
            return False
        if kind in {Kind.TEXT, Kind.PASTE}:
            self.box += text
        elif kind is Kind.ENTER:
            return self.submit()
        elif kind is Kind.ERASE:
            self.box = ""
        else:
            self.note("key", text)
            self.interrupt()
        return False

    def submit(self) -> bool:
        prompt, self.box = self.box, ""
        self.note("prompt", prompt)
        if prompt.strip() == "/exit":
            return True
        if prompt:
            self.waiting.append(prompt)
        return False

    def interrupt(self) -> None:
        if self.work is not None:
            self.work.stopped = True
            self.work = None
            self.hook("result", text="Interrupted.", failed=True)

    def tick(self) -> int | None:
        """An exit status ends the program."""
        if self.work is not None and not self.work.is_alive():
            ended, self.work = self.work, None
            status = ended.status
            if not ended.forgets:
                self.hook("result", text="Done.")
            if status is not None:
                return status
        if self.work is None and self.waiting:
            prompt = self.waiting.pop(0)
            self.hook("turn", text=prompt)
            self.said.append(f"> {_shown(prompt)}")
            self.work = Work(self, prompt)
            self.work.start()
        return None

    def draw(self) -> None:
        with suppress(OSError):
            columns, lines = os.get_terminal_size(0)
            bottom = self._bottom(columns)
            above = self.said[-max(1, lines - len(bottom) - 1) :]
            shown = "\r\n".join(line[:columns] for line in [*above, "", *bottom][-lines:])
            if shown != self.drawn:
                self.drawn = shown
                row = next((n for n, line in enumerate(shown.split("\r\n"), 1) if BOX in line), 1)
                column = 1 + len(BOX) + len(_shown(self.box))
                _write(f"\x1b[H\x1b[2J{shown}\x1b[{row};{column}H")

    def _bottom(self, columns: int) -> list[str]:
        wide = min(columns, 100) - 2
        if self.work is not None and self.work.wants:
            question = f"Do you want to run {self.work.wants}?"
            return _box(["Permission", question, f"{POINTER} 1. Yes", "  2. No"], wide)
        box = _box([f"> {_shown(self.box)}"], wide)
        if self.work is None:
            return [*box, "  Type a prompt; /exit to leave"]
        turning = SPINNER[int(time.monotonic() / FRAME) % len(SPINNER)]
        more = f" · {len(self.waiting)} waiting" if self.waiting else ""
        return [f"{turning} Working… (esc to interrupt{more})", *box]


def _box(lines: list[str], wide: int) -> list[str]:
    inner = [f"│ {line[: wide - 2]:<{wide - 2}} │" for line in lines]
    return ["╭" + "─" * wide + "╮", *inner, "╰" + "─" * wide + "╯"]


def _shown(text: str) -> str:
    """The end of what is in the box; a long paste is only named."""
    if len(text) > 400 or text.count("\n") > 3:
        return f"[Pasted text, {len(text)} characters]"
    return "".join(c if c.isprintable() else "·" for c in text)[-60:]


def _write(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="full_screen")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--record", default="")
    parser.add_argument("--resume", default="")
    return parser.parse_args()


def main() -> int:
    options = _options()
    if options.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(options.slow)
    before = termios.tcgetattr(0)
    where = Path(os.environ.get("FLEET_RUN_DIR", "."), "transcript")
    with where.open("a", encoding="utf-8") as transcript, redirect_stdout(transcript):
        tty.setraw(0)
        _write(ENTER_SCREEN)
        try:
            return Program(options, transcript).run()
        except OSError:
            return 1  # its terminal is gone
        finally:
            with suppress(OSError, termios.error):
                _write(LEAVE_SCREEN)
                termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    sys.exit(main())
