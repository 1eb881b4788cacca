"""A program that runs tests against the code of an answer, each in a process of its own.

    python run_tests.py ANSWER TESTS < SECRET

It prints one line of JSON that begins with the secret, which no answer was given: code that only
pretends to have passed, or that ends its process, does not pass.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType

TEST_SECONDS = 5.0  # seconds of one test
MOST_SLOW_TESTS = 2  # tests that may take too long; the others are then not run
MEMORY_BYTES = 512 << 20
FILE_BYTES = 16 << 20
DESCRIPTORS = 64
MOST_CHARACTERS = 300
MODULE = "solution"  # by which tests may import the code


def main(answer: str, tests: str) -> None:
    secret = sys.stdin.readline().strip()
    _limit()
    code, text = Path(answer).read_text("utf-8"), Path(tests).read_text("utf-8")
    passed, late, why = 0, 0, ""
    names, why = _names(text)
    for name in names:
        if late == MOST_SLOW_TESTS:
            break
        problem = _in_child(code, text, name, secret)
        passed += not problem
        late += problem.startswith("it took")
        why = why or (problem and f"{name}: {problem}")
    line = {"secret": secret, "passed": passed, "tests": len(names), "why": why}
    sys.stdout.write(json.dumps(line) + "\n")


def _limit() -> None:
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


def _names(text: str) -> tuple[list[str], str]:
    """The tests of a file, and why there are none."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        return [], f"the tests are not Python: {error}"[:MOST_CHARACTERS]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [n.name for n in body if isinstance(n, kinds) and n.name.startswith("test")]
    return names, "" if names else "there is no function test_…"


def _in_child(code: str, tests: str, name: str, secret: str) -> str:
    """What went wrong; empty when the test passed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _child(code, tests, name, secret, writing)
    os.close(writing)
    line = _hear(reading, time.monotonic() + TEST_SECONDS)
    for group in (os.killpg, os.kill):
        try:
            group(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    _, status = os.waitpid(child, 0)
    os.close(reading)
    if line is None:
        return f"it took more than {TEST_SECONDS:g} s"
    if line == secret:
        return ""
    ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "its process ended"
    return line.replace(secret, "")[:MOST_CHARACTERS] or ended


def _hear(reading: int, until: float) -> str | None:
    data = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        part = os.read(reading, 4096)
        data += part
        if not part or data.endswith(b"\n") or len(data) > FILE_BYTES:
            return data.decode("utf-8", "replace").rstrip("\n")


def _child(code: str, tests: str, name: str, secret: str, writing: int) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(TEST_SECONDS) + 1, int(TEST_SECONDS) + 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    line = secret
    try:
        _test(code, tests, name)
    except BaseException as error:  # noqa: BLE001  # whatever the answer raises, SystemExit too
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = str(error) or (last.line or "")
        line = f"{type(error).__name__}: {words}".replace("\n", " ")
    try:
        os.write(writing, f"{line}\n".encode("utf-8", "replace")[: 64 << 10])
    finally:
        os._exit(0)


def _test(code: str, tests: str, name: str) -> None:
    module = ModuleType(MODULE)
    sys.modules[MODULE] = module
    sys.modules["__main__"] = module
    exec(compile(code, "answer.py", "exec"), module.__dict__)  # noqa: S102  # nosec B102  # in a sandbox
    exec(compile(tests, "tests.py", "exec"), module.__dict__)  # noqa: S102  # nosec B102  # likewise
    result = module.__dict__[name]()
    if asyncio.iscoroutine(result):
        asyncio.run(result)


if __name__ == "__main__":
    main(*sys.argv[1:])
