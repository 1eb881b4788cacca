"""How the arguments of a tool become requests of operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput
from fleet.domain.task import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.domain.access import Actor

    Arguments = Mapping[str, Any]

SPEC = ("agent", "coder", "model", "priority", "branch", "review", "assignee")


class ToolCaller(NamedTuple):
    """Who calls a tool. `directory`: where an agent works when the arguments name none."""

    actor: Actor
    directory: str = ""


class ToolStep(NamedTuple):
    """One operation and its fields; `key` names its reply where a tool has several steps."""

    operation: str
    fields: dict[str, Any]
    key: str = ""


def say(operation: str, **names: str) -> Callable[[ToolCaller, Arguments], list[ToolStep]]:
    """Return a function that passes all arguments to one operation, some under other names."""

    def steps(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
        return [ToolStep(operation, {names.get(key, key): value for key, value in given.items()})]

    return steps


def status(_who: ToolCaller, _given: Arguments) -> list[ToolStep]:
    return [
        ToolStep("member.list", {}, "members"),
        ToolStep("agent.list", {"limit": 50}, "workers"),
        ToolStep("task.list", {"limit": 20}, "tasks"),
        ToolStep("message.questions", {"limit": 20}, "questions"),
    ]


def tasks(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    match given.get("filter", "all"):
        case "mine":
            return [ToolStep("task.issues", {"assignee": who.actor.name})]
        case "unassigned":
            return [ToolStep("task.ready", {})]
    return [ToolStep("task.list", {})]


def assign(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    spec = {"assignee": given["agent"], "cwd": who.directory}
    prompt = given.get("description", "")
    return [ToolStep("task.add", {"title": given["task"], "prompt": prompt, **_there(who, spec)})]


def add_all(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    """Add several tasks; each argument object has the fields of a task and of its spec together."""
    tasks = []
    for task in given["tasks"]:
        if not isinstance(task, dict):
            raise BadInput(
                "A task is not an object.", fix='For example: {"title": "Fix the login"}'
            )
        spec = {"cwd": who.directory} | {key: task[key] for key in SPEC if key in task}
        rest = {key: value for key, value in task.items() if key not in SPEC}
        tasks.append({**_there(who, spec), **rest})
    return [ToolStep("task.add_all", {"tasks": tasks, "again": given.get("again", False)})]


def spawn(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    handle = given["handle"]
    fields = {"handle": handle, "prompt": given.get("prompt") or handle}
    fields |= {name: given[name] for name in ("model", "role") if name in given}
    return [ToolStep("agent.spawn", fields | {"cwd": given.get("workingDir") or who.directory})]


def spawn_request(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    fields = {"handle": "", "prompt": given["task"], "cwd": who.directory}
    fields |= {"kind": given["agent_type"], "swarm": given.get("swarm_id", "")}
    fields |= {"priority": PRIORITIES.index(given.get("priority", "normal"))}
    return [ToolStep("agent.spawn", fields | {"after": given.get("depends_on", [])})]


def _there(who: ToolCaller, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec and its project: the server's, unless `cwd` is outside of that."""
    below = spec["cwd"] == who.directory or spec["cwd"].startswith(f"{who.directory}/")
    return {"spec": spec, "project": who.directory if below else spec["cwd"]}


def spawn_status(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    if given.get("request_id"):
        return [ToolStep("task.show", {"task": given["request_id"]})]
    return [ToolStep("task.list", {})]


def post(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    fields = {
        "task": given.get("swarm_id") or who.actor.task,
        "type": given["message_type"],
        "payload": given["payload"],
        "to": given.get("target_handle", ""),
        "priority": given.get("priority", "normal"),
    }
    return [ToolStep("board.post", fields)]


def read_board(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    names = {"swarm_id": "task", "message_type": "type", "unread_only": "unread"}
    fields = {"task": who.actor.task} | {names.get(k, k): v for k, v in given.items()}
    return [ToolStep("board.read", fields)]


def archive(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    fields: dict[str, Any] = {"posts": given.get("message_ids", [])}
    fields |= {"task": given.get("swarm_id", "")}
    return [
        ToolStep(
            "board.archive", fields | {"older_than": int(given.get("max_age_hours", 0) * 3600)}
        )
    ]


def checkpoint(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    summary = {key: value for key, value in given.items() if key != "to_handle"}
    done = summary.pop("done_this_session", [])
    summary["done"] = [each if isinstance(each, dict) else {"task": each} for each in done]
    return [ToolStep("checkpoint.save", {"summary": summary, "to": given.get("to_handle", "")})]


def load(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    if given.get("checkpoint_id"):
        return [ToolStep("checkpoint.load", {"checkpoint": str(given["checkpoint_id"])})]
    return [ToolStep("checkpoint.latest", {})]


def swarms(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    if given.get("swarm_id"):
        return [ToolStep("swarm.show", {"swarm": given["swarm_id"]})]
    return [ToolStep("swarm.list", {})]


def directive(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    fields = {"task": given["swarm_id"], "type": "directive"}
    fields |= {"payload": {"directive": given["directive"]}}
    return [ToolStep("board.post", fields | {"priority": given.get("priority", "normal")})]


def kill(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    """End a swarm, always gracefully, whatever the caller asks for."""
    return [ToolStep("swarm.kill", {"swarm": given["swarm_id"]})]


def mail(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    unread = given.get("filter", "unread") == "unread"
    return [ToolStep("mail.take" if given.get("mark_read") else "mail.list", {"unread": unread})]


def handoff(_who: ToolCaller, given: Arguments) -> list[ToolStep]:
    """Hand over with a checkpoint; context that fits none of its fields is added as JSON."""
    context = dict(given["context"])
    summary = {
        key: context.pop(key) for key in ("goal", "now", "test") if _is_text(context.get(key))
    }
    for key in ("blockers", "questions", "next", "worked", "failed", "files"):
        if isinstance(context.get(key), list) and all(map(_is_text, context[key])):
            summary[key] = context.pop(key)
    rest = json.dumps(context, ensure_ascii=False) if context else ""
    goal = summary.get("goal") or "Handed over"
    state = "\n".join(part for part in (summary.get("now", ""), rest) if part) or goal
    return [
        ToolStep(
            "checkpoint.save",
            {"summary": {**summary, "goal": goal, "now": state}, "to": given["to"]},
        )
    ]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def own(operation: str, **names: str) -> Callable[[ToolCaller, Arguments], list[ToolStep]]:
    """Return a function like that of `say`, for the task that the calling run works on."""

    def steps(who: ToolCaller, given: Arguments) -> list[ToolStep]:
        if not who.actor.task:
            raise BadInput("Only a running agent has a task of its own.", fix="Use team_tasks.")
        fields = {names.get(key, key): value for key, value in given.items()}
        return [ToolStep(operation, {"task": who.actor.task, **fields})]

    return steps


def ask(who: ToolCaller, given: Arguments) -> list[ToolStep]:
    (step,) = own("message.ask", question="text")(who, given)
    return [step._replace(fields={**step.fields, "park": True})]
