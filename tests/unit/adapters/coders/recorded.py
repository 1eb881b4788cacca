"""What the real programs said, line by line, and what it was read as."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleet.domain.transcript import Conversation, Said, hear

TRANSCRIPTS = Path(__file__).parents[3] / "transcripts"


@dataclass(frozen=True)
class Transcript:
    folder: Path

    def lines(self) -> list[str]:
        return (self.folder / "raw.jsonl").read_text().split("\n")

    def opening(self) -> str:
        file = self.folder / "opening"
        return file.read_text().strip() if file.exists() else ""

    def read(self, coder: Any) -> tuple[list[tuple[int, Said]], Conversation]:
        listener, heard, said = coder.listen(self.opening()), Conversation(), []
        for number, line in enumerate(self.lines(), 1):
            for one in listener.hear(line):
                said.append((number, one))
                heard = hear(heard, one)
        return said, heard

    def check(self, coder: Any) -> None:
        """Compare with what is expected, or (FLEET_GOLDEN=write) write that."""
        said, heard = self.read(coder)
        now = [{"line": number, **_plain(one)} for number, one in said]
        now.append({"comes_to": _plain(heard)})
        file = self.folder / "expected.jsonl"
        if os.environ.get("FLEET_GOLDEN") == "write":
            file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in now))
        assert now == [json.loads(line) for line in file.read_text().splitlines()]


def cases(coder: Any) -> list[Transcript]:
    folders = sorted(file.parent for file in (TRANSCRIPTS / coder.name).glob("*/raw.jsonl"))
    return [Transcript(folder) for folder in folders]


def _plain(value: Any) -> dict[str, Any]:
    """Without what is at its default; text that only the raw lines need is cut."""

    def small(one: Any) -> Any:
        if isinstance(one, str) and len(one) > 300:
            return f"{one[:300]}… ({len(one)})"
        if isinstance(one, float):
            return round(one, 9)
        return {k: small(v) for k, v in one.items() if v} if isinstance(one, dict) else one

    return small(asdict(value))
