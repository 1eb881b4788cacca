"""A coder of the user's own, as the settings declare it: a command, and how its lines read.

How they read goes with the launch, so that a run is followed to its end whatever becomes of the
declaration meanwhile.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.plain.command import TextListener, fill
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.base.loose_json import number
from fleet.domain.errors import Refused
from fleet.domain.fleet import JsonSpot, OwnCoder
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.ports import Brief, Launch, Listener

LIMITED = re.compile(r"rate.?limit|too many requests|\b429\b|quota|usage limit", re.IGNORECASE)
COUNTED = ("input", "output", "cached", "context")
SESSION = "{session}"
LATEST = "latest"  # the session of a program that goes on with the last one of a directory
MISSING = object()


class CustomCoder:
    def __init__(self, own: OwnCoder) -> None:
        self._own = own
        self.name = own.name
        self.resumes = bool(own.resume)
        self.stalls = False  # nothing is known of its silences
        self.costs = "usd" in own.says
        self.estimates = not own.says
        self.window = own.window
        self.executable = own.command[0] if own.command else ""
        self.abilities = _abilities(own)

    def launch(self, brief: Brief) -> Launch:
        own = self._own
        if not own.command:
            raise Refused(
                f"The coder '{own.name}' is declared by a project that is not trusted.",
                fix="Read its fleet.yaml, then run `fleet trust` there.",
            )
        launch = fill(own.resume if brief.session else own.command, brief, instruct=True)
        # With an opening a run counts as ended only by a result, so there is none without one.
        return launch._replace(opening=_packed(own) if "result" in own.says else "")

    def listen(self, opening: str) -> Listener:
        own = _unpacked(self.name, opening) if opening else self._own
        unnamed = bool(own.resume) and not any(SESSION in word for word in own.resume)
        return JsonListener(own) if own.says else SessionListener() if unnamed else TextListener()


class SessionListener(TextListener):
    """Reads a program that decides itself which conversation to continue."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def hear(self, line: str) -> Sequence[Said]:
        begun, self._begun = self._begun, True
        return (*(() if begun else begin(LATEST)), *super().hear(line))


def begin(session: str) -> tuple[Said, ...]:
    """Report the session and the turn, once the program has taken its prompt."""
    return Said(SaidKind.TURN), Said(SaidKind.SESSION, session)


class JsonListener:
    """A fold: which conversation it is in, and whether a turn goes on, are all it remembers."""

    def __init__(self, own: OwnCoder) -> None:
        self._own = own
        self._turn = False
        self._session = ""

    def hear(self, line: str) -> Sequence[Said]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return (Said(SaidKind.TEXT, line),) if line.strip() else ()
        return tuple(self._read(record)) if isinstance(record, dict) else ()

    def words(self, text: str) -> str | None:
        del text  # it hears nothing once it has started
        return None

    def _read(self, line: dict[str, Any]) -> Iterator[Said]:
        values = {what: value for what, spot in self._own.says.items()
                if (value := _at(line, spot)) is not MISSING}  # fmt: skip
        if values and not self._turn:
            self._turn = True
            yield Said(SaidKind.TURN)
            if not any(SESSION in word for word in self._own.resume):
                yield Said(SaidKind.SESSION, LATEST)
        if (session := _text(values.get("session"))) and session != self._session:
            self._session = session
            yield Said(SaidKind.SESSION, session)
        yield from _spoken(values)
        if usage := _usage(values):
            yield Said(SaidKind.USAGE, usage=usage, total=self._own.counts == "total")
        if "result" in values:
            self._turn = False
            yield from _result(values)


def _spoken(values: dict[str, Any]) -> Iterator[Said]:
    if text := _text(values.get("thinking")):
        yield Said(SaidKind.THINKING, text)
    if text := _text(values.get("text")):
        yield Said(SaidKind.TEXT, text)
    if "tool" in values:
        yield Said(SaidKind.TOOL, name=_text(values["tool"]))
    if "tool_result" in values:
        yield Said(SaidKind.TOOL_RESULT, _text(values["tool_result"]))
    if (text := _text(values.get("error"))) and "result" not in values:
        yield Said(SaidKind.LIMIT if LIMITED.search(text) else SaidKind.ERROR, text)


def _result(values: dict[str, Any]) -> Iterator[Said]:
    text, error = _text(values["result"]), _text(values.get("error"))
    failed = bool(error) or values.get("failed") not in (
        None,
        False,
        0,
        "",
        "false",
        "success",
        "ok",
    )
    if failed and LIMITED.search(error or text):
        yield Said(SaidKind.LIMIT, error or text)
    yield Said(SaidKind.RESULT, error or text, failed=failed)


def _usage(values: dict[str, Any]) -> Usage | None:
    read, written, cached, context = (int(_number(values.get(name))) for name in COUNTED)
    usage = Usage(read, written, cached, context, _number(values.get("usd")))
    return usage if usage != Usage() else None


def _number(value: Any) -> float:
    return 0.0 if isinstance(value, bool) else number(value)


def _text(value: Any) -> str:
    if value is None or value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _at(line: dict[str, Any], spot: JsonSpot) -> Any:
    for path, value in spot.when:
        actual = _walk(line, path)
        if actual is MISSING or _text(actual) != value:
            return MISSING
    return _walk(line, spot.path) if spot.path else ""


def _walk(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def _packed(own: OwnCoder) -> str:
    return json.dumps({"resume": own.resume, "says": own.says, "counts": own.counts}, default=dict)


def _unpacked(name: str, opening: str) -> OwnCoder:
    record = json.loads(opening)
    says = {
        what: JsonSpot(tuple(path), tuple((tuple(key), value) for key, value in when))
        for what, (path, when) in record["says"].items()
    }
    return OwnCoder(name, (), tuple(record["resume"]), says, record["counts"])


def _abilities(own: OwnCoder) -> Abilities:
    says = own.says
    counted = any(name in says for name in COUNTED[:3])
    context = "As its lines say." if "context" in says else "Not known."
    return Abilities(
        program=" ".join(own.command) or "Declared by a project that is not trusted",
        resume="By `resume:`, on the same host." if own.resume else "No.",
        words="No.",
        usage="As its lines say." if counted else "Never.",
        cost="As its lines say." if "usd" in says else "Never.",
        context=context if says else "Estimated from what it prints, at about four characters a "
        "token.",
        limits="From the words of its errors." if "error" in says or "result" in says
        else "No: it is known by its exit status alone.",
        read="Whatever the command does; `{permissions}` in it becomes `read`.",
        edit="Whatever the command does; `{permissions}` in it becomes `edit`.",
        full="Whatever the command does; `{permissions}` in it becomes `full`.",
        verified="As its declaration says.",
    )  # fmt: skip
