"""One request: wait for a slot, and try one node after another until the client gets a byte."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleet.adapters.relay import clock
from fleet.adapters.relay.line import NoNode
from fleet.adapters.relay.talk import AttemptEnd, FailedAnswer, RelayTalk
from fleet.adapters.relay.wires import cost, tokens
from fleet.domain.nodes.breaker import NodeResult
from fleet.domain.nodes.kinds import costs_money
from fleet.domain.nodes.trace import Trace, TraceSource

if TYPE_CHECKING:
    from aiohttp import web

    from fleet.adapters.relay.bodies import HeldBody
    from fleet.adapters.relay.connections import Connections
    from fleet.adapters.relay.line import LineArrival, SlotGrant, WaitingLine
    from fleet.adapters.relay.reply import RelayReply
    from fleet.adapters.relay.request import ModelRequest
    from fleet.adapters.relay.world import RelayWorld


HEDGE_AGAIN = 1.0  # seconds between looks for a free slot elsewhere
FAILED = {NodeResult.FAILED, NodeResult.SILENT}


@dataclass(slots=True, eq=False)
class _Run:
    """An attempt at one node."""

    grant: SlotGrant
    talk: RelayTalk
    task: asyncio.Task[AttemptEnd]

    @property
    def node(self) -> str:
        return self.grant.serving.node.name


@dataclass(slots=True)
class Forward:
    """Forwards one request, with `answer`; its trace records the result."""

    world: RelayWorld
    line: WaitingLine
    connections: Connections
    request: ModelRequest
    reply: RelayReply
    trace: Trace
    began: float
    request_body: HeldBody
    _failed: FailedAnswer | None = None  # the last error of a node
    _route: str = ""
    _runs: list[_Run] = field(default_factory=list)

    async def answer(self) -> web.StreamResponse:
        tried: set[str] = set()
        arrival = self.line.arrive()
        try:
            while True:
                try:
                    grant = await self._enter(tried, arrival)
                except NoNode as error:
                    return await self._refused(error)
                ended = await self._race(grant, tried)
                if ended.response is not None:
                    return ended.response
        finally:
            for run in list(self._runs):
                await self._drop(run, client_left=True)

    async def _enter(self, tried: set[str], arrival: LineArrival) -> SlotGrant:
        waiting = clock.now()
        try:
            return await self.line.enter(self.request, tried, arrival)
        except asyncio.CancelledError:
            if why := self.world.why_resting(self.request):
                self.trace.why["error"] = why  # its client lost patience with nodes, not by itself
            raise
        finally:
            times = self.trace.times
            self.trace.times = times._replace(wait=times.wait + clock.now() - waiting)

    async def _race(self, grant: SlotGrant, tried: set[str]) -> AttemptEnd:
        """Ask a node, and more while none of them answers; pass on the first answer."""
        self._begin(grant)
        while True:
            run = await self._first(tried)
            if run.talk.ready.done():
                return await self._won(run)
            ended = await self._over(run)
            self._note_failure(run, ended)
            if ended.result is not NodeResult.BUSY or self._patience_over(grant):
                tried.add(run.node)
            if not self._runs:
                return ended

    def _begin(self, grant: SlotGrant) -> None:
        self._chosen(grant)
        talk = RelayTalk(self.connections, self.request, grant, self.reply, self._headers(grant))
        self._runs.append(_Run(grant, talk, asyncio.create_task(talk.run())))

    async def _first(self, tried: set[str]) -> _Run:
        """Wait for the first attempt to answer or fail, asking a further node when that is late."""
        limit = self._runs[0].grant.work.limit
        while True:
            signs = {sign for run in self._runs for sign in (run.task, run.talk.ready)}
            alone = len(self._runs) == 1
            await asyncio.wait(
                signs, timeout=limit if alone else None, return_when=asyncio.FIRST_COMPLETED
            )
            for run in self._runs:
                if run.talk.ready.done() or run.task.done():
                    return run
            limit = HEDGE_AGAIN
            busy = tried | {run.node for run in self._runs}
            if any(costs_money(run.grant.serving.node) for run in self._runs):
                busy |= self.world.paid()  # so that no answer is paid for twice
            if (other := self.line.spare(self.request, busy)) is not None:
                self._begin(other)

    async def _won(self, run: _Run) -> AttemptEnd:
        """Cancel the other attempts, noting nodes that are overdue; pass on this one's answer."""
        took = clock.now() - run.talk.began
        for other in [each for each in self._runs if each is not run]:
            await self._drop(other, client_left=False, took=took)
        self._chosen(run.grant)
        self.request.body.clear()  # no other node will be asked
        self.request_body.let_go()
        run.talk.go()
        return await self._over(run)

    async def _drop(self, run: _Run, *, client_left: bool, took: float = 0.0) -> None:
        """Cancel an attempt, and blame its node if it is overdue.

        `took`: the seconds in which another node answered; one that had no more is not to blame.
        """
        self._runs.remove(run)
        silent = clock.now() - run.talk.began
        late = run.talk.overdue and silent > took
        run.task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await run.task
        why = f"it sent nothing for {silent:.0f} s"
        serving = run.grant.work.serving
        if late:
            serving.note(NodeResult.FAILED if client_left else NodeResult.SILENT, why)
        if late and client_left:
            self.trace.why["error"] = f"{run.node}: {why}"
        elif late:
            self._failure(run, why)
        if not run.talk.ready.done():
            serving.forget(self.request.owner)
        self.line.leave(run.grant.work)
        self._count(run.talk)

    async def _over(self, run: _Run) -> AttemptEnd:
        """Wait for an attempt to end, free its slot, and learn from its result."""
        try:
            ended = await run.task
            self._learn(run, ended)
        finally:
            if run in self._runs:
                self._runs.remove(run)
                self.line.leave(run.grant.work)  # a slot that is not freed is lost for ever
            self._count(run.talk)
        return ended

    def _note_failure(self, run: _Run, ended: AttemptEnd) -> None:
        self._failure(run, ended.why)
        self._failed = ended.answer or self._failed
        self.line.give_back(self.request)
        run.grant.work.serving.forget(self.request.owner)

    def _failure(self, run: _Run, why: str) -> None:
        self.trace.retries += 1
        self.trace.why.setdefault("failed", []).append(f"{run.node}: {why}")

    def _patience_over(self, grant: SlotGrant) -> bool:
        return clock.now() - self.began > grant.serving.timeout

    def _learn(self, run: _Run, ended: AttemptEnd) -> None:
        """Note the result; only the first failure counts, as the request may be the cause."""
        serving, grant = run.grant.work.serving, run.grant
        blamed = ended.result not in FAILED or not self.trace.retries
        if ended.result is not None and blamed:
            serving.note(ended.result, ended.why, ended.rest)
        if ended.result is NodeResult.BUSY:
            self.world.rest_same_key(grant.serving.node)
        if ended.result is NodeResult.GOOD:
            serving.learn(self.request, run.talk.reader, run.talk.clock, grant.work)
            self.world.answered(self.request, run.node, run.talk.reader)
        self._outcome(ended)

    def _outcome(self, ended: AttemptEnd) -> None:
        if ended.response is None:
            return
        self.trace.status = self.reply.status
        good = ended.result is NodeResult.GOOD and not ended.why
        self.trace.outcome = "ok" if good else "failed"
        if not good:
            self.trace.why["error"] = ended.why

    def _chosen(self, grant: SlotGrant) -> None:
        self._route = grant.route.explained
        self.trace.node = grant.serving.node.name
        self.trace.upstream = grant.serving.upstream
        self.trace.why["estimates"] = [
            {
                "node": e.node, "wait": round(e.wait, 3), "load": round(e.load, 3),
                "prefill": round(e.prefill, 3), "decode": round(e.decode, 3), "cached": e.cached,
                "evict": round(e.evict, 3), "weight": e.weight,
            }
            for e in grant.route.estimates
        ]  # fmt: skip

    def _headers(self, grant: SlotGrant) -> dict[str, str]:
        return {"x-fleet-node": grant.serving.node.name, "x-fleet-route": _plain(self._route)}

    def _count(self, talk: RelayTalk) -> None:
        if not talk.first and self.trace.tokens.prompt:
            return  # it sent nothing; another attempt's tokens are counted already
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
        if error.why.too_long:
            return await self._too_long(error)
        self.trace.outcome, self.trace.status = "refused", 503
        failed = self.trace.why.get("failed", ())[-3:]
        more = [each for each in failed if each.partition(": ")[2] not in str(error)]
        why = "; ".join([str(error), *more])
        message = f"No node can answer for '{self.request.model}': {why}."
        return await self.reply.refuse(503, message, {}, max(error.why.after, 1.0))

    async def _too_long(self, error: NoNode) -> web.StreamResponse:
        """Refuse a prompt that fits no context, in words that make clients compact it."""
        self.trace.outcome, self.trace.status = "refused", 400
        message = f"prompt is too long for '{self.request.model}': {error}."
        return await self.reply.refuse(400, message, {}, code="context_length_exceeded")


def begun_trace(request: ModelRequest, project: str) -> Trace:
    at = time.time_ns() // 1000
    names = (request.agent, request.session, request.model, request.wire.name)
    return Trace(at, *names, source=TraceSource(request.run, project))


def _plain(text: str) -> str:
    """The text as a header can carry it."""
    return text.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:2000]
