"""The command table, as data, and the executables.

Nothing is imported here but what `fleet --help` needs: a command's module is loaded when that
command runs or shows its own help, and click only when there is a command at all.
"""

from __future__ import annotations

import gc
import os
import sys

COMMANDS: dict[str, tuple[str, str]] = {
    "status": ("fleet.cli.status.status:status", "Show the work here, and what needs you."),
    "inbox": ("fleet.cli.status.inbox:inbox", "List what needs you, and put items away."),
    "top": ("fleet.cli.top.command:top", "Watch the work in the whole terminal, and act on it."),
    "add": ("fleet.cli.tasks.tasks:add", "Queue a task."),
    "tasks": ("fleet.cli.tasks.tasks:tasks", "List the tasks."),
    "show": ("fleet.cli.tasks.tasks:show", "Show a task, its runs and what it waits for."),
    "search": ("fleet.cli.tasks.search:search", "Search titles, prompts and transcripts."),
    "stats": ("fleet.cli.status.stats:stats", "Count what was done, and what it cost."),
    "budgets": ("fleet.cli.status.stats:budgets", "Show what running tasks spent, and may spend."),
    "view": ("fleet.cli.tasks.saved_views:view", "Save filters of tasks under a name."),
    "history": ("fleet.cli.tasks.history:history", "List what happened to a task."),
    "gates": ("fleet.cli.tasks.history:gates", "Show what a task's gates printed."),
    "ready": ("fleet.cli.tasks.tasks:ready", "List the tasks that could start now."),
    "edit": ("fleet.cli.tasks.edit:edit", "Change what a task asks for."),
    "wait": ("fleet.cli.tasks.wait:wait", "Wait until tasks have ended."),
    "cancel": ("fleet.cli.tasks.tasks:cancel", "Cancel a task."),
    "retry": (
        "fleet.cli.tasks.tasks:retry",
        "Queue an ended task again: failed, cancelled or done.",
    ),
    "reopen": ("fleet.cli.tasks.tasks:reopen", "Continue a task with the answer in its Q&A.md."),
    "close": ("fleet.cli.tasks.tasks:close", "Close a task: mark it as done."),
    "pause": ("fleet.cli.tasks.tasks:pause", "Keep a task from starting."),
    "resume": ("fleet.cli.tasks.tasks:resume", "Let a paused or postponed task start."),
    "send-back": (
        "fleet.cli.tasks.tasks:send_back",
        "Send a task's work back to its agent, with remarks.",
    ),
    "comment": ("fleet.cli.tasks.tasks:comment", "Write a note on a task."),
    "dep": ("fleet.cli.tasks.tasks:dep", "Add and remove the tasks that a task waits for."),
    "ask": ("fleet.cli.tasks.messages:ask", "Ask a question; the task waits for the answer."),
    "send": ("fleet.cli.tasks.messages:send", "Send a message to an agent while it works."),
    "unsend": ("fleet.cli.tasks.messages:unsend", "Withdraw a message that was not read yet."),
    "answer": ("fleet.cli.tasks.messages:answer", "Answer a question."),
    "questions": ("fleet.cli.tasks.messages:questions", "List the open questions."),
    "bd": ("fleet.cli.bd.commands:bd", "Use this queue with the commands of bd (beads)."),
    "run": ("fleet.cli.supervisor.run:run", "Run the supervisor, which starts the ready tasks."),
    "logs": ("fleet.cli.tasks.logs:logs", "Show the output of a task's newest run."),
    "task": (
        "fleet.cli.tasks.files:task",
        "Show one of a task's files: its log, its plan, its result.",
    ),
    "log": ("fleet.cli.tasks.files:log", "Show the supervisor's log."),
    "notify": ("fleet.cli.setup.notify:notify", "Send a test notification."),
    "create": ("fleet.cli.agents.agents:create", "Start an agent on a branch of its own."),
    "fanout": ("fleet.cli.agents.agents:fanout", "Start several agents with the same prompt."),
    "multi": ("fleet.cli.agents.agents:multi", "Start several agents, each with its own prompt."),
    "fork": ("fleet.cli.agents.fork:fork", "Continue an agent's conversation on another branch."),
    "list": ("fleet.cli.agents.agents:list_", "List the agents at work."),
    "prompt": ("fleet.cli.agents.agents:prompt", "Tell an agent what to do next."),
    "attach": ("fleet.cli.agents.agents:attach", "Attach to an agent's terminal."),
    "explain": (
        "fleet.cli.agents.agents:explain",
        "Show what an agent is doing, and how Fleet knows.",
    ),
    "approve": ("fleet.cli.agents.permit:approve", "Allow what an agent asks for on its screen."),
    "deny": ("fleet.cli.agents.permit:deny", "Refuse what an agent asks for on its screen."),
    "interrupt": ("fleet.cli.agents.permit:interrupt", "End an agent's turn: it waits for you."),
    "kill": (
        "fleet.cli.agents.agents:kill",
        "End agents, keep their work, remove their worktrees.",
    ),
    "spawn": ("fleet.cli.agents.spawn_dismiss:spawn", "Start an agent, as `create` does."),
    "dismiss": ("fleet.cli.agents.spawn_dismiss:dismiss", "End an agent, as `kill` does."),
    "workers": (
        "fleet.cli.agents.spawn_dismiss:workers",
        "List the agents at work, as `list` does.",
    ),
    "diff": ("fleet.cli.tasks.diff:diff", "Show what a task has changed."),
    "review": (
        "fleet.cli.landing.review:review",
        "List work that is done and not landed, and judge it.",
    ),
    "best": ("fleet.cli.landing.best:best", "Have several agents do the same work; pick the best."),
    "pick": ("fleet.cli.landing.best:pick", "Pick the best task of a batch, or see how it stands."),
    "land": (
        "fleet.cli.landing.land:land",
        "Bring tasks' work to its branch, once it passes there.",
    ),
    "pr": ("fleet.cli.landing.pr:pr", "Open and follow the pull request of a task."),
    "merge": ("fleet.cli.landing.merge:merge", "Merge a task's branch into its base."),
    "cd": ("fleet.cli.tasks.cd_open:cd", "Print the directory of a task's work."),
    "open": ("fleet.cli.tasks.cd_open:open_", "Open a task's work in your editor."),
    "worktree": (
        "fleet.cli.tasks.worktree:worktree",
        "Show, commit, push and merge a task's worktree.",
    ),
    "kept": ("fleet.cli.tasks.kept:kept", "List, restore or drop the kept work of ended agents."),
    "gc": ("fleet.cli.tasks.kept:gc", "Remove the worktrees of ended tasks."),
    "discover": ("fleet.cli.compute.nodes:discover", "List the models of every node."),
    "warmup": ("fleet.cli.compute.nodes:warmup", "Load the models into their nodes' memory."),
    "benchmark": ("fleet.cli.compute.benchmark:benchmark", "Measure how fast every node is."),
    "recommend": (
        "fleet.cli.compute.recommend:recommend",
        "Suggest which node should serve which model.",
    ),
    "eval": ("fleet.cli.compute.eval:eval_", "Check that every node can do its job."),
    "evals": ("fleet.cli.compute.eval:evals", "List the kept results of `fleet eval`."),
    "init": ("fleet.cli.setup.config:init", "Set up the home and the project's fleet.yaml."),
    "validate": ("fleet.cli.setup.config:validate", "Check fleet.yaml."),
    "config": ("fleet.cli.setup.config:config", "Show, set, edit or check the settings."),
    "trust": ("fleet.cli.setup.config:trust", "Trust this project's settings to run commands."),
    "gateway": (
        "fleet.cli.compute.gateway:gateway",
        "Start and stop LiteLLM and the relay that picks nodes.",
    ),
    "up": ("fleet.cli.compute.up:up", "Start the gateway, warm the models, start the supervisor."),
    "down": ("fleet.cli.compute.up:down", "Stop what `up` started."),
    "nodes": (
        "fleet.cli.compute.nodes:nodes",
        "Show the nodes, their resident models and the routes.",
    ),
    "host": ("fleet.cli.hosts.host:host", "List, drain and remove the machines that run agents."),
    "trace": (
        "fleet.cli.compute.trace:trace",
        "Show the requests: the agent, the node, the time taken.",
    ),
    "doctor": (
        "fleet.cli.compute.doctor:doctor",
        "Check the setup, and show how to fix each problem.",
    ),
    "generate": (
        "fleet.cli.compute.generate:generate",
        "Write the configuration files of other programs.",
    ),
    "clean": ("fleet.cli.compute.generate:clean", "Remove the files that `generate` wrote."),
    "ui": ("fleet.cli.server.ui:ui", "Open the dashboard in the browser."),
    "serve": ("fleet.cli.server.serve:serve", "Serve Fleet over HTTP, WebSocket and MCP."),
    "health": ("fleet.cli.server.health:health", "Check whether the server answers."),
    "metrics": ("fleet.cli.server.health:metrics", "Show the server's metrics."),
    "alert": ("fleet.cli.team.alert:alert", "Tell the leads of a team that something is wrong."),
    "audit": (
        "fleet.cli.server.audit:audit",
        "List the requests to the server, and who made them.",
    ),
    "mcp": ("fleet.cli.server.mcp_command:mcp", "Serve MCP on standard input and output."),
    "whoami": ("fleet.cli.team.whoami:whoami", "Show who you are to Fleet, and what you may do."),
    "token": ("fleet.cli.team.token:token", "Create, list and revoke tokens."),
    "teams": ("fleet.cli.team.members:teams", "List the members of a team."),
    "swarms": ("fleet.cli.team.swarms:swarms", "List the swarms."),
    "swarm-create": (
        "fleet.cli.team.swarms:swarm_create",
        "Create a swarm with a limit of agents at work.",
    ),
    "swarm-kill": ("fleet.cli.team.swarms:swarm_kill", "End a swarm and its agents."),
    "blackboard": ("fleet.cli.team.boards:blackboard", "Show the board of a swarm or a task."),
    "blackboard-post": ("fleet.cli.team.boards:blackboard_post", "Post to a board."),
    "blackboard-read": ("fleet.cli.team.boards:blackboard_read", "Mark posts as read."),
    "blackboard-archive": ("fleet.cli.team.boards:blackboard_archive", "Archive posts of a board."),
    "checkpoints": ("fleet.cli.team.checkpoint:checkpoints", "List the checkpoints."),
    "checkpoint": (
        "fleet.cli.team.checkpoint:checkpoint",
        "Save, load, accept or reject a checkpoint.",
    ),
    "mail": ("fleet.cli.team.mail:mail", "Send and read mail within the team."),
    "chat": ("fleet.cli.team.chat:chat", "Talk to members of the team."),
    "memory": ("fleet.cli.team.memory:memory", "Store facts for the team, and find them again."),
    "claims": (
        "fleet.cli.team.claims:claims",
        "Claim files, so that no two members change the same one.",
    ),
    "coders": ("fleet.cli.setup.coders:coders", "List the coders and what each can do."),
    "agents": (
        "fleet.cli.setup.agents:agents",
        "List the agents (roles) that the settings declare.",
    ),
    "skills": (
        "fleet.cli.setup.skills:skills",
        "Install the skills that teach assistants to use Fleet.",
    ),
    "plugins": ("fleet.cli.setup.skills:plugins", "Make a plugin marketplace of the skills."),
    "completion": (
        "fleet.cli.terminal.completion:completion",
        "Print a shell's completion script.",
    ),
    "backup": ("fleet.cli.setup.backup:backup", "Copy the store, while Fleet runs."),
    "restore": ("fleet.cli.setup.backup:restore", "Replace the store with a copy."),
    "archive": ("fleet.cli.setup.backup:archive", "Write old tasks and events to a file."),
    "store": (
        "fleet.cli.setup.store:store",
        "Copy the store to another kind, or bring its tables up.",
    ),
    "update": ("fleet.cli.setup.update:update", "Update Fleet to the newest release."),
    "demo": ("fleet.cli.demo.queue:demo", "Run a demo in a scratch repository."),
    "help": ("fleet.cli.help:help_", "Show the commands, or the help of one."),
}

