"""Every step at which the chaos proof kills a process, by name.

A step is reached in a process of its victim: a supervisor around a call of one of its ports, a
keeper around one of its own steps, a coder around what it says. `kind` is the task that gets there.
"""

from __future__ import annotations

import os
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]  # what `tests` is imported from
NAP = 0.2


class Step(NamedTuple):
    """`at`: where, in the words of the victim's own process.

    `most`: how often one task gets there at least, so which of the times may be chosen.
    `first`: what must have happened: `running` (under a supervisor that was killed), or another
    step, of another victim, that is armed beside this one.
    """

    name: str
    victim: str
    at: str
    kind: str = "plain"
    most: int = 1
    first: str = ""


def _around(what: str, at: str, kind: str = "plain", most: int = 1, first: str = "") -> list[Step]:
    return [
        Step(f"{when} {what}", "supervisor", f"{when} {at}", kind, most, first)
        for when in ("before", "after")
    ]


SUPERVISOR = [
    *_around("registering its host", "commit host"),
    *_around("claiming", "commit claim", "dependent"),
    *_around("planning a workspace", "plan"),
    *_around("making a worktree", "prepare"),
    Step("while git adds a worktree", "supervisor", "within post-checkout"),
    Step("while git merges what a task waited for", "supervisor", "within post-merge", "dependent"),
    Step("while a set-up runs", "supervisor", "within set-up"),
    *_around("writing a task's folder", "begin"),
    *_around("launching", "launch"),
    Step("half-way through launching", "supervisor", "within launch"),
    *_around("writing that it started", "commit started"),
    *_around("noting that it took its prompt", "commit prompted"),
    *_around("looking at a run", "look", most=4),
    *_around("asking how its conversation opened", "opening"),
    Step("before reading its lines", "supervisor", "before read", most=3),
    Step("between two lines", "supervisor", "after read lines", most=2),
    *_around("writing down what was said", "add_to_transcript", most=2),
    *_around("reporting progress", "commit progress"),
    *_around("telling it words", "tell", "words"),
    Step("half-way through telling it words", "supervisor", "within tell", "words"),
    *_around("noting that words were heard", "commit heard words", "words"),
    *_around("noting that an answer was heard", "commit heard answer", "asks"),
    *_around("closing its input", "close", "lingers"),
    *_around("asking for its last commit", "tip"),
    *_around("launching its gate", "launch gate", "gate"),
    Step("while its gate runs", "supervisor", "after look gate", "gate", most=3),
    *_around("settling a run", "commit settle"),
    *_around("settling one that asks", "commit settle asked", "asks"),
    *_around("writing how it ended", "ended"),
    *_around("stopping a run", "stop", "cancelled"),
    *_around("ending what a keeper left", "end", first="while the coder works"),
    *_around("adopting a run", "commit adopt", "words", first="running"),
    *_around("writing an event into the logs", "note", most=3),
]
KEEPER = [
    Step("before it takes the run", "keeper", "before take"),
    Step("after it has taken the run", "keeper", "after take"),
    Step("before it starts the coder", "keeper", "before spawn"),
    Step("after it has started the coder", "keeper", "after spawn"),
    Step("half-way through feeding the coder", "keeper", "within feed"),
    Step("before it notes how far it fed", "keeper", "before note"),
    Step("after it has noted how far it fed", "keeper", "after note"),
    Step("while the coder works", "keeper", "after begun"),
    Step("while git holds the index", "keeper", "within clean"),
    Step("before it tells the coder to stop", "keeper", "before stop", "cancelled"),
    Step("after it has told the coder to stop", "keeper", "after stop", "cancelled"),
    Step("before it sweeps", "keeper", "before sweep", "spawns"),
    Step("after it has swept", "keeper", "after sweep", "spawns"),
    Step("before it records the exit", "keeper", "before finish"),
    Step("after it has recorded the exit", "keeper", "after finish"),
]
CODER = [
    Step("before it is its program", "coder", "before exec"),
    Step("before it says anything", "coder", "before saying"),
    Step("in the middle of a turn", "coder", "after text", most=3),
    Step("in the middle of a line", "coder", "within text", most=3),
    Step("while its tool runs", "coder", "during tool"),
    Step("while its child holds stdout", "coder", "after text", "spawns"),
    Step("after it has heard words", "coder", "after heard", "words"),
    Step("after it has asked", "coder", "after result", "asks"),
    Step("right after its result", "coder", "after result"),
]
GATE = [
    Step("before it takes the gate", "gate's keeper", "before take", "gate"),
    Step("after it has taken the gate", "gate's keeper", "after take", "gate"),
    Step("after it has started the gate", "gate's keeper", "after spawn", "gate"),
    Step("before it records the gate's exit", "gate's keeper", "before finish", "gate"),
    Step("while it works", "gate", "gate", "gate"),
]
STEPS = [*SUPERVISOR, *KEEPER, *CODER, *GATE]


def named(name: str) -> Step:
    return next(step for step in STEPS if step.name == name)


class Arm(NamedTuple):
    """A step to die at: the `nth` time, in a run of one of these tasks, and once in all.

    With `fill`, nobody dies there: the disk that the token is on gets full, but for `room` bytes.
    With `nap`, whoever gets there so often is slow from then on.
    """

    victim: str
    at: str
    token: str  # a file that is there once it has happened
    nth: int = 1
    tasks: tuple[str, ...] = ()
    act: str = "kill"
    room: int = 0


class KillSwitch:
    """Kills the process that it is in, with a real SIGKILL, when that gets to an armed step."""

    def __init__(self, arms: list[Arm], victim: str, run: str = "") -> None:
        task = run.split(".", maxsplit=1)[0]
        mine = [a for a in arms if a.victim == victim]
        self._arms = [a for a in mine if not run or task in a.tasks]
        # Threads reach steps at the same moment; each number is given out once.
        self._numbers = {arm: count(1) for arm in self._arms}

    def armed(self, at: str) -> list[Arm]:
        return [arm for arm in self._arms if arm.at == at]

    def reach(self, at: str) -> None:
        for arm in self.armed(at):
            number = next(self._numbers[arm])
            if arm.act == "nap" and number >= arm.nth:
                time.sleep(NAP)
            elif number == arm.nth:
                self.strike(arm)

    def strike(self, arm: Arm) -> None:
        try:
            os.close(os.open(arm.token, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        if arm.act == "fill":
            fill(f"{arm.token}.filling", arm.room)
            Path(f"{arm.token}.filling").rename(f"{arm.token}.filler")  # it is full by now
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def fill(filler: str, room: int = 0) -> None:
    """The disk that this file is on, but for so many bytes."""
    fd = os.open(filler, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    size = 1 << 20
    while size:
        try:
            os.write(fd, bytes(size))
        except OSError:
            size //= 2
    os.ftruncate(fd, os.fstat(fd).st_size - room)
    os.close(fd)


def arms_of(told: list[list[Any]]) -> list[Arm]:
    """As they came through JSON."""
    return [Arm(*arm)._replace(tasks=tuple(arm[4])) for arm in told]
