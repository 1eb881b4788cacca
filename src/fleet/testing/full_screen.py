"""A coding agent with a screen, without a model: it behaves as the real programs' interfaces do.

    full_screen [--plain] [--slow SECONDS] [--deaf] [--record FILE] [--resume SESSION] [-- PROMPT]

It draws a prompt box on the alternate screen, asks for bracketed paste, and shows a spinner while it
works. What is sent meanwhile waits. A prompt is a script, one step a line, in the words of
`fleet.testing.scripted`, and also:

    permission WHAT     show a dialog that eats every key; Enter says yes, Escape says no, and 2 yes
                        to everything that begins with the same word
    errand SECONDS WHAT the same, and what was permitted takes so long
    late SECONDS        as the first line of PROMPT: begin with it so long after the box is drawn
    forget              end the turn without a word of it, as a program whose turn has failed
    crash STATUS        end at once, as it is        hang    hear and show nothing any more

`/exit` ends it, `/clear` and `/help` begin no turn, and `/help` opens a panel that Escape closes; Escape or Ctrl-C interrupts a turn. As a real program's hooks would, it appends a
line of JSON to `$FLEET_RUN_DIR/transcript` for each thing that happens. `--plain` does nothing with
a prompt but to take it; `--deaf` ignores SIGTERM; `--record` appends all that came in, as it came.

Tests and benchmarks start it by the hundred, so it loads next to nothing.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from _thread import allocate_lock, start_new_thread

from fleet.base.lean import dumps, signal, suppress
from fleet.testing.keystrokes import KeyKind, Keystrokes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

ENTER_SCREEN = "\x1b[?1049h\x1b[?2004h\x1b[?25l"
LEAVE_SCREEN = "\x1b[?2004l\x1b[?1049l\x1b[?25h"
SPINNER = "✶✸✹✺✹✷"
POINTER = "❯"  # noqa: RUF001  # as the real programs draw it
BOX = "│ > "
FRAME = 0.1
FLAGS = ("--plain", "--deaf")
OPTIONS = (*FLAGS, "--slow", "--record", "--resume", "--")


class Work:
    """One turn, beside the screen."""

    def __init__(self, program: FullScreenProgram, prompt: str) -> None:
        self.program, self.prompt = program, prompt
        self.status: int | None = None
        self.wants = ""
        self.stopped = False
        self.unanswered = allocate_lock()
        self.allowed = False
        self.forgets = False
        self.over = False
        start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            for line in [] if self.program.plain else self.prompt.splitlines():
                self._step(line)
                if self.stopped or self.status is not None:
                    return
        except Exception as error:  # noqa: BLE001  # a step that fails is said, as a tool's failure is
            self.program.hook("error", text=str(error))
        finally:
            self.over = True

    def answer(self, *, yes: bool) -> None:
        self.allowed, self.wants = yes, ""
        self.unanswered.release()

    def _step(self, line: str) -> None:
        verb, _, rest = line.strip().partition(" ")
        match verb:
            case "permission":
                self._permission(rest)
            case "errand":
                seconds, _, what = rest.partition(" ")
                self._permission(what, float(seconds))
            case "say":
                self.program.hook("text", text=rest)
            case "late":
                pass
            case "forget":
                self.forgets = True
            case "crash":
                os._exit(int(rest or 1))
            case "hang":
                self.program.hung = True
                while True:
                    time.sleep(FRAME)
            case "exit":
                self.status = int(rest or 0)
            case "sleep":
                until = time.monotonic() + float(rest)
                while time.monotonic() < until and not self.stopped:
                    time.sleep(0.02)
            case _ if line.strip():
                self._act(verb, rest, line)

    def _act(self, verb: str, rest: str, line: str) -> None:
        from fleet.testing.scripted import ACTS  # noqa: PLC0415  # it loads `subprocess`

        if verb in ACTS:
            ACTS[verb](rest)
        else:
            self.program.hook("text", text=line)

    def _permission(self, what: str, seconds: float = 0.0) -> None:
        self.program.hook("tool", name="run", text=what)
        if what.split(maxsplit=1)[0] in self.program.trusted:
            self.allowed = True
        else:
            self.unanswered.acquire()
            self.wants = what
            self.program.hook("wants", name="run", text=what)
            self.unanswered.acquire()
            self.unanswered.release()
        time.sleep(seconds)
        self.program.hook("tool_result", name="run", text="done" if self.allowed else "denied")


class FullScreenProgram:
    def __init__(self, options: Mapping[str, str], transcript: IO[str]) -> None:
        self.plain = "--plain" in options
        self.transcript = transcript
        record = options.get("--record")
        self.record = open(record, "a") if record else None  # noqa: SIM115, PTH123  # as long as we live
        self.session = options.get("--resume") or os.urandom(16).hex()
        self.box = ""
        self.waiting: list[str] = []
        self.work: Work | None = None
        self.trusted: set[str] = set()  # the words with which commands begin that run unasked
        self.screen_lines = ["A scripted program. /exit ends it."]
        self.hung = self.panel = False
        self.drawn = ""
        self.keys = Keystrokes()

    def hook(self, kind: str, **fields: Any) -> None:
        """In one write, so that lines never mix."""
        self.transcript.write(dumps({"kind": kind, **fields}) + "\n")
        self.transcript.flush()

    def note(self, what: str, text: str) -> None:
        if self.record is not None:
            self.record.write(dumps({what: text}) + "\n")
            self.record.flush()

    def run(self, first: str) -> int:
        self.draw()
        self.hook("session", text=self.session)
        begin_at = time.monotonic() + _lateness(first)
        while (status := self.tick()) is None:
            if first and time.monotonic() >= begin_at:
                begun, first = first, ""
                if self.begin(begun):
                    return 0
                continue
            self.draw()
            while self.hung:
                time.sleep(FRAME)
            ready, _, _ = select.select([0], [], [], FRAME)
            for kind, text in self.keys.take(os.read(0, 65536) if ready else b""):
                if self.take(kind, text):
                    return 0
        return status

    def take(self, kind: str, text: str) -> bool:
        """One key, or one paste. True ends the program."""
        if self.panel:
            self.note("eaten", text)
            self.panel = kind != KeyKind.ESCAPE
            return False
        if self.work is not None and self.work.wants:
            self.note("eaten", text)
            always = kind == KeyKind.TEXT and text == "2"
            if always:
                self.trusted.add(self.work.wants.split(maxsplit=1)[0])
                self.work.answer(yes=True)
            elif kind in {KeyKind.ENTER, KeyKind.ESCAPE}:
                self.work.answer(yes=kind == KeyKind.ENTER)
            return False
        if kind in {KeyKind.TEXT, KeyKind.PASTE}:
            self.box += text
        elif kind == KeyKind.ENTER:
            return self.submit()
        elif kind == KeyKind.ERASE:
            self.box = ""
        else:
            self.note("key", text)
            self.interrupt()
        return False

    def submit(self) -> bool:
        prompt, self.box = self.box, ""
        return self.begin(prompt)

    def begin(self, prompt: str) -> bool:
        self.note("prompt", prompt)
        if prompt.strip() == "/exit":
            return True
        self.panel = prompt == "/help"
        if prompt and prompt not in {"/clear", "/help"}:
            self.waiting.append(prompt)
        return False

    def interrupt(self) -> None:
        if self.work is not None:
            self.work.stopped = True
            self.work = None
            self.hook("result", text="Interrupted.", failed=True)

    def tick(self) -> int | None:
        """An exit status ends the program."""
        if self.work is not None and self.work.over:
            ended, self.work = self.work, None
            status = ended.status
            if not ended.forgets:
                self.hook("result", text="Done.")
            if status is not None:
                return status
        if self.work is None and self.waiting:
            prompt = self.waiting.pop(0)
            self.hook("turn", text=prompt)
            self.screen_lines.append(f"> {_printable(prompt)}")
            self.work = Work(self, prompt)
        return None

    def draw(self) -> None:
        with suppress(OSError):
            columns, lines = os.get_terminal_size(0)
            bottom = self._bottom(columns)
            above = self.screen_lines[-max(1, lines - len(bottom) - 1) :]
            text = "\r\n".join(line[:columns] for line in [*above, "", *bottom][-lines:])
            if text != self.drawn:
                self.drawn = text
                row = next((n for n, line in enumerate(text.split("\r\n"), 1) if BOX in line), 1)
                column = 1 + len(BOX) + len(_printable(self.box))
                _write(f"\x1b[H\x1b[2J{text}\x1b[{row};{column}H")

    def _bottom(self, columns: int) -> list[str]:
        if self.panel:
            return ["   Shortcuts", "", "   Esc to cancel"]
        wide = min(columns, 100) - 2
        if self.work is not None and self.work.wants:
            question = f"Do you want to run {self.work.wants}?"
            always = f"  2. Yes, always run {self.work.wants.split(maxsplit=1)[0]}"
            return _box(["Permission", question, f"{POINTER} 1. Yes", always, "  3. No"], wide)
        box = _box([f"> {_printable(self.box)}"], wide)
        if self.work is None:
            return [*box, "  Type a prompt; /exit to leave"]
        turning = SPINNER[int(time.monotonic() / FRAME) % len(SPINNER)]
        more = f" · {len(self.waiting)} waiting" if self.waiting else ""
        return [f"{turning} Working… (esc to interrupt{more})", *box]


def _box(lines: list[str], wide: int) -> list[str]:
    inner = [f"│ {line[: wide - 2]:<{wide - 2}} │" for line in lines]
    return ["╭" + "─" * wide + "╮", *inner, "╰" + "─" * wide + "╯"]


def _lateness(prompt: str) -> float:
    verb, _, rest = prompt.partition("\n")[0].partition(" ")
    return float(rest) if verb == "late" and rest.isdecimal() else 0.0


def _printable(text: str) -> str:
    """The end of what is in the box; a long paste is only named."""
    if len(text) > 400 or text.count("\n") > 3:
        return f"[Pasted text, {len(text)} characters]"
    return "".join(c if c.isprintable() else "·" for c in text)[-60:]


def _write(text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(1, data) :]


def _options(words: list[str]) -> dict[str, str]:
    """Those without a value have an empty one."""
    options = {}
    while words:
        word = words.pop(0)
        if word not in OPTIONS:
            sys.exit(f"full_screen: there is no {word}")
        options[word] = "" if word in FLAGS else words.pop(0)
    return options


def main() -> int:
    options = _options(sys.argv[1:])
    if "--deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(float(options.get("--slow", 0)))
    before = termios.tcgetattr(0)
    where = os.path.join(os.environ.get("FLEET_RUN_DIR", "."), "transcript")  # noqa: PTH118  # pathlib is large
    with open(where, "a", encoding="utf-8") as transcript:  # noqa: PTH123  # likewise
        sys.stdout = transcript  # for the steps of a script
        tty.setraw(0)
        _write(ENTER_SCREEN)
        try:
            return FullScreenProgram(options, transcript).run(options.get("--", ""))
        except OSError:
            return 1  # its terminal is gone
        finally:
            sys.stdout = sys.__stdout__
            with suppress(OSError, termios.error):
                _write(LEAVE_SCREEN)
                termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    sys.exit(main())
