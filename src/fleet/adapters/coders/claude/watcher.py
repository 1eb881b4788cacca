"""Read the lines of Claude Code's hooks, and its own record of the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.coders.claude.shapes import added, model_tokens, tokens
from fleet.adapters.coders.shared.hook_lines import Hooked
from fleet.base.loose_json import Json, mapping, mappings, number, string
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_PEOPLE = "<task-notification>"  # what it tells itself, as if it were a prompt


class ClaudeWatcher(Hooked):
    turn_id = "prompt_id"

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self._replies: dict[str, Usage] = {}  # of the model, as last told
        self._costs: dict[str, float] = {}  # by session
        self._before = 0.0  # what a resumed session had cost

    def words(self, text: str) -> str | None:
        """None until Claude is ready, too.

        It drops blanks at the end, and takes a backslash there, with Enter, for a new line.
        """
        if not self._begun or self._wanted:
            return None
        text = f" {text}" if text.startswith("!") else text  # it would run the rest as a command
        return f"{text} " if text.endswith("\\") else text

    def _hooked(self, event: str, record: Json) -> Iterable[Said]:
        match event:
            case "StopFailure":
                yield from self._fail(record)
            case "Notification":
                yield from self._notified(record)
            case _:
                yield from super()._hooked(event, record)
        tasks = mappings(record.get("background_tasks")) if event == "Stop" else ()
        if any(t.get("type") == "subagent" and t.get("status") == "running" for t in tasks):
            self._turn = ""  # when that agent has ended, it goes on by itself
            yield Said(SaidKind.TURN)

    def _prompted(self, text: str) -> Iterable[Said]:
        return () if text.startswith(NOT_PEOPLE) else super()._prompted(text)

    def _fail(self, record: Json) -> Iterable[Said]:
        text = string(record.get("last_assistant_message")) or string(record.get("error"))
        yield from self._begin(record)
        if record.get("error") == "rate_limit":
            yield Said(SaidKind.LIMIT, text)
        elif text.lower().startswith("prompt is too long"):
            yield Said(SaidKind.FULL, text)
        yield self._result(text, failed=True)

    def _notified(self, record: Json) -> Iterable[Said]:
        match record.get("notification_type"):
            case "permission_prompt" | "elicitation_dialog" if not self._wanted:
                yield Said(SaidKind.WANTS, string(record.get("message")))
            case "idle_prompt" if not self._wanted and self._turn:
                yield from self._cut_short()  # a minute ago, and nothing else told

    def _followed(self, record: Json) -> Iterable[Said]:
        if string(record.get("sessionId")) != self._session:
            return
        match record.get("type"):
            case "user" if self._turn and record.get("promptId") == self._turn:
                yield from self._cut_short()
            case "assistant" if not record.get("isApiErrorMessage"):
                yield self._count(mapping(record.get("message")))
            case "cost-state":
                yield from self._charge(record)

    def _count(self, reply: Json) -> Said:
        """Count a reply's usage: it has a line for each of its parts, of which the last has the total."""
        used = tokens(mapping(reply.get("usage")))
        self._replies[string(reply.get("id"))] = used
        return self._usage(used.input + used.cached)

    def _usage(self, context: int = 0) -> Said:
        total = Usage()
        for one in self._replies.values():
            total = added(total, one)
        usd = max(0.0, sum(self._costs.values()) - self._before)
        counted = Usage(total.input, total.output, total.cached, context, usd=usd)
        return Said(SaidKind.USAGE, usage=counted, total=True)

    def _charge(self, record: Json) -> Iterable[Said]:
        """The cost of the whole session, its agents' replies too; Claude writes it when it ends."""
        cost = number(record.get("totalCostUSD"))
        models = [model_tokens(mapping(m)) for m in mapping(record.get("modelUsage")).values()]
        if models and all(m.usd == 0 for m in models):
            return  # models of one's own cost nothing
        if not self._spoken:
            self._before = cost
            return
        self._costs[self._session] = cost
        yield self._usage()
