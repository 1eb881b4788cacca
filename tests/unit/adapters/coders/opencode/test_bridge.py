"""The bridge itself, in front of a server that only does what a test needs."""

import json
import os
import subprocess
import sys

import pytest

from fleet.adapters.coders.opencode import bridge as opencode_bridge
from tests.wait import LIMIT

SERVER = """
import base64, http.server, json, os, sys, threading, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/event":
            self.reply(200, b'data: {"type": "session.status", "properties": {}}\\n\\n', close=False)
            self.wfile.flush()
            time.sleep(60)
        self.reply(404, b'{"name": "NotFound"}')
    def do_POST(self):
        if self.path == "/die":
            os._exit(7)
        said = self.headers["authorization"]
        key = os.environ["OPENCODE_SERVER_PASSWORD"]
        known = said == "Basic " + base64.b64encode(b"opencode:" + key.encode()).decode()
        self.reply(200, json.dumps({"known": known, "pid": os.getpid()}).encode())
    def reply(self, status, body, close=True):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        if close:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""
PYTHON = (sys.executable, "-I", "-S")


@pytest.fixture
def bridge():
    started = []

    def start(*argv):
        process = subprocess.Popen(
            [*PYTHON, opencode_bridge.__file__, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:  # killed, it would leave its server
        process.stdin.close()
        process.wait(LIMIT)
        process.stdout.close()


def ask(process, path, method="POST"):
    line = json.dumps({"id": path, "method": method, "path": path, "body": {}})
    process.stdin.write(line + "\n")
    process.stdin.flush()


def until(process, found):
    for line in process.stdout:
        if found(said := json.loads(line)):
            return said
    raise AssertionError("it said no more")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_requests_are_answered_and_events_are_told_as_lines(bridge):
    process = bridge(*PYTHON, "-c", SERVER)
    event = until(process, lambda said: "event" in said)
    assert event["event"]["type"] == "session.status"
    assert event["at"] > 1_600_000_000_000
    ask(process, "/session")
    assert until(process, lambda said: said.get("id") == "/session")["status"] == 200
    ask(process, "/nothing", "GET")
    missing = until(process, lambda said: said.get("id") == "/nothing")
    assert (missing["status"], missing["body"]) == (404, {"name": "NotFound"})


def test_the_server_is_told_a_password_that_only_the_bridge_knows(bridge):
    process = bridge(*PYTHON, "-c", SERVER)
    ask(process, "/session")
    assert until(process, lambda said: "id" in said)["body"]["known"]


def test_when_the_input_ends_so_do_the_server_and_the_bridge(bridge):
    process = bridge(*PYTHON, "-c", SERVER)
    ask(process, "/session")
    server = until(process, lambda said: "id" in said)["body"]["pid"]
    process.stdin.close()
    assert process.wait(LIMIT) == 0
    assert not is_alive(server)


def test_a_server_that_ends_by_itself_gives_its_status(bridge):
    process = bridge(*PYTHON, "-c", SERVER)
    until(process, lambda said: "event" in said)
    ask(process, "/die")
    assert process.wait(LIMIT) == 7


def test_a_server_that_never_starts_gives_its_status(bridge):
    assert bridge(*PYTHON, "-c", "import sys; sys.exit(3)").wait(LIMIT) == 3


def test_a_program_that_is_not_there_is_a_failure_that_names_it(bridge, capfd):
    assert bridge("no-such-program", "serve").wait(LIMIT) == 127
    assert "no-such-program" in capfd.readouterr().err
