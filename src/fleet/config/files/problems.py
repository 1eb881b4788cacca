"""What is wrong in the configuration, all of it, each with its place and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadConfig

if TYPE_CHECKING:
    from collections.abc import Sequence


class SettingPlace(NamedTuple):
    """A file as a person would name it (or a variable, or a flag), and the line if it has one."""

    name: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


class Problem(NamedTuple):
    place: SettingPlace
    path: str  # of the setting; empty for the whole file
    message: str
    fix: str = ""

    def __str__(self) -> str:
        setting = f"{self.path}: " if self.path else ""
        return f"{self.place}: {setting}{self.message}"


class InvalidConfig(BadConfig):
    """One error for all that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.all = tuple(sorted(problems, key=lambda problem: problem.place))
        if len(self.all) == 1:
            super().__init__(str(self.all[0]), fix=self.all[0].fix)
            return
        lines = [f"The configuration has {len(self.all)} problems."]
        for problem in self.all:
            lines += [str(problem), *(f"  {line}" for line in problem.fix.splitlines())]
        super().__init__("\n".join(lines))


class Problems:
    def __init__(self) -> None:
        self.all: list[Problem] = []
        self.warnings: list[str] = []

    def add(self, at: SettingPlace, path: str, message: str, fix: str = "") -> None:
        problem = Problem(at, path, message, fix)
        if problem not in self.all:
            self.all.append(problem)

    def warn(self, at: SettingPlace, path: str, message: str) -> None:
        line = str(Problem(at, path, message))
        if line not in self.warnings:
            self.warnings.append(line)

    def about(self, path: str) -> bool:
        """Whether this setting, or something in it, is already known to be wrong."""
        return any(
            not p.path or p.path == path or p.path.startswith((f"{path}.", f"{path}["))
            for p in self.all
        )
