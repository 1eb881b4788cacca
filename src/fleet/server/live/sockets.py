"""`/ws`: the events over a WebSocket. The first frame says who it is; nothing is said before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from fleet.domain.access import Permission, allow, sees
from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, FleetError, Forbidden, NotFound, Refused
from fleet.operations.messages.addresses import own_names, reader_of
from fleet.operations.team.members import uid_of
from fleet.server.http.codec import encode, object_of
from fleet.server.http.connections import GUEST
from fleet.server.http.guard import DENIAL
from fleet.server.http.problem import TYPE, problem, problem_of, status_of
from fleet.server.http.wire import TRANSPORT
from fleet.server.live.feeds import FEEDS
from fleet.server.live.frames import Wrap, view_of
from fleet.server.live.sse import refuse_token_in, state_at
from fleet.server.live.stream import StreamReader
from fleet.server.live.transcripts import Outputs
from fleet.server.live.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fleet.domain.access import Actor
    from fleet.ports import Store, Transcripts
    from fleet.server.http.guard import Receive, Scope, Send
    from fleet.server.live.frames import EventForms, View
    from fleet.server.live.sse import State
    from fleet.server.live.stream import ReaderEnd, Streams
    from fleet.server.live.watches import Perform
    from fleet.server.read_queue import Reads
    from fleet.server.tokens import TokenGrant

TOPICS = 100  # of one socket
MOST_SINCE = 3600  # seconds of missed changes; a client that missed more loads all rows
AUTH_SECONDS = 5.0  # for the first frame
POLICY, RESTART, LATER = 1008, 1012, 1013  # why it is closed
CODES = {"slow_reader": LATER, "stopping": RESTART, "too_many_streams": LATER}
AUTH = 'The first frame is {"type": "auth", "token": "…"}.'


class Sockets:
    """`admit` checks a token and counts the request; `reads` reads the store.

    `perform` carries out a read for an actor, if it may.
    """

    def __init__(
        self,
        streams: Streams,
        admit: Callable[[str], Awaitable[TokenGrant]],
        state: State,
        reads: Reads,
        transcripts: Callable[[], Transcripts],
        perform: Perform,
    ) -> None:
        self.streams, self.admit, self.state, self.reads = streams, admit, state, reads
        self.outputs = Outputs(reads, transcripts)
        self.watches = Watches(streams, perform)
        self.patience = AUTH_SECONDS  # seconds for a client to send its token
        self.other_topic = ""  # how clients of another program call a frame's `topic`

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            frame = problem(426, "no_socket", "This path is a WebSocket.", fix=AUTH)
            await Response(encode(frame), 426, {"upgrade": "websocket"}, TYPE)(scope, receive, send)
            return
        await receive()  # that it wants to connect
        try:
            refuse_token_in(HTTPConnection(scope))
        except BadInput as error:
            await _deny(send, error)
            return
        await send({"type": "websocket.accept"})
        await _Talk(self, scope["state"], receive, send).run()


class SocketGone(Exception):
    """The client has disconnected."""


class _Talk:
    def __init__(
        self, sockets: Sockets, state: Mapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self._sockets, self._streams, self._outputs = sockets, sockets.streams, sockets.outputs
        self._transport, self._guest = state[TRANSPORT], state[GUEST]
        self._receive, self._send = receive, send

    async def run(self) -> None:
        try:
            async with asyncio.timeout(self._sockets.patience):
                frame = await self._heard()
            await self._welcome(frame)
        except TimeoutError:
            await self._close(POLICY, f"The socket did not authenticate in time. {AUTH}")
        except (SocketGone, OSError):
            return
        except (FleetError, HTTPException) as error:
            code = getattr(error, "code", "")
            await self._close(CODES.get(code, POLICY), _sentence(error), code=code)

    async def _welcome(self, frame: Mapping[str, Any]) -> None:
        token = frame.get("token")
        if frame.get("type") != "auth" or not isinstance(token, str):
            raise Forbidden(AUTH, code="no_token")
        grant = await self._sockets.admit(token)
        self._guest.prove()
        allow(grant.actor, Permission.READ)
        with self._streams.one_of(grant.actor):
            await self._hear(frame, token, grant.actor)

    async def _hear(self, frame: Mapping[str, Any], token: str, actor: Actor) -> None:
        after, topics = _number(frame), _topics(frame)
        number = await self._streams.start_of(after)
        await self._must_hear(actor, topics)
        state = self._sockets.state
        bare = after is not None or frame.get("state") is False
        opening = {} if bare else await state_at(self._streams, state, actor)
        number = opening.get("number", number)
        reading = await self._sockets.reads.do(_who(actor), lambda store: reader_of(store, actor))
        view = view_of(actor, Wrap.FRAMES, reading)
        view = view._replace(topics=frozenset((topic, number) for topic in topics))
        reader = StreamReader(self._transport, view, token, number, self._last_words)
        self._streams.admit(reader)
        try:
            uid = uid_of(actor.team, actor.name)
            await self._say({"type": "authenticated", "uid": uid, "number": number})
            if opening:
                await self._say({"type": "state", **opening})
            await self._streams.join(reader)
            for topic in topics:
                await self._listen(reader, actor, topic)
            await self._talk(reader, actor)
        finally:
            self._streams.leave(reader)
            self._outputs.leave(reader)
            self._sockets.watches.leave(reader)

    async def _talk(self, reader: StreamReader, actor: Actor) -> None:
        while True:
            try:
                frame = await self._heard()
                await self._sockets.admit(reader.token)
                await self._answer(reader, actor, frame)
            except Forbidden as error:
                if error.code in {"forged", "forbidden"}:
                    await self._error(error)
                else:  # the token has expired or is revoked: the tick ends the connection
                    await asyncio.sleep(0)
            except (FleetError, HTTPException) as error:
                await self._error(error)

    async def _answer(self, reader: StreamReader, actor: Actor, frame: Mapping[str, Any]) -> None:
        match frame.get("type"):
            case "ping":
                await self._say({"type": "pong"})
            case "subscribe":
                async with reader.turn:
                    await self._subscribe(reader, actor, frame)
            case "unsubscribe":
                topic = _topic(frame)
                left = frozenset(t for t in reader.view.topics if t[0] != topic)
                self._streams.refile(reader, reader.view._replace(topics=left))
                self._outputs.leave(reader, topic)
                await self._say({"type": "unsubscribed", **self._named(topic)})
            case "watch":
                await self._watch(reader, actor, frame)
            case "unwatch":
                kind, name = _watched(frame)
                self._sockets.watches.unwatch(reader, kind, name)
                await self._say({"type": "unwatched", kind: name})
            case "auth":
                raise Refused("This socket is already authenticated.", fix="Open another socket.")
            case other:
                raise BadInput(
                    f"There is no frame '{str(other)[:60]}'.",
                    fix="Send auth, subscribe, unsubscribe, watch, unwatch or ping.",
                )

    async def _watch(self, reader: StreamReader, actor: Actor, frame: Mapping[str, Any]) -> None:
        kind, name = _watched(frame)
        watches = self._sockets.watches
        if kind == "rows":
            changed = await watches.watch_rows(reader, actor, _since(frame["rows"]))
            await self._say({"type": "watching", kind: name, "changed": changed})
        else:
            await watches.watch(reader, actor, kind, name, _number(frame) or 0)
            await self._say({"type": "watching", kind: name})

    async def _subscribe(
        self, reader: StreamReader, actor: Actor, frame: Mapping[str, Any]
    ) -> None:
        """Send the topic's events after `after`, if given, then the reply, then new events."""
        topic, after, uid = _topic(frame), _number(frame), frame.get("uid")
        if uid and uid != uid_of(actor.team, actor.name):
            raise Forbidden(f"{str(uid)[:60]} is not {actor.name}.", code="forged")
        await self._must_hear(actor, (topic,))
        view = reader.view
        known = any(name == topic for name, _ in view.topics)
        if not known and len(view.topics) >= TOPICS:
            raise Refused(f"A socket has at most {TOPICS} topics.", fix="Unsubscribe from some.")
        answer = {"type": "subscribed", **self._named(topic), "number": reader.number}
        if known:
            await self._say(answer)
            return
        self._streams.pause(reader)
        try:
            since = reader.number if after is None else min(after, reader.number)
            wider = view._replace(topics=view.topics | {(topic, since)})
            await self._streams.replay(reader, since, lambda heard: _new(heard, view, wider))
            reader.view = wider
            await self._say(answer | {"number": reader.number})
        finally:
            self._streams.resume(reader)
        await self._listen(reader, actor, topic)

    async def _listen(self, reader: StreamReader, actor: Actor, topic: str) -> None:
        """Send the transcript of the topic, if that is a task that the actor may see."""

        def is_seen(store: Store) -> bool:
            task = store.tasks_by_id([topic]).get(topic)
            return task is not None and sees(actor, task.team)

        if await self._sockets.reads.do(_who(actor), is_seen, kind="topics"):
            await self._outputs.listen(reader, topic)

    async def _must_hear(self, actor: Actor, topics: tuple[str, ...]) -> None:
        def check(store: Store) -> None:
            for topic in topics:
                _check_hears(store, actor, topic)

        await self._sockets.reads.do(_who(actor), check, kind="topics")

    async def _heard(self) -> dict[str, Any]:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise SocketGone
        text = message.get("text")
        if text is None:
            raise BadInput("Frames must be JSON text.", fix=AUTH, code="not_json")
        frame = object_of(text.encode())
        other = frame.get(self._sockets.other_topic)
        return frame | {"topic": other} if other else frame

    def _named(self, topic: str) -> dict[str, str]:
        other = self._sockets.other_topic
        return {"topic": topic} | ({other: topic} if other else {})

    async def _say(self, frame: Mapping[str, Any]) -> None:
        await self._send({"type": "websocket.send", "text": encode(frame).decode()})

    async def _error(self, error: FleetError | HTTPException, **more: Any) -> None:
        code = getattr(error, "code", "too_many_requests")
        await self._say({"type": "error", "message": _sentence(error), "code": code, **more})

    async def _close(self, number: int, frame: str, **more: Any) -> None:
        await self._say({"type": "error", "message": frame, **more})
        await self._send({"type": "websocket.close", "code": number, "reason": frame[:60]})

    async def _last_words(self, ending: ReaderEnd) -> None:
        number = CODES.get(ending.code, POLICY)
        await self._close(number, ending.said, code=ending.code, after=ending.after)


