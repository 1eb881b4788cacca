"""How fast nodes are: nodes in parallel, the models of one node one after the other.

A machine with one slot must not be measured against itself.
"""

from __future__ import annotations

import json
import random
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.http import BAD, Asking, NoAnswer, OtherAnswer, error_words, refused_words
from fleet.adapters.nodes.side_by_side import SideBySide
from fleet.adapters.nodes.stream_timing import TimedReply
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable
from fleet.domain.nodes.benchmark import Measured, summed
from fleet.domain.nodes.inventory import holds, resident
from fleet.domain.nodes.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.domain.fleet import Node, Serving
    from fleet.domain.nodes.benchmark import SpeedSample
    from fleet.domain.nodes.inventory import Resident
    from fleet.domain.nodes.kinds import NodeKind
    from fleet.ports import Backend

LIST_SECONDS = 5.0  # seconds for a node to list its models
UNLOAD = 20.0
LOOK_SECONDS = 0.1
WAKE = "Reply with ok."
TEMPLATE = 64  # the most tokens that a chat template adds
# Short and common: about one token each, whatever the tokenizer.
WORDS = (
    "the and not you all can had her was one our out day get has him his how man new now old see "
    "two way who boy did its let put say she too use red cat dog sun sea sky tea pen map car bus"
)


class BenchmarkSize(NamedTuple):
    prompt: int = 512
    output: int = 64
    repeat: int = 3
    cold: bool = False  # unload it first, so that loading is measured


class BenchmarkStep(NamedTuple):
    """The progress of one serving."""

    row: Measured
    state: str = "waiting"  # then `measuring`, and at last `ok` or `failed`
    doing: str = ""


class Meter:
    """Sends one node the requests of a client, and measures the times."""

    def __init__(
        self, kind: str, endpoint: str, headers: Mapping[str, str], backend: Backend
    ) -> None:
        self.kind, self.backend = kind_of(kind), backend
        self.endpoint = endpoint.removesuffix("/v1")
        self.headers = headers

    def ask(self, serving: Serving, prompt: str, output: int) -> SpeedSample:
        """Send one request; raise `Unavailable` when the reply takes longer than the model may."""
        path, body = _request(self.kind, serving, prompt, output)
        with Streaming(self.endpoint, self.headers, within=serving.timeout) as asking:
            reply = TimedReply(time.monotonic())
            for line in asking.lines(path, body):
                reply.hear(line, time.monotonic())
        if reply.failed:
            raise OtherAnswer(f"its reply ended with an error: {reply.failed}")
        if not reply.done or reply.empty:
            raise NoAnswer("its reply was empty" if reply.done else "its reply broke off")
        return reply.sample(len(prompt.split()))

    def unload(self, upstream: str) -> None:
        """Only Ollama can unload a model, and it takes a moment."""
        if not self.kind.is_ollama:
            return
        with Asking(self.endpoint, self.headers, within=UNLOAD) as asking:
            asking.json("/api/generate", {"model": upstream, "keep_alive": 0, "stream": False})
            while resident(self.backend.look(within=asking.left), upstream) is not None:
                time.sleep(LOOK_SECONDS)


