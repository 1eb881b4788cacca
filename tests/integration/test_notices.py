"""Notices as they arrive: at a server on this machine, and at a stand-in for the desktop."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fleet.adapters.machine.notify import Desktop, NumberFile, Webhook
from fleet.domain.errors import Unavailable
from fleet.supervisor.notices import Notice
from tests.wait import LIMIT, until

BODY = Notice(
    "failed", "t-1", "t-1 failed", 'It\'s "odd" $(touch never) <b>\n&', "failed", 7
).body()


class Hook:
    """What was posted, and how the next ones are met: a status, `hang`, `close` or `drip`."""

    def __init__(self) -> None:
        self.heard: list[dict] = []
        self.asked: list[str] = []
        self.faults: list[object] = []
        self.free = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                hook.asked.append(self.headers["Content-Type"])
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.meet(self, body)

            def do_GET(self):
                hook.asked.append("GET")

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/hook/s3cret?x=1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def meet(self, handler, body) -> None:
        match self.faults.pop(0) if self.faults else 200:
            case "hang":
                self.free.wait(LIMIT)
            case "close":
                handler.connection.shutdown(socket.SHUT_RDWR)
            case "drip":
                for letter in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000:
                    handler.wfile.write(bytes([letter]))
                    if self.free.wait(0.5):
                        return
            case int() as status:
                if status == 200:
                    self.heard.append(body)
                handler.send_response(status)
                if status // 100 == 3:
                    handler.send_header("Location", self.url)
                handler.end_headers()

    def close(self) -> None:
        self.free.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def hook():
    made = Hook()
    yield made
    made.close()


@contextmanager
def at_most(seconds: float):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def test_a_webhook_gets_one_json_document(hook):
    Webhook(hook.url, {}).send(BODY)
    assert hook.heard == [BODY]
    assert hook.asked == ["application/json"]


def test_an_address_is_taken_from_the_environment_when_it_is_used(hook):
    env = {"HOOK": hook.url}
    Webhook("os.environ/HOOK", env).send(BODY)
    assert hook.heard == [BODY]
    with pytest.raises(Unavailable, match=r"^GONE does not contain an http or https address\.$"):
        Webhook("os.environ/GONE", env).send(BODY)
    with pytest.raises(Unavailable, match="FILE does not contain an http"):
        Webhook("os.environ/FILE", {"FILE": "file:///etc/passwd"}).send(BODY)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (500, "127.0.0.1: answered 500"),
        (302, r"127.0.0.1: answered 302 \(it points elsewhere, which is not followed\)"),
        (307, "answered 307"),
        ("close", "127.0.0.1: "),
    ],
)
def test_what_a_server_answers_is_told_without_the_secret_address(hook, fault, why):
    hook.faults = [fault]
    with pytest.raises(Unavailable, match=why) as caught, at_most(3):
        Webhook(hook.url, {}).send(BODY)
    assert "s3cret" not in caught.value.message
    assert len(hook.asked) == 1
    assert hook.heard == []


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_never_answers_is_left_after_the_deadline(hook, fault):
    hook.faults = [fault]
    with pytest.raises(Unavailable, match=r"no answer within 5 s|timed out"), at_most(7):
        Webhook(hook.url, {}).send(BODY)


def test_nobody_at_the_address_is_told_at_once():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match=r"127.0.0.1: .*refused"), at_most(3):
        Webhook(f"http://127.0.0.1:{port}/", {}).send(BODY)


def stand_in(folder, name: str, script: str) -> dict[str, str]:
    """A program of this name that writes its arguments, one after another, each ended by NUL."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(
        f'#!/bin/sh\nfor a in "$@"; do printf \'%s\\0\' "$a"; done >> {folder}/said\n{script}\n'
    )
    file.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def said(folder) -> list[str]:
    return (folder / "said").read_text().split("\0")[:-1]


def test_the_desktop_gets_the_words_as_arguments_and_reads_no_markup_in_them(tmp_path):
    Desktop(stand_in(tmp_path, "notify-send", ""), "linux").send(BODY)
    assert said(tmp_path) == [
        "--app-name=fleet",
        "--",
        "t-1 failed",
        'It\'s "odd" $(touch never) &lt;b&gt;\n&amp;',
    ]


def test_on_a_mac_the_words_are_no_part_of_the_script(tmp_path):
    Desktop(stand_in(tmp_path, "osascript", ""), "darwin").send(BODY)
    words = said(tmp_path)
    assert words[-2:] == ["t-1 failed", 'It\'s "odd" $(touch never) <b>\n&']
    assert words[:6:2] == ["-e"] * 3
    assert not any("odd" in word for word in words[:6])


def test_a_desktop_that_is_not_there_or_fails_says_why(tmp_path):
    with pytest.raises(Unavailable, match="notify-send was not found"):
        Desktop({"PATH": str(tmp_path)}, "linux").send(BODY)
    env = stand_in(tmp_path / "bin", "notify-send", "echo no display >&2; exit 1")
    with pytest.raises(Unavailable, match=r"^notify-send: no display$"):
        Desktop(env, "linux").send(BODY)


