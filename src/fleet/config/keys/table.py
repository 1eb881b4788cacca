"""Every setting, once: the loader, the checks, `config set` and the reference page read this table.

A path may hold `*`, a name that the file chooses (`nodes.*.endpoint`). Layers, later wins:
default < user ($FLEET_HOME/config.yaml) < project (fleet.yaml) < environment < flag.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from fleet.domain.access import ROLES
from fleet.domain.data import NamedTuple
from fleet.domain.fleet import NODE_KINDS, PERMISSIONS, RUN_ROLES
from fleet.domain.forges.kinds import KINDS as FORGE_KINDS

DEFAULT, USER, PROJECT, ENVIRONMENT, FLAG = "default", "user", "project", "environment", "flag"
ANYWHERE = (USER, PROJECT, ENVIRONMENT, FLAG)
FILES = (USER, PROJECT, FLAG)  # a path with a chosen name has no environment variable
NOT_PROJECT = (USER, ENVIRONMENT, FLAG)  # one supervisor serves many projects

RUNS = "it runs commands"
WIDENS = "it widens what an agent may do"
SENDS = "it decides where data or keys are sent"
WRITES = "it decides where files are written"
STORES = "it chooses the store"

Path: TypeAlias = tuple[str, ...]


class SettingKey(NamedTuple):
    """`also` are older names for the last word of the path, with the same meaning."""

    path: str
    kind: str
    default: Any
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    layers: tuple[str, ...] = ANYWHERE
    trust: str = ""  # why a project's value has no effect before `fleet trust`
    harmless: tuple[Any, ...] = ()  # values that need no trust, besides the default
    also: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # other programs' variables that also set it


def _in_files(path: str, kind: str, default: Any, doc: str, **rest: Any) -> SettingKey:
    return SettingKey(path, kind, default, doc, layers=FILES, **rest)


SETTINGS = (
    SettingKey("max_concurrent", "whole", 3,
               "The maximum number of runs at once.", low=1, high=1000, layers=NOT_PROJECT),
    SettingKey("max_depth", "whole", 3,
               "How deep agents may start agents: 0 is not at all; with 1, only agents started "
               "by people may.",
               low=0, high=100, layers=NOT_PROJECT),
    SettingKey("coder", "coder", "claude",
               "The coder of a task that names neither an agent nor a coder."),
    SettingKey("model", "line", "",
               "The model for the default coder: a name under `models`, or a name that the coder "
               "itself knows. Empty: the coder's own default."),
    SettingKey("context_pressure_threshold_pct", "whole", 90,
               "End a run at a checkpoint when its prompt fills this much of the coder's context.",
               low=1, high=100),
    SettingKey("team", "word", "local",
               "The team that a task belongs to.", env=("CLAUDE_FLEET_TEAM",)),
    SettingKey("queue", "choice", "fleet",
               "Where tasks come from: `fleet` is Fleet's own queue; `beads` also takes those of "
               "`bd` in the home.",
               choices=("fleet", "beads"), layers=NOT_PROJECT),
    SettingKey("run.attempts", "whole", 2,
               "The number of runs a task gets before it fails.", low=1, high=100),
    SettingKey("run.time_limit", "number", 0,
               "The maximum seconds that one run may take; 0 is no limit.", low=0),
    SettingKey("run.backoff", "number", 10,
               "Seconds to wait before a failed task is tried again.", low=0),
    SettingKey("run.grace", "number", 10,
               "Seconds between asking a coder to end and killing it.", low=0),
    SettingKey("run.stall_limit", "number", 900,
               "End a run after this many seconds without output and without a running tool; 0 "
               "is never.",
               low=0),
    SettingKey("run.gate", "text", "",
               "A shell command that a run's work must pass before its task is done; it runs in "
               "the workspace. A task may name its own.",
               trust=RUNS),
    SettingKey("run.mcp", "flag", True,
               "Give every run Fleet's MCP tools: its board, mail, memory, questions."),
    SettingKey("run.env", "texts", (),
               "Variables that runs and gates get although they hold the key of a provider that "
               "is not the coder's own, or the store's password. `JWT_SECRET` is never passed.",
               trust=SENDS),
    SettingKey("run.gate_limit", "number", 1800,
               "The maximum seconds that the gate may take.", low=1),
    SettingKey("run.commit", "choice", "auto",
               "What becomes of changes that a run did not commit: `auto` commits them on its "
               "branch, `hold` leaves the task to you in review, `leave` leaves them, and tasks "
               "that depend on it wait.",
               choices=("auto", "hold", "leave")),
    SettingKey("land.auto", "flag", False,
               "Queue the work of every task to land as soon as it is done."),
    SettingKey("land.gate", "text", "",
               "The command that merged work must pass before it lands; empty: `run.gate`.",
               trust=RUNS),
    SettingKey("land.onto", "text", "",
               "The branch that work lands on; empty: the one that its task started from."),
    SettingKey("land.push", "flag", False,
               "Land on the branch of `land.remote`: build on its tip there, and push what passed.",
               trust=SENDS),
    SettingKey("land.pr", "flag", False,
               "Open a pull request on the forge of `land.remote` for what passed; it lands when "
               "that is merged.",
               trust=SENDS),
    SettingKey("land.merge", "flag", False,
               "Merge these pull requests ourselves, as soon as the forge allows it.", trust=SENDS),
    SettingKey("land.remote", "text", "origin",
               "The git remote that work is pushed to.", trust=SENDS),
    SettingKey("land.slots", "whole", 2,
               "The maximum number of landing gates at once, for each branch.",
               low=1, high=64, layers=NOT_PROJECT),
    SettingKey("land.reconciler", "text", "",
               "The agent that mends work which conflicts or fails on its branch; empty: the "
               "task's own."),
    SettingKey("land.environment", "texts", (),
               "Variables that the gate's result depends on, such as NODE_ENV: with another "
               "value, what passed is tested again. The system, the processor's kind and "
               "`run.env` always count."),
    SettingKey("land.tries", "whole", 3,
               "How often work goes back to its agent before it needs you.", low=0),
    SettingKey("forge.hosts", "pairs", (),
               "Forges and trackers of your own, as HOST=KIND. The kinds are "
               f"{', '.join(FORGE_KINDS)}; Forgejo is of the kind gitea.",
               choices=tuple(FORGE_KINDS), layers=NOT_PROJECT),
    SettingKey("hooks.secrets", "pairs", (),
               "The secrets with which forges sign events, as FORGE=REFERENCE; a reference is "
               f"os.environ/NAME or file:PATH, a forge is one of {', '.join(FORGE_KINDS)}.",
               layers=NOT_PROJECT),
    SettingKey("hooks.people", "texts", (),
               "Who may give agents work by a label: their names on the forge.",
               layers=NOT_PROJECT),
    SettingKey("hooks.label", "line", "fleet",
               "The label that makes a ticket a task.", layers=NOT_PROJECT),
    SettingKey("hooks.project", "text", "",
               "The directory in which such tasks work; empty: where the server was started.",
               layers=NOT_PROJECT),
    SettingKey("budget.usd", "number", 0,
               "The maximum dollars that all runs of a task may cost; 0 is no limit.", low=0),
    SettingKey("budget.tokens", "whole", 0,
               "The maximum tokens that all runs of a task may use; 0 is no limit.", low=0),
    SettingKey("budget.minutes", "number", 0,
               "The maximum minutes that all runs of a task may take; 0 is no limit.", low=0),
    SettingKey("notify.about", "texts", ("asked", "failed", "done", "alert"),
               "What to notify you of: `asked`, `failed`, `done`, `alert`.",
               choices=("asked", "failed", "done", "alert"), layers=NOT_PROJECT),
    SettingKey("notify.desktop", "flag", False,
               "Show notifications on this machine's desktop.", layers=NOT_PROJECT),
    SettingKey("notify.webhook", "address", "",
               "Send notifications as JSON to this address; `os.environ/NAME` takes the address "
               "from that variable.",
               layers=NOT_PROJECT),
    SettingKey("workspace.root", "path", "$FLEET_HOME/worktrees",
               "The directory that holds the worktrees; `~` is your home directory.", trust=WRITES),
    SettingKey("workspace.isolation", "choice", "none",
               "What keeps agents and gates from reading this home's key, database and other "
               "runs: `none`, `bubblewrap` (a package of Linux), `landlock` (Linux itself; it "
               "stops less), or `container`, which can change only its worktree and is capped by "
               "`workspace.limits`. Also `isolation`.",
               choices=("none", "bubblewrap", "landlock", "container"), layers=NOT_PROJECT,
               env=("FLEET_ISOLATION",)),
    SettingKey("workspace.branch_prefix", "branch", "fleet/",
               "The prefix of the name of every branch that Fleet creates."),
    SettingKey("workspace.credential_files", "inside", (),
               "Files that git does not track, copied from the project into each new worktree. A "
               "missing file is skipped."),
    SettingKey("workspace.setup", "texts", (),
               "Shell commands run in each new worktree, in order, before its first run.",
               trust=RUNS),
    SettingKey("workspace.setup_timeout", "number", 600,
               "The maximum seconds that one set-up command may take.", low=1),
    SettingKey("workspace.setup_cache", "texts", ("auto",),
               "The tracked files that the set-up depends on, as patterns: while they are the "
               "same, a new worktree gets a copy of what an earlier set-up made. `auto`: lock "
               "and manifest files, if every set-up command only installs packages. Empty: the "
               "set-up runs in every worktree."),
    SettingKey("workspace.quick", "flag", False,
               "Copy the credential files but skip the set-up commands."),
    SettingKey("workspace.branch_pattern", "pattern", "",
               "A regular expression that the name of every new branch must match as a whole; "
               "empty allows any."),
    SettingKey("workspace.teardown", "texts", (),
               "Shell commands run in a worktree, in order, before it is removed. A failed "
               "command is reported, and the rest still runs. Each may take `setup_timeout`.",
               trust=RUNS),
    SettingKey("workspace.ports", "whole", 0,
               "The number of ports reserved for each workspace on this host, from "
               "`$FLEET_PORT_BASE` on.",
               low=0, high=100),
    SettingKey("workspace.pool", "whole", 4,
               "The number of used worktrees of each repository to keep for the next tasks.",
               low=0, high=1000),
    SettingKey("workspace.pool_ignored", "choice", "keep",
               "Whether to keep or clean ignored files when a worktree is kept for the next task.",
               choices=("keep", "clean")),
    SettingKey("workspace.container.program", "choice", "bubblewrap",
               "What makes the containers: `docker`, `podman`, `bubblewrap` (no daemon, no "
               "image: this machine's programs), or `systemd` (bubblewrap in a scope of your own "
               "systemd, which caps it).",
               choices=("docker", "podman", "bubblewrap", "systemd"), layers=NOT_PROJECT),
    SettingKey("workspace.container.image", "line", "",
               "The image for Docker and Podman, with the coder's program in it; it is not "
               "fetched. For Podman also a directory with a root file system; `/:O` is this "
               "machine's own, with changes thrown away.",
               layers=NOT_PROJECT),
    SettingKey("workspace.container.network", "choice", "full",
               "What a container reaches: `none` is nothing but Fleet's own server; `gateway` is "
               "also the model gateway; `full` is what this machine reaches.",
               choices=("none", "gateway", "full"), layers=NOT_PROJECT),
    SettingKey("workspace.container.mounts", "texts", (
            "~/.claude",
            "~/.claude.json",
            "~/.codex",
            "~/.config/opencode",
            "~/.local/share/opencode",
            "~/.gemini",
            "~/.cache",
        ),
               "More paths of this machine that a container has, at the same path; `PATH:ro` "
               "cannot be changed. Missing ones are skipped. The default is where coders keep "
               "logins and conversations.",
               layers=NOT_PROJECT),
    SettingKey("workspace.limits.memory", "size", "4GiB",
               "The maximum memory of a container, such as `512MiB` or `4GiB`; a run that "
               "exceeds it ends as out of memory. Empty is no limit.",
               layers=NOT_PROJECT),
    SettingKey("workspace.limits.cpus", "number", 2,
               "The maximum processors that a container uses, such as 1.5; 0 is no limit.",
               low=0, high=4096, layers=NOT_PROJECT),
    SettingKey("workspace.limits.pids", "whole", 1024,
               "The maximum processes and threads of a container; 0 is no limit.",
               low=0, high=4_000_000, layers=NOT_PROJECT),
    SettingKey("tmux.prefix", "word", "fleet_",
               "The prefix of the name of every tmux session; a `.` in it becomes `-`."),
    SettingKey("server.places", "texts", (),
               "More directories in which clients of the server that are not coordinators may "
               "start agents. The server's own directory and the projects of their team's tasks "
               "are always allowed.",
               layers=NOT_PROJECT),
    SettingKey("server.url", "address", "",
               "The address at which other machines reach the server, for what `fleet token "
               "create` prints.",
               layers=NOT_PROJECT),
    SettingKey("server.token_days", "number", 90,
               "The maximum days for which a new token or enrolment secret can be valid.",
               low=0.001, high=3650, layers=NOT_PROJECT),
    SettingKey("server.trusted_proxies", "networks", (),
               "Addresses or networks of your reverse proxies, such as `127.0.0.1` or "
               "`10.0.0.0/8`. From them the server takes the client's address out of "
               "`X-Forwarded-For`.",
               layers=NOT_PROJECT),
    SettingKey("server.audit", "choice", "writes",
               "What the server's audit trail records: refusals and requests that change "
               "something, or `all` requests of those who have a token.",
               choices=("writes", "all"), layers=NOT_PROJECT),
    SettingKey("server.audit_mb", "whole", 100,
               "The size of the audit trail in megabytes; the oldest records are removed.",
               low=1, high=100_000, layers=NOT_PROJECT),
    SettingKey("server.streams", "whole", 100,
               "How many streams of events (`/events` and `/ws`) one member may have open at "
               "once, and at most a quarter of the connections that the server takes.",
               low=1, high=10_000, layers=NOT_PROJECT),
    SettingKey("server.oidc.issuer", "address", "",
               "The OpenID Connect issuer whose tokens the server accepts; empty accepts none.",
               layers=NOT_PROJECT),
    SettingKey("server.oidc.audience", "line", "",
               "The audience (`aud`) that the issuer's tokens must name: the id of this server "
               "there.",
               layers=NOT_PROJECT),
    SettingKey("server.oidc.name_claim", "word", "email",
               "The claim with a person's name here. It must be one that people cannot choose "
               "for themselves.",
               layers=NOT_PROJECT),
    SettingKey("server.oidc.role_claim", "line", "groups",
               "The claim whose values `server.oidc.roles` maps.", layers=NOT_PROJECT),
    SettingKey("server.oidc.roles", "pairs", (),
               "What role each value of the claim gives, as `VALUE=ROLE`. Of several the "
               "strongest counts; who has none is refused.",
               choices=ROLES, layers=NOT_PROJECT),
    SettingKey("server.oidc.team_claim", "line", "groups",
               "The claim whose values `server.oidc.teams` maps.", layers=NOT_PROJECT),
    SettingKey("server.oidc.teams", "pairs", (),
               "What team each value of the claim gives, as `VALUE=TEAM`. Of several the first "
               "counts; who has none is refused.",
               layers=NOT_PROJECT),
    SettingKey("host.labels", "texts", (),
               "What this machine has that tasks may need (`fleet add --needs gpu`). Its system "
               "(`linux`, `macos`), its name and its id are labels by themselves.",
               layers=NOT_PROJECT),
    SettingKey("host.server", "address", "",
               "The server that this machine's supervisor connects to, so that its runs can be "
               "read, and attached to, elsewhere. The token is in `server.token` of the home; "
               "`fleet host add --server` and `fleet host join` set both.",
               layers=NOT_PROJECT),
    SettingKey("store.url", "store", "sqlite:///$FLEET_HOME/fleet.db",
               "Where tasks and runs are kept: `sqlite:///PATH`, `postgresql://…`, "
               "`s3://BUCKET/PREFIX`, `dynamodb://TABLE/PREFIX` or `firestore://PROJECT/PREFIX`; "
               "`os.environ/NAME` takes the URL from that variable. `DATABASE_URL` is read only "
               "with `STORAGE_BACKEND=postgresql`; `DB_PATH` is the path of an SQLite file.",
               trust=STORES, env=("DATABASE_URL", "DB_PATH")),
    SettingKey("store.schema", "word", "fleet",
               "The schema of a PostgreSQL store that has Fleet's tables. It must have no other "
               "tables.",
               trust=STORES, env=("POSTGRESQL_SCHEMA",)),
    SettingKey("store.pool_size", "whole", 0,
               "The most connections that a process opens to a PostgreSQL store: 8 or more, 0 "
               "for no limit. What needs one more waits for 30 seconds.",
               low=0, high=10_000, trust=STORES, env=("POSTGRESQL_POOL_SIZE",)),
    SettingKey("store.lease", "whole", 300,
               "On a store that several machines share: the seconds of silence after which the "
               "others take over a machine's tasks. Its agents go on without the store until "
               "shortly before.",
               low=20, high=86_400, layers=NOT_PROJECT),
    SettingKey("retention.events", "number", 365,
               "The days after which events are removed from the store; 0 keeps them for ever. "
               "Those of tasks that have not ended stay.",
               low=0, layers=NOT_PROJECT),
    SettingKey("retention.tasks", "number", 730,
               "The days after their end after which tasks are removed from the store, with "
               "their runs and messages; 0 keeps them for ever. A task stays that has work which "
               "did not land, an open question, or another task that refers to it. Its branch "
               "and its folder stay.",
               low=0, layers=NOT_PROJECT),
    SettingKey("retention.kept", "number", 180,
               "The days after which kept work of ended tasks (`fleet kept`) is dropped; 0 keeps "
               "it for ever.",
               low=0, layers=NOT_PROJECT),
    SettingKey("retention.transcripts", "number", 90,
               "The days after which the transcripts of ended tasks, and of the gates that "
               "tested work before it landed, are removed; 0 keeps them for ever. What is in "
               "git, the task's history and its costs stay.",
               low=0, layers=NOT_PROJECT),
    SettingKey("retention.transcripts_mb", "whole", 1500,
               "The megabytes that all transcripts of this machine may take. Of more, the oldest "
               "of tasks that have ended are removed, however young; 0 sets no limit.",
               low=0, layers=NOT_PROJECT),
)  # fmt: skip

DECLARED = (
    SettingKey("project.name", "line", None,
               "The name of this fleet. Default: the directory's name."),
    SettingKey("project.gateway.provider", "choice", "litellm",
               "The program that routes requests to the nodes.", choices=("litellm",)),
    SettingKey("project.gateway.host", "host", "127.0.0.1",
               "The address that the gateway listens on.", trust=SENDS),
    SettingKey("project.gateway.port", "whole", 4000,
               "The gateway's port; the relay uses the next one.", low=1, high=65534),
    SettingKey("project.gateway.master_key_env", "variable", "LITELLM_MASTER_KEY",
               "The variable that holds the gateway's key.", trust=SENDS),
    SettingKey("project.observability.otlp", "address", "",
               "The OpenTelemetry collector that gets a trace of every task, run and request, "
               "such as `http://localhost:4318`. Needs the extra `otel`; empty sends nothing.",
               trust=SENDS),
    SettingKey("project.observability.otlp_headers", "secret", None,
               "A reference to the headers for the collector, `os.environ/NAME` or `file:PATH`: "
               "`Authorization=Bearer …`, several with commas.",
               trust=SENDS),
    _in_files("nodes.*.endpoint", "url", None,
              "The node's address, `http://host:port`. Needed unless the kind is a hosted API. "
              "In a project's file it counts after `fleet trust`, unless it is on this machine."),
    _in_files("nodes.*.kind", "choice", "ollama", "The kind of server.", choices=NODE_KINDS),
    _in_files("nodes.*.provider", "word", None,
              "The gateway's own name for a `hosted` API. Without `kind`, it names the kind.",
              also=("cloud_provider",)),
    _in_files("nodes.*.tags", "texts", (),
              "Words to select nodes by: `needs` of models, agents and routes names them."),
    _in_files("nodes.*.max_parallel", "whole", 0,
              "The maximum requests at once on this node, over all its models; 0 is no limit. "
              "How many each may have is `models.*.max_parallel`.",
              low=0),
    _in_files("nodes.*.weight", "number", 1,
              "How much the node is preferred: 2 is chosen as if it answered twice as fast, 0.5 "
              "as if half.",
              low=0.01, high=100),
    _in_files("nodes.*.memory", "size", "",
              "Memory that models may fill there, such as `24GB`: a graphics card's own, or "
              "three quarters of a Mac's. `fleet recommend` uses it; empty is unknown."),
    _in_files("nodes.*.wake_on_lan", "mac", "",
              "The hardware (MAC) address of its machine. Before a warm-up, and while a task "
              "waits for the node, Fleet wakes it with a wake-on-LAN packet; empty wakes "
              "nothing.",
              trust=SENDS),
    _in_files("nodes.*.wake_address", "address_port", "255.255.255.255:9",
              "Where that packet is sent: the broadcast address of the machine's network.",
              trust=SENDS),
    _in_files("nodes.*.wake_seconds", "number", 120,
              "How long the node may take to answer after the packet.", low=1, high=3600),
    _in_files("nodes.*.api_key", "secret", None,
              "A reference to the key, `os.environ/NAME` or `file:PATH`; never the key itself.",
              trust=SENDS),
    _in_files("models.*.node", "line", None, "The node that serves it."),
    _in_files("models.*.upstream", "line", None,
              "The node's own name for the model.", also=("ollama_model",)),
    _in_files("models.*.servings.*", "line", None,
              "Instead of `node` and `upstream`: each node that serves it and that node's own "
              "name for it, best first."),
    _in_files("models.*.alias", "line", None,
              "A second name for requests, which models may share. Default: its key.",
              also=("litellm_alias",)),
    _in_files("models.*.context", "whole", 8192,
              "The context size to serve it with, in tokens.", low=1),
    _in_files("models.*.timeout", "number", 300,
              "The maximum seconds of silence: how long a node may send nothing, before its "
              "first word or between two.",
              low=1),
    _in_files("models.*.max_parallel", "whole", 1,
              "The maximum requests at once for it on each of its nodes.", low=1),
    _in_files("models.*.fallbacks", "texts", (),
              "Models to use instead when no node serves this one, in order.", also=("fallback",)),
    _in_files("models.*.thinking", "flag", False,
              "The model can think before it answers, so a client's wish to do so or not reaches "
              "it. Ollama refuses that wish for other models. `fleet discover --write` sets it."),
    _in_files("models.*.needs", "texts", (),
              "Use only those of its nodes that have all these tags."),
    _in_files("agents.*.needs", "texts", (),
              "The tags of nodes that may answer this agent: its model is used on those alone."),
    _in_files("agents.*.coder", "coder", None,
              "The coder for this role. Default: the agent's own name if that is a coder's, else "
              "`coder`."),
    _in_files("agents.*.model", "line", None,
              "A name under `models`, by key or alias. With `coder` set also a name that the "
              "coder knows."),
    _in_files("agents.*.description", "text", None, "When to use this agent."),
    _in_files("agents.*.prompt", "text", None,
              "Its instructions. Default: a sentence about its role."),
    _in_files("agents.*.priority", "whole", 2,
              "Whose requests go first when a node is busy: 0 before 4.", low=0, high=4),
    _in_files("agents.*.max_requests", "whole", 0,
              "The maximum of its requests that nodes work on at once; the others wait. 0 is no "
              "limit.",
              low=0),
    _in_files("agents.*.tools", "texts", (),
              "The tools it may use; empty uses the coder's default."),
    _in_files("agents.*.permissions", "choice", "edit",
              "`read` changes nothing, `edit` changes files in its workspace, `full` runs "
              "anything without asking.",
              choices=PERMISSIONS, trust=WIDENS, harmless=("read",)),
    _in_files("agents.*.role", "choice", "worker",
              "What its runs may do in their team; a `team-lead` may start and end agents.",
              choices=RUN_ROLES, trust=WIDENS),
    _in_files("agents.*.extra_args", "texts", (),
              "Arguments added to the coder's own.", trust=WIDENS),
    _in_files("agents.*.command", "texts", (),
              "The program and its arguments, for the coders `command` and `acp`.", trust=RUNS),
    _in_files("coders.*.command", "texts", (),
              "The program and its arguments. `{prompt}`, `{model}`, `{instructions}`, "
              "`{instructions_file}`, `{permissions}` and `{gateway}` in it are replaced; "
              "without `{prompt}` the prompt is its standard input. An argument that would be "
              "empty is left out, with the flag before it.",
              trust=RUNS),
    _in_files("coders.*.resume", "texts", (),
              "The command that continues a conversation: as `command`, with `{session}`. "
              "Without it every run is a new conversation.",
              trust=RUNS),
    _in_files("coders.*.says.*", "line", None,
              "For a program that prints a JSON object on every line: where in it to find "
              "`session`, `text`, `thinking`, `tool`, `tool_result`, `error`, `result`, "
              "`failed`, `input`, `output`, `cached`, `context` or `usd`. The value is a path "
              "such as `message.text`; conditions may come before it, as in `type=result "
              "response.text`. Without it the output is read as text."),
    _in_files("coders.*.counts", "choice", "each",
              "Whether a line's `input`, `output`, `cached` and `usd` are of `each` reply, and "
              "add up, or the `total` of the run so far.",
              choices=("each", "total")),
    _in_files("coders.*.window", "whole", 128_000,
              "Its context size in tokens, if the model is not one of `models`.", low=1),
    _in_files("routes.*.agent", "line", None,
              "The agent or coder for a task that the rule matches. The first rule that matches "
              "decides, for tasks that name no agent, coder or model.",
              trust=WIDENS),
    _in_files("routes.*.model", "line", None,
              "The model for such a task: a name under `models`. With `agent` set also a name "
              "that its coder knows."),
    _in_files("routes.*.needs", "texts", (),
              "The tags that a node must have to answer for such a task."),
    _in_files("routes.*.labels", "texts", (), "It matches a task that has one of these labels."),
    _in_files("routes.*.words", "texts", (),
              "It matches a task whose title or prompt has one of these words, in any case."),
    _in_files("routes.*.files", "texts", (),
              "It matches a task whose title or prompt names such a file: `*.sql`, `docs/*`."),
    _in_files("routes.*.longer_than", "whole", 0,
              "It matches a task whose title and prompt have more characters than this; 0 is any.",
              low=0),
    _in_files("routes.*.shorter_than", "whole", 0,
              "It matches a task whose title and prompt have fewer characters than this; 0 is any.",
              low=0),
    _in_files("mcp_servers.*.command", "line", None,
              "The program that runs the MCP server.", trust=RUNS),
    _in_files("mcp_servers.*.args", "texts", (), "The program's arguments.", trust=RUNS),
    _in_files("mcp_servers.*.env.*", "private", None,
              "Environment variables for the program.", trust=RUNS),
)  # fmt: skip

KEYS = (*SETTINGS, *DECLARED)

# Settings of subagent-fleet that had no effect there. Fleet does what they ask for anyway, as:
NEEDLESS = {
    "project.blackboard_enabled": "every team has a board",
    "project.security.zero_trust_a2a": "every write is authenticated",
}

# Settings that ask for what Fleet does not do, unless they are `false`, and what to do instead:
REFUSED = {
    "project.dynamic_routing": "Write rules under `routes:`. Among the nodes of a model, a request "
    "already goes where it is answered soonest.",
    "project.gpu_microscheduling": "Give the models `max_parallel`, the number of requests at once.",
    "project.observability.opentelemetry": "Write the collector's address: `otlp: http://HOST:4318`.",
    "project.observability.langfuse": "Langfuse takes OpenTelemetry: write "
    "`otlp: https://cloud.langfuse.com/api/public/otel` and `otlp_headers: os.environ/NAME`.",
    "project.observability.langsmith": "LangSmith takes OpenTelemetry: write "
    "`otlp: https://api.smith.langchain.com/otel` and `otlp_headers: os.environ/NAME`.",
    "models.*.context_pool": "Take it out: models share no context. `context` is the size of one.",
    "agents.*.workspace": "Take it out: a run has its own worktree. `fleet add --in-place` works "
    "without one.",
    "agents.*.require_approval": "Use `permissions: read`, or `fleet add --review` for tasks that are "
    "done only when you agree.",
    "agents.*.memory_namespace": "Take it out: what an agent remembers belongs to its team.",
    "agents.*.shared_pool_id": "Take it out: what an agent remembers belongs to its team.",
    "agents.*.state_driver": "Use `store.url`: all agents keep their state there.",
    "agents.*.self_mutating": "Take it out: an agent does not change its own definition.",
}

# A file may have these sections at either place, but not at both.
MOVED: dict[Path, Path] = {
    ("gateway",): ("project", "gateway"),
    ("observability",): ("project", "observability"),
    ("isolation",): ("workspace", "isolation"),
}


class NameRule(NamedTuple):
    pattern: str
    words: str


NAMES = {
    "nodes": NameRule(r"[A-Za-z0-9_][A-Za-z0-9._-]*", "letters, digits, '.', '_', '-'"),
    "models": NameRule(
        r"[A-Za-z0-9_][A-Za-z0-9._:/@+-]*", "letters, digits and any of . _ : / @ + -"
    ),
    "agents": NameRule(r"[a-z0-9_][a-z0-9_-]*", "lowercase letters, digits, '_' and '-'"),
    "coders": NameRule(r"[a-z0-9_][a-z0-9_-]*", "lowercase letters, digits, '_' and '-'"),
    "routes": NameRule(r"[a-z0-9_][a-z0-9_-]*", "lowercase letters, digits, '_' and '-'"),
    "mcp_servers": NameRule(r"[A-Za-z0-9_][A-Za-z0-9._-]*", "letters, digits, '.', '_' and '-'"),
    "env": NameRule(r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and '_'"),
}
