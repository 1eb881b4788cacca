"""The program `bd` (beads), for a database in the home. Never run against a real one here."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.processes import run as process
from fleet.domain.errors import Unavailable
from fleet.ports import Bead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BD_SECONDS = 30.0
ID = re.compile(r"\w[\w.-]*")  # it becomes an argument, and the name of a folder


def find_bd(env: Mapping[str, str], home: Path) -> str:
    """The real one, not ours for runs; raise `Unavailable` when there is none."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(f for f in folders if f and Path(f) != home / "bin")
    program = shutil.which("bd", path=path)
    if program is None:
        raise Unavailable(
            "The setting `queue` is beads, but bd is not on PATH.",
            fix="Install beads, or: fleet config set queue=fleet",
        )
    return program


def parse(text: str) -> list[Bead]:
    """Issues as `bd … --json` prints them: in an envelope or bare, one or many."""
    try:
        data = json.loads(text) if text.strip() else []
    except ValueError as error:
        raise Unavailable(f"bd printed no JSON: {text.strip()[:80]}") from error
    if isinstance(data, dict) and "data" in data and "id" not in data:
        data = data["data"]
    issues = data if isinstance(data, list) else [data] if data else []
    return [
        _bead(item)
        for item in issues
        if isinstance(item, dict) and ID.fullmatch(str(item.get("id", "")))
    ]


def _bead(item: Mapping[str, Any]) -> Bead:
    priority = item.get("priority", 2)
    return Bead(
        id=str(item["id"]),
        title=str(item.get("title") or ""),
        description=str(item.get("description") or ""),
        priority=priority if isinstance(priority, int) else 2,
    )


class BdProgram:
    """`places` says of a directory in which project it is, and whether that is a checkout."""

    def __init__(
        self,
        home: Path,
        env: Mapping[str, str],
        *,
        actor: str,
        places: Callable[[Path], Mapping[str, str]],
        deadline: float = BD_SECONDS,
    ) -> None:
        self._home, self._actor = home, actor
        self._places, self._deadline = places, deadline
        # Every supervisor has a name of its own: bd lets the same one claim twice.
        self._env = {**env, "BEADS_ACTOR": actor, "BD_JSON_ENVELOPE": "1"}
        self._env["BEADS_DIR"] = str(home / ".beads")

    def ready(self, limit: int) -> list[Bead]:
        return parse(self._must("ready", "--json", "--unassigned", "--limit", str(limit)))

    def held(self) -> list[Bead]:
        words = ("--status", "in_progress", "--assignee", self._actor, "--limit", "0")
        return parse(self._must("list", "--json", *words))

    def claim(self, bead: str) -> bool:
        return self._run("update", bead, "--claim").status == 0

    def tell(self, bead: str, act: str, text: str) -> None:
        match act:
            case "comment":
                self._must("comment", bead, "--", text)
            case "close":
                self._must("close", bead, f"--reason={text}")
            case "block":
                self._must("update", bead, "--status", "blocked", f"--notes={text}")
            case "release":
                self._must("update", bead, "--status", "open", "--assignee", "")
            case "resume":
                self._must("update", bead, "--status", "in_progress", "--assignee", self._actor)
            case _:
                raise ValueError(act)

    def wanted(self, bead: str) -> Mapping[str, str]:
        """What an earlier fleet recorded in `tasks/<id>/task.json`; else the home itself."""
        known: dict[str, str] = {}
        try:
            record = json.loads((self._home / "tasks" / bead / "task.json").read_text("utf-8"))
        except (OSError, ValueError):
            record = {}
        if isinstance(record, dict):
            known = {k: v for k in ("cwd", "coder", "model") if isinstance(v := record.get(k), str)}
        cwd = known.get("cwd") or str(self._home)
        return known | {"cwd": cwd} | dict(self._places(Path(cwd)))

    def _must(self, *words: str) -> str:
        done = self._run(*words)
        if done.status != 0:
            raise Unavailable(f"bd {words[0]}: {done.words}")
        return done.out

    def _run(self, *words: str) -> process.Done:
        argv = [find_bd(self._env, self._home), *words]
        return process.run(argv, self._home, env=self._env, timeout=self._deadline)