def test_the_number_is_there_whole_or_not_at_all(tmp_path):
    file = NumberFile(tmp_path / "notified")
    assert file.read() is None
    file.write(12)
    assert (file.read(), (tmp_path / "notified").stat().st_mode & 0o777) == (12, 0o600)
    (tmp_path / "notified").write_text("rubbish")
    assert file.read() is None
    file.write(None)
    file.write(None)
    assert list(tmp_path.iterdir()) == []


def configure(supervised, *lines: str) -> None:
    supervised.home.mkdir(exist_ok=True)
    (supervised.home / "config.yaml").write_text(
        "notify:\n" + "".join(f"  {line}\n" for line in lines)
    )


def titles(hook) -> list[str]:
    return sorted(body["title"] for body in hook.heard)


def test_a_person_is_told_when_a_task_asks_fails_or_ends(supervised, hook):
    supervised.env["HOOK"] = hook.url
    supervised.env["PATH"] = (
        stand_in(supervised.place / "bin", "notify-send", "")["PATH"] + ":" + supervised.env["PATH"]
    )
    before = supervised.add("say before")
    supervised.start("--once")
    supervised.supervisor.wait(LIMIT)
    configure(supervised, "desktop: true", "webhook: os.environ/HOOK")
    done, failed = (
        supervised.add("say well"),
        supervised.add("say sk-abcdefghij0123456789", "exit 3", attempts=1),
    )
    asks = supervised.add("ask Which way?")
    supervised.start()
    supervised.wait(done)
    supervised.wait(failed, state="failed")
    until(lambda: len(hook.heard) == 3, why=supervised.said)
    assert titles(hook) == [f"{done} is done", f"{failed} failed", f"{asks} asks"]
    (question,) = (body for body in hook.heard if body["event"] == "asked")
    assert "Which way?" in question["text"]
    shown = said(supervised.place / "bin")
    assert len(shown) == 3 * 4
    assert not any(f"{before} " in word for word in shown)  # it was over before this was turned on
    assert "sk-abcdefghij0123456789" not in json.dumps(hook.heard)
    assert supervised.end(signal.SIGTERM) == 0
    last = supervised.store.events(limit=1, newest=True)[0].number
    assert int((supervised.home / "notified").read_text()) == last


def test_what_happened_unseen_is_told_by_the_next_supervisor_and_nothing_twice(supervised, hook):
    configure(supervised, f"webhook: {hook.url}")
    first = supervised.add("say begun", "sleep 1")
    supervised.start()
    supervised.heard(first, "begun")
    hook.faults = ["hang"]
    second = supervised.add("say quick")
    until(lambda: len(hook.asked) == 1, why=supervised.said)
    supervised.end(signal.SIGKILL)  # in the middle of telling
    hook.free.set()
    until(lambda: not supervised.strays())
    supervised.start()
    supervised.wait(first, second)
    until(lambda: len(hook.heard) == 2, why=supervised.said)
    settled = [e.number for e in supervised.store.events() if e.type == "task.settled"]
    until(
        lambda: int((supervised.home / "notified").read_text()) == max(settled), why=supervised.said
    )
    supervised.end(signal.SIGKILL)
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert titles(hook) == [f"{first} is done", f"{second} is done"]


def test_a_webhook_that_hangs_holds_up_no_task_and_is_reported_once(supervised, hook):
    configure(supervised, f"webhook: {hook.url}")
    hook.faults = ["hang", 500, 500, 500, 500]
    supervised.start()
    first = supervised.add("say 1")
    until(lambda: len(hook.asked) == 1, why=supervised.said)
    with at_most(5):
        supervised.wait(supervised.add("say 2"), supervised.add("say 3"))
    until(lambda: "could not be notified" in supervised.said(), why=supervised.said)
    until(lambda: len(hook.asked) == 5, why=supervised.said)
    assert f"webhook: {first} could not be notified: 127.0.0.1: answered 500" in supervised.said()
    last = supervised.add("say 4")
    until(lambda: titles(hook) == [f"{last} is done"], why=supervised.said)
    assert supervised.said().count("webhook: ") == 1


def test_a_second_signal_ends_it_at_once_while_it_waits_for_its_last_words(supervised, hook):
    configure(supervised, f"webhook: {hook.url}")
    hook.faults = ["hang"]
    process = supervised.start()
    supervised.add("say 1")
    until(lambda: len(hook.asked) == 1, why=supervised.said)
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: not catches(process.pid, signal.SIGTERM), why="the first signal to be heard")
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(LIMIT) == -signal.SIGINT
    supervised.supervisor = None


def catches(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_test_notice_says_what_became_of_it(supervised, hook):
    refused = supervised.type("notify")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "fleet config set notify.desktop=true" in refused.stderr
    configure(supervised, "desktop: true", f"webhook: {hook.url}")
    env = {
        "PATH": stand_in(supervised.place / "bin", "notify-send", "")["PATH"]
        + ":"
        + supervised.env["PATH"]
    }
    done = supervised.type("notify", "--json", **env)
    assert done.returncode == 0, done.stderr
    assert [each["told"] for each in json.loads(done.stdout)["data"]] == [True, True]
    assert hook.heard[0]["text"].startswith("Fleet: This is a test from ")
    hook.faults = [500]
    failed = supervised.type("notify", **env)
    assert failed.returncode == 3
    assert "answered 500" in failed.stdout
    assert "not sent" in failed.stdout
