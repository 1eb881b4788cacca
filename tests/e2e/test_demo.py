"""`fleet demo` is the whole path, end to end; this is the test of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tomllib
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.app import App
from fleet.cli.demo.dashboard import farewell
from fleet.cli.demo.scratch import Scratch, stop
from fleet.client import LocalClient
from fleet.domain.task import Spec
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.show import ShowTask
from tests.e2e.scratch import FLEET
from tests.wait import LIMIT, until

STORY = [
    "A scratch repository: ",
    "$ fleet run --max 4 &",
    "$ fleet add 'Read prices from a file' --prompt-file ../todo/1",
    "$ fleet add 'Write the README' --after t-3 --after t-4 --prompt-file ../todo/5",
    "t-2 failed and is tried again: Exit status 1. the model server went away",
    "t-3 asks: Which licence shall this have?",
    "$ fleet answer t-3 MIT",
    "Five tasks in ",
    "What fleet/t-5 was built from",
    "Try next",
]
ENDINGS = {
    "t-1": ["succeeded"],
    "t-2": ["failed", "succeeded"],
    "t-3": ["asked", "succeeded"],
    "t-4": ["succeeded"],
    "t-5": ["succeeded"],
}
TOP = Path(__file__).parents[2]
NO_NETWORK = ["unshare", "--map-root-user", "--net"]


class Place:
    """A person who has set nothing up, and a directory for scratch that is theirs alone."""

    def __init__(self, root: Path) -> None:
        self.tmp = root / "tmp"
        self.cwd = root / "cwd"
        self.user = root / "user"
        for folder in (self.tmp, self.cwd, self.user):
            folder.mkdir()
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.user),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "FLEET_CI_MARK": os.environ.get("FLEET_CI_MARK", ""),
        }

    def start(self, *words: str, before=(), **env: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*before, FLEET, "demo", *words],
            cwd=self.cwd,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def run(self, *words: str, before=(), **env: str) -> tuple[str, str]:
        """It succeeds; what it wrote."""
        process = self.start(*words, before=before, **env)
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, out + err
        return out, err

    def left(self) -> list[str]:
        """The files and the processes that are left of it."""
        return [*map(str, self.tmp.iterdir()), *self.processes(str(self.tmp))]

    def processes(self, mark: str) -> list[str]:
        """Those whose environment has this in it."""
        found = []
        for place in Path("/proc").iterdir():
            with suppress(OSError):
                if place.name.isdigit() and mark.encode() in _environ(place):
                    found.append((place / "cmdline").read_text().replace("\0", " "))
        return found


def _environ(process: Path) -> bytes:
    return b"" if int(process.name) == os.getpid() else (process / "environ").read_bytes()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def in_order(text: str, parts: list[str]) -> bool:
    return re.search(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None


def test_it_tells_the_whole_story_whatever_the_user_has_set_up(place):
    subprocess.run(["git", "init", "-q", place.cwd], check=True)
    (place.cwd / "fleet.yaml").write_text("this: [is, not\n")
    hostile = "[commit]\n gpgsign = true\n[user]\n useConfigOnly = true\n[merge]\n ff = only\n"
    (place.user / ".gitconfig").write_text(f"{hostile}[core]\n hooksPath = /nowhere\n")
    out, err = place.run(
        FLEET_HOME="/dev/null",
        FLEET_STORE_URL="nonsense",
        FLEET_CODER="nobody",
        FLEET_RUN_ID="t-1.1",
        CLAUDE_FLEET_TEAM="red",
        STORAGE_BACKEND="postgresql",
        DATABASE_URL="postgresql://nowhere/x",
        GIT_DIR="/nowhere",
    )
    assert in_order(out, STORY), out
    assert "\x1b" not in out
    assert err == ""
    for task, endings in ENDINGS.items():
        assert re.search(rf"^{task} .* {' → '.join(endings)} +fleet/{task}$", out, re.MULTILINE)
    assert place.left() == []


def can_do_without_a_network() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NO_NETWORK, "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_do_without_a_network(), reason="no network namespaces here")
def test_without_a_network_it_prints_one_document(place):
    out, err = place.run("--json", before=NO_NETWORK, COLUMNS="20")
    document = json.loads(out)
    assert (document["kind"], err) == ("demo", "")
    data = document["data"]
    assert data.keys() == {"took", "repository", "home", "kept", "tasks"}
    assert {t["task"]["id"]: [r["ending"] for r in t["runs"]] for t in data["tasks"]} == ENDINGS
    assert data["kept"] is False
    assert place.left() == []


def test_it_needs_only_what_make_demo_installs(place):
    """Every other package of ours cannot be imported here."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    (line,) = re.findall(
        r'"Installing what the demo needs" (.+)', (TOP / "scripts/setup").read_text()
    )
    needs = [re.match(r"[\w-]+", each)[0] for each in project["dependencies"]]
    assert set(line.split()) < set(needs)
    names = {"PyJWT": "jwt"}
    hidden = [names.get(each, each) for each in needs if each not in line.split()]
    hide = f"import sys\nsys.modules.update(dict.fromkeys({hidden}))\n"
    (place.user / "sitecustomize.py").write_text(hide)
    out, _ = place.run(PYTHONPATH=str(place.user))
    assert in_order(out, STORY), out


