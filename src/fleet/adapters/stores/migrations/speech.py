"""Mail, chats' lines and checkpoints, which were entries, become messages. They keep their ids.

It knows the JSON of both as it was then, and no record of today: those go on changing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CARRIED = 1 << 62  # below every message's number, in the order in which they were made
NO_TASK = -2
PAGE = 500
STATES = {"pending": "open", "accepted": "closed", "rejected": "refused"}

SOME = "SELECT seq, id, version, kind, team, owner, body FROM entry WHERE seq > :seq ORDER BY seq LIMIT :page"
PUT = """
INSERT INTO message (seq, id, version, task, kind, state, team, topic, body)
VALUES (:seq, :id, :version, :task, :kind, :state, :team, :topic, :body)
"""
# A server or a supervisor of before may still run: rather refused than written where nobody looks.
GUARD = {
    "sqlite": """
CREATE TRIGGER entry_no_speech BEFORE INSERT ON entry
WHEN new.kind IN ('mail', 'saying', 'checkpoint')
BEGIN SELECT RAISE(ABORT, 'this store was upgraded: restart fleet'); END
""",
    "postgres": """
ALTER TABLE entry ADD CONSTRAINT this_store_was_upgraded_restart_fleet
CHECK (kind NOT IN ('mail', 'saying', 'checkpoint'))
""",
}


def carry(execute: Callable[..., Any]) -> None:
    seq = -1
    while some := execute(SOME, {"seq": seq, "page": PAGE}).fetchall():
        for seq, name, version, kind, team, topic, body in some:
            if kind not in MADE:
                continue
            entry = json.loads(body)
            message = MADE[kind](entry, entry["body"])
            values = {
                "seq": seq - CARRIED,
                "id": name,
                "version": version,
                "task": NO_TASK,
                "kind": message["kind"],
                "state": message["state"],
                "team": team,
                "topic": topic,
                "body": json.dumps(message, separators=(",", ":")),
            }
            execute(PUT, values)
    for kind in MADE:
        execute("DELETE FROM entry WHERE kind = :kind", {"kind": kind})


def _message(entry: dict[str, Any], kind: str, author: str, text: str) -> dict[str, Any]:
    return {
        "id": entry["id"],
        "task": "",
        "author": author,
        "kind": kind,
        "text": text,
        "state": "closed",
        "at": entry["at"],
        "team": entry["team"],
    }


def _mail(entry: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    read_at = body.get("read_at") or 0
    return {
        **_message(entry, "mail", body["sender"], body["text"]),
        "state": "closed" if read_at else "open",
        "to": entry["owner"],
        "subject": body["subject"],
        "closed_at": read_at,
    }


def _line(entry: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    return {
        **_message(entry, "chat", body["author"], body["text"]),
        "chat": entry["owner"],
        "data": body["data"],
        "closed_at": entry["at"],
    }


def _handoff(entry: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    return {
        **_message(entry, "handoff", body["sender"], body["summary"]["goal"]),
        "state": STATES[body["status"]],
        "to": entry["owner"],
        "data": {"task": body["task"]},
        "reason": body.get("why", ""),
        "closed_at": body.get("settled_at") or 0,
        "checkpoint": {"outline": body["summary"]},
    }


MADE = {"mail": _mail, "saying": _line, "checkpoint": _handoff}
