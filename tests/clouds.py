"""Emulators of S3, DynamoDB and Firestore on loopback, for the stores in them."""

from __future__ import annotations

import os
import site
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from tests.free_ports import free_ports
from tests.wait import until

KINDS = ("s3", "dynamodb", "firestore")
ROOT = Path(__file__).parents[1]
FIRESTORE = """
import { FirestoreServer } from "@firestore-emulator/server"
await new FirestoreServer().start(Number(process.argv[2]))
"""
AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


def installed() -> Path:
    """The folder of the emulators. Their drivers can be imported from now on."""
    done = subprocess.run([ROOT / "scripts" / "clouds"], capture_output=True, text=True, check=True)
    home = Path(done.stdout.strip())
    (packages,) = home.glob("lib/python*/site-packages")
    site.addsitedir(str(packages))
    return home


@contextmanager
def emulated(folder: Path):
    """Give a function that opens a new store of a kind; each has a prefix of its own."""
    home = installed()
    from fleet.adapters.stores.log.address import open_url

    with aws(home, folder) as endpoint, firestore(home) as host:
        make_bucket(endpoint, "fleet")
        os.environ |= AWS | {"FIRESTORE_EMULATOR_HOST": host}
        numbers = count(1)

        def url(kind: str) -> str:
            where = "" if kind == "firestore" else f"?endpoint={endpoint}"
            return f"{kind}://fleet/{os.getpid()}-{next(numbers)}{where}"

        def opens(kind: str, copies: Path):
            return open_url(url(kind), None, None, copies=copies)

        opens.url = url
        yield opens


@contextmanager
def running(words: list, port: int, **env: str):
    process = subprocess.Popen(
        words, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _answers(port) or process.poll() is not None, "the emulator to answer")
        assert process.poll() is None
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextmanager
def aws(home: Path, state: Path):
    """The address of an S3 and a DynamoDB."""
    port = free_ports()
    env = {"GATEWAY_PORT": str(port), "MINISTACK_STATE_DIR": str(state)}
    with running([home / "bin" / "ministack"], port, **env):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def firestore(home: Path):
    port = free_ports()
    script = home / "node" / "serve.mjs"
    script.write_text(FIRESTORE)
    with running(["node", script, str(port)], port):
        yield f"127.0.0.1:{port}"


def make_bucket(endpoint: str, name: str) -> None:
    request = urllib.request.Request(f"{endpoint}/{name}", method="PUT")
    with suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=10)