def _who(actor: Actor) -> str:
    """Return the name under which the actor's reads are queued."""
    return f"{actor.team}/{actor.name}"


def _check_hears(store: Store, actor: Actor, topic: str) -> None:
    """Raise `NotFound` for a chat that the actor is not in, or a task of another team."""
    chat = store.entry(EntryKind.CHAT, actor.team, topic)
    if chat is not None:
        names = chat.body["participants"]
        if names and set(names).isdisjoint(own_names(store, actor)):
            raise NotFound(f"You have no chat '{topic[:60]}'.")


def _new(heard: EventForms, before: View, after: View) -> bool:
    return bool(heard.topics) and after.hears(heard) and not before.hears(heard)


def _topic(frame: Mapping[str, Any]) -> str:
    name = frame.get("topic")
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise BadInput(
            "The frame has no `topic`.", fix="Give the id of a chat, a task or a swarm, or `team`."
        )
    return name


def _watched(frame: Mapping[str, Any]) -> tuple[str, str]:
    for kind in ("said", "screen"):
        name = frame.get(kind)
        if isinstance(name, str) and 0 < len(name) <= 200:
            return kind, name
    for kind in ("rows", *FEEDS):
        if kind in frame:
            return kind, ""
    raise BadInput(
        "The frame names nothing to watch.",
        fix="Give `rows`, `nodes`, `traces` or `land`, or a run as `said` or `screen`.",
    )


