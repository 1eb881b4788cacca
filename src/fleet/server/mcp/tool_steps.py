"""How what a tool is given becomes the fields of operations."""

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

TREE = {"handle": "task"}
SPEC = ("agent", "coder", "model", "priority", "branch", "review", "assignee")


class Who(NamedTuple):
    """Who calls a tool, and where whoever does not say works."""

    actor: Actor
    directory: str = ""


class Step(NamedTuple):
    """One operation with its fields; `key` is what its reply is called, if there are several."""

    operation: str
    fields: dict[str, Any]
    key: str = ""


def say(operation: str, **names: str) -> Callable[[Who, Arguments], list[Step]]:
    """What is given, under the operation's own names for it."""

    def steps(_who: Who, given: Arguments) -> list[Step]:
        return [Step(operation, {names.get(key, key): value for key, value in given.items()})]

    return steps


def status(_who: Who, _given: Arguments) -> list[Step]:
    return [
        Step("member.list", {}, "members"),
        Step("agent.list", {"limit": 50}, "workers"),
        Step("task.list", {"limit": 20}, "tasks"),
        Step("message.questions", {"limit": 20}, "questions"),
    ]


def tasks(who: Who, given: Arguments) -> list[Step]:
    match given.get("filter", "all"):
        case "mine":
            return [Step("task.issues", {"assignee": who.actor.name})]
        case "unassigned":
            return [Step("task.ready", {})]
    return [Step("task.list", {})]


def assign(who: Who, given: Arguments) -> list[Step]:
    spec = {"assignee": given["agent"], "cwd": who.directory}
    prompt = given.get("description", "")
    return [Step("task.add", {"title": given["task"], "prompt": prompt, **_there(who, spec)})]


def add_all(who: Who, given: Arguments) -> list[Step]:
    """Each task has its fields and those of its `spec` side by side."""
    tasks = []
    for task in given["tasks"]:
        if not isinstance(task, dict):
            raise BadInput(
                "A task is not an object.", fix='For example: {"title": "Fix the login"}'
            )
        spec = {"cwd": who.directory} | {key: task[key] for key in SPEC if key in task}
        rest = {key: value for key, value in task.items() if key not in SPEC}
        tasks.append({**_there(who, spec), **rest})
    return [Step("task.add_all", {"tasks": tasks, "again": given.get("again", False)})]


def spawn(who: Who, given: Arguments) -> list[Step]:
    handle = given["handle"]
    fields = {"handle": handle, "prompt": given.get("prompt") or handle}
    fields |= {name: given[name] for name in ("model", "role") if name in given}
    return [Step("agent.spawn", fields | {"cwd": given.get("workingDir") or who.directory})]


def spawn_request(who: Who, given: Arguments) -> list[Step]:
    fields = {"handle": "", "prompt": given["task"], "cwd": who.directory}
    fields |= {"kind": given["agent_type"], "swarm": given.get("swarm_id", "")}
    fields |= {"priority": PRIORITIES.index(given.get("priority", "normal"))}
    return [Step("agent.spawn", fields | {"after": given.get("depends_on", [])})]


def _there(who: Who, spec: dict[str, Any]) -> dict[str, Any]:
    """In the project of the server, unless it is somewhere else."""
    below = spec["cwd"] == who.directory or spec["cwd"].startswith(f"{who.directory}/")
    return {"spec": spec, "project": who.directory if below else spec["cwd"]}


def spawn_status(_who: Who, given: Arguments) -> list[Step]:
    if given.get("request_id"):
        return [Step("task.show", {"task": given["request_id"]})]
    return [Step("task.list", {})]


def post(who: Who, given: Arguments) -> list[Step]:
    fields = {
        "task": given.get("swarm_id") or who.actor.task,
        "type": given["message_type"],
        "payload": given["payload"],
        "to": given.get("target_handle", ""),
        "priority": given.get("priority", "normal"),
    }
    return [Step("board.post", fields)]


