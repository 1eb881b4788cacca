"""How Claude Code's lines read.

Whatever a later release prints, a line that is not understood says nothing and breaks nothing.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.adapters.coders.claude.shapes import added, gist, model_tokens, text_of, tokens
from fleet.base.loose_json import Json, integer, mapping, mappings, number, string
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECOND = 1_000_000
TOO_MANY = 429


def message(text: str, name: str) -> str:
    """A user message for standard input. `name`: a new UUID; Claude drops a message whose UUID it has seen."""
    record = {"type": "user", "uuid": name, "message": {"role": "user", "content": text}}
    return json.dumps(record, ensure_ascii=False) + "\n"


class ClaudeListener:
    """Reads Claude Code's lines. `prompt`: the id of the message that the run was started with."""

    def __init__(self, prompt: str) -> None:
        self._taken = {prompt}  # ids of messages that entered the conversation
        self._tools: dict[str, str] = {}  # by their ids, those that run
        self._tasks: dict[str, str] = {}  # likewise, beside the conversation
        self._awaited = False  # a turn that has been announced and has not begun
        self._before = Usage()  # up to the last result
        self._since = Usage()  # from there on, as far as it is known
        self._counted: set[str] = set()  # replies of the model since then
        self._charged = 0.0  # what the session had cost at the last result
        self._resets_at = 0

    def words(self, text: str) -> str | None:
        return message(text, str(uuid.uuid4()))

    def hear(self, line: str) -> Sequence[Said]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            torn = line.lstrip().startswith("{")
            return () if torn or not line.strip() else (Said(SaidKind.TEXT, line),)
        return tuple(self._read(record)) if isinstance(record, dict) else ()

    def _read(self, record: Json) -> Iterable[Said]:
        match record.get("type"):
            case "system":
                return self._system(record)
            case "assistant":
                return self._assistant(record)
            case "user":
                return self._user(record)
            case "result":
                return self._result(record)
            case "command_lifecycle":
                if record.get("state") == "started" and "wakeup_source" not in record:
                    return self._take(record.get("command_uuid"))
            case "rate_limit_event":
                self._limit(record)
            case "control_request":
                return (_unanswerable(string(record.get("request_id"))),)
        return ()

    def _system(self, record: Json) -> Iterable[Said]:
        match record.get("subtype"):
            case "init":
                yield Said(SaidKind.SESSION, string(record.get("session_id")))
                if not self._awaited:
                    yield Said(SaidKind.TURN)
                self._awaited = False
            case "background_tasks_changed":
                yield from self._beside(mappings(record.get("tasks")))

    def _beside(self, tasks: list[Json]) -> Iterable[Said]:
        running = {string(t.get("task_id")): string(t.get("task_type")) for t in tasks}
        for ended in sorted(self._tasks.keys() - running.keys()):
            yield Said(SaidKind.TOOL_RESULT, name=self._tasks[ended])
        for task in tasks:
            if (name := string(task.get("task_id"))) not in self._tasks:
                yield Said(SaidKind.TOOL, string(task.get("description")), name=running[name])
        self._tasks = running

    def _assistant(self, record: Json) -> Iterable[Said]:
        main = not record.get("parent_tool_use_id")
        spoken = mapping(record.get("message"))
        self._limit(mapping(record.get("api_error_params")))
        for block in mappings(spoken.get("content")):
            match block.get("type"):
                case "text" if record.get("error"):
                    yield Said(SaidKind.ERROR, string(block.get("text")))
                case "text" if main:
                    yield Said(SaidKind.TEXT, string(block.get("text")))
                case "thinking" if main:
                    yield Said(SaidKind.THINKING, string(block.get("thinking")))
                case "tool_use":
                    name = string(block.get("name"))
                    self._tools[string(block.get("id"))] = name
                    yield Said(SaidKind.TOOL, gist(mapping(block.get("input"))), name=name)
        reply = string(spoken.get("id"))
        if not record.get("error") and reply not in self._counted:
            self._counted.add(reply)
            yield self._count(mapping(spoken.get("usage")), main=main)

    def _count(self, usage: Json, *, main: bool) -> Said:
        """The usage of one reply; its output tokens are only known at the end of the turn."""
        reply = tokens(usage)
        self._since = added(self._since, reply)
        total = added(self._before, self._since)
        context = reply.input + reply.cached if main else 0
        return Said(SaidKind.USAGE, usage=replace(total, context=context), total=True)

    def _user(self, record: Json) -> Iterable[Said]:
        if record.get("isReplay"):
            yield from self._take(record.get("uuid"))
            return
        for block in mappings(mapping(record.get("message")).get("content")):
            if block.get("type") == "tool_result":
                name = self._tools.pop(string(block.get("tool_use_id")), "")
                text, failed = text_of(block.get("content")), bool(block.get("is_error"))
                yield Said(SaidKind.TOOL_RESULT, text, name=name, failed=failed)

    def _take(self, name: object) -> Iterable[Said]:
        """Note echoed messages by their ids, as echoes may be merged or repeated."""
        taken = string(name)
        if taken in self._taken:
            return ()
        self._taken.add(taken)
        return (Said(SaidKind.HEARD, name=taken),)

    def _limit(self, record: Json) -> None:
        info = mapping(record.get("rate_limit_info"))
        if info.get("status") == "rejected":
            self._resets_at = integer(info.get("resetsAt")) * SECOND

    def _result(self, record: Json) -> Iterable[Said]:
        failed = bool(record.get("is_error", record.get("subtype") != "success"))
        errors = record.get("errors")
        text = string(record.get("result"))
        if not text and failed:
            texts = map(str, errors) if isinstance(errors, list) else ()
            text = "; ".join(texts) or string(record.get("subtype"))
        if failed and record.get("api_error_status") == TOO_MANY:
            yield Said(SaidKind.LIMIT, text, resume_at=self._resets_at)
        match record.get("terminal_reason"):
            case "budget_exhausted":
                yield Said(SaidKind.SPENT, text)
            case "prompt_too_long":
                yield Said(SaidKind.FULL, text)
        self._settle(record)
        self._tools.clear()
        window = _window(mapping(record.get("modelUsage")))
        yield Said(
            SaidKind.RESULT, text, usage=self._before, total=True, failed=failed, window=window
        )
        if "local_agent" in self._tasks.values():
            self._awaited = True  # when that agent has ended, it goes on by itself
            yield Said(SaidKind.TURN)

    def _settle(self, record: Json) -> None:
        """Add what this turn really came to, its agents' replies included.

        The total cost is of the session, earlier runs included: only the difference is ours.
        """
        charged = number(record.get("total_cost_usd"))
        models = record.get("model_usage_since_last_result")
        turn = Usage()
        if isinstance(models, dict):
            for usage in map(mapping, models.values()):
                turn = added(turn, model_tokens(usage))
        else:
            turn = replace(
                tokens(mapping(record.get("usage"))), usd=max(0.0, charged - self._charged)
            )
        self._charged = charged
        self._before = added(self._before, turn)
        self._since = Usage()
        self._counted.clear()


def _unanswerable(request: str) -> Said:
    """The reply to a question that nobody here can answer: Claude would wait for ever."""
    reply = {"subtype": "error", "request_id": request, "error": "No person is here to answer."}
    line = json.dumps({"type": "control_response", "response": reply}) + "\n"
    return Said(SaidKind.REPLY, line, name=request)


def _window(models: Json) -> int:
    """The context window of the largest model used: the small ones are for titles and the like."""
    return max((integer(mapping(m).get("contextWindow")) for m in models.values()), default=0)
