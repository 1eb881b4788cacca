"""What a coder has for `fleet generate`, and which of an agent's tools it grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet.domain.fleet import Fleet
    from fleet.domain.generated.files import File


def _no_doubts(_: Fleet) -> Iterable[str]:
    return ()


class Generates(NamedTuple):
    """`files` is given the fleet and the name of the file that it comes from."""

    files: Callable[[Fleet, str], list[File]]
    start: str  # what starts the program, in a shell that has the gateway's variables
    doubts: Callable[[Fleet], Iterable[str]] = _no_doubts  # what will not be as it is declared
    exports: tuple[tuple[str, str], ...] = ()  # variables that name a generated file


class Tools(NamedTuple):
    """The tools that an agent can be given by name; the program drops others without a word."""

    names: frozenset[str] = frozenset()
    any_case: bool = False
    by_bash: frozenset[str] = frozenset()  # not granted beside Bash, which does the same
    instead: tuple[
        tuple[str, str], ...
    ] = ()  # a tool that it had once, and the one that it has now
    unheeded: str = ""  # why the program takes no list, and what it does instead

    def unknown(self, tools: Sequence[str]) -> list[str]:
        """The tools of this list that the program does not have; tools of MCP servers are not checked."""
        if not self.names:
            return []
        return [
            tool
            for tool in tools
            if not tool.startswith("mcp__") and self._plain(tool) not in self.names
        ]

    def granted(self, tools: Sequence[str]) -> tuple[str, ...]:
        """The tools that the agent will have when its program is given this list."""
        missing = self.unknown(tools)
        inside = self.by_bash if any(self._plain(tool) == "Bash" for tool in tools) else ()
        return tuple(tool for tool in tools if tool not in missing and tool not in inside)

    def _plain(self, tool: str) -> str:
        """`Bash(git:*)` is Bash."""
        name = tool.partition("(")[0]
        return name.lower() if self.any_case else name
