"""Every example that a `--help` ends with is typed here, in a world in which it has something to do.

A new command needs two lines in src/fleet/cli/examples.txt (tests/docs/test_commands.py). They run in the world of `WORLD`; what
they need besides goes into `BEFORE`.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fleet.app import App
from fleet.cli import main as table
from fleet.cli.root import examples_of
from fleet.client import LocalClient
from fleet.domain.run import Host
from fleet.operations.team.members import BeSeen
from fleet.ports import Put
from tests.e2e.machines import Machines
from tests.forges.fake_forge import TOKEN, FakeForge
from tests.free_ports import free_ports
from tests.wait import LIMIT, until

EXAMPLES = Path(table.__file__).with_name("examples.txt")
LINES = [line for line in EXAMPLES.read_text().splitlines() if line.startswith("fleet ")]

WORLD = r"""
chat open bob
add "List the prices" --prompt "write prices.py {}\ncommit List the prices"
add "Tidy up" --attempts 1 --prompt "exit 3"
add "Choose a licence" --prompt "ask Which licence?\nwrite LICENSE {answer}\ncommit A licence"
add "Write the README" --after t-3
add "Add a shop window"
pause t-5
add "Check the prices" --review --prompt "write check.py 1\ncommit Check the prices"
create old-idea --headless --prompt "write idea.md An idea\ncommit An idea"
run --once
kill old-idea --force
add "Fix the login"
send t-8 "Use the new form." --wait 0
swarm-create builders 3
blackboard-post t-9 "The tests pass."
mail send ada "The build is green."
checkpoint save "Log in" "The form works."
memory store login-form "It is in web/login.py."
claims take web/login.py
token create bob
"""
ASKING = [  # an agent with a permission dialog on its screen
    "fleet create fix-login --prompt 'errand 0 rm -rf build'",
    "until fleet list --json | grep -q permission; do sleep 0.1; done",
]
# What is typed before a line, in a shell. The longest name counts, here and below.
BEFORE: dict[str, list[str]] = {
    **{
        f"fleet land {verb}": ["fleet land t-1"]
        for verb in ("show", "hold", "release", "move", "drop", "pause", "resume", "return")
    },
    **{f"fleet pr {verb}": ["fleet pr open t-1"] for verb in ("show", "merge", "close")},
    "fleet land give": ["fleet land t-1", "fleet land hold t-1"],
    "fleet land undo": ["fleet land t-1 --now"],
    "fleet pick": ["fleet best 2 'say Done.' --test true"],
    "fleet add --file": [
        r"printf 'tasks:\n  - {name: a, title: A}\n  - {title: B, after: a}\n' > tasks.yaml"
    ],
    "fleet reopen": [r"printf '\n## A:\n\nMIT\n' >> $FLEET_HOME/tasks/t-3/artifacts/Q\&A.md"],
    "fleet prompt": ["fleet create fix-login"],
    "fleet explain": ["fleet create fix-login"],
    "fleet approve": ASKING,
    "fleet deny": ASKING,
    "fleet interrupt": ["fleet create fix-login --prompt 'say Hello.'"],
    "fleet view remove": ["fleet view save mine label:ui"],
    "fleet kill": ["fleet create fix-login", "fleet create login-a"],
    "fleet dismiss": ["fleet create fix-login", "fleet create helper"],
    "fleet worktree commit": [
        "for each in $FLEET_HOME/worktrees/*/*; do touch $each/more.py; done"
    ],
    "fleet worktree pr": ["git remote set-url origin $FORGE_URL"],
    "fleet config unset": [
        "fleet config set max_concurrent=4",
        "fleet config set --project run.attempts=3",
    ],
    "fleet restore": ["fleet backup ../fleet-backup.db", "fleet backup ../copy.db"],
    "fleet gateway": ["fleet gateway start"],
    "fleet clean": ["fleet generate"],
    "fleet down": ["fleet up --no-warm"],
    "fleet recommend": ["fleet benchmark --repeat 1 --prompt-tokens 64 --output-tokens 8"],
    "fleet health": ["fleet serve --background --port $PORT --no-run"],
    "fleet metrics": ["fleet serve --background --port $PORT --no-run"],
    "fleet audit": ["fleet serve --background --port $PORT --no-run"],
}
# What is added to a line, so that tests side by side do not meet.
ALSO = {
    "fleet serve": "--port $PORT",
    "fleet ui": "--port $PORT --no-run",
    "fleet send": "--wait 0",
    "fleet mcp install": "--print",
}
# They go on until they are interrupted.
GOES_ON = {
    *("fleet status --watch", "fleet run", "fleet run foreground", "fleet log 20 --follow"),
    *("fleet serve", "fleet mcp"),
}
# The exit status that is right in this world, where it is not 0.
STATUS = {
    "fleet ask": 3,  # nobody answers within no time
    "fleet run status": 1,  # no supervisor runs
    "fleet eval": 1,  # the simulated node counts, whatever it is asked
}
NOT_RUN = {
    "fleet top": "takes over the terminal; tests/e2e/test_top.py runs it in tmux",
    "fleet fork": "needs a conversation of Claude Code; tests/real/test_fork.py forks one",
    "fleet host invite": "needs PostgreSQL; tests/real/test_host_join.py types it",
    "fleet host join": "needs a server; tests/real/test_host_join.py joins one",
    "fleet host leave": "needs a machine that has joined; likewise",
    "fleet host add": "needs another machine; tests/real/test_host_add.py adds one over sshd",
    "fleet attach": "takes over the terminal; tests/e2e/test_agents.py attaches",
    "fleet demo": "makes a world of its own; tests/e2e/test_demo.py runs it",
    "fleet pr sync": "asks a forge; tests/integration/test_landing_pr.py",
    "fleet update": "asks a package index, and changes what is installed; tests/e2e/test_update.py",
}


def copy(source: Path, target: Path) -> None:
    """With its pipes, which Python's own copying refuses."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