class Streaming(Asking):
    def lines(self, path: str, body: Mapping[str, Any]) -> Iterator[bytes]:
        """Return the lines of a reply as they arrive."""
        connection = self._connect()
        try:
            headers = {**self._headers, "Content-Type": "application/json"}
            target = self._parts.path.rstrip("/") + path
            connection.request("POST", target, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            if response.status >= BAD:
                raise OtherAnswer(refused_words(response.status, _json(response.read(1 << 16))))
            while line := response.readline():
                yield line
        except (OSError, HTTPException, ValueError) as error:
            if self._cut or isinstance(error, TimeoutError):
                raise NoAnswer(f"no whole answer within {self._within:g} s") from None
            raise NoAnswer(error_words(error)) from None
        finally:
            connection.close()


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def words(count: int, chance: random.Random) -> str:
    """Return a random text of about so many tokens, so that no prompt cache has its beginning."""
    return " ".join(chance.choices(WORDS.split(), k=max(1, count - 12))) + (
        "\nNow count upwards from one, in words, and do not stop."
    )


def _request(
    kind: NodeKind, serving: Serving, prompt: str, output: int
) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": prompt}]
    body: dict[str, Any] = {"model": serving.upstream, "messages": messages, "stream": True}
    if kind.is_ollama:
        # As in all our requests: another context would load it anew, a time would unload it.
        options = {"num_ctx": serving.context, "num_predict": output, "temperature": 0}
        return "/api/chat", body | {"keep_alive": -1, "options": options}
    body |= {"max_tokens": output, "temperature": 0, "stream_options": {"include_usage": True}}
    return "/v1/chat/completions", body | ({"ignore_eos": True} if kind.exact else {})


class Measuring(SideBySide[BenchmarkStep]):
    """A benchmark, begun at once. `steps`: the progress of each serving, in `wanted`'s order."""

    def __init__(
        self,
        wanted: Sequence[tuple[str, Serving]],
        meter: Callable[[Node], Meter],
        size: BenchmarkSize,
    ) -> None:
        self._wanted, self._meter, self._size = wanted, meter, size
        self._chance = random.Random()  # noqa: S311  # words that differ, no secret
        steps = [BenchmarkStep(_row(model, serving)) for model, serving in wanted]
        super().__init__([serving.node.endpoint for _, serving in wanted], steps)
        self.begin()

    def work(self, number: int) -> None:
        _, serving = self._wanted[number]
        try:
            row = self._measured(number, serving)
        except Unavailable as error:
            row = self.step(number).row._replace(why=error.message)
        state = "failed" if row.why else "ok"
        self.note(number, BenchmarkStep(row._replace(at=time.time_ns() // 1000), state))

    def _measured(self, number: int, serving: Serving) -> Measured:
        size, row = self._size, self.step(number).row
        if size.prompt + size.output + TEMPLATE > serving.context:
            reason = f"{size.prompt} and {size.output} tokens do not fit"
            raise OtherAnswer(f"{reason} into its context of {serving.context}")
        self.note(number, BenchmarkStep(row, "measuring", "looking"))
        meter = self._meter(serving.node)
        row = row._replace(load=self._load(number, meter, serving))
        fresh, again = [], []
        for turn in range(1, size.repeat + 1):
            self.note(number, BenchmarkStep(row, "measuring", f"{turn} of {size.repeat}"))
            prompt = words(size.prompt, self._chance)
            fresh.append(meter.ask(serving, prompt, size.output))
            again.append(meter.ask(serving, prompt, size.output))
        return summed(row, fresh, again)

    def _load(self, number: int, meter: Meter, serving: Serving) -> float:
        """Load the model; return the seconds, 0 when it was loaded or its server never unloads."""
        inventory = meter.backend.look(within=LIST_SECONDS)
        if not holds(inventory, serving.upstream):
            pull = f"; run `ollama pull {serving.upstream}` there" * meter.kind.is_ollama
            raise OtherAnswer(f"it does not have {serving.upstream}{pull}")
        loaded = resident(inventory, serving.upstream)
        if self._size.cold and loaded is not None:
            self.note(number, BenchmarkStep(self.step(number).row, "measuring", "unloading"))
            meter.unload(serving.upstream)
            loaded = None if meter.kind.is_ollama else loaded
        self.note(number, BenchmarkStep(self.step(number).row, "measuring", "loading"))
        sample = meter.ask(serving, WAKE, 4)
        if inventory.resident is None or _stays(loaded, serving, meter.kind):
            return 0.0
        return sample.timing.loading or sample.first


def _stays(loaded: Resident | None, serving: Serving, kind: NodeKind) -> bool:
    """Whether a request finds the model loaded; Ollama loads it anew for another context."""
    if loaded is None:
        return False
    return not kind.is_ollama or loaded.context in {0, serving.context}


def _row(model: str, serving: Serving) -> Measured:
    return Measured(serving.node.name, serving.node.endpoint, model, serving.upstream)
