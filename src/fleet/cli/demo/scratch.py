"""Where the demo plays: a scratch repository, a home of its own, and the five tasks."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.config.layers import ALIASES
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from fleet.client import LocalClient

NOT_OURS = ("FLEET_", "GIT_", *ALIASES)  # the user's own settings


class DemoJob(NamedTuple):
    """`script` is the prompt: `fleet.testing.scripted` says what its lines do."""

    title: str
    after: tuple[str, ...]
    script: str


JOBS = (
    DemoJob(
        "Read prices from a file",
        (),
        """\
say Reading the code.
sleep 0.8
say Writing prices.py.
write prices.py PRICES = {'tea': 3, 'cake': 4}
usage 1800 60
sleep 0.8
commit Read prices from a file
""",
    ),
    DemoJob(
        "Add up a bill",
        (),
        """\
say Reading the code.
sleep 0.7
fail 1 the model server went away
say Writing bill.py.
write bill.py def total(items, prices): return sum(prices[i] for i in items)
usage 2100 90
sleep 0.7
commit Add up a bill
""",
    ),
    DemoJob(
        "Choose a licence",
        (),
        """\
say Looking for a licence.
sleep 0.7
ask Which licence shall this have?
write LICENSE {answer}
usage 700 20
commit Choose a licence
""",
    ),
    DemoJob(
        "Print a bill",
        ("t-1", "t-2"),
        """\
run cat prices.py bill.py
sleep 0.6
say Writing main.py.
write main.py from bill import total\\nfrom prices import PRICES\\nprint(total(['tea', 'cake'], PRICES))
run python3 main.py
usage 3900 110
sleep 0.6
commit Print a bill
""",
    ),
    DemoJob(
        "Write the README",
        ("t-3", "t-4"),
        """\
run cat LICENSE main.py
say Writing the README.
sleep 0.6
write README.md Run main.py.
usage 4200 80
commit Write the README
""",
    ),
)
ANSWER = "MIT"
FILES = {"shop.md", "prices.py", "bill.py", "main.py", "LICENSE", "README.md"}


@dataclass(frozen=True, slots=True)
class Scratch:
    root: Path

    @staticmethod
    def make() -> Scratch:
        try:
            return Scratch(Path(tempfile.mkdtemp(prefix="fleet-demo-")).resolve())
        except OSError as error:
            raise Unavailable(
                f"No scratch repository could be made: {error.strerror or error}.",
                fix="Name a directory that you may write to in TMPDIR.",
            ) from error

    @property
    def repo(self) -> Path:
        return self.root / "shop"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def log(self) -> Path:
        return self.root / "supervisor.log"

    def env(self) -> dict[str, str]:
        """Nothing of the user's settings, neither of ours nor of git's; and quick retries."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(NOT_OURS)}
        return env | {
            "FLEET_HOME": str(self.home),
            "FLEET_CODER": "scripted",
            "FLEET_RUN_BACKOFF": "0.5",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def fill(self) -> None:
        """A repository with one commit, and the prompts beside it."""
        self.repo.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        (self.repo / "shop.md").write_text("A shop that sells tea and cake.\n")
        (self.repo / ".gitignore").write_text("__pycache__/\n")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "A shop")
        (self.root / "todo").mkdir()
        for number, job in enumerate(JOBS, 1):
            (self.root / "todo" / str(number)).write_text(job.script)

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=demo", "-c", "user.email=demo@localhost")
        return self._run(["git", *who, *args])

    def fleet(self, *args: str, timeout: float = 60.0) -> str:
        return self._run([*FLEET, *args], timeout)

    def _run(self, argv: list[str], timeout: float = 60.0) -> str:
        try:
            done = subprocess.run(
                argv,
                cwd=self.repo,
                env=self.env(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except FileNotFoundError as error:
            raise Unavailable(f"{argv[0]} was not found.", fix=f"Install {argv[0]}.") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"`{shlex.join(argv)}` did not end.") from error
        if done.returncode:
            output = " ".join((done.stderr or done.stdout).split())
            raise Unavailable(f"`{shlex.join(argv)}` failed: {output}")
        return done.stdout

    def supervise(self, *words: str) -> subprocess.Popen[bytes]:
        """`fleet run`, out of reach of the terminal's Ctrl-C: we end it ourselves."""
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [*FLEET, "run", *(words or ("--max", "4"))],
                cwd=self.repo,
                env=self.env(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def remove(self) -> None:
        for _ in range(20):  # a process that is just ending may still write
            shutil.rmtree(self.root, ignore_errors=True)
            if not self.root.exists():
                return
            time.sleep(0.1)


FLEET = [sys.executable, "-P", "-m", "fleet"]


def stop(client: LocalClient, supervisor: subprocess.Popen[bytes]) -> None:
    """End the supervisor and any run that an error left behind."""
    patient = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        supervisor.terminate()
        try:
            supervisor.wait(timeout=10)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        until = time.monotonic() + 10
        for run in client.app.store.live_runs():
            while not client.app.keepers.end(run.id) and time.monotonic() < until:
                time.sleep(0.05)
    finally:
        client.app.store.close()
        signal.signal(signal.SIGINT, patient)


def own_name() -> str:
    """The command that runs this program: `fleet`, if it is on the PATH."""
    beside = Path(sys.executable).parent / "fleet"
    path = shutil.which("fleet")
    if path and beside.exists() and Path(path).resolve() == beside.resolve():
        return "fleet"
    if beside.exists():
        return shlex.quote(str(beside))
    source = os.environ.get("PYTHONPATH", "")
    return f"PYTHONPATH={shlex.quote(source)} " * bool(source) + shlex.join(FLEET)


def is_installed() -> bool:
    """Whether Fleet is installed, rather than run by `make demo` from a checkout."""
    return (Path(sys.executable).parent / "fleet").exists()