class World(Machines):
    """It is made once, and copied back whenever a line has changed it."""

    def __init__(self, root: Path, webhook: str) -> None:
        super().__init__(root / "world")
        bin_ = root / "bin"
        bin_.mkdir()
        for program, line in {
            "gh": "https://example.com/pull/1",
            "claude": "2.1.0",
            "code": "-",
        }.items():
            (bin_ / program).write_text(f"#!/bin/sh\necho {line}\n")
            (bin_ / program).chmod(0o755)
        env = self.scratch.env
        env |= {"PATH": f"{bin_}:{env['PATH']}", "EDITOR": "true", "FLEET_NOTIFY_WEBHOOK": webhook}
        self.forge = FakeForge("github", root / "forge")
        env |= {"FLEET_FORGE_HOSTS": f"{self.forge.host}=github", "FLEET_FORGE_TOKEN": TOKEN}
        env |= {"FORGE_URL": self.forge.url}
        self._fill()
        self._kept = root / "kept"
        copy(self.scratch.root, self._kept)

    def _fill(self) -> None:
        scratch = self.scratch
        (scratch.repo / "notes.txt").write_text("Use the new form.\n")
        (scratch.repo / "agents.txt").write_text("login:Fix the login\nlogout:Fix the logout\n")
        (scratch.repo / ".gitignore").write_text("*.txt\nfleet.yaml\n")
        scratch.git("add", ".gitignore")
        scratch.git("commit", "-q", "-m", "Ignore notes")
        scratch.git("branch", "release")
        scratch.git("init", "-q", "--bare", "../origin.git")
        self.forge.adopt(scratch.repo)
        scratch.git("remote", "set-url", "origin", str(scratch.root / "origin.git"))
        bob = LocalClient(App(scratch.repo, scratch.env | {"LOGNAME": "bob"}))
        bob.call(BeSeen())  # as a server sees who asks
        now = bob.app.store.now()
        hosts = [
            Host("box-1", 0, "box", "h", "", now + 10**9),
            Host("old-1", 0, "old-box", "", "", 1),
        ]
        bob.app.store.commit([Put(host) for host in hosts], [])
        bob.app.store.close()
        for line in WORLD.strip().splitlines():
            scratch(*(word.replace(r"\n", "\n") for word in shlex.split(line)))

    def copy_back(self) -> None:
        self.end()
        shutil.rmtree(self.scratch.root)
        copy(self._kept, self.scratch.root)

    def end(self) -> None:
        """All that a line may have left running."""
        scratch = self.scratch
        if not self.leftovers():
            return
        for agent in scratch.data("list", "--everywhere"):
            scratch.type("kill", agent["task"], "--force")
        scratch.type("serve", "--stop")
        scratch.type("down", "--agents")

    def leftovers(self) -> bool:
        """Whether a process belongs to this home, or cannot be asked."""
        mark = f"FLEET_HOME={self.scratch.home}\0".encode()
        if not Path("/proc/self/environ").exists():
            return True
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    return True
        return False


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    hook = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    made = World(tmp_path_factory.mktemp("examples"), f"http://127.0.0.1:{hook.server_port}/")
    yield made
    made.end()
    made.close()
    made.forge.close()
    hook.shutdown()
    hook.server_close()


def listed(line: str, names) -> str:
    """The name of the table that this line is about: the longest."""
    return max((name for name in names if f"{line} ".startswith(f"{name} ")), key=len, default="")


def words_of(line: str) -> list[str]:
    also = ALSO.get(listed(line, ALSO), "").replace("$PORT", str(free_ports()))
    return [*shlex.split(line)[1:], *shlex.split(also)]


def attempt(world: World, line: str) -> str:
    """Type the line; what is wrong with it, or nothing."""
    if line in GOES_ON:
        return _interrupted(world, line)
    done = world.scratch.type(*words_of(line))
    expected = STATUS.get(listed(line, STATUS), 0)
    if done.returncode == expected and "Traceback" not in done.stderr:
        return ""
    return f"$ {line}\n{done.stdout}{done.stderr}(exit status {done.returncode})"


def _interrupted(world: World, line: str) -> str:
    process = world.scratch.start(*words_of(line))
    stream = process.stderr if shlex.split(line)[1] in {"run", "serve"} else process.stdout
    if line != "fleet mcp":  # its input is empty, so it ends
        until(stream.readline, f"a line of {line}")
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    fine = process.returncode in {0, 130} and "Traceback" not in err
    return "" if fine else f"$ {line}\n{out}{err}(exit status {process.returncode})"


@pytest.mark.parametrize("name", table.COMMANDS)
def test_the_examples_of_a_command_do_what_they_say(world, name):
    lines = [line for line in LINES if line.split()[1] == name and not listed(line, NOT_RUN)]
    fresh = False
    for line in lines:
        wrong = attempt(world, line) if fresh else "-"
        if wrong:  # an earlier line may have taken away what this one needs
            world.copy_back()
            for each in BEFORE.get(listed(line, BEFORE), []):
                world.shell(each.replace("$PORT", str(free_ports())))
            wrong = attempt(world, line)
            fresh = True
        assert not wrong, wrong


def test_help_shows_them_last(world):
    page = world.scratch("config", "set", "--help")
    assert page.endswith(
        "\n\nExamples:\n" + "".join(f"  {x}\n" for x in examples_of("fleet config set"))
    )
    assert world.scratch("help", "config", "set") == page