# Under each heading the everyday commands first: `fleet --help` has their sentences, and names the
# others. `fleet help all` has everything.
HEADINGS = {
    heading: (everyday.split(), others.split())
    for heading, everyday, others in (
        (
            "Work",
            "status top add tasks show run logs answer retry cancel",
            (
                "edit wait ready search stats budgets inbox view history gates questions ask "
                "send unsend comment send-back pause resume reopen close dep task log bd"
            ),
        ),
        (
            "Workspaces",
            "create list attach diff review land kill",
            (
                "prompt fanout best pick multi pr merge fork explain approve deny interrupt cd "
                "open worktree kept gc"
            ),
        ),
        (
            "Compute",
            "up nodes doctor",
            "down discover warmup generate clean gateway trace benchmark eval evals recommend host",
        ),
        (
            "Team",
            "ui serve",
            (
                "spawn dismiss workers health metrics alert audit mcp token whoami teams swarms "
                "swarm-create swarm-kill blackboard blackboard-post blackboard-read "
                "blackboard-archive checkpoints checkpoint mail chat memory claims"
            ),
        ),
        (
            "Setup",
            "init config",
            (
                "agents validate trust coders skills plugins notify completion update backup "
                "restore archive store demo help"
            ),
        ),
    )
}

ALIASES = {"l": "list", "dashboard": "ui"}

