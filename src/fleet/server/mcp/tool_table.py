"""Every tool: its name, what it says, and what it takes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from fleet.domain.access import Permission
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.limits import MOST_SECONDS
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
    """`takes`: the arguments; `needs`: the required ones; `may`: a permission that it also needs.

    An argument is a schema, or the operation's field that it sets, as in `task.add:spec.cwd`.
    """

    name: str
    about: str
    steps: Callable[[steps.ToolCaller, Mapping[str, Any]], list[steps.ToolStep]]
    operations: tuple[str, ...]
    takes: Mapping[str, dict[str, Any] | str]
    needs: tuple[str, ...] = ()
    may: Permission | None = None
    for_runs: bool = False
    keys: tuple[str, ...] = ()  # the names of its operations' replies, if it returns all of them
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
        """Return the MCP annotations, which a client may show before it calls the tool."""
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


def _calls(
    name: str,
    operation: str,
    about: str,
    fields: str = "",
    *,
    own: bool = False,
    schemas: Mapping[str, dict[str, Any] | str] | None = None,
    may: Permission | None = None,
    for_runs: bool = False,
    quiet: bool = False,
) -> Tool:
    """Return a tool that calls one operation.

    `fields` are its arguments: `text!` is required, and `body=text` sets the operation's field
    `text` from an argument `body`. `schemas` replace the schemas of the operation's fields.
    """
    names: dict[str, str] = {}
    needs: list[str] = []
    for field in fields.split():
        theirs, _, ours = field.rstrip("!").partition("=")
        names[theirs] = ours or theirs
        if field.endswith("!"):
            needs.append(theirs)
    takes: dict[str, dict[str, Any] | str] = {n: f"{operation}:{ours}" for n, ours in names.items()}
    takes |= schemas or {}
    says = steps.own if own else steps.say
    return Tool(
        name, about, says(operation, **names), (operation,), takes, tuple(needs), may,
        for_runs, quiet=quiet,
    )  # fmt: skip


TOOLS = (
    Tool(
        "ask_human", "Ask a person a question. Then end your turn: you are resumed with the answer.",
        steps.ask, ("message.ask",), {"question": "message.ask:text", "options": "message.ask:options"}, ("question",),
        for_runs=True,
    ),
    _calls("task_done", "task.close", "Mark your task as done, with a summary of the result.",
           "summary=why!", own=True, for_runs=True),
    _calls("note", "message.comment", "Write a note on your task, for people and for the next run.",
           "text!", own=True, for_runs=True),
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
    _calls("team_edit", "task.edit", "Change what a task asks for; `after` and `labels` replace what it had.",
           "task_id=task! title prompt agent model base after labels priority"),
    Tool(
        "tasks_add", "Queue several tasks, all or none; `after` and `parent` can name others of them.",
        steps.add_all, ("task.add_all",),
        {"tasks": {"type": "array", "items": PLANNED, "minItems": 1, "maxItems": 1000}, "again": YES},
        ("tasks",), quiet=True,
    ),
    _calls("task_search", "search.find",
           "Search titles, prompts and transcripts of the team's tasks for words.",
           "text! task limit", schemas={"text": TEXT, "task": TEXT, "limit": COUNT}, quiet=True),
    _calls("team_complete", "task.close", "Mark a task as done.", "task_id=task!", quiet=True),
    _calls("team_claim", "file.claim", "Claim a file for ten minutes; refused while another member has it.",
           "file=path!"),
    Tool(
        "team_spawn", "Start an agent on a branch of its own, as soon as there is room.",
        steps.spawn, ("agent.spawn",),
        {
            "handle": "agent.spawn:handle", "prompt": "task.add:prompt",
            "workingDir": "agent.spawn:cwd", "model": "agent.spawn:model", "role": ROLE,
        },
        ("handle",),
    ),
    _calls("team_fork", "agent.fork",
           "Continue an agent's conversation with a second agent, on a branch of its own.",
           "handle=task! branch! prompt"),
    _calls("team_dismiss", "task.cancel", "End an agent; its work is kept.", "handle=task!", may=_P.DISMISS),
    _calls("team_broadcast", "mail.broadcast", "Send mail to everyone in the team.", "message=text!"),
    Tool(
        "team_handoff", "Hand your work over to another member, with what they need to continue.",
        steps.handoff, ("checkpoint.save",), {"to": "checkpoint.save:to", "context": OBJECT}, ("to", "context"),
        quiet=True,
    ),
    _calls("team_workers", "agent.list", "List the agents at work.", quiet=True),
    _calls("team_send", "message.send", "Send a message to an agent while it works.",
           "handle=task! message=text!"),
    _calls("team_look", "agent.look", "Show what the agents are doing, and what they ask permission for.",
           "tasks", quiet=True),
    _calls("team_permit", "run.permit", "Allow or refuse what an agent asks for in a permission dialog.",
           "handle=task! allow! asks always", schemas={"allow": YES, "always": YES}),
    _calls("inbox_list", "inbox.list",
           "List what needs a person: questions, permission dialogs, reviews, failures, landings, machines.",
           "kinds limit", schemas={"limit": COUNT}, quiet=True),
    _calls("question_answer", "message.answer",
           "Answer a question of an agent, by its id or its task's; a number picks an option.",
           "question=name! text!", quiet=True),
    _calls("task_pause", "task.pause", "Pause a task; its agent is stopped, and its work is kept.",
           "task!", quiet=True),
    _calls("task_resume", "task.resume", "Let a task run that is paused, held or waits for a limit.",
           "task!", quiet=True),
    _calls("task_retry", "task.retry", "Let a task that has ended run again.", "task!", quiet=True),
    _calls("task_send_back", "task.send_back", "Send a finished task back to its agent, with what to change.",
           "task! text", quiet=True),
    _calls("task_comment", "message.comment",
           "Remark on a task's work, also on a file and a line of it; task_send_back gives it to the agent.",
           "task! text! path line", quiet=True),
    _calls("mail_send", "mail.send", "Send mail to a team member.", "to! body=text! subject"),
    Tool(
        "mail_read", "List your mail; `mark_read` also marks it as read.", steps.mail,
        ("mail.list", "mail.take"),
        {"filter": {"type": "string", "enum": ["unread", "all"]}, "mark_read": YES},
    ),
    _calls("mail_mark_read", "mail.read", "Mark a mail as read.", "mail!", quiet=True),
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
    _calls("blackboard_mark_read", "board.mark_read", "Mark posts as read.",
           "message_ids=posts!", quiet=True),
    Tool(
        "blackboard_archive", "Archive posts of a board.", steps.archive, ("board.archive",),
        {
            "swarm_id": "board.archive:task", "message_ids": "board.archive:posts",
            "max_age_hours": {"type": "number", "minimum": 0, "maximum": MOST_SECONDS // 3600},
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
    _calls("checkpoint_list", "checkpoint.list", "List checkpoints.",
           "status limit", schemas={"status": {"type": "string", "enum": ["pending", "accepted", "rejected"]}, "limit": COUNT}, quiet=True),
    _calls("swarm_create", "swarm.create", "Create a swarm: tasks that belong together and share a board.",
           "name! description max_agents"),
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
    _calls("spawn_cancel", "task.cancel", "Take an agent out of the queue, or end it.",
           "request_id=task!", may=_P.DISMISS),
    _calls("task_diff", "task.diff", "Show what a task has changed, file by file.",
           "task! against run path stat", quiet=True),
    _calls("setting_find", "setting.find", "Find settings of the project, with where each comes from.",
           "words limit", schemas={"limit": COUNT}, quiet=True),
    _calls("review_list", "review.list",
           "List the work that is done and not landed, with what it would conflict with.",
           "project limit", quiet=True),
    _calls("land_add", "land.add", "Queue the work of tasks to land on their branch, once it passes there.",
           "tasks! onto how push", may=_P.MERGE),
    _calls("land_list", "land.list", "List what waits to land, with what is tested now and why.",
           "all limit", quiet=True),
    _calls("land_forecast", "land.forecast",
           "Say which branches, at work or done, would conflict with their branch or each other.",
           "project limit", quiet=True),
    _calls("land_hold", "land.hold", "Hold a landing until it is released.", "landing! why", may=_P.MERGE),
    _calls("land_give", "land.give", "Give a held landing to a member of its team, or back to all.",
           "landing! to", may=_P.MERGE),
    _calls("land_release", "land.release", "Queue a landing again that was held or sent back too often.",
           "landing!", may=_P.MERGE),
    _calls("land_move", "land.move", "Move a landing to the front of its queue, or before another one.",
           "landing! before", may=_P.MERGE),
    _calls("land_undo", "land.undo",
           "Take landed work out of its branch again, with a task that is tested like any other.",
           "landing! agent", may=_P.MERGE),
    _calls("land_pause", "land.pause", "Let nothing land on a branch until it is resumed.",
           "onto", may=_P.MERGE),
    _calls("land_resume", "land.resume", "Let work land on a branch again.", "onto", may=_P.MERGE),
    _calls("race_start", "race.start", "Have several agents do the same work, and pick the best solution.",
           "prompt! count! agents models rules project", may=_P.ADD, quiet=True),
    _calls("race_show", "race.show", "Show which solution of a batch is the best, and why.",
           "batch!", quiet=True),
    _calls("race_pick", "race.pick", "Test the tasks of a batch and pick the best, or pick `winner` by hand.",
           "batch! winner rules", may=_P.ASSIGN),
    _calls("review_submit", "review.submit",
           "Accept a task's work, which queues it to land, or send it back with `text`.",
           "task! verdict! text onto"),
    _calls("worktree_status", "worktree.status", "Show a worktree: your own, or that of `handle`.",
           "handle=task", quiet=True),
    _calls("worktree_commit", "worktree.commit",
           "Commit all changes in a worktree: your own, or that of `handle`.",
           "message! handle=task", quiet=True),
    _calls("worktree_push", "worktree.push", "Push a worktree's branch, without force.", "handle=task"),
    _calls("worktree_merge", "worktree.merge",
           "Merge a worktree's branch into its project's branch, or into `onto`.",
           "handle=task onto"),
    _calls("worktree_pr", "worktree.pr", "Push a worktree's branch and open a pull request.",
           "title! body! base handle=task"),
    _calls("node_list", "node.list",
           "Show the nodes that serve models: up or down and why, what is in their memory, and where requests go.",
           quiet=True),
    _calls("model_list", "model.list",
           "List the models, the nodes that serve each, and the agents that use it.",
           quiet=True),
    _calls("model_warm", "model.warm",
           "Load models into their nodes' memory: all, or one by its name or agent.",
           "model agent node", quiet=True),
    _calls("route_explain", "route.explain",
           "Explain which node would answer a request for a model or agent now, term by term.",
           "model agent prompt output", quiet=True),
    _calls("trace_list", "trace.list",
           "List the newest requests that the relay answered: the agent, the node, and why that node.",
           "agent node limit", quiet=True),
    _calls("eval_list", "eval.list", "List the results of evals: which models did their agents' jobs.",
           "limit", quiet=True),
    _calls("eval_show", "eval.show",
           "Show the result of one eval, case by case, with the reasons of failures.",
           "id!", quiet=True),
    _calls("gateway_show", "gateway.show", "Show whether LiteLLM and the relay answer.", quiet=True),
    _calls("host_list", "host.list", "List the machines with a supervisor, their runs and what they miss.",
           quiet=True),
    _calls("host_show", "host.show",
           "Show a machine with a supervisor, its runs, and when others may take those of a silent one.",
           "host!", quiet=True),
    _calls("host_doctor", "host.doctor",
           "Check what keeps a machine from taking tasks, with the fix of each.",
           "host!", quiet=True),
    _calls("host_drain", "host.drain", "Start no new runs on a machine; its runs go on.", "host!"),
    _calls("host_resume", "host.resume", "Let a drained machine start runs again.", "host!"),
    _calls("host_forget", "host.forget", "Remove a machine that is not coming back from the list.",
           "host! off"),
    _calls("limit_list", "limit.list",
           "List what may not be used for a while, such as a credential at its rate limit.",
           "limit", quiet=True),
    _calls("usage_report", "usage.report",
           "Report tokens, money and time by day, agent, model, node, project, team or task.",
           "by project team", quiet=True),
    _calls("budget_list", "budget.list", "List what the running tasks may cost, and have cost.",
           "project", quiet=True),
    _calls("memory_store", "memory.store", "Store a memory for the team, under a key.",
           "key! value! memory_type=type tags"),
    _calls("memory_recall", "memory.recall", "Recall what you stored under a key.", "key!", quiet=True),
    _calls("memory_search", "memory.search", "Search the memories of the whole team.",
           "query! memory_type=type limit", schemas={"memory_type": "memory.store:type", "limit": COUNT}),
)  # fmt: skip
