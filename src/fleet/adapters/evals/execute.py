"""Runs the code of answers: nobody has read it, so it gets no network, no secrets and little time.

The strongest means that this machine has: bubblewrap, else a network namespace (`unshare`) and
Landlock, each if it works. The limits on time, memory and files always hold.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fleet.adapters.evals import run_tests
from fleet.adapters.isolation import confine
from fleet.adapters.processes.run import TooLate, run
from fleet.base.loose_json import integer, mapping, string
from fleet.domain.data import NamedTuple
from fleet.domain.evals.grade import Ran

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.evals.grade import GradedProgram

TESTS_SECONDS = 60.0  # seconds for all tests of one answer
PROBE = 10.0
SYSTEM = ("/bin", "/lib", "/lib64", "/sbin")  # besides /usr: links to it, or folders
FILES = ("/etc/ld.so.cache", "/etc/alternatives")
WITHOUT = "limits only"


class Means(NamedTuple):
    """`words` come before the command; `folder` is where they show the scratch folder."""

    name: str
    words: tuple[str, ...] = ()
    folder: str = ""


class Sandbox:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._path = env.get("PATH", os.defpath)

    @property
    def isolation(self) -> str:
        """How it keeps answers apart from this machine."""
        with TemporaryDirectory(prefix="fleet-eval-") as folder:
            return self._means(folder).name

    def execute(self, program: GradedProgram) -> Ran:
        """Never raises for what the code does."""
        secret = secrets.token_hex(16)
        with TemporaryDirectory(prefix="fleet-eval-") as folder:
            files = {"answer.py": program.code, "tests.py": program.tests}
            files["run_tests.py"] = Path(run_tests.__file__).read_text("utf-8")
            for name, text in files.items():
                Path(folder, name).write_text(text, "utf-8", "replace")
            means = self._means(folder)
            argv = [*means.words, _python(), "-I", "-S", "-B"]
            argv += [f"{means.folder}/{name}" for name in ("run_tests.py", "answer.py", "tests.py")]
            env = {"PATH": os.defpath, "HOME": means.folder, "LANG": "C.UTF-8"}
            try:
                done = run(
                    argv, Path(folder), env=env, timeout=TESTS_SECONDS, stdin=f"{secret}\n".encode(),
                    ends_with_us=True,
                )  # fmt: skip
            except TooLate:
                return Ran(why=f"the tests took more than {TESTS_SECONDS:g} s")
        return _read(done.out, secret) or Ran(why=f"the tests ended early: {done.words}")

    def _means(self, folder: str) -> Means:
        name, words = self._kind
        if name == "bubblewrap":
            bound = (*words, "--bind", folder, "/box", "--chdir", "/box", "--")
            return Means(name, bound, "/box")
        if "Landlock" in name:
            return Means(name, (*words, *_landlock(folder)), folder)
        return Means(name, words, folder)

    @cached_property
    def _kind(self) -> tuple[str, tuple[str, ...]]:
        if bwrap := shutil.which("bwrap", path=self._path):
            words = _bubblewrap(bwrap)
            if _works((*words, "--")):
                return "bubblewrap", words
        names, words = [], ()
        if unshare := shutil.which("unshare", path=self._path):
            words = (
                unshare,
                "--user",
                "--map-root-user",
                "--net",
                "--pid",
                "--fork",
                "--kill-child",
            )
            words = words if _works(words) else ()
            names += ["a network namespace"] if words else []
        if confine.version() >= confine.NEEDED:
            names.append("Landlock")
        return " and ".join(names) or WITHOUT, words


def _python() -> str:
    """Without its virtual environment: the code may use the standard library alone."""
    return os.path.realpath(sys.executable)


def _readable() -> list[str]:
    prefix = os.path.realpath(sys.base_prefix)
    paths = ["/usr", prefix, str(Path(_python()).parent)]
    return list(dict.fromkeys(path for path in paths if Path(path).is_dir()))


def _bubblewrap(program: str) -> tuple[str, ...]:
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev"]  # noqa: S108  # nosec B108  # its own
    for path in _readable():
        words += ["--ro-bind", path, path]
    for path in SYSTEM:
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            words += ["--ro-bind", path, path]
    for path in FILES:
        words += ["--ro-bind-try", path, path]
    return tuple(words)


def _landlock(folder: str) -> tuple[str, ...]:
    paths = [*_readable(), *SYSTEM, *FILES, "/dev/urandom", "/proc/self"]
    reads = [word for path in paths if Path(path).exists() for word in ("--read", path)]
    writes = ["--write", folder, "--write", os.devnull]
    return (_python(), "-I", "-S", "-B", str(confine.__file__), *reads, *writes, "--")


def _works(words: tuple[str, ...]) -> bool:
    argv = [*words, _python(), "-I", "-S", "-c", "import json"]
    try:
        return not subprocess.run(argv, capture_output=True, timeout=PROBE, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def _read(out: str, secret: str) -> Ran | None:
    try:
        line = mapping(json.loads(out))
    except ValueError:
        return None
    if line.get("secret") != secret:
        return None
    return Ran(integer(line.get("passed")), integer(line.get("tests")), string(line.get("why")))
