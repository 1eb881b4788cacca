"""The rows of commands_NNN.toml and pending.txt, as values."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("spine", "work", "workspaces", "compute", "server", "dashboard", "foreign")
PROGRAMS = {"fleet": None, "flt": None, "subagent-fleet": None, "bd": "bd"}
PROGRAMS |= {"claude-fleet": "serve", "claude-fleet-mcp": "mcp"}
BARE_WORD = re.compile(r"[a-z]+(-[a-z]+)*")


@dataclass(frozen=True)
class Command:
    key: str
    line: str
    part: str
    of: str = ""
    form: str = "run"
    why: str = ""
    given: str = "repository"
    then: str = ""
    shows: tuple[str, ...] = ()
    exit: int = 0
    times: int = 1
    lasts: bool = False

    @property
    def typed(self) -> str:
        return f"{self.of} {self.line}" if self.of else self.line

    def calls(self) -> set[str]:
        """The names in our command table that this line needs."""
        names = set()
        for words in (line.split() for line in self.typed.splitlines()):
            if words and words[0] in PROGRAMS:
                name = PROGRAMS[words[0]]
                if name is None and len(words) > 1 and BARE_WORD.fullmatch(words[1]):
                    name = words[1]
                names |= {name} if name else set()
        return names


@dataclass(frozen=True)
class Seed:
    number: str
    lines: int
    printed: int
    reasons: dict[str, str]
    commands: tuple[Command, ...]


def read_seed(path: Path) -> Seed:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    number = data["seed"]
    commands = tuple(
        Command(key=f"{number}.{n}", **(row | {"shows": tuple(row.get("shows", ()))}))
        for n, row in enumerate(data["command"], 1)
    )
    return Seed(number, data["lines"], data["printed"], data["reasons"], commands)


SEEDS = tuple(read_seed(path) for path in sorted(HERE.glob("commands_*.toml")))
COMMANDS = tuple(command for seed in SEEDS for command in seed.commands)


def read_pending() -> tuple[int, list[tuple[str, str, str]]]:
    """The count that pending.txt states, and its rows: key, part, first line of the command."""
    stated, *rows = (
        line
        for line in (HERE / "pending.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    fields = [row.split(maxsplit=2) for row in rows]
    return int(stated.removeprefix("rows:")), [(key, part, text) for key, part, text in fields]


def pending_row(command: Command) -> tuple[str, str, str]:
    return command.key, command.part, command.typed.splitlines()[0]


if __name__ == "__main__":
    pending = {key for key, _, _ in read_pending()[1]}
    counts = Counter((c.part, c.key in pending) for c in COMMANDS)
    for part in PARTS:
        print(f"{part:<12}{counts[part, False]:4} run or foreign {counts[part, True]:4} pending")
