"""Ask an installed wheel for its dashboard: the page answers, and the libraries are those of the lock.

wheel_page.py LOCK: `scripts/wheel-test` runs it with the wheel's own Python and without a network.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 60.0


def main() -> int:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        env = {**os.environ, "FLEET_HOME": f"{directory}/home"}
        words = ["fleet", "serve", "--port", "0", "--no-run"]
        with log.open("wb") as out:
            server = subprocess.Popen(words, cwd=directory, env=env, stdout=out, stderr=out)
        try:
            wrong = check(port_of(server, log))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(SECONDS)
    for line in wrong:
        print(f"wheel-page: {line}", file=sys.stderr)
    return 1 if wrong else 0


def port_of(server: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        if match := re.search(r":(\d+)\. ", log.read_text()):
            return int(match[1])
        time.sleep(0.1)
    raise SystemExit(f"wheel-page: the server did not come up: {log.read_text()}")


def check(port: int) -> list[str]:
    status, page = get(port, "/")
    if status != 200 or b'id="app"' not in page:
        return [f"GET / answered {status}"]
    match = re.search(rb'"(/ui/[0-9a-f]+)/vendor/', page)
    files = match[1].decode() if match else "/ui"
    locked = json.loads(Path(sys.argv[1]).read_text())["sha256"]
    wrong = []
    for name, expected in sorted(locked.items()):
        status, body = get(port, f"{files}/vendor/{name}")
        if status != 200 or hashlib.sha256(body).hexdigest() != expected:
            wrong.append(f"{name} is not what the lock says (status {status})")
    modules = sorted(set(re.findall(rb'(?:src|href)="(/ui/[^"]+)"', page)))
    wrong += [
        f"{name.decode()} is missing" for name in modules if get(port, name.decode())[0] != 200
    ]
    print(f"wheel-page: GET / and {len(locked)} locked files: {'ok' if not wrong else 'wrong'}")
    return wrong


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


if __name__ == "__main__":
    sys.exit(main())
