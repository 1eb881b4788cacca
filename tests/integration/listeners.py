"""A server in this process, and those who listen to it over real sockets."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import struct
import threading

from fleet.app import App
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role
from fleet.server.run import RunningServer
from tests.wait import LIMIT, until


class Inside:
    """`fleet serve --no-run` in a thread, so that one can count what it holds."""

    def __init__(self, root, **given) -> None:
        self.home = root / "home"
        env = {"FLEET_HOME": str(self.home), "HOME": str(root), "LOGNAME": "ada"}
        self.another_store = App(root, env).another_store
        self.serving = None

        def serve() -> None:  # all of it in one thread, as its store must be
            self.serving = RunningServer(App(root, env), host="127.0.0.1", port=0, **given)
            self.serving.run(lambda _: None)

        self.thread = threading.Thread(target=serve)
        self.thread.start()
        until(lambda: self.serving is not None)
        self.port = self.serving.port
        self.streams = self.serving._server.streams
        until(lambda: self.ask("GET", "/health")[0] == 200)

    def token(self, name: str, role: str = "coordinator", team: str = "local", seconds=600.0):
        return own_token(self.home, Actor(name, Role(role), team), seconds=seconds)

    def ask(self, method: str, path: str, body=None, *, token: str = "", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        said = {"Authorization": f"Bearer {token}"} if token else {}
        text = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, text, said | (headers or {}))
            answer = connection.getresponse()
            data = answer.read()
        except ConnectionRefusedError:
            return 0, None
        finally:
            connection.close()
        return answer.status, json.loads(data) if data else None

    def ok(self, who: str, operation: str, **fields):
        path = f"/v1/{operation.replace('.', '/')}"
        status, said = self.ask("POST", path, fields, token=who)
        assert status in {200, 201}, (operation, said)
        return said["data"]

    def add(self, token: str, title: str = "Seen") -> str:
        return self.ok(token, "task.add", title=title)["id"]

    def connections(self) -> set:
        return self.serving._uvicorn.server_state.connections

    def newest(self) -> int:
        """The number of the last event."""
        store = self.another_store()
        found = store.events(limit=1, newest=True)
        store.close()
        return found[-1].number if found else 0

    def end(self) -> None:
        self.serving.stop()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()


def connected(port: int, room: int = 0) -> socket.socket:
    made = socket.socket()
    if room:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    made.settimeout(LIMIT)
    try:
        made.connect(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


class Sse:
    """`/events`, read when asked to."""

    def __init__(self, port: int, token: str, after=None, *, room: int = 0) -> None:
        self.sock = connected(port, room)
        seen = "" if after is None else f"Last-Event-ID: {after}\r\n"
        self.sock.sendall(
            f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\n{seen}\r\n".encode()
        )
        self.answer = http.client.HTTPResponse(self.sock)
        try:
            self.answer.begin()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        self.status = self.answer.status

    def next(self):
        """What it is called, its number and its data; None at the end. Signs of life are passed over."""
        said = {}
        while line := self.answer.readline():
            name, colon, value = line.decode().rstrip("\n").partition(": ")
            if colon and name:
                said[name] = value
            elif not colon and "event" in said:
                return said["event"], int(said.get("id", 0)), json.loads(said["data"])
        return None

    def events(self, count: int) -> list[dict]:
        found = []
        while len(found) < count:
            name, _, data = self.next()
            if name != "ready":
                found.append(data)
        return found

    def close(self) -> None:
        self.answer.close()
        self.sock.close()


class Ws:
    """A WebSocket, frame by frame."""

    def __init__(self, port: int, path: str = "/ws", *, room: int = 0, headers="") -> None:
        self.sock = connected(port, room)
        key = base64.b64encode(os.urandom(16)).decode()
        host = "" if "Host:" in headers else f"Host: 127.0.0.1:{port}\r\n"
        self.sock.sendall(
            f"GET {path} HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n".encode()
        )
        self.file = self.sock.makefile("rb")
        try:
            self.status = int(self.file.readline().split()[1])
        except (OSError, IndexError):
            self.close()
            raise
        while self.file.readline() not in {b"\r\n", b""}:
            pass
        self.closed = None
        self.answers = True  # pings

    def send(self, said, kind: int = 1) -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        mask = os.urandom(4)
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else b""
        size = size or struct.pack("!BH", 0xFE, len(data))
        body = bytes(byte ^ mask[n % 4] for n, byte in enumerate(data))
        self.sock.sendall(bytes((0x80 | kind,)) + size + mask + body)

    def next(self):
        """The next frame; None at the end, when `closed` says why."""
        while head := self.file.read(2):
            size = head[1]
            if size >= 126:
                (size,) = struct.unpack(
                    "!H" if size == 126 else "!Q", self.file.read(2 if size == 126 else 8)
                )
            data = self.file.read(size)
            match head[0] & 15:
                case 1:
                    return json.loads(data)
                case 2:
                    return data
                case 8:
                    self.closed = struct.unpack("!H", data[:2])[0]
                    return None
                case 9 if self.answers:
                    self.send(data, kind=10)
        return None

    def auth(self, token: str, **more):
        self.send({"type": "auth", "token": token, **more})
        said = self.next()
        assert said["type"] == "authenticated", said
        if "after" not in more:
            assert self.next()["type"] == "state"
        return said

    def until(self, kind: str):
        """The first frame of this type, with those before it."""
        found = []
        while (said := self.next()) is not None:
            found.append(said)
            if said["type"] == kind:
                return found
        raise AssertionError((kind, found))

    def close(self) -> None:
        self.file.close()
        self.sock.close()