def read_board(who: Who, given: Arguments) -> list[Step]:
    names = {"swarm_id": "task", "message_type": "type", "unread_only": "unread"}
    fields = {"task": who.actor.task} | {names.get(k, k): v for k, v in given.items()}
    return [Step("board.read", fields)]


def archive(_who: Who, given: Arguments) -> list[Step]:
    fields: dict[str, Any] = {"posts": given.get("message_ids", [])}
    fields |= {"task": given.get("swarm_id", "")}
    return [
        Step("board.archive", fields | {"older_than": int(given.get("max_age_hours", 0) * 3600)})
    ]


def checkpoint(_who: Who, given: Arguments) -> list[Step]:
    summary = {key: value for key, value in given.items() if key != "to_handle"}
    done = summary.pop("done_this_session", [])
    summary["done"] = [each if isinstance(each, dict) else {"task": each} for each in done]
    return [Step("checkpoint.save", {"summary": summary, "to": given.get("to_handle", "")})]


def load(_who: Who, given: Arguments) -> list[Step]:
    if given.get("checkpoint_id"):
        return [Step("checkpoint.load", {"checkpoint": str(given["checkpoint_id"])})]
    return [Step("checkpoint.latest", {})]


def swarms(_who: Who, given: Arguments) -> list[Step]:
    if given.get("swarm_id"):
        return [Step("swarm.show", {"swarm": given["swarm_id"]})]
    return [Step("swarm.list", {})]


def directive(_who: Who, given: Arguments) -> list[Step]:
    fields = {"task": given["swarm_id"], "type": "directive"}
    fields |= {"payload": {"directive": given["directive"]}}
    return [Step("board.post", fields | {"priority": given.get("priority", "normal")})]


def kill(_who: Who, given: Arguments) -> list[Step]:
    """Always gracefully: whoever asks for less gets no less."""
    return [Step("swarm.kill", {"swarm": given["swarm_id"]})]


def mail(_who: Who, given: Arguments) -> list[Step]:
    unread = given.get("filter", "unread") == "unread"
    return [Step("mail.take" if given.get("mark_read") else "mail.list", {"unread": unread})]


def tree(operation: str) -> Callable[[Who, Arguments], list[Step]]:
    """Somebody's worktree, by their handle; of a run, its own."""

    def steps(_who: Who, given: Arguments) -> list[Step]:
        return [Step(operation, {TREE.get(key, key): value for key, value in given.items()})]

    return steps


def handoff(_who: Who, given: Arguments) -> list[Step]:
    """What has no place of its own in a checkpoint is said as it is."""
    context = dict(given["context"])
    summary = {
        key: context.pop(key) for key in ("goal", "now", "test") if _is_text(context.get(key))
    }
    for key in ("blockers", "questions", "next", "worked", "failed", "files"):
        if isinstance(context.get(key), list) and all(map(_is_text, context[key])):
            summary[key] = context.pop(key)
    rest = json.dumps(context, ensure_ascii=False) if context else ""
    goal = summary.get("goal") or "Handed over"
    now = "\n".join(part for part in (summary.get("now", ""), rest) if part) or goal
    return [
        Step(
            "checkpoint.save", {"summary": {**summary, "goal": goal, "now": now}, "to": given["to"]}
        )
    ]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def own(operation: str, **names: str) -> Callable[[Who, Arguments], list[Step]]:
    """About the task that the run works on."""

    def steps(who: Who, given: Arguments) -> list[Step]:
        if not who.actor.task:
            raise BadInput("Only a running agent has a task of its own.", fix="Use team_tasks.")
        fields = {names.get(key, key): value for key, value in given.items()}
        return [Step(operation, {"task": who.actor.task, **fields})]

    return steps


def ask(who: Who, given: Arguments) -> list[Step]:
    (step,) = own("message.ask", question="text")(who, given)
    return [step._replace(fields={**step.fields, "park": True})]
