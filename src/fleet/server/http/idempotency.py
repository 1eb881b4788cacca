"""A request with a key is carried out once, however often it comes; the reply is kept for a day."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.domain.access import allow
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Refused
from fleet.domain.limits import TextLimit
from fleet.domain.limits.check import text_test
from fleet.operations.catalogue import find, perform
from fleet.operations.shared.entries import new_entry
from fleet.ports import Put
from fleet.server.http.codec import encode

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

    from fleet.operations.catalogue import Context, Request

DAY = 86_400_000_000
KEY = TextLimit(
    200,
    pattern="[!-~]*",
    what="Idempotency-Key header",
    example="Use up to 200 ASCII characters, without spaces.",
)
_check_key = text_test(KEY)
KEYS_PER_CLEANING = 64  # one in so many new keys removes the expired ones


def key_of(request: HttpRequest) -> str:
    """Return the Idempotency-Key header; raise `BadInput` when it is not valid."""
    key = request.headers.get("idempotency-key", "")
    _check_key("key", key)
    return key


def once(context: Context, request: Request[Any], key: str) -> Any:
    """Carry out a request unless its key is stored; then return the reply of the first time.

    The change and the key are written in one transaction: see `Writer`.
    """
    operation, actor, store = find(type(request)), context.actor, context.store
    allow(actor, operation.permission)
    name = encode([actor.name, operation.name, key]).decode()
    digest = hashlib.sha256(encode(request)).hexdigest()
    earlier, now = store.entry(EntryKind.ONCE, actor.team, name), store.now()
    if earlier is not None and earlier.counts(now):
        if earlier.body["request"] != digest:
            raise Refused(
                f"The key '{key[:60]}' was already used for another request.",
                fix="Use a new key for a new request.",
                code="repeated",
            )
        return msgspec.convert(msgspec.json.decode(earlier.body["reply"]), operation.reply)
    reply = perform(context, request)
    entry = earlier or new_entry(
        context, EntryKind.ONCE, team=actor.team, key=name, owner=actor.name
    )
    body = {"request": digest, "reply": encode(reply).decode()}
    store.commit([Put(replace(entry, at=now, until=now + DAY, body=body))], [])
    if earlier is None and int(entry.id.removeprefix("e-")) % KEYS_PER_CLEANING == 0:
        store.prune(EntryKind.ONCE, actor.team, now=now)
    return reply
