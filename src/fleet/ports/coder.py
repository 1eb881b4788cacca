"""Coding-agent programs: how to launch each, and how to read its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fleet.domain.data import NamedTuple
from fleet.ports.launcher import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.transcript import Said
    from fleet.ports.launcher import Launch


class Brief(NamedTuple):
    """What a coder is started with."""

    run_id: str
    prompt: str
    cwd: str
    task_dir: str
    model: str = ""
    instructions: str = ""
    session: str = ""  # the session of an earlier run, to be continued
    fork: bool = False  # `session` is another agent's: continue a copy of it
    env: Mapping[str, str] = NOTHING
    options: Mapping[str, object] = NOTHING


class Listener(Protocol):
    """A fold over the lines of one conversation, without effects, so it can be replayed."""

    def hear(self, line: str) -> Sequence[Said]: ...

    def words(self, text: str) -> str | None:
        """Return the input that sends this text to the coder; None if it takes no input now."""


class Coder(Protocol):
    """A coding-agent program that we can drive."""

    name: str
    resumes: bool  # it can continue an earlier conversation
    stalls: bool  # silence while no tool runs means that it hangs
    costs: bool  # it reports its cost, so that a budget in dollars can stop it
    window: int  # tokens of its context, unless the settings or the program say otherwise

    def launch(self, brief: Brief) -> Launch: ...

    def listen(self, opening: str) -> Listener:
        """Return a listener for the coder's lines, from the first; `opening`: see `Launch`."""


@runtime_checkable
class Forks(Protocol):
    """A coder that can continue a copy of a conversation in its terminal: see `Brief.fork`."""

    forks: bool


@runtime_checkable
class InTerminal(Protocol):
    """A coder with a screen, which people can attach to. The prompt is delivered once it is ready."""

    def launch_in_terminal(self, brief: Brief) -> Launch: ...

    def watch(self, opening: str) -> Listener:
        """Return a listener for the lines that its hooks write; `opening`: see `Launch`."""