def test_what_it_keeps_can_be_looked_at_with_the_commands_it_prints(place):
    out, _ = place.run("--keep")
    commands = out.rstrip().partition("Try next\n")[2].splitlines()
    assert len(commands) == 3
    shown = [
        subprocess.run(
            ["sh", "-c", command], env=place.env, cwd=place.cwd, capture_output=True, text=True,
            check=False,
        )
        for command in commands
    ]  # fmt: skip
    assert [(done.returncode, done.stderr) for done in shown] == [(0, "")] * 3
    assert re.search(r"t-2\.1 +failed +scripted", shown[0].stdout)
    assert "coder     scripted" in re.sub(r" {5,}", "     ", shown[0].stdout)
    assert "[tool] write main.py" in shown[1].stdout
    assert [line.split()[2] for line in shown[2].stdout.splitlines()[1:]] == ["done"] * 5
    (scratch,) = place.tmp.iterdir()
    branches = re.search(r"git -C \S+ branch", out)[0]
    listed = subprocess.run(branches, shell=True, capture_output=True, text=True, check=True)
    assert set(re.findall(r"fleet/t-\d", listed.stdout)) == {f"fleet/{task}" for task in ENDINGS}
    assert Path(re.search(r"worktrees +(\S+)", out)[1]).is_dir()
    assert (scratch / "home" / "runs" / "t-1.1" / "transcript").exists()
    assert place.left() == [str(scratch)]


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_when_it_is_interrupted_it_leaves_nothing(place, number, status):
    process = place.start()
    for line in process.stdout:
        if "running" in line and "t-3" in line:
            break
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == status, err
    assert "Traceback" not in err
    until(lambda: place.left() == [], "the last process to end")


def test_a_run_that_would_go_on_for_long_is_ended(place, monkeypatch):
    for name in [n for n in os.environ if n.startswith(("FLEET_", "GIT_"))]:
        monkeypatch.delenv(name)
    scratch = Scratch(place.tmp)
    scratch.fill()
    client = LocalClient(App(scratch.repo, scratch.env()))
    client.call(AddTask("Long", "sleep 300", str(scratch.repo), Spec(cwd=str(scratch.repo))))
    supervisor = scratch.supervise()
    until(lambda: client.call(ShowTask("1")).task.status == "running", "the run")
    stop(client, supervisor)
    assert supervisor.returncode == 0
    until(lambda: place.processes(f"FLEET_HOME={scratch.home}") == [], "its end")


def test_when_something_is_missing_it_says_so_and_leaves_nothing(place):
    process = place.start(PATH="/nowhere")
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (3, "")
    assert err == "fleet: git was not found.\n  Install git.\n"
    assert place.left() == []


def test_the_one_with_nodes_says_how_to_get_the_gateway_that_it_needs(place):
    process = place.start("--compute")
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (1, "")
    assert err == "fleet: LiteLLM is not installed.\n  fleet gateway install\n"
    assert place.left() == []


class Screen:
    """A real terminal of a given size, and what can be seen on it."""

    def __init__(self, place: Place, columns: int, lines: int) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(place.user / "tmux")]
        shell = f"{FLEET} demo; echo It ended with $?.; sleep 60"
        size = ["-x", str(columns), "-y", str(lines)]
        argv = [*self._tmux, "new-session", "-d", *size, "-c", str(place.cwd), shell]
        subprocess.run(argv, env=place.env | {"NO_COLOR": "1"}, check=True)

    def seen(self, *, all_of_it: bool = False) -> str:
        back = ["-S", "-"] if all_of_it else []
        argv = [*self._tmux, "capture-pane", "-p", *back]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
