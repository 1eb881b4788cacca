"""The built-in coder whose prompt is its script: for demos and tests, with no model behind it.

The program is `fleet.testing.scripted`; it prints one JSON object per line.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence


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
            said = json.loads(line)
            usage = Usage(**said.pop("usage")) if "usage" in said else None
            return (Said(SaidKind(said.pop("kind")), usage=usage, **said),)
        except (ValueError, TypeError, KeyError, AttributeError):
            return (Said(SaidKind.TEXT, line),) if line.strip() else ()

    def words(self, text: str) -> str | None:
        del text  # it reads its script once
        return None
