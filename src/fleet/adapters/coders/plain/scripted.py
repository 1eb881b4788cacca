"""The built-in coder whose prompt is its script: for demos and tests, with no model behind it.

The program is `fleet.testing.scripted`; it prints one JSON object per line. In a terminal it is
`fleet.testing.full_screen`, whose hooks write such lines.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import first_words
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence


def _item(line: dict[str, Any]) -> Said:
    return Said(
        SaidKind(line["kind"]),
        text=str(line.get("text", "")),
        name=str(line.get("name", "")),
        usage=_usage(line["usage"]) if "usage" in line else None,
        failed=bool(line.get("failed")),
        resume_at=int(line.get("resume_at", 0)),
    )


def _usage(counts: dict[str, Any]) -> Usage:
    read, written, context = (int(counts.get(n, 0)) for n in ("input", "output", "context"))
    return Usage(read, written, context=context, usd=float(counts.get("usd", 0.0)))


class ScriptedScreen:
    """What the hooks of `fleet.testing.full_screen` wrote; words are typed to it."""

    def hear(self, line: str) -> Sequence[Said]:
        try:
            item = _item(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return ()
        if item.kind is SaidKind.TURN:  # a prompt that it took
            return Said(SaidKind.HEARD, item.text), item
        return (item,)

    def words(self, text: str) -> str | None:
        return text


class ScriptedCoder:
    name = "scripted"
    resumes = True
    stalls = True
    costs = True
    window = 128_000
    abilities = Abilities(
        program="Fleet's own script",
        resume="Yes.",
        words="No.",
        usage="As the script says.",
        cost="As the script says.",
        context="As the script says.",
        limits="As the script says.",
        read="Whatever the script does.",
        edit="Whatever the script does.",
        full="Whatever the script does.",
        verified="For demos and tests: there is no model behind it.",
    )

    def launch(self, brief: Brief) -> Launch:
        argv = [sys.executable, "-m", "fleet.testing.scripted"]
        if brief.session:
            argv += ["--resume", brief.session]
        prompt = json.dumps({"prompt": brief.prompt}) + "\n"
        return Launch(tuple(argv), brief.cwd, brief.env, stdin=prompt, keep_stdin=True)

    def launch_in_terminal(self, brief: Brief) -> Launch:
        argv = [sys.executable, "-m", "fleet.testing.full_screen"]
        if brief.session:
            argv += ["--resume", brief.session]
        prompt, paste = first_words(brief, when_resumed=False)
        argv += ["--", *prompt] if prompt else []
        return Launch(tuple(argv), brief.cwd, brief.env, stdin=paste, terminal=True)

    def watch(self, opening: str) -> ScriptedScreen:
        del opening
        return ScriptedScreen()

    def listen(self, opening: str) -> ScriptedCoder:
        del opening  # every line stands for itself
        return self

    def hear(self, line: str) -> Sequence[Said]:
        try:
            return (_item(json.loads(line)),)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return (Said(SaidKind.TEXT, line),) if line.strip() else ()

    def words(self, text: str) -> str | None:
        return json.dumps({"words": text}) + "\n"
