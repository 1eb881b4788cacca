"""OpenCode with its screen: what a plugin of ours wrote is the run's transcript.

The plugin (`opencode_plugin.js`) is named, by its path, in the settings that this process alone is
given; it also brings the agent's instructions. OpenCode trusts every directory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.opencode.listener import OpenCodeListener
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGIN = Path(__file__).with_name("opencode_plugin.js")
INTERRUPTED = "It was interrupted."
ASKING = ("doom_loop",)  # a person decides


def plugin(instructions: str) -> list[Any]:
    return [PLUGIN.as_uri(), {"instructions": instructions}]


def rules(headless: dict[str, Any], granted: str) -> dict[str, Any]:
    """What is refused where nobody is there is asked about here, save editing without leave."""
    match granted:
        case "full":
            return {"*": "allow"}
        case "edit":
            outside = {**headless["external_directory"], "*": "ask"}
            return {"*": "allow", "external_directory": outside, **dict.fromkeys(ASKING, "ask")}
    commands = {**headless["bash"], "*": "ask", "*>*": "ask", "*<*": "ask"}
    talk = dict.fromkeys(("question", *ASKING), "ask")
    return {**headless, **talk, "question": "allow", "bash": commands}


class OpenCodeWatcher(OpenCodeListener):
    """`opening` names the session that is continued, if there is one."""

    def __init__(self, opening: dict[str, Any]) -> None:
        super().__init__(opening)
        self._session = str(opening.get("session", ""))
        self._announced = False
        self._wanted: dict[str, Said] = {}  # by their ids, what a person is asked about
        self._typed: set[str] = set()  # messages that are a person's

    def words(self, text: str) -> str | None:
        """What to paste before Enter; None while a person is being asked."""
        if self._wanted:
            return None
        return f" {text}" if text.startswith("!") else text  # it would run the rest as a command

    def _event(self, kind: str, properties: dict[str, Any], at: int) -> Iterator[Said]:
        if kind == "session.created" and not properties["info"].get("parentID"):
            self._session, self._announced = properties["info"]["id"], False
        if not self._announced and properties.get("sessionID") == self._session:
            self._announced = True
            yield Said(SaidKind.SESSION, self._session)
        match kind:
            case "permission.asked" | "question.asked":
                wish = self._wanted[properties["id"]] = _wish(properties)
                yield wish
            case "permission.replied" | "question.replied" | "question.rejected":
                self._wanted.pop(
                    properties.get("requestID") or properties.get("permissionID") or "", None
                )
                yield Said(SaidKind.ANSWERED)
                yield from list(self._wanted.values())[-1:]  # another one still waits
            case _:
                yield from self._otherwise(kind, properties, at)

    def _otherwise(self, kind: str, properties: dict[str, Any], at: int) -> Iterator[Said]:
        mine = properties.get("sessionID") == self._session
        if kind == "message.updated" and mine and properties["info"]["role"] == "user":
            self._typed.add(properties["info"]["id"])
        for item in super()._event(kind, properties, at):
            yield item
            if item.kind is SaidKind.TOOL_RESULT:
                yield from list(self._wanted.values())[-1:]  # another one still waits

    def _part(self, part: dict[str, Any]) -> Iterator[Said]:
        if part["type"] != "text" or part["messageID"] not in self._typed:
            yield from super()._part(part)
        elif not part.get("synthetic"):
            self._own_message = part["messageID"]
            yield from self._begins()
            yield Said(SaidKind.HEARD, part["text"])

    def _give_up(self, why: str, until: int) -> Iterator[Said]:
        """A person sees that it waits, and may wait with it."""
        del why, until
        return iter(())

    def _failed(self, error: dict[str, Any], at: int) -> Iterator[Said]:
        self._wanted.clear()
        if error.get("name") == "MessageAbortedError":
            self._error = INTERRUPTED
            return iter(())
        return super()._failed(error, at)


def _wish(properties: dict[str, Any]) -> Said:
    questions = " ".join(str(q.get("question", "")) for q in properties.get("questions", ()))
    name = str(properties.get("permission", "question"))
    about = questions or " ".join(map(str, properties.get("patterns", ())))
    return Said(SaidKind.WANTS, re.sub(r"\s+", " ", about).strip(), name=name)