def _since(rows: object) -> int:
    """Return how many seconds of changes the client has missed; raise `BadInput`."""
    since = rows.get("since", 0) if isinstance(rows, dict) else 0
    if isinstance(since, bool) or not isinstance(since, int) or not 0 <= since <= MOST_SINCE:
        raise BadInput(f"`since` is 0 to {MOST_SINCE} seconds.", fix="Leave it out, and load all.")
    return since


def _topics(frame: Mapping[str, Any]) -> tuple[str, ...]:
    names = frame.get("topics", [])
    if not isinstance(names, list) or len(names) > TOPICS:
        raise BadInput(f"`topics` is a list of at most {TOPICS} names.")
    return tuple(_topic({"topic": name}) for name in names)


def _number(frame: Mapping[str, Any]) -> int | None:
    after = frame.get("after")
    if after is None:
        return None
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < 1 << 60:
        raise BadInput("`after` is not the number of an event.", fix="Leave it out.")
    return after


def _sentence(error: FleetError | HTTPException) -> str:
    if isinstance(error, HTTPException):
        return "Too many frames. Wait a little."
    message = error.public or error.message
    return f"{message} {error.fix}" if error.fix else message


async def _deny(send: Send, error: FleetError) -> None:
    headers = [(b"content-type", TYPE.encode()), (b"connection", b"close")]
    status = status_of(error)
    await send({"type": f"{DENIAL}.start", "status": status, "headers": headers})
    await send({"type": f"{DENIAL}.body", "body": encode(problem_of(error))})
