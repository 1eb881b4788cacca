"""Every tool: its name, what it says, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.access import Permission
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.task import PRIORITIES
from fleet.server.http.codec import named
from fleet.server.mcp import tool_steps as steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_P = Permission
DESTRUCTIVE = frozenset({"task.cancel", "swarm.kill", "board.archive"})  # they end what goes on
OPEN_WORLD = frozenset({"worktree.push", "worktree.pr"})  # they reach other machines


class Tool(NamedTuple):
    """`takes` are the properties, those in `needs` must be given; `may` is asked for besides."""

    name: str
    about: str
    steps: Callable[[steps.Who, Mapping[str, Any]], list[steps.Step]]
    operations: tuple[str, ...]
    takes: Mapping[str, dict[str, Any]]
    needs: tuple[str, ...] = ()
    may: Permission | None = None
    for_runs: bool = False
    quiet: bool = False  # workers may call it, but are not shown it: every tool costs them context

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.takes),
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


TEXT = {"type": "string"}
WORDS = {"type": "array", "items": TEXT}
YES = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 1, "maximum": 200}
PRIORITY = {"type": "string", "enum": list(PRIORITIES)}
KIND = {"type": "string", "enum": ["request", "response", "status", "directive", "checkpoint"]}
MEMORY = {"type": "string", "enum": ["fact", "decision", "pattern", "error"]}


ROLE = {"type": "string", "enum": list(RUN_ROLES)}
OBJECT = {"type": "object"}

TOOLS = (
    Tool(
        "ask_human", "Ask a person a question. Then end your turn: you are resumed with the answer.",
        steps.ask, ("message.ask",), {"question": TEXT, "options": WORDS}, ("question",),
        for_runs=True,
    ),
    Tool(
        "task_done", "Mark your task as done, with a summary of the result.",
        steps.own("task.close", summary="why"), ("task.close",), {"summary": TEXT}, ("summary",),
        for_runs=True,
    ),
    Tool(
        "note", "Write a note on your task, for people and for the next run.",
        steps.own("message.comment"), ("message.comment",), {"text": TEXT}, ("text",), for_runs=True,
    ),
    Tool(
        "team_status", "Show the team's members, agents, tasks and open questions.", steps.status,
        ("member.list", "agent.list", "task.list", "message.questions"), {},
    ),
    Tool(
        "team_tasks", "List the team's tasks: all, mine, or unassigned.", steps.tasks,
        ("task.list", "task.issues", "task.ready"),
        {"filter": {"type": "string", "enum": ["all", "mine", "unassigned"]}},
    ),
    Tool(
        "team_assign", "Assign a new task to a team member.", steps.assign, ("task.add",),
        {"agent": TEXT, "task": TEXT, "description": TEXT}, ("agent", "task"), _P.ASSIGN,
    ),
    Tool(
        "team_complete", "Mark a task as done.", steps.say("task.close", task_id="task"),
        ("task.close",), {"task_id": TEXT}, ("task_id",), quiet=True,
    ),
    Tool(
        "team_claim", "Claim a file for ten minutes; refused while another member has it.",
        steps.say("file.claim", file="path"), ("file.claim",), {"file": TEXT}, ("file",),
    ),
    Tool(
        "team_spawn", "Start an agent on a branch of its own, as soon as there is room.",
        steps.spawn, ("agent.spawn",),
        {"handle": TEXT, "prompt": TEXT, "workingDir": TEXT, "model": TEXT, "role": ROLE},
        ("handle",),
    ),
    Tool(
        "team_dismiss", "End an agent; its work is kept.", steps.say("task.cancel", handle="task"),
        ("task.cancel",), {"handle": TEXT}, ("handle",), _P.DISMISS,
    ),
    Tool(
        "team_broadcast", "Send mail to everyone in the team.", steps.say("mail.broadcast", message="text"),
        ("mail.broadcast",), {"message": TEXT}, ("message",),
    ),
    Tool(
        "team_handoff", "Hand your work over to another member, with what they need to continue.",
        steps.handoff, ("checkpoint.save",), {"to": TEXT, "context": OBJECT}, ("to", "context"),
        quiet=True,
    ),
    Tool("team_workers", "List the agents at work.", steps.say("agent.list"), ("agent.list",), {}, quiet=True),
    Tool(
        "team_send", "Send a message to an agent while it works.",
        steps.say("message.send", handle="task", message="text"), ("message.send",),
        {"handle": TEXT, "message": TEXT}, ("handle", "message"),
    ),
    Tool(
        "mail_send", "Send mail to a team member.", steps.say("mail.send", body="text"),
        ("mail.send",), {"to": TEXT, "body": TEXT, "subject": TEXT}, ("to", "body"),
    ),
    Tool(
        "mail_read", "List your mail; `mark_read` also marks it as read.", steps.mail,
        ("mail.list", "mail.take"),
        {"filter": {"type": "string", "enum": ["unread", "all"]}, "mark_read": YES},
    ),
    Tool(
        "mail_mark_read", "Mark a mail as read.", steps.say("mail.read"), ("mail.read",),
        {"mail": TEXT}, ("mail",), quiet=True,
    ),
    Tool(
        "blackboard_post", "Post to a swarm's board; without `swarm_id`, to your own task's.", steps.post,
        ("board.post",),
        {
            "swarm_id": TEXT, "message_type": KIND, "payload": OBJECT, "target_handle": TEXT,
            "priority": PRIORITY,
        },
        ("message_type", "payload"),
    ),
    Tool(
        "blackboard_read", "Read a swarm's board; without `swarm_id`, your own task's.", steps.read_board,
        ("board.read",),
        {
            "swarm_id": TEXT, "message_type": KIND, "unread_only": YES, "priority": PRIORITY,
            "limit": COUNT,
        },
    ),
    Tool(
        "blackboard_mark_read", "Mark posts as read.",
        steps.say("board.mark_read", message_ids="posts"), ("board.mark_read",),
        {"message_ids": WORDS}, ("message_ids",), quiet=True,
    ),
    Tool(
        "blackboard_archive", "Archive posts of a board.", steps.archive, ("board.archive",),
        {"swarm_id": TEXT, "message_ids": WORDS, "max_age_hours": {"type": "number"}},
    ),
    Tool(
        "checkpoint_create", "Save the state of the work, for yourself or for the member who continues.",
        steps.checkpoint, ("checkpoint.save",),
        {
            "goal": TEXT, "now": TEXT, "test": TEXT, "done_this_session": {"type": "array"},
            "blockers": WORDS, "questions": WORDS, "next": WORDS, "to_handle": TEXT,
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
        {"name": TEXT, "description": TEXT, "max_agents": COUNT}, ("name",),
    ),
    Tool(
        "swarm_list", "List the swarms, or show one.", steps.swarms, ("swarm.list", "swarm.show"),
        {"swarm_id": TEXT, "include_agents": YES}, quiet=True,
    ),
    Tool(
        "swarm_kill", "End a swarm and its agents; their work is kept.",
        steps.kill, ("swarm.kill",), {"swarm_id": TEXT, "graceful": YES}, ("swarm_id",),
    ),
    Tool(
        "swarm_broadcast", "Post a directive to everyone in a swarm.", steps.directive, ("board.post",),
        {"swarm_id": TEXT, "directive": TEXT, "priority": PRIORITY}, ("swarm_id", "directive"),
        _P.BROADCAST,
    ),
    Tool(
        "spawn_request", "Queue an agent: it starts when there is room and what it needs is done.",
        steps.spawn_request, ("agent.spawn",),
        {
            "agent_type": TEXT, "task": TEXT, "swarm_id": TEXT, "priority": PRIORITY,
            "depends_on": WORDS,
        },
        ("agent_type", "task"),
    ),
    Tool(
        "spawn_status", "Show a queued agent, or the whole queue.", steps.spawn_status,
        ("task.show", "task.list"), {"request_id": TEXT, "include_queue": YES}, quiet=True,
    ),
    Tool(
        "spawn_cancel", "Take an agent out of the queue, or end it.",
        steps.say("task.cancel", request_id="task"), ("task.cancel",), {"request_id": TEXT},
        ("request_id",), _P.DISMISS,
    ),
    Tool(
        "worktree_status", "Show a worktree: your own, or that of `handle`.",
        steps.tree("worktree.status"), ("worktree.status",), {"handle": TEXT}, quiet=True,
    ),
    Tool(
        "worktree_commit", "Commit all changes in a worktree: your own, or that of `handle`.",
        steps.tree("worktree.commit"), ("worktree.commit",), {"message": TEXT, "handle": TEXT},
        ("message",), quiet=True,
    ),
    Tool(
        "worktree_push", "Push a worktree's branch, without force.",
        steps.tree("worktree.push"), ("worktree.push",), {"handle": TEXT},
    ),
    Tool(
        "worktree_merge", "Merge a worktree's branch into its project's branch, or into `onto`.",
        steps.tree("worktree.merge"), ("worktree.merge",), {"handle": TEXT, "onto": TEXT},
    ),
    Tool(
        "worktree_pr", "Push a worktree's branch and open a pull request.",
        steps.tree("worktree.pr"), ("worktree.pr",),
        {"title": TEXT, "body": TEXT, "base": TEXT, "handle": TEXT}, ("title", "body"),
    ),
    Tool(
        "memory_store", "Store a memory for the team, under a key.",
        steps.say("memory.store", memory_type="type"), ("memory.store",),
        {"key": TEXT, "value": TEXT, "memory_type": MEMORY, "tags": WORDS}, ("key", "value"),
    ),
    Tool(
        "memory_recall", "Recall what you stored under a key.", steps.say("memory.recall"), ("memory.recall",),
        {"key": TEXT}, ("key",), quiet=True,
    ),
    Tool(
        "memory_search", "Search the memories of the whole team.",
        steps.say("memory.search", memory_type="type"), ("memory.search",),
        {"query": TEXT, "memory_type": MEMORY, "limit": COUNT}, ("query",),
    ),
)  # fmt: skip
