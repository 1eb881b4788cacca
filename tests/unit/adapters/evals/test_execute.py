"""The code of answers, run in earnest: what it may do, and what becomes of it."""

from __future__ import annotations

import os
import socket

import pytest

from fleet.adapters.evals.execute import WITHOUT, Sandbox
from fleet.adapters.isolation import confine
from fleet.domain.evals.grade import GradedProgram
from tests.isolation import env_of, works

SQUARES = "def test_two():\n    assert f(2) == 4\ndef test_three():\n    assert f(3) == 9\n"
GOOD = "def f(x):\n    return x * x\n"


@pytest.fixture(params=["bubblewrap", "what the system has", "no program"])
def sandbox(request):
    """With each of the means that this machine has."""
    if request.param == "bubblewrap":
        if not works("bubblewrap"):
            pytest.skip("no bubblewrap here")
        return Sandbox(env_of("bubblewrap", os.environ["PATH"]))
    return Sandbox({"PATH": os.environ["PATH"] if "system" in request.param else "/nonexistent"})


def run(sandbox, code, tests=SQUARES):
    return sandbox.execute(GradedProgram(code, tests))


def test_tests_are_counted_and_the_first_that_fails_is_named(sandbox):
    assert run(sandbox, GOOD) == (2, 2, "")
    half = run(sandbox, "def f(x):\n    return 2 * x\n")
    assert (half.passed, half.tests) == (1, 2)
    assert half.why == "test_three: AssertionError: assert f(3) == 9"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os\nos._exit(0)", "its process ended"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("def f(:", "SyntaxError"),
        ("x = bytearray(2 << 30)", "MemoryError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("def f(x):\n    return f(x)", "RecursionError"),
        ('print(\'{"passed": 2, "tests": 2}\')\ndef f(x): return 0', "AssertionError"),
        (
            "class E:\n    def __eq__(self, o): raise KeyError('no')\ndef f(x): return E()",
            "KeyError",
        ),
        ("", "NameError: name 'f' is not defined"),
    ],
)
def test_code_that_ends_its_process_or_pretends_passes_nothing(sandbox, code, why):
    ran = run(sandbox, code)
    assert (ran.passed, ran.tests) == (0, 2)
    assert why in ran.why


def test_code_that_does_not_end_is_stopped(sandbox):
    tests = "def test_one():\n    assert True\n"
    ran = run(sandbox, "while True:\n    pass\n", tests)
    assert (ran.passed, ran.why) == (0, "test_one: it took more than 5 s")


def test_one_test_leaves_nothing_to_the_next(sandbox):
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n"
    tests = "def test_a():\n    assert f(1) == 1\nasync def test_b():\n    assert f(1) == 1\n"
    assert run(sandbox, code, tests) == (2, 2, "")


def test_tests_that_are_no_tests_say_so(sandbox):
    assert run(sandbox, GOOD, "def check(): pass").why == "there is no function test_…"
    assert "the tests are not Python" in run(sandbox, GOOD, "def test_(:").why


def test_it_sees_no_secret_of_the_environment(sandbox, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    code = f"import os\nassert 'sk-secret' not in str(dict(os.environ))\n{GOOD}"
    assert run(sandbox, code).passed == 2


def test_it_has_a_folder_of_its_own_and_may_write_nowhere_else(sandbox, tmp_path):
    assert run(sandbox, f"open('notes', 'w').write('x')\n{GOOD}").passed == 2
    if "bubblewrap" not in sandbox.isolation and "Landlock" not in sandbox.isolation:
        pytest.skip("nothing here keeps it from files")
    secret = tmp_path / "secret"
    secret.write_text("x")
    for act in (f"open({str(secret)!r}).read()", f"open({str(tmp_path / 'new')!r}, 'w')"):
        assert run(sandbox, f"{act}\n{GOOD}").passed == 0
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_it_has_no_network(sandbox):
    if "bubblewrap" not in sandbox.isolation and "network" not in sandbox.isolation:
        pytest.skip("nothing here keeps it from the network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n{GOOD}"
        assert run(sandbox, code).passed == 0


def test_it_says_how_it_keeps_code_apart():
    without = Sandbox({"PATH": "/nonexistent"}).isolation
    assert without == ("Landlock" if confine.version() >= confine.NEEDED else WITHOUT)