# About the server itself, wherever it is.
OF_SERVER = frozenset({"health", "metrics", "mcp"})

# Local by nature: they act on this machine's files or terminal, and are no operation.
LOCAL = frozenset(
    {"init", "config", "completion", "trust", "demo", "validate", "run", "log", "notify"}
    | {"generate", "clean", "gateway", "up", "down", "trace", "doctor"}
    | {"discover", "nodes", "warmup", "benchmark", "eval", "recommend"}
    | {"agents", "coders", "help", "update", "backup", "restore", "archive", "store", "kept", "gc"}
    | {"skills", "plugins", "serve"}
    | OF_SERVER
)

WIDTH = 80  # columns that `fleet --help` has at most

# Loading modules makes thousands of objects and no garbage: with Python's 700 a command spends an
# eighth of its time collecting nothing.
FEWER_COLLECTIONS = 50_000

COMPLETE = "_FLEET_COMPLETE"  # set by the shell's completion script


def main(argv: list[str] | None = None) -> int:
    """`fleet`, `flt` and `subagent-fleet`."""
    from fleet.cli.terminal.output import open_missing

    open_missing()
    gc.set_threshold(FEWER_COLLECTIONS)
    words = _typed() if argv is None else argv
    try:
        return _main(words)
    except KeyboardInterrupt:  # while modules were loading
        return 130
    finally:
        gc.freeze()  # else the last collection looks once more at all that is about to vanish


