"""Every command in turn: what a person sees has no raw value of the program in it."""

from __future__ import annotations

import re

import click
import pytest

from fleet.cli.main import COMMANDS
from fleet.cli.root import load
from tests.e2e.scratch import Scratch

RAW = {
    "microseconds": re.compile(r"(?<![\w./-])1[5-9]\d{14}(?!\w)"),
    "a time to the microsecond": re.compile(r"T\d\d:\d\d:\d\d\.\d{6}"),
    "JSON": re.compile(r'\{"\w+":'),
    "a Python object": re.compile(r"\b[A-Z]\w+\(\w+=|<[\w.]+ object at 0x|\bdatetime\.datetime\("),
    "a Python literal": re.compile(r"\{'|\['|\('|\bNone\b|\bTrue\b|\bFalse\b"),
}
WALK = """
    status | inbox | inbox snooze t-3 | inbox seen t-3 | history t-1 | gates t-1 | budgets | whoami
    view | view save urgent label:ui | view list | view remove urgent | archive ARCHIVE --days 0 | store migrate --check
    land list | land trains | land forecast | search Write | ready | tasks --all | tasks --tree | show t-1 | show t-2 | show t-3 | show t-4
    stats | edit t-4 --title Later | wait t-1 | comment t-4 Look | dep add t-4 t-1 | dep rm t-4 t-1
    questions | ask --task t-4 --timeout 0 Which? | answer t-4 this | send t-4 Hurry | unsend m-4
    pause t-4 | show t-4 | resume t-4 | retry t-2 | cancel t-2 | logs t-1 | task log t-1
    review | review t-1 | diff t-1 | worktree status t-1 | worktree commit t-1 -m x | cd t-1 | merge t-1
    worktree merge t-1 | list --all | workers | explain t-1 | close t-3 | show t-3
    run status | kept | kept list | gc | gc --dry-run --days 0 | add Another | add --in-place Here
    reopen t-2 | bd list | bd ready | bd show t-1 | bd blocked | bd create New | bd comments list t-4
    bd comment t-4 Hm | bd update t-4 --priority 1 | bd close t-5 | bd reopen t-5 | bd dep add t-6 t-4
    bd dep remove t-6 t-4 | bd comments add t-4 Hm | bd new Newer | bd delete t-7 --force | bd prime
    config | config show --show-origin | config get run | config get coder | config set team=red
    config unset team | config find team | config validate | config get store.url --show-origin | init | validate | trust
    host list | doctor | coders | agents | nodes | trace | gateway status | health | audit
    token | token create bob --role worker | token list --all | token enrol --role worker
    token enrolments | token revoke bob | token rotate | teams | alert Down
    swarms --all | swarm-create builders 3 | swarm-kill SWARM
    blackboard t-1 | blackboard-post t-1 Green | blackboard t-1 | blackboard-read POST
    blackboard-archive POST | checkpoint save Login Half | checkpoints | checkpoint load
    checkpoint accept CHECKPOINT | checkpoint save Login More | checkpoint reject CHECKPOINT
    mail send ada Hello | mail | mail list | mail read MAIL | mail broadcast Hello
    chat open | chat | chat list | chat say CHAT Hi | chat read CHAT
    memory store db/port 5433 | memory | memory list | memory recall db/port | memory search port
    claims take src/a.py | claims | claims list | claims release src/a.py
    skills list | completion bash | backup BACKUP | help add | generate --target env | clean --yes
"""
DIALOGS = ("approve", "deny", "fork", "interrupt", "top")
GATEWAY = ("gateway install", "gateway logs", "gateway start", "gateway stop")
LAND = (
    "add",
    "drop",
    "give",
    "hold",
    "move",
    "pause",
    "release",
    "resume",
    "return",
    "show",
    "undo",
)
ELSEWHERE = {  # each with the reason why it is not walked here
    **dict.fromkeys(
        ("create", "fanout", "multi", "prompt", "attach", "kill", "spawn", "dismiss", *DIALOGS),
        "it needs a terminal: test_agents.py",
    ),
    **dict.fromkeys(("best", "pick"), "they need agents: tests/integration/test_races.py"),
    "restore": "it replaces the store: test_backup.py",
    **dict.fromkeys(("eval", "evals"), "they need nodes: test_eval.py"),
    "send-back": "its agent goes on: tests/integration/test_sending_back.py",
    **dict.fromkeys(("run", "run foreground", "run restart", "run start", "run stop"), "it stays"),
    **dict.fromkeys(
        ("discover", "warmup", "benchmark", "recommend", "up", "down", *GATEWAY),
        "it needs nodes: test_compute.py, test_gateway.py",
    ),
    **dict.fromkeys(
        [f"host {verb}" for verb in ("add", "doctor", "drain", "forget", "resume", "show")],
        "it needs another machine: tests/real/test_host_add.py",
    ),
    **dict.fromkeys(
        [f"host {verb}" for verb in ("invite", "join", "leave")],
        "it needs PostgreSQL: tests/real/test_host_join.py",
    ),
    "store copy": "it needs a store of its own: tests/contract/test_store_copy.py",
    "ui": "it starts a server that stays: test_ui.py",
    **dict.fromkeys(("serve", "mcp", "metrics"), "it serves, or prints what a server says"),
    **dict.fromkeys(("mcp install", "mcp uninstall", "skills install", "plugins install"), "files"),
    **dict.fromkeys(("land", *(f"land {verb}" for verb in LAND)), "it needs work in the queue"),
    **dict.fromkeys(("worktree pr", "worktree push"), "it needs a remote"),
    **dict.fromkeys(
        ("pr open", "pr show", "pr sync", "pr merge", "pr close"),
        "it needs a forge: tests/integration/test_landing_pr.py",
    ),
    **dict.fromkeys(
        ("kept drop", "kept restore"), "it needs kept work: test_workspace_commands.py"
    ),
    **dict.fromkeys(("open", "config edit"), "it starts an editor"),
    "log": "into a pipe it prints the JSON of its file; on a terminal, lines: test_files.py",
    **dict.fromkeys(("notify", "update", "demo"), "it reaches outside, or takes long"),
}
IDS = {  # what a line prints and a later one needs
    "MAIL": ("mail send", r"\bm-\d+\b"),
    "POST": ("blackboard-post", r"\bm-\d+\b"),
    "CHECKPOINT": ("checkpoint save", r"\bm-\d+\b"),
    "SWARM": ("swarm-create", r"\bt-\d+\b"),
    "CHAT": ("chat open", r"\b[0-9a-f]{16}\b"),
}


