"""How the lines read that a program's hooks wrote, where those are of Claude Code's shape.

A turn is known by an id: of the prompt that began it, and of all that is done until it stops. A
prompt that comes while a turn goes on is heard at once; it joins that turn or becomes the next one,
which no hook announces but with another id.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from fleet.adapters.coders.claude.shapes import gist, text_of
from fleet.base.loose_json import Json, mapping, mappings, string
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTERRUPTED = "It was interrupted."
AT_ONCE = "dd ibs=65536 obs=4194304 2>/dev/null"  # gathers all of it, and writes it in one piece
APPEND = f'{AT_ONCE} >>"$FLEET_RUN_DIR/transcript"'


class Hooked:
    """`session` is the id that it was started with; only a start of its own gives it another."""

    turn_id: ClassVar[str]  # the key that names the turn
    binding: ClassVar[frozenset[str]] = frozenset({"startup", "resume", "clear", "fork"})

    def __init__(self, session: str) -> None:
        self._session = session
        self._begun = self._spoken = False
        self._turn: str | None = None  # the open one; empty: announced, its id not known yet
        self._tools: dict[str, tuple[str, Json]] = {}  # by their ids, those that run
        self._wanted: dict[str, Said] = {}  # likewise, those that a person is asked about

    def words(self, text: str) -> str | None:
        """What to paste before Enter; None while a person is being asked."""
        return None if self._wanted else text

    def hear(self, line: str) -> Sequence[Said]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return ()
        return tuple(self._read(record)) if isinstance(record, dict) else ()

    def _read(self, record: Json) -> Iterable[Said]:
        event = string(record.get("hook_event_name"))
        if not event:
            return self._followed(record)
        if event == "SessionStart":
            return self._start(record)
        if string(record.get("session_id")) != self._session:
            return ()  # of a program that this one started, perhaps
        return self._hooked(event, record)

    def _followed(self, record: Json) -> Iterable[Said]:
        """Read a line of the program's own record of the conversation."""
        raise NotImplementedError

    def _start(self, record: Json) -> Iterable[Said]:
        """Again after every compaction, which changes nothing."""
        if string(record.get("source")) not in self.binding:
            return
        yield from self._cut_short()
        self._session, self._begun = string(record.get("session_id")), True
        yield Said(SaidKind.SESSION, self._session)

    def _hooked(self, event: str, record: Json) -> Iterable[Said]:
        match event:
            case "UserPromptSubmit":
                yield from self._begin(record)
                yield from self._prompted(string(record.get("prompt")))
            case "PreToolUse":
                yield from self._begin(record)
                yield from self._tool(record)
            case "PermissionRequest":
                yield from self._begin(record)
                yield from self._ask(record)
            case "PostToolUse" | "PostToolUseFailure" | "PermissionDenied":
                yield from self._tool_ended(record, failed=event != "PostToolUse")
            case "Stop":
                yield from self._begin(record)
                yield self._result(string(record.get("last_assistant_message")))

    def _begin(self, record: Json) -> Iterable[Said]:
        turn = string(record.get(self.turn_id))
        if self._turn is not None and self._turn in {"", turn}:
            self._turn = turn
            return
        yield from self._cut_short()
        self._turn, self._spoken = turn, True
        yield Said(SaidKind.TURN)

    def _cut_short(self) -> Iterable[Said]:
        if self._turn is not None:
            yield self._result(INTERRUPTED, failed=True)

    def _result(self, text: str, *, failed: bool = False) -> Said:
        self._turn = None
        self._tools.clear()
        self._wanted.clear()
        return Said(SaidKind.RESULT, text, failed=failed)

    def _prompted(self, text: str) -> Iterable[Said]:
        yield Said(SaidKind.HEARD, text)

    def _tool(self, record: Json) -> Iterable[Said]:
        name, given = string(record.get("tool_name")), mapping(record.get("tool_input"))
        self._tools[string(record.get("tool_use_id"))] = name, given
        yield Said(SaidKind.TOOL, _about(given), name=name)

    def _ask(self, record: Json) -> Iterable[Said]:
        """The hook does not say which call it asks for: take the last one that looks the same."""
        name, given = string(record.get("tool_name")), mapping(record.get("tool_input"))
        same = [i for i, (n, g) in self._tools.items() if n == name and g.items() <= given.items()]
        wish = Said(SaidKind.WANTS, _about(given), name=name)
        self._wanted[same[-1] if same else ""] = wish
        yield wish

    def _tool_ended(self, record: Json, *, failed: bool) -> Iterable[Said]:
        ident, name = string(record.get("tool_use_id")), string(record.get("tool_name"))
        if self._tools.pop(ident, None) is None:
            return
        self._wanted.pop(ident, None)
        result = (
            record.get("error") or record.get("reason") if failed else record.get("tool_response")
        )
        yield Said(SaidKind.TOOL_RESULT, _text_of(result), name=name, failed=failed)
        yield from list(self._wanted.values())[-1:]  # another call still waits for an answer


def _about(given: Json) -> str:
    """What it asks a person about, or the one argument that tells what a call is about."""
    questions = [string(q.get("question")) for q in mappings(given.get("questions"))]
    return " ".join(filter(None, questions)) or gist(given)


def _text_of(result: object) -> str:
    if not isinstance(result, dict):
        return text_of(result)
    parts = (result.get("stdout"), result.get("stderr"), result.get("content"))
    text = "\n".join(part for part in parts if isinstance(part, str) and part)
    return text or text_of(result.get("content"))
