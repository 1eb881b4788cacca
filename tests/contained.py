"""A server whose agents are in containers, and what must hold in each kind of them."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from functools import partial
from pathlib import Path

from fleet.testing.fake_node.node import FakeNode
from tests.contract.checkouts import git
from tests.integration.supervised_home import FLEET
from tests.wait import LIMIT, until

CONNECT = 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)'
SCRIPTS = {
    "connect.py": CONNECT,
    "hog.py": "x = b'x' * (1 << 30)",
    "bomb.sh": "for i in $(seq 200); do sleep 300 >/dev/null 2>&1 & done; touch $FLEET_ARTIFACT_DIR/all",
}
FLEET_FILE = """\
gateway: {{host: 127.0.0.1, port: {port}}}
nodes: {{here: {{endpoint: "{url}"}}}}
models: {{small: {{node: here, upstream: "qwen2.5-coder:7b"}}}}
agents: {{worker: {{coder: scripted, model: small}}}}
"""


class Contained:
    """`env`: the settings that make the containers, besides the kind of isolation."""

    def __init__(self, supervised, **env: str) -> None:
        self.supervised, self.process = supervised, None
        supervised.env |= {"FLEET_WORKSPACE_ISOLATION": "container", **env}
        for name, text in SCRIPTS.items():
            (supervised.repo / name).write_text(text)
        git(supervised.repo, "add", ".")
        git(supervised.repo, "commit", "-q", "-m", "Scripts")

    def serve(self, **env: str) -> None:
        supervised = self.supervised
        supervised.env |= env
        already = len(supervised.said())
        with supervised.log.open("ab") as log:
            self.process = subprocess.Popen(
                [FLEET, "serve", "--port", "0"],
                cwd=supervised.repo, env=supervised.env, stdout=log, stderr=log,
            )  # fmt: skip
        until(lambda: re.search(r":\d+\. ", supervised.said()[already:]), why=supervised.said)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(LIMIT)
            self.process = None

    def doctor(self) -> str:
        """What it says of the caps, once it says that the secrets are safe."""
        self.supervised.type("tasks")
        answer = self.supervised.type("doctor", "--timeout", "60", "--json")
        rows = json.loads(answer.stdout)["data"]["findings"]
        findings = [row for row in rows if row["check"] == "isolation"]
        assert findings[0]["state"] == "ok", findings
        return str(findings[1]["said"])

    def connecting(self, port: int, name: str) -> str:
        """A step that leaves this file when it reaches the port."""
        return f"run sh -c 'python3 connect.py {port} && touch $FLEET_ARTIFACT_DIR/{name}'"

    def files(self, task: str) -> set[str]:
        """Those that its steps left; the others are notes, with a suffix."""
        folder = self.supervised.home / "tasks" / task / "artifacts"
        return {path.name for path in folder.iterdir() if not path.suffix}

    def check_asking(self, task_id: str = "t-1") -> None:
        supervised = self.supervised
        task = supervised.add(
            "ask Which licence?", "write LICENSE {answer}", "commit Choose {answer}"
        )
        assert task == task_id
        until(lambda: supervised.endings(task) == ["asked"], why=lambda: supervised.story(task))
        assert supervised.type("answer", task, "MIT").returncode == 0
        supervised.wait(task)
        assert supervised.endings(task) == ["asked", "succeeded"]
        assert supervised.commits(f"fleet/{task}")[-1] == "Choose MIT"

    def check_words_after_a_kill(self) -> None:
        supervised = self.supervised
        task = supervised.add("say Ready.", "hear 60", "write made.txt {answer}", "commit Heard")
        supervised.heard(task, "Ready.")
        self.end(signal.SIGKILL)
        self.serve()
        assert supervised.type("send", task, "Go.").returncode == 0
        supervised.wait(task)
        assert supervised.endings(task) == ["succeeded"]
        assert "Go." in supervised.transcript(task)

    def check_terminal(self) -> None:
        supervised = self.supervised
        task = supervised.add("write made.txt yes", "say Ready.", "hear 60", mode="terminal")
        made = Path(supervised.running(task).workspace.path, "made.txt")
        until(made.exists, why=supervised.said)
        supervised.heard(task, "Ready.")
        assert supervised.type("cancel", task).returncode == 0
        supervised.wait(task, state="cancelled")
        until(lambda: not supervised.strays())

    def check_memory(self) -> None:
        supervised = self.supervised
        task = supervised.add("run sh -c 'python3 hog.py || kill -9 $PPID'", attempts=2)
        supervised.wait(task, state="failed")
        assert supervised.endings(task) == ["out_of_memory"] * 2, supervised.story(task)
        assert "It exceeded the memory of its container, 64 MiB." in supervised.task(task).tally.why
        assert not Path(supervised.run(task).workspace.path, "oom").exists()
        shown = supervised.type("show", task).stdout
        assert shown.count("out_of_memory") >= 2
        fine = supervised.add("run python3 hog.py", "say It was killed, and I went on.")
        supervised.wait(fine)

    def check_pids(self, *, named: bool = True) -> None:
        """`named`: the reason is certain. An engine's count is only looked at now and then."""
        supervised = self.supervised
        task = supervised.add("run sh bomb.sh", "exit 1", attempts=1)
        supervised.wait(task, state="failed")
        why = supervised.task(task).tally.why
        assert "40 processes" in why or not named, supervised.story(task)
        assert self.files(task) == set(), self.files(task)
        until(lambda: not supervised.strays())

    def check_no_network(self) -> None:
        supervised = self.supervised
        with socket.create_server(("127.0.0.1", 0)) as outside:
            port = outside.getsockname()[1]
            task = supervised.add(self.connecting(port, "outside"))
            supervised.wait(task)
            assert self.files(task) == set(), self.files(task)

    def check_gateway(self) -> None:
        supervised = self.supervised
        listen = partial(socket.create_server, ("127.0.0.1", 0))
        with FakeNode() as node, listen() as gateway, listen() as other:
            port, closed = gateway.getsockname()[1], other.getsockname()[1]
            (supervised.repo / "fleet.yaml").write_text(FLEET_FILE.format(port=port, url=node.url))
            self.serve(FLEET_WORKSPACE_CONTAINER_NETWORK="gateway")
            tries = (self.connecting(port, "gateway"), self.connecting(closed, "other"))
            task = supervised.add(*tries, agent="worker")
            supervised.wait(task)
            assert self.files(task) == {"gateway"}, self.files(task)
