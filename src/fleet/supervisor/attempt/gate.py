"""The gate: a command that a run's work must pass before its task is done.

It runs under a keeper of its own, so that it outlives the supervisor, as a coder does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable
from fleet.domain.run import Ending
from fleet.ports import Launch, Presence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.run import Outcome
    from fleet.supervisor.parts import Parts

MAX_OUTPUT_CHARACTERS = 2000  # of the gate's output, kept in the outcome's detail


def gate_name(run_id: str) -> str:
    """The name under which the gate's keeper is launched."""
    return f"{run_id}.gate"


class Gate:
    def __init__(self, parts: Parts, run_id: str, command: str, *, limit: float) -> None:
        self._parts = parts
        self._name = gate_name(run_id)
        self._command = command
        self._limit = limit
        self._began: float | None = None
        self._late = False
        self._stopped = False

    def pass_through(
        self, outcome: Outcome, cwd: str, env: Mapping[str, str], *, stop: bool, grace: float
    ) -> Outcome | None:
        """The outcome once the gate has ended; None while it runs."""
        launcher = self._parts.launcher
        look = launcher.look(self._name)
        match look.presence:
            case Presence.NEVER:
                if stop:
                    return outcome
                return self._begin(outcome, self._launch(cwd, env))
            case Presence.ALIVE:
                self._stop_if_due(look.began, stop=stop, grace=grace)
            case Presence.EXITED if look.expired and not stop:
                return _lost(outcome, "Its gate was ended: its host could not reach the store.")
            case Presence.EXITED:
                passed = look.code == 0 or stop
                return outcome if passed else self._refused(outcome, look.code)
            case Presence.GONE if launcher.end(self._name):
                return _lost(outcome, "The keeper of its gate vanished.")
        return None

    def _begin(self, outcome: Outcome, launch: Launch) -> Outcome | None:
        """Launch the gate. If its keeper dies at once, the run is lost, and the task runs again."""
        launcher = self._parts.launcher
        try:
            launcher.launch(self._name, launch)
        except Unavailable as error:
            if launcher.end(self._name):
                return _lost(outcome, str(error))
        return None

    def _launch(self, cwd: str, env: Mapping[str, str]) -> Launch:
        return Launch(("sh", "-c", 'exec 2>&1; eval "$1"', "sh", self._command), cwd, env)

    def _stop_if_due(self, began: float | None, *, stop: bool, grace: float) -> None:
        """Stop the gate on `stop` or past its limit, counted from when any supervisor launched it."""
        now = self._parts.clock.since_boot()
        if self._began is None:
            self._began = now if began is None else began
        self._late = self._late or now - self._began > self._limit
        if (stop or self._late) and not self._stopped:
            self._parts.launcher.stop(self._name, grace=grace)
            self._stopped = True

    def _refused(self, outcome: Outcome, code: int | None) -> Outcome:
        how = f"took more than {self._limit:g} s" if self._late else f"exit status {code}"
        output = self._output()
        why = f"The gate did not pass ({self._command}): {how}.\n{output}".strip()
        return replace(outcome, ending=Ending.FAILED, detail=why, exit_code=code)

    def _output(self) -> str:
        offset, tail = 0, ""
        while True:
            chunk = self._parts.transcripts.read(self._name, offset, final=True)
            if chunk.offset == offset:
                return tail.strip()
            offset = chunk.offset
            tail = (tail + "\n".join(chunk.lines) + "\n")[-MAX_OUTPUT_CHARACTERS:]


def _lost(outcome: Outcome, why: str) -> Outcome:
    """Mark the run as lost. It keeps its checkpoint, so the next run continues from its work."""
    return replace(outcome, ending=Ending.LOST, detail=why, exit_code=None)
