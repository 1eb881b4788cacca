"""Check and read the events that forges send when a ticket was labelled."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Forbidden
from fleet.domain.forges.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FRESH_SECONDS = 12 * 3600.0  # less than repeated events are recognized for: see `idempotency`


class Labelled(NamedTuple):
    """A ticket got labels. `labels`: the new ones, or all if the forge does not say which are new.

    `who`: the names that the forge gives for the person who added them. `at`: seconds since 1970.
    """

    url: str
    labels: tuple[str, ...]
    who: tuple[str, ...]
    at: float


def is_signed(forge: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the sender of this event knows the secret. Header names are in lower case."""
    if not secret:
        return False
    header, before, is_secret = KINDS[forge].signature
    proof = secret
    if not is_secret:
        proof = before + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(headers.get(header, "").encode(), proof.encode())


def labelled(forge: str, payload: Any) -> Labelled | None:
    """The ticket that was labelled; None if the event is another one, or malformed."""
    try:
        return READERS[forge](payload)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def check(event: Labelled, *, people: Sequence[str], label: str, now: float) -> bool:
    """Whether the event asks for a task. Raise `Forbidden` when its sender may not, or it is too old."""
    if label not in event.labels:
        return False
    allowed = {name.casefold() for name in people}
    if not any(name.casefold() in allowed for name in event.who if name):
        raise Forbidden(
            f"{event.who[0][:60] or 'An unnamed user'} may not give agents work by a label.",
            fix="Add the name to the setting hooks.people.",
            code="not_allowed",
        )
    if event.at - now > FRESH_SECONDS:
        raise Forbidden(
            "The event is dated over 12 hours ahead of this server's clock.",
            fix="Set the clock of the server or of the forge.",
            code="stale_hook",
        )
    if not now - event.at <= FRESH_SECONDS:
        raise Forbidden(
            "The event is older than 12 hours.", fix="Take the label off and add it again.",
            code="stale_hook",
        )  # fmt: skip
    return True


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text.removesuffix(" UTC"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _github(payload: Any) -> Labelled | None:
    if payload["action"] != "labeled" or "issue" not in payload:
        return None
    issue = payload["issue"]
    who = (str(payload["sender"]["login"]),)
    label = (str(payload["label"]["name"]),)
    return Labelled(str(issue["html_url"]), label, who, _seconds(issue["updated_at"]))


def _gitea(payload: Any) -> Labelled | None:
    if payload["action"] != "label_updated":
        return None
    issue = payload["issue"]
    labels = tuple(str(label["name"]) for label in issue["labels"])
    who = (str(payload["sender"]["login"]),)
    return Labelled(str(issue["html_url"]), labels, who, _seconds(issue["updated_at"]))


def _gitlab(payload: Any) -> Labelled | None:
    if payload["object_kind"] != "issue":
        return None
    issue = payload["object_attributes"]
    if issue.get("action") == "open":
        new = {str(label["title"]) for label in payload.get("labels", ())}
    else:
        change = payload["changes"]["labels"]
        old = {str(label["title"]) for label in change["previous"]}
        new = {str(label["title"]) for label in change["current"]} - old
    who = (str(payload["user"]["username"]),)
    return Labelled(str(issue["url"]), tuple(sorted(new)), who, _seconds(issue["updated_at"]))


def _linear(payload: Any) -> Labelled | None:
    changed = payload["action"] == "create" or "labelIds" in payload.get("updatedFrom", {})
    if payload["type"] != "Issue" or not changed:
        return None
    data, actor = payload["data"], payload.get("actor") or {}
    labels = tuple(str(label["name"]) for label in data["labels"])
    who = tuple(str(actor.get(name) or "") for name in ("email", "name"))
    at = int(payload["webhookTimestamp"]) / 1000
    return Labelled(str(payload.get("url") or data["url"]), labels, who, at)


def _jira(payload: Any) -> Labelled | None:
    items = [item for item in payload["changelog"]["items"] if item["field"] == "labels"]
    if payload["webhookEvent"] != "jira:issue_updated" or not items:
        return None
    new = set(str(items[0]["toString"] or "").split()) - set(
        str(items[0]["fromString"] or "").split()
    )
    user, issue = payload["user"], payload["issue"]
    who = tuple(str(user.get(name) or "") for name in ("emailAddress", "name", "displayName"))
    site = str(issue["self"]).partition("/rest/")[0]
    at = int(payload["timestamp"]) / 1000
    return Labelled(f"{site}/browse/{issue['key']}", tuple(sorted(new)), who, at)


READERS: dict[str, Callable[[Any], Labelled | None]] = {
    "github": _github, "gitea": _gitea, "gitlab": _gitlab, "linear": _linear, "jira": _jira,
}  # fmt: skip