def _typed() -> list[str]:
    """What was typed. `subagent-fleet status` shows the nodes alone, as it always has."""
    program, *words = sys.argv
    if os.path.basename(program) == "subagent-fleet" and words[:1] == ["status"]:  # noqa: PTH119  # start-up time
        return ["nodes", *words[1:]]
    return words


def _main(words: list[str]) -> int:
    if COMPLETE in os.environ:
        from fleet.cli.terminal.completion import complete

        return complete(os.environ[COMPLETE])
    if not words:
        return _glance()
    if words[0] in {"-h", "--help"} or words == ["help"]:
        return _print(overview())
    if words == ["help", "all"]:
        return _print(overview(everything=True))
    if words[0] == "--version":
        return _print(version())
    if words == ["mcp"]:
        from fleet.cli.server.mcp_bridge import bridge

        return bridge()
    from fleet.cli.root import root
    from fleet.cli.terminal.frame import run

    if words[0] in LOCAL - OF_SERVER - {"help"}:
        _stay_here(words[0])
    return run(root, words)


def _glance() -> int:
    """`fleet` alone is `fleet status`."""
    from fleet.cli.root import root
    from fleet.cli.terminal.frame import run
    from fleet.cli.terminal.output import is_terminal
    from fleet.cli.terminal.render import say

    status = run(root, ["status"])
    if is_terminal(sys.stderr):
        say("`fleet --help` lists the commands.", "dim")
    return status


def _stay_here(name: str) -> None:
    """A command that acts on this machine does so, wherever the queue is."""
    if os.environ.pop("FLEET_URL", "") or os.environ.pop("CLAUDE_FLEET_URL", ""):
        os.environ.pop("CLAUDE_FLEET_URL", None)
        from fleet.cli.terminal.render import say

        say(f"`fleet {name}` acts on this machine, not on the server of FLEET_URL.", "dim")


def serve() -> int:
    """`claude-fleet` is `fleet serve`."""
    return main(["serve", *sys.argv[1:]])


def mcp() -> int:
    """`claude-fleet-mcp` is `fleet mcp`."""
    return main(["mcp", *sys.argv[1:]])


def version() -> str:
    from fleet import __version__

    return f"fleet {__version__}\n"


def overview(*, everything: bool = False) -> str:
    """What `fleet --help` says, or `fleet help all`."""
    lines = [
        "Usage: fleet COMMAND [OPTIONS] [ARGUMENTS]",
        "",
        "Queue work for coding agents, run them in parallel, land only what passes.",
    ]
    for heading, (everyday, others) in HEADINGS.items():
        listed = everyday + others if everything else everyday
        room = max(map(len, COMMANDS if everything else listed))
        lines += ["", f"{heading}:"]
        lines += [f"  {name:<{room}}  {COMMANDS[name][1]}" for name in listed]
        lines += [] if everything else _more(others)
    more = "" if everything else "`fleet help all` lists every command with its sentence.\n"
    return "\n".join(lines) + f"\n\n{more}`fleet help COMMAND` shows a command's options.\n"


def _more(names: list[str]) -> list[str]:
    """`  more: ready, questions, …`, in as many lines as it needs."""
    lines = ["  more:"]
    for i, name in enumerate(names):
        word = f" {name}" if i == len(names) - 1 else f" {name},"
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append("       ")
        lines[-1] += word
    return lines


def _print(text: str) -> int:
    from fleet.cli.terminal.output import ReaderGone, write

    try:
        write(text)
    except (ReaderGone, OSError) as error:
        from fleet.cli.terminal.frame import ended

        return ended(error)
    return 0