def test_on_a_terminal_the_table_is_drawn_in_place(place):
    screen = Screen(place, columns=80, lines=24)
    frames = []
    try:
        until(lambda: frames.append(screen.seen()) or "It ended" in frames[-1], "the end")
        everything = screen.seen(all_of_it=True)
    finally:
        screen.close()
    head = re.compile(r"^TASK +STATUS +ELAPSED", re.MULTILINE)
    assert max(len(head.findall(frame)) for frame in frames) == 1
    assert any(re.search(r"^t-3 +asking", f, re.MULTILINE) and "t-3 asks" in f for f in frames)
    assert any(
        re.search(r"^t-4 +waiting .* waits for t-1 and t-2$", f, re.MULTILINE) for f in frames
    )
    assert head.search(everything) is None
    assert in_order(everything, [*STORY, "It ended with 0."]), everything
    assert max(map(len, everything.splitlines())) <= 80


def test_the_dashboard_of_a_shop_at_work_is_shown_until_it_is_interrupted(tmp_path):
    """Its link opens a session, its nodes answer, its train is there; and nothing of it is left."""
    place = Place(tmp_path)
    with (tmp_path / "log").open("w") as log:
        demo = subprocess.Popen(
            [FLEET, "demo", "--ui", "--no-open"], cwd=place.cwd, env=place.env,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        text = (tmp_path / "log").read_text
        until(lambda: demo.poll() is not None or "/#c=" in text(), "the link")
        url, code = re.search(r"(http://\S+)/#c=(\S+)", text()).groups()
        token = asked(f"{url}/v1/session/open", {"code": code})["token"]
        states = {row["status"] for row in asked(f"{url}/v1/task/list", {"all": True}, token)}
        assert {"asking", "failed", "running", "review", "waiting", "landing", "landed"} <= states
        nodes = asked(f"{url}/v1/node/list", {}, token)["nodes"]
        assert [node["status"] for node in nodes] == ["online", "online", "offline"]
        until(lambda: asked(f"{url}/v1/trace/list", {}, token), "a request through the relay")
        assert not asked(f"{url}/v1/gateway/show", {}, token)["stale"]
        for severity in ("warning", "good"):
            wanted = {"severity": severity}
            until(lambda w=wanted: asked(f"{url}/v1/gateway/log", w, token), f"a {severity} line")
        (train,) = asked(f"{url}/v1/land/trains", {}, token)
        assert train["waiting"] >= 1
        kinds = {"question", "permission", "budget", "failed", "landing", "review", "node"}
        until(
            lambda: kinds <= {row["kind"] for row in asked(f"{url}/v1/inbox/list", {}, token)},
            "something of each kind that needs a person",
        )
        (question,) = asked(f"{url}/v1/inbox/list", {"kinds": ["question"]}, token)
        assert question["options"] == ["MIT", "Apache-2.0"]
        members = {row["name"]: row["role"] for row in asked(f"{url}/v1/member/list", {}, token)}
        assert (members["kim"], members["sam"]) == ("team-lead", "worker")
        days = asked(f"{url}/v1/usage/report", {"by": "day"}, token)["rows"]
        assert len(days) >= 6
        until(lambda: "Ctrl-C ends the demo and removes all of it." in text(), "what ends it")
        (home,) = place.tmp.glob("fleet-demo-*/home")
        env = place.env | {"FLEET_HOME": str(home)}
        how = {"cwd": home.parent / "shop", "env": env, "capture_output": True, "text": True}
        page = subprocess.run([FLEET, "status"], check=True, **how).stdout
        assert re.search(r"\d+ landing", page)
        lands = {row["task"] for row in asked(f"{url}/v1/land/list", {}, token)}
        needs_you = re.findall(r"^(t-\d+) +not landed", page, re.MULTILINE)
        assert not lands.intersection(needs_you)  # what lands by itself needs nobody
        notes = subprocess.run([FLEET, "tasks"], check=True, **how).stderr
        assert re.search(r"\d+ landing: `fleet land list` shows how far\.", notes)
    finally:
        demo.send_signal(signal.SIGINT)
        assert demo.wait(LIMIT) == 0
    assert list(place.tmp.iterdir()) == []


def test_the_shop_that_is_kept_says_how_to_look_at_it(tmp_path):
    scratch = Scratch(tmp_path)
    assert list(farewell(scratch, keep=True)) == [
        f"Its commands: cd {scratch.repo} && export FLEET_HOME={scratch.home}",
        "Ctrl-C ends the demo and keeps its files.",
    ]


def asked(url: str, fields: dict, token: str = ""):
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        return json.load(answer)["data"]
