"""The deployment page, word for word: its commands, its unit's command line, and a real nginx."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.e2e.scratch import FLEET
from tests.free_ports import free_ports
from tests.integration.listeners import Ws
from tests.postgres import private_postgres
from tests.wait import LIMIT, until

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/deploy-the-server.md").read_text("utf-8")
NAME = "fleet.example.org"


def block(language: str, having: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [text for text in blocks if having in text]
    return found


class Deployed:
    """A person's home in which the page was followed. Ports and paths of the system are our own."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "me"
        self.home.mkdir()
        self.port = free_ports()
        self.tls = self.port + 1
        programs = self.home / ".local/bin"
        programs.mkdir(parents=True)
        (programs / "fleet").symlink_to(FLEET)
        path = f"{programs}:{os.environ['PATH']}"
        git = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        self.env = {"HOME": str(self.home), "PATH": path, "LOGNAME": "ada", **git}
        self.processes: list[subprocess.Popen] = []
        self.sh(block("sh", 'JWT_SECRET=$(openssl rand -hex 32)" >'))
        self._repository(root / "app.git")
        projects = block("sh", "git clone").replace(
            "https://git.example.org/app.git", str(root / "app.git")
        )
        self.sh(projects)
        self._repository(self.home / "projects/other")
        self.sh(block("sh", "server.trusted_proxies"))
        self.start_unit()
        self.start_nginx()

    def sh(self, script: str, **env: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", script], env=self.env | env, cwd=self.home, capture_output=True,
            text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
        assert done.returncode == 0, (script, done.stderr)
        return done.stdout

    def _repository(self, path: Path) -> None:
        commit = "-c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        self.sh(f"git init -q -b main {path} && git -C {path} {commit}")

    def start_unit(self) -> None:
        """As systemd does it: `%h`, the environment file, the directory."""
        unit = dict(
            line.split("=", 1) for line in block("ini", "ExecStart").splitlines() if "=" in line
        )
        secrets = Path(unit["EnvironmentFile"].replace("%h", str(self.home))).read_text()
        env = self.env | dict(line.split("=", 1) for line in secrets.split())
        words = shlex.split(unit["ExecStart"].replace("%h", str(self.home)))
        words[words.index("3847")] = str(self.port)
        self.log = self.root / "server.log"
        with self.log.open("w") as log:
            server = subprocess.Popen(
                words, env=env, cwd=unit["WorkingDirectory"].replace("%h", str(self.home)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.server = server
        self.processes.append(server)
        until(lambda: "Serving on" in self.log.read_text(), self.log.read_text)

    def start_nginx(self) -> None:
        nginx = subprocess.run(
            [ROOT / "scripts/nginx"], capture_output=True, text=True, check=True
        ).stdout.strip()
        key, certificate = self.root / "privkey.pem", self.root / "fullchain.pem"
        self.sh(
            f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME}"
            f" -addext subjectAltName=DNS:{NAME},DNS:localhost -keyout {key} -out {certificate}"
        )
        self.certificate = certificate
        site = block("nginx", "proxy_pass").replace(
            "listen 443 ssl", f"listen 127.0.0.1:{self.tls} ssl"
        )
        site = site.replace("127.0.0.1:3847", f"127.0.0.1:{self.port}")
        site = site.replace("/etc/ssl/fleet", str(self.root))
        conf = self.root / "nginx.conf"
        temporary = "".join(
            f"{kind}_temp_path {self.root}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )  # fmt: skip
        user = "user root;" if os.getuid() == 0 else ""
        conf.write_text(
            f"{user} pid {self.root}/nginx.pid; error_log {self.root}/nginx.log; events {{}}"
            f" http {{ access_log off; {temporary} {site} }}"
        )
        words = [nginx, "-e", f"{self.root}/nginx.log", "-c", str(conf), "-g", "daemon off;"]
        self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))
        until(lambda: self.ask("GET", "/health")[0] == 200, errors=(OSError, ValueError))

    def socket(self) -> ssl.SSLSocket:
        trust = ssl.create_default_context(cafile=self.certificate)
        plain = socket.create_connection(("127.0.0.1", self.tls), LIMIT)
        return trust.wrap_socket(plain, server_hostname=NAME)

    def ask(self, method: str, path: str, body=None, *, token: str = "", headers=None):
        connection = http.client.HTTPConnection(NAME, self.tls, timeout=LIMIT)
        connection.sock = self.socket()
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, sent | (headers or {}))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data else None

    def token(self, words: str) -> str:
        """On the server's machine, in a shell without its secret."""
        return re.search(r"^export FLEET_TOKEN=(\S+)$", self.sh(words), re.MULTILINE)[1]

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(LIMIT)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    made = Deployed(tmp_path_factory.mktemp("deployed"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def bob(deployed):
    return deployed.token(block("sh", "token create bob --role team-lead --team red        #"))


def test_the_server_is_healthy_for_who_followed_the_page(deployed):
    assert "ok" in deployed.sh("fleet health")
    until(lambda: deployed.ask("GET", "/ready")[0] == 200, "it to be ready")


def test_bobs_commands_work_over_tls(deployed, bob):
    commands = block("sh", "export FLEET_URL").replace("eyJ...", bob)
    commands = commands.replace(f"https://{NAME}", f"https://localhost:{deployed.tls}")
    deployed.sh(
        commands, SSL_CERT_FILE=str(deployed.certificate), FLEET_HOME=f"{deployed.root}/bob"
    )


def test_bob_starts_agents_in_the_projects_and_nowhere_else(deployed, bob):
    spawn = {"handle": "one", "teamName": "red", "initialPrompt": "Look around."}
    status, reply = deployed.ask("POST", "/orchestrate/spawn", spawn, token=bob)
    assert status in {200, 201}, reply  # in the unit's directory
    other = spawn | {"handle": "two", "workingDir": str(deployed.home / "projects/other")}
    status, reply = deployed.ask("POST", "/orchestrate/spawn", other, token=bob)
    assert status in {200, 201}, reply
    for secret in (deployed.home, deployed.home / ".fleet", deployed.root):
        outside = spawn | {"handle": "three", "workingDir": str(secret)}
        assert deployed.ask("POST", "/orchestrate/spawn", outside, token=bob)[0] == 404


def test_a_page_of_the_server_may_talk_to_it_and_no_other(deployed, bob):
    own = {"Origin": f"https://{NAME}:{deployed.tls}"}
    assert deployed.ask("GET", "/v1/task/list", token=bob, headers=own)[0] == 200
    other = {"Origin": f"https://{NAME}:1"}
    assert deployed.ask("GET", "/v1/task/list", token=bob, headers=other)[0] == 403


def test_events_pass_the_proxy_as_they_happen(deployed, bob):
    reader = deployed.socket()
    reader.settimeout(LIMIT)
    head = f"GET /events HTTP/1.1\r\nHost: {NAME}:{deployed.tls}\r\nAuthorization: Bearer {bob}\r\n\r\n"
    reader.sendall(head.encode())
    stream = reader.makefile("rb")
    assert b"200" in stream.readline()
    while b"event: ready" not in stream.readline():
        pass
    body = {"title": "Seen", "spec": {"assignee": "bob"}}
    assert deployed.ask("POST", "/v1/task/add", body, token=bob)[0] in {200, 201}
    while b"task.added" not in stream.readline():
        pass
    stream.close()
    reader.close()


def test_a_websocket_passes_the_proxy(deployed, bob, monkeypatch):
    monkeypatch.setattr("tests.integration.listeners.connected", lambda *_: deployed.socket())
    socket_ = Ws(deployed.tls, headers=f"Host: {NAME}:{deployed.tls}\r\n")
    assert socket_.status == 101
    socket_.auth(bob)
    socket_.close()


def test_the_audit_trail_has_the_address_of_the_client(deployed):
    deployed.ask("GET", "/v1/task/list", token="x.y.z", headers={"X-Forwarded-For": "192.0.2.7"})
    records = json.loads(deployed.sh("fleet audit --refused --json"))["data"]
    assert (
        records[0]["address"] == "127.0.0.1"
    )  # nginx adds whom it sees: nobody says it of himself


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    file = tmp_path / "fleet-server.service"
    file.write_text(block("ini", "ExecStart").replace("%h/.local/bin/fleet", FLEET))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(file)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert "fleet-server.service" not in done.stderr, done.stderr


def test_a_backup_is_restored_as_the_page_says_and_its_tokens_count(tmp_path):
    deployed = Deployed(tmp_path)
    try:
        bob = deployed.token("fleet token create bob --role team-lead --team red")
        body = {"title": "Kept", "spec": {"assignee": "bob"}}
        assert deployed.ask("POST", "/v1/task/add", body, token=bob)[0] in {200, 201}
        deployed.sh("touch ~/.fleet/server.key")  # the server has its secret from the environment
        deployed.sh(block("sh", "fleet backup"))
        body["title"] = "Later"
        assert deployed.ask("POST", "/v1/task/add", body, token=bob)[0] in {200, 201}
        deployed.server.terminate()
        deployed.server.wait(LIMIT)
        restore = block("sh", "fleet restore")
        deployed.sh("\n".join(li for li in restore.splitlines() if "systemctl" not in li))
        deployed.start_unit()
        rows = deployed.ask("GET", "/v1/task/list", token=bob)[1]["data"]
        assert [row["title"] for row in rows] == ["Kept"]
    finally:
        deployed.close()


def test_a_postgres_store_is_dumped_and_restored_as_the_page_says(tmp_path):
    with private_postgres() as url:
        programs = next(Path("/usr/lib/postgresql").glob("*/bin"))
        env = {**os.environ, "HOME": str(tmp_path), "FLEET_HOME": f"{tmp_path}/home"}
        env |= {"DATABASE_URL": url, "STORAGE_BACKEND": "postgresql"}
        env["PATH"] = f"{programs}:{Path(FLEET).parent}:{env['PATH']}"

        def sh(script: str) -> str:
            done = subprocess.run(
                ["sh", "-ec", script], env=env, cwd=tmp_path, capture_output=True, text=True,
                check=False, timeout=LIMIT,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout

        sh("fleet add Kept --prompt x --in-place")
        sh(block("sh", "pg_dump"))
        sh("fleet add Later --prompt x --in-place")
        sh(block("sh", "pg_restore"))
        rows = json.loads(sh("fleet tasks --all --json"))["data"]
        assert [row["title"] for row in rows] == ["Kept"]