def commands() -> set[str]:
    """Every command that can be typed, and each group that does something by itself."""

    def under(name: str, command: click.Command) -> set[str]:
        if not isinstance(command, click.Group):
            return {name}
        context = click.Context(command)
        names = {name} if command.invoke_without_command else set()
        for inner in command.list_commands(context):
            names |= under(f"{name} {inner}", command.get_command(context, inner))
        return names

    return set().union(*(under(name, load(name)) for name in COMMANDS))


def lines() -> list[str]:
    return [line.strip() for row in WALK.splitlines() for line in row.split("|") if line.strip()]


def test_every_command_is_walked_or_left_out_for_a_reason():
    walked = {name for name in commands() for line in lines() if f"{line} ".startswith(f"{name} ")}
    left = commands() - walked - ELSEWHERE.keys()
    assert not left, f"Add {sorted(left)} to WALK, or to ELSEWHERE with the reason."


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A task that is done, one that failed, one in review and one that waits."""
    made = Scratch(tmp_path_factory.mktemp("screens"))
    made.add("Write it", script="write a.txt a\ncommit A\nusage 1200 300 0.05")
    made.add("Break it", "--attempts", "1", script="exit 3")
    made.add("Check it", "--review", script="write b.txt b\ncommit B")
    made.work()
    made.add("Later", "--priority", "3", "--budget", "$2", "--time-limit", "90", "--label", "ui")
    return made


def test_no_screen_shows_a_raw_value(scratch):
    ids = {"BACKUP": str(scratch.root / "copy.db"), "ARCHIVE": str(scratch.root / "old.jsonl.gz")}
    wrong = []
    for line in lines():
        done = scratch.type(*(ids.get(word, word) for word in line.split()))
        text = done.stdout + done.stderr
        assert "Traceback" not in text, f"$ fleet {line}\n{text}"
        for name, (command, pattern) in IDS.items():
            if line.startswith(command):
                ids[name] = re.search(pattern, done.stdout)[0]
        raw = [
            f"$ fleet {line}: {kind}: {m[0]}" for kind, r in RAW.items() if (m := r.search(text))
        ]
        wrong += raw
    assert wrong == []
