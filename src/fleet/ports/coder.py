"""Coding-agent programs: how each is launched and understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fleet.domain.data import NamedTuple
from fleet.ports.launcher import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.transcript import Said
    from fleet.ports.launcher import Launch


class Brief(NamedTuple):
    """What a coder is told when it starts."""

    run_id: str
    prompt: str
    cwd: str
    task_dir: str
    model: str = ""
    instructions: str = ""
    session: str = ""  # of an earlier run, to be continued
    fork: bool = False  # `session` is another agent's: continue a copy, and leave that one alone
    env: Mapping[str, str] = NOTHING
    options: Mapping[str, object] = NOTHING


class Listener(Protocol):
    """One conversation, as a fold over what the coder said: no effects, the same again on replay."""

    def hear(self, line: str) -> Sequence[Said]: ...

    def words(self, text: str) -> str | None:
        """How to say this to it now; None when it cannot be spoken to."""


class Coder(Protocol):
    """A coding-agent program that we can drive."""

    name: str
    resumes: bool  # an earlier conversation
    stalls: bool  # silence, with no tool running, means that it hangs
    costs: bool  # it says what it has cost, so that a budget in dollars can stop it
    window: int  # tokens of its context, where neither the settings nor the program say

    def launch(self, brief: Brief) -> Launch: ...

    def listen(self, opening: str) -> Listener:
        """A listener for the coder's lines, from the first; `opening` is the launch's."""


@runtime_checkable
class Forks(Protocol):
    """A coder that can continue a copy of a conversation in its terminal: see `Brief.fork`."""

    forks: bool


@runtime_checkable
class InTerminal(Protocol):
    """A coder with a screen, which people can attach to. The prompt is delivered once it is ready."""

    def launch_in_terminal(self, brief: Brief) -> Launch: ...

    def watch(self, opening: str) -> Listener:
        """Over the lines that its hooks wrote; `opening` is the launch's."""
