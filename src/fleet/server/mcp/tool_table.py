"""Every tool: its name, what it says, and what it takes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from fleet.domain.access import Permission
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.limits import LONGEST
from fleet.domain.run import MAX_POINTS
from fleet.operations.tasks.change import MOST_TITLE
from fleet.server.http.codec import named
from fleet.server.http.limits import schema_of
from fleet.server.mcp import tool_steps as steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_P = Permission
DESTRUCTIVE = frozenset({"task.cancel", "swarm.kill", "board.archive"})  # they end what goes on
OPEN_WORLD = frozenset({"worktree.push", "worktree.pr"})  # they reach other machines


class Tool(NamedTuple):
    """`takes` are the properties, those in `needs` must be given; `may` is asked for besides.

    A property is a schema, or the field of an operation that it becomes, as in `task.add:spec.cwd`.
    """

    name: str
    about: str
    steps: Callable[[steps.Who, Mapping[str, Any]], list[steps.Step]]
    operations: tuple[str, ...]
    takes: Mapping[str, dict[str, Any] | str]
    needs: tuple[str, ...] = ()
    may: Permission | None = None
    for_runs: bool = False
    keys: tuple[str, ...] = ()  # it replies with all of its operations' replies, under these
    quiet: bool = False  # workers may call it, but are not shown it: every tool costs them context

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: property_of(this) for name, this in self.takes.items()},
            "required": list(self.needs),
            "additionalProperties": False,
        }

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()

    def annotations(self) -> dict[str, Any]:
        """What a program may tell its user before it calls the tool."""
        operations = [named(name) for name in self.operations]
        return {
            "title": self.title,
            "readOnlyHint": all(operation.is_read for operation in operations),
            "destructiveHint": any(name in DESTRUCTIVE for name in self.operations),
            "idempotentHint": all(operation.idempotent for operation in operations),
            "openWorldHint": any(name in OPEN_WORLD for name in self.operations),
        }

    def permissions(self) -> set[Permission]:
        needed = {named(name).permission for name in self.operations}
        return needed | ({self.may} if self.may else set())


@cache
def _field(name: str) -> dict[str, Any]:
    operation, _, path = name.partition(":")
    hint: Any = named(operation).request
    for part in path.split("."):
        hint = get_type_hints(hint, include_extras=True)[part]
    return schema_of(hint)


def property_of(this: dict[str, Any] | str) -> dict[str, Any]:
    return _field(this) if isinstance(this, str) else this


YES = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 1, "maximum": 200}
DIRECTIVE = {"type": "string", "maxLength": 90_000}  # what a post has room for
ROLE = {"type": "string", "enum": list(RUN_ROLES)}
OBJECT = {"type": "object"}
TEXT = {"type": "string"}
PLANNED = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": MOST_TITLE},
        "name": {"type": "string", "maxLength": 100}, "prompt": TEXT,
        "after": {"type": "array", "items": TEXT, "maxItems": 1000}, "parent": TEXT,
        "join": {"type": "string", "enum": ["all", "any"]}, "agent": TEXT, "model": TEXT,
        "priority": {"type": "integer", "minimum": 0, "maximum": 4}, "assignee": TEXT,
    },
    "required": ["title"],
}  # fmt: skip

TOOLS = (
    Tool(
        "ask_human", "Ask a person a question. Then end your turn: you are resumed with the answer.",
        steps.ask, ("message.ask",), {"question": "message.ask:text", "options": "message.ask:options"}, ("question",),
        for_runs=True,
    ),
    Tool(
        "task_done", "Mark your task as done, with a summary of the result.",
        steps.own("task.close", summary="why"), ("task.close",), {"summary": "task.close:why"}, ("summary",),
        for_runs=True,
    ),
    Tool(
        "note", "Write a note on your task, for people and for the next run.",
        steps.own("message.comment"), ("message.comment",), {"text": "message.comment:text"}, ("text",), for_runs=True,
    ),
    Tool(
        "team_status", "Show the team's members, agents, tasks and open questions.", steps.status,
        ("member.list", "agent.list", "task.list", "message.questions"), {},
        keys=("members", "workers", "tasks", "questions"),
    ),
    Tool(
        "team_tasks", "List the team's tasks: all, mine, or unassigned.", steps.tasks,
        ("task.list", "task.issues", "task.ready"),
        {"filter": {"type": "string", "enum": ["all", "mine", "unassigned"]}},
    ),
    Tool(
        "team_assign", "Assign a new task to a team member.", steps.assign, ("task.add",),
        {
            "agent": "task.add:spec.assignee", "task": "task.add:title",
            "description": "task.add:prompt",
        },
        ("agent", "task"), _P.ASSIGN,
    ),
    Tool(
        "team_edit", "Change what a task asks for; `after` and `labels` replace what it had.",
        steps.say("task.edit", task_id="task"), ("task.edit",),
        {
            "task_id": "task.edit:task", "title": "task.edit:title", "prompt": "task.edit:prompt",
            "agent": "task.edit:agent", "model": "task.edit:model", "base": "task.edit:base",
            "after": "task.edit:after", "labels": "task.edit:labels",
            "priority": "task.edit:priority",
        },
        ("task_id",),
    ),
    Tool(
        "tasks_add", "Queue several tasks, all or none; `after` and `parent` can name others of them.",
        steps.add_all, ("task.add_all",),
        {"tasks": {"type": "array", "items": PLANNED, "minItems": 1, "maxItems": 1000}, "again": YES},
        ("tasks",), quiet=True,
    ),
    Tool(
        "task_search", "Search titles, prompts and transcripts of the team's tasks for words.",
        steps.say("search.find"), ("search.find",), {"text": TEXT, "task": TEXT, "limit": COUNT},
        ("text",), quiet=True,
    ),
    Tool(
        "team_complete", "Mark a task as done.", steps.say("task.close", task_id="task"),
        ("task.close",), {"task_id": "task.close:task"}, ("task_id",), quiet=True,
    ),
    Tool(
        "team_claim", "Claim a file for ten minutes; refused while another member has it.",
        steps.say("file.claim", file="path"), ("file.claim",), {"file": "file.claim:path"}, ("file",),
    ),
    Tool(
        "team_spawn", "Start an agent on a branch of its own, as soon as there is room.",
        steps.spawn, ("agent.spawn",),
        {
            "handle": "agent.spawn:handle", "prompt": "task.add:prompt",
            "workingDir": "agent.spawn:cwd", "model": "agent.spawn:model", "role": ROLE,
        },
        ("handle",),
    ),
    Tool(
        "team_fork", "Continue an agent's conversation with a second agent, on a branch of its own.",
        steps.say("agent.fork", handle="task"), ("agent.fork",),
        {"handle": "agent.fork:task", "branch": "agent.fork:branch", "prompt": "agent.fork:prompt"}, ("handle", "branch"),
    ),
    Tool(
        "team_dismiss", "End an agent; its work is kept.", steps.say("task.cancel", handle="task"),
        ("task.cancel",), {"handle": "task.cancel:task"}, ("handle",), _P.DISMISS,
    ),
    Tool(
        "team_broadcast", "Send mail to everyone in the team.", steps.say("mail.broadcast", message="text"),
        ("mail.broadcast",), {"message": "mail.broadcast:text"}, ("message",),
    ),
    Tool(
        "team_handoff", "Hand your work over to another member, with what they need to continue.",
        steps.handoff, ("checkpoint.save",), {"to": "checkpoint.save:to", "context": OBJECT}, ("to", "context"),
        quiet=True,
    ),
    Tool("team_workers", "List the agents at work.", steps.say("agent.list"), ("agent.list",), {}, quiet=True),
    Tool(
        "team_send", "Send a message to an agent while it works.",
        steps.say("message.send", handle="task", message="text"), ("message.send",),
        {"handle": "message.send:task", "message": "message.send:text"}, ("handle", "message"),
    ),
    Tool(
        "team_look", "Show what the agents are doing, and what they ask a person's leave for.",
        steps.say("agent.look"), ("agent.look",), {"tasks": "agent.look:tasks"}, quiet=True,
    ),
    Tool(
        "team_permit", "Allow or refuse what an agent asks for in a permission dialog.",
        steps.say("run.permit", handle="task"), ("run.permit",),
        {"handle": "run.permit:task", "allow": YES, "asks": "run.permit:asks"}, ("handle", "allow"),
    ),
    Tool(
        "inbox_list", "List what needs a person: questions, permission dialogs, reviews, failures, landings, machines.",
        steps.say("inbox.list"), ("inbox.list",), {"kinds": "inbox.list:kinds", "limit": COUNT}, quiet=True,
    ),
    Tool(
        "question_answer", "Answer a question of an agent, by its id or its task's; a number picks an option.",
        steps.say("message.answer", question="name"), ("message.answer",),
        {"question": "message.answer:name", "text": "message.answer:text"}, ("question", "text"), quiet=True,
    ),
    Tool(
        "task_pause", "Pause a task; its agent is stopped, and its work is kept.", steps.say("task.pause"),
        ("task.pause",), {"task": "task.pause:task"}, ("task",), quiet=True,
    ),
    Tool(
        "task_resume", "Let a task run that is paused, held or waits for a limit.", steps.say("task.resume"),
        ("task.resume",), {"task": "task.resume:task"}, ("task",), quiet=True,
    ),
    Tool(
        "task_retry", "Let a task that has ended run again.", steps.say("task.retry"),
        ("task.retry",), {"task": "task.retry:task"}, ("task",), quiet=True,
    ),
    Tool(
        "task_send_back", "Send a finished task back to its agent, with what to change.", steps.say("task.send_back"),
        ("task.send_back",), {"task": "task.send_back:task", "text": "task.send_back:text"}, ("task", "text"), quiet=True,
    ),
    Tool(
        "mail_send", "Send mail to a team member.", steps.say("mail.send", body="text"),
        ("mail.send",), {"to": "mail.send:to", "body": "mail.send:text", "subject": "mail.send:subject"}, ("to", "body"),
    ),
    Tool(
        "mail_read", "List your mail; `mark_read` also marks it as read.", steps.mail,
        ("mail.list", "mail.take"),
        {"filter": {"type": "string", "enum": ["unread", "all"]}, "mark_read": YES},
    ),
    Tool(
        "mail_mark_read", "Mark a mail as read.", steps.say("mail.read"), ("mail.read",),
        {"mail": "mail.read:mail"}, ("mail",), quiet=True,
    ),
    Tool(
        "blackboard_post", "Post to a swarm's board; without `swarm_id`, to your own task's.", steps.post,
        ("board.post",),
        {
            "swarm_id": "board.post:task", "message_type": "board.post:type", "payload": OBJECT,
            "target_handle": "board.post:to", "priority": "board.post:priority",
        },
        ("message_type", "payload"),
    ),
    Tool(
        "blackboard_read", "Read a swarm's board; without `swarm_id`, your own task's.", steps.read_board,
        ("board.read",),
        {
            "swarm_id": "board.read:task", "message_type": "board.post:type", "unread_only": YES,
            "priority": "board.post:priority", "limit": COUNT,
        },
    ),
    Tool(
        "blackboard_mark_read", "Mark posts as read.",
        steps.say("board.mark_read", message_ids="posts"), ("board.mark_read",),
        {"message_ids": "board.mark_read:posts"}, ("message_ids",), quiet=True,
    ),
    Tool(
        "blackboard_archive", "Archive posts of a board.", steps.archive, ("board.archive",),
        {
            "swarm_id": "board.archive:task", "message_ids": "board.archive:posts",
            "max_age_hours": {"type": "number", "minimum": 0, "maximum": LONGEST // 3600},
        },
    ),
    Tool(
        "checkpoint_create", "Save the state of the work, for yourself or for the member who continues.",
        steps.checkpoint, ("checkpoint.save",),
        {
            "goal": "checkpoint.save:summary.goal", "now": "checkpoint.save:summary.now",
            "test": "checkpoint.save:summary.test",
            "done_this_session": {"type": "array", "maxItems": MAX_POINTS},
            "blockers": "checkpoint.save:summary.blockers",
            "questions": "checkpoint.save:summary.questions",
            "next": "checkpoint.save:summary.next", "to_handle": "checkpoint.save:to",
        },
        ("goal", "now"),
    ),
    Tool(
        "checkpoint_load", "Load a checkpoint; without an id, your newest.", steps.load,
        ("checkpoint.load", "checkpoint.latest"), {"checkpoint_id": {}, "latest": YES},
    ),
    Tool(
        "checkpoint_list", "List checkpoints.", steps.say("checkpoint.list"), ("checkpoint.list",),
        {
            "status": {"type": "string", "enum": ["pending", "accepted", "rejected"]},
            "limit": COUNT,
        },
        quiet=True,
    ),
    Tool(
        "swarm_create", "Create a swarm: tasks that belong together and share a board.",
        steps.say("swarm.create"), ("swarm.create",),
        {
            "name": "swarm.create:name", "description": "swarm.create:description",
            "max_agents": "swarm.create:max_agents",
        }, ("name",),
    ),
    Tool(
        "swarm_list", "List the swarms, or show one.", steps.swarms, ("swarm.list", "swarm.show"),
        {"swarm_id": "swarm.show:swarm", "include_agents": YES}, quiet=True,
    ),
    Tool(
        "swarm_kill", "End a swarm and its agents; their work is kept.",
        steps.kill, ("swarm.kill",), {"swarm_id": "swarm.kill:swarm", "graceful": YES}, ("swarm_id",),
    ),
    Tool(
        "swarm_broadcast", "Post a directive to everyone in a swarm.", steps.directive, ("board.post",),
        {"swarm_id": "board.post:task", "directive": DIRECTIVE, "priority": "board.post:priority"}, ("swarm_id", "directive"),
        _P.BROADCAST,
    ),
    Tool(
        "spawn_request", "Queue an agent: it starts when there is room and what it needs is done.",
        steps.spawn_request, ("agent.spawn",),
        {
            "agent_type": "agent.spawn:kind", "task": "agent.spawn:prompt",
            "swarm_id": "agent.spawn:swarm", "priority": "board.post:priority",
            "depends_on": "agent.spawn:after",
        },
        ("agent_type", "task"),
    ),
    Tool(
        "spawn_status", "Show a queued agent, or the whole queue.", steps.spawn_status,
        ("task.show", "task.list"), {"request_id": "task.show:task", "include_queue": YES}, quiet=True,
    ),
    Tool(
        "spawn_cancel", "Take an agent out of the queue, or end it.",
        steps.say("task.cancel", request_id="task"), ("task.cancel",), {"request_id": "task.cancel:task"},
        ("request_id",), _P.DISMISS,
    ),
    Tool(
        "task_diff", "Show what a task has changed, file by file.",
        steps.say("task.diff"), ("task.diff",),
        {
            "task": "task.diff:task", "against": "task.diff:against", "run": "task.diff:run",
            "path": "task.diff:path", "stat": "task.diff:stat",
        },
        ("task",), quiet=True,
    ),
    Tool(
        "review_list", "List the work that is done and not landed, with what it would conflict with.",
        steps.say("review.list"), ("review.list",),
        {"project": "review.list:project", "limit": "review.list:limit"}, quiet=True,
    ),
    Tool(
        "land_add", "Queue the work of tasks to land on their branch, once it passes there.",
        steps.say("land.add"), ("land.add",),
        {
            "tasks": "land.add:tasks", "onto": "land.add:onto", "how": "land.add:how",
            "push": "land.add:push",
        },
        ("tasks",), _P.MERGE,
    ),
    Tool(
        "land_list", "List what waits to land, with what is tested now and why.",
        steps.say("land.list"), ("land.list",),
        {"all": "land.list:all", "limit": "land.list:limit"}, quiet=True,
    ),
    Tool(
        "land_hold", "Hold a landing until it is released.",
        steps.say("land.hold"), ("land.hold",),
        {"landing": "land.hold:landing", "why": "land.hold:why"}, ("landing",), _P.MERGE,
    ),
    Tool(
        "land_release", "Queue a landing again that was held or came back too often.",
        steps.say("land.release"), ("land.release",),
        {"landing": "land.release:landing"}, ("landing",), _P.MERGE,
    ),
    Tool(
        "land_move", "Move a landing to the front of its queue, or before another one.",
        steps.say("land.move"), ("land.move",),
        {"landing": "land.move:landing", "before": "land.move:before"}, ("landing",), _P.MERGE,
    ),
    Tool(
        "land_undo", "Take landed work out of its branch again, with a task that is tested like any other.",
        steps.say("land.undo"), ("land.undo",),
        {"landing": "land.undo:landing", "agent": "land.undo:agent"}, ("landing",), _P.MERGE,
    ),
    Tool(
        "land_pause", "Let nothing land on a branch until it is resumed.",
        steps.say("land.pause"), ("land.pause",), {"onto": "land.pause:onto"}, (), _P.MERGE,
    ),
    Tool(
        "land_resume", "Let work land on a branch again.",
        steps.say("land.resume"), ("land.resume",), {"onto": "land.resume:onto"}, (), _P.MERGE,
    ),
    Tool(
        "race_start", "Have several agents do the same work, and pick the best solution.",
        steps.say("race.start"), ("race.start",),
        {
            "prompt": "race.start:prompt", "count": "race.start:count",
            "agents": "race.start:agents", "models": "race.start:models",
            "rules": "race.start:rules", "project": "race.start:project",
        },
        ("prompt", "count"), _P.ADD, quiet=True,
    ),
    Tool(
        "race_show", "Show which solution of a batch is the best, and why.",
        steps.say("race.show"), ("race.show",), {"batch": "race.show:batch"}, ("batch",), quiet=True,
    ),
    Tool(
        "race_pick", "Test the tasks of a batch and pick the best, or pick `winner` by hand.",
        steps.say("race.pick"), ("race.pick",),
        {"batch": "race.pick:batch", "winner": "race.pick:winner", "rules": "race.pick:rules"},
        ("batch",), _P.ASSIGN,
    ),
    Tool(
        "review_submit", "Accept a task's work, which queues it to land, or send it back with `text`.",
        steps.say("review.submit"), ("review.submit",),
        {
            "task": "review.submit:task", "verdict": "review.submit:verdict",
            "text": "review.submit:text", "onto": "review.submit:onto",
        },
        ("task", "verdict"),
    ),
    Tool(
        "worktree_status", "Show a worktree: your own, or that of `handle`.",
        steps.tree("worktree.status"), ("worktree.status",), {"handle": "worktree.status:task"}, quiet=True,
    ),
    Tool(
        "worktree_commit", "Commit all changes in a worktree: your own, or that of `handle`.",
        steps.tree("worktree.commit"), ("worktree.commit",), {"message": "worktree.commit:message", "handle": "worktree.commit:task"},
        ("message",), quiet=True,
    ),
    Tool(
        "worktree_push", "Push a worktree's branch, without force.",
        steps.tree("worktree.push"), ("worktree.push",), {"handle": "worktree.push:task"},
    ),
    Tool(
        "worktree_merge", "Merge a worktree's branch into its project's branch, or into `onto`.",
        steps.tree("worktree.merge"), ("worktree.merge",), {"handle": "worktree.merge:task", "onto": "worktree.merge:onto"},
    ),
    Tool(
        "worktree_pr", "Push a worktree's branch and open a pull request.",
        steps.tree("worktree.pr"), ("worktree.pr",),
        {
            "title": "worktree.pr:title", "body": "worktree.pr:body", "base": "worktree.pr:base",
            "handle": "worktree.pr:task",
        },
        ("title", "body"),
    ),
    Tool(
        "node_list", "Show the nodes that serve models: up or down and why, what is in their memory, and where requests go.",
        steps.say("node.list"), ("node.list",), {}, quiet=True,
    ),
    Tool(
        "model_list", "List the models, the nodes that serve each, and the agents that use it.",
        steps.say("model.list"), ("model.list",), {}, quiet=True,
    ),
    Tool(
        "model_warm", "Load models into their nodes' memory: all, or one by its name or agent.",
        steps.say("model.warm"), ("model.warm",),
        {"model": "model.warm:model", "agent": "model.warm:agent", "node": "model.warm:node"}, quiet=True,
    ),
    Tool(
        "route_explain", "Explain which node would answer a request for a model or agent now, term by term.",
        steps.say("route.explain"), ("route.explain",),
        {
            "model": "route.explain:model", "agent": "route.explain:agent",
            "prompt": "route.explain:prompt", "output": "route.explain:output",
        }, quiet=True,
    ),
    Tool(
        "trace_list", "List the newest requests that the relay answered: the agent, the node and why there.",
        steps.say("trace.list"), ("trace.list",),
        {"agent": "trace.list:agent", "node": "trace.list:node", "limit": "trace.list:limit"}, quiet=True,
    ),
    Tool(
        "eval_list", "List the results of evals: which models did their agents' jobs.",
        steps.say("eval.list"), ("eval.list",), {"limit": "eval.list:limit"}, quiet=True,
    ),
    Tool(
        "eval_show", "Show the result of one eval, case by case, with the reasons of failures.",
        steps.say("eval.show"), ("eval.show",), {"id": "eval.show:id"}, ("id",), quiet=True,
    ),
    Tool(
        "gateway_show", "Show whether LiteLLM and the relay answer.",
        steps.say("gateway.show"), ("gateway.show",), {}, quiet=True,
    ),
    Tool(
        "host_list", "List the machines with a supervisor, their runs and what they miss.",
        steps.say("host.list"), ("host.list",), {}, quiet=True,
    ),
    Tool(
        "host_show", "Show a machine with a supervisor, its runs, and when others may take those of a silent one.",
        steps.say("host.show"), ("host.show",), {"host": "host.show:host"}, ("host",), quiet=True,
    ),
    Tool(
        "host_doctor", "Check what keeps a machine from taking tasks, with the fix of each.",
        steps.say("host.doctor"), ("host.doctor",), {"host": "host.doctor:host"}, ("host",), quiet=True,
    ),
    Tool(
        "host_drain", "Start no new runs on a machine; its runs go on.",
        steps.say("host.drain"), ("host.drain",), {"host": "host.drain:host"}, ("host",),
    ),
    Tool(
        "host_resume", "Let a drained machine start runs again.",
        steps.say("host.resume"), ("host.resume",), {"host": "host.resume:host"}, ("host",),
    ),
    Tool(
        "host_forget", "Remove a machine that is not coming back from the list.",
        steps.say("host.forget"), ("host.forget",),
        {"host": "host.forget:host", "off": "host.forget:off"}, ("host",),
    ),
    Tool(
        "limit_list", "List what may not be used for a while, such as a credential at its rate limit.",
        steps.say("limit.list"), ("limit.list",), {"limit": "limit.list:limit"}, quiet=True,
    ),
    Tool(
        "usage_report", "Report tokens, money and time by day, agent, model, node, project, team or task.",
        steps.say("usage.report"), ("usage.report",),
        {"by": "usage.report:by", "project": "usage.report:project", "team": "usage.report:team"}, quiet=True,
    ),
    Tool(
        "budget_list", "List what the running tasks may cost, and have cost.",
        steps.say("budget.list"), ("budget.list",), {"project": "budget.list:project"}, quiet=True,
    ),
    Tool(
        "memory_store", "Store a memory for the team, under a key.",
        steps.say("memory.store", memory_type="type"), ("memory.store",),
        {
            "key": "memory.store:key", "value": "memory.store:value",
            "memory_type": "memory.store:type", "tags": "memory.store:tags",
        }, ("key", "value"),
    ),
    Tool(
        "memory_recall", "Recall what you stored under a key.", steps.say("memory.recall"), ("memory.recall",),
        {"key": "memory.recall:key"}, ("key",), quiet=True,
    ),
    Tool(
        "memory_search", "Search the memories of the whole team.",
        steps.say("memory.search", memory_type="type"), ("memory.search",),
        {"query": "memory.search:query", "memory_type": "memory.store:type", "limit": COUNT}, ("query",),
    ),
)  # fmt: skip
