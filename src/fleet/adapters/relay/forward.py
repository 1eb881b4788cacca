"""One request: wait for a slot, try a node, and the next one until the client has got a byte."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.adapters.relay.line import NoNode
from fleet.adapters.relay.talk import Ended, FailedAnswer, Talk
from fleet.adapters.relay.wires import cost, tokens
from fleet.domain.nodes.breaker import Result
from fleet.domain.nodes.trace import Trace

if TYPE_CHECKING:
    from aiohttp import web

    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.line import Grant, Line
    from fleet.adapters.relay.nodes import World
    from fleet.adapters.relay.reply import Reply
    from fleet.adapters.relay.request import ModelRequest


@dataclass(slots=True)
class Forward:
    """`answer` does all of it; the trace records the result."""

    world: World
    line: Line
    connections: Connections
    request: ModelRequest
    reply: Reply
    trace: Trace
    began: float
    _failed: FailedAnswer | None = None  # the last error of a node
    _route: str = ""

    async def answer(self) -> web.StreamResponse:
        tried: set[str] = set()
        while True:
            waiting = time.monotonic()
            try:
                grant = await self.line.enter(self.request, tried)
            except NoNode as error:
                return await self._refused(error)
            finally:
                times = self.trace.times
                waited = times.wait + time.monotonic() - waiting
                self.trace.times = times._replace(wait=waited)
            self._chosen(grant)
            ended = await self._attempt(grant)
            if ended.response is not None:
                return ended.response
            self.trace.retries += 1
            self.trace.why.setdefault("failed", []).append(
                f"{grant.serving.node.name}: {ended.why}"
            )
            self._failed = ended.answer or self._failed
            if ended.result is not Result.BUSY or self._patience_over(grant):
                tried.add(grant.serving.node.name)

    def _patience_over(self, grant: Grant) -> bool:
        return time.monotonic() - self.began > grant.serving.timeout

    async def _attempt(self, grant: Grant) -> Ended:
        talk = Talk(self.connections, self.request, grant, self.reply, self._headers(grant))
        try:
            ended = await talk.run()
            self._learn(talk, grant, ended)
        finally:
            self.line.leave(grant.work)  # first: a slot that is not freed is lost for ever
            self._count(talk)
        return ended

    def _learn(self, talk: Talk, grant: Grant, ended: Ended) -> None:
        """Only the first node is blamed for a failure: the request itself may be the cause."""
        blamed = ended.result is not Result.FAILED or not self.trace.retries
        if ended.result is not None and blamed:
            grant.work.serving.node.note(ended.result, ended.why, ended.rest)
        if ended.result is Result.GOOD:
            grant.work.serving.learn(self.request, talk.reader, talk.clock, grant.work)
            self.world.answered(self.request, grant.serving.node.name, talk.reader)
        self._outcome(ended)

    def _outcome(self, ended: Ended) -> None:
        if ended.response is None:
            return
        self.trace.status = self.reply.status
        good = ended.result is Result.GOOD and not ended.why
        self.trace.outcome = "ok" if good else "failed"
        if not good:
            self.trace.why["error"] = ended.why

    def _chosen(self, grant: Grant) -> None:
        self._route = grant.route.explained
        self.trace.node = grant.serving.node.name
        self.trace.upstream = grant.serving.upstream
        self.trace.why["estimates"] = [
            {
                "node": e.node, "wait": round(e.wait, 3), "load": round(e.load, 3),
                "prefill": round(e.prefill, 3), "decode": round(e.decode, 3), "cached": e.cached,
            }
            for e in grant.route.estimates
        ]  # fmt: skip

    def _headers(self, grant: Grant) -> dict[str, str]:
        return {"x-fleet-node": grant.serving.node.name, "x-fleet-route": _plain(self._route)}

    def _count(self, talk: Talk) -> None:
        count = tokens(talk.reader.counts)
        self.trace.tokens = count._replace(prompt=count.prompt or self.request.prompt_tokens)
        self.trace.cost = cost(talk.reader.counts)
        if talk.first:
            first = talk.first - self.began
            self.trace.times = self.trace.times._replace(first=first)

    async def _refused(self, error: NoNode) -> web.StreamResponse:
        """Pass on the last error of a node if there is one; else say that no node can answer."""
        self.trace.why["error"] = str(error)
        if self._failed is not None:
            answer = self._failed
            self.trace.outcome, self.trace.status = "failed", answer.status
            headers = {"x-fleet-node": self.trace.node, "x-fleet-route": _plain(self._route)}
            return await self.reply.whole(answer.status, answer.body, answer.content_type, headers)
        self.trace.outcome, self.trace.status = "refused", 503
        failed = self.trace.why.get("failed", ())[-3:]
        more = [each for each in failed if each.partition(": ")[2] not in str(error)]
        why = "; ".join([str(error), *more])
        message = f"No node can answer for '{self.request.model}': {why}."
        return await self.reply.refuse(503, message, {}, max(error.after, 1.0))


def begun_trace(request: ModelRequest) -> Trace:
    at = time.time_ns() // 1000
    return Trace(at, request.agent, request.session, request.model, request.wire.name)


def _plain(text: str) -> str:
    """The text as a header can carry it."""
    return text.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:2000]
