"""The built-in coder whose prompt is its script: for demos and tests, with no model behind it.

The program is `fleet.testing.scripted`; it prints one JSON object per line.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence


def _said(line: dict[str, Any]) -> Said:
    return Said(
        SaidKind(line["kind"]),
        text=str(line.get("text", "")),
        name=str(line.get("name", "")),
        usage=Usage(**{k: int(v) for k, v in line["usage"].items()}) if "usage" in line else None,
        failed=bool(line.get("failed")),
        resume_at=int(line.get("resume_at", 0)),
    )


class ScriptedCoder:
    name = "scripted"
    resumes = True

    def launch(self, brief: Brief) -> Launch:
        argv = [sys.executable, "-m", "fleet.testing.scripted"]
        if brief.session:
            argv += ["--resume", brief.session]
        return Launch(tuple(argv), brief.cwd, brief.env, stdin=brief.prompt)

    def listen(self, opening: str) -> ScriptedCoder:
        del opening  # every line stands for itself
        return self

    def hear(self, line: str) -> Sequence[Said]:
        try:
            return (_said(json.loads(line)),)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return (Said(SaidKind.TEXT, line),) if line.strip() else ()

    def words(self, text: str) -> str | None:
        del text  # it reads its script once
        return None
