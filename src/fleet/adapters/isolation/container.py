"""Isolation in a container: of Docker or Podman, or of bubblewrap where there is no engine.

Of the machine's files a run can change its worktree, the git directory of that, its own folders and
what the settings mount. `enclose` is the program around it, which caps it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.adapters.isolation import enclose
from fleet.adapters.isolation.bubblewrap import (
    NO_PACKING,
    Bubblewrap,
    binds,
    git_folder,
    guarded_in,
)
from fleet.adapters.isolation.caps import ContainerLimits
from fleet.adapters.isolation.isolation import Isolation
from fleet.adapters.isolation.ways_out import LOOPBACK, Way
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.ports import Launch

HERE = frozenset({LOOPBACK, "localhost", "::1"})
TMP = Path("/tmp")  # noqa: S108  # nosec B108  # a container has its own
TRIAL = ContainerLimits(memory=32 << 20, pids=64)
TRIAL_SECONDS = 60.0
# Each prints those of the files that it can read, or sockets that it sees.
READ = 'for f; do head -c 1 "$f" >/dev/null 2>&1 && echo "$f"; done; true'
SEE = 'for f; do [ -S "$f" ] && echo "$f"; done; true'
EXCEED = ("sh", "-c", "head -c 256M /dev/zero | tail -n 1 | wc -c; sleep 0.3")
SANDBOX = "{} makes a sandbox of its own, which a container of {} does not allow."


class Container(NamedTuple):
    """What the settings say. `mounts` are paths, `PATH:ro` for one that stays as it is."""

    program: str = "bubblewrap"
    image: str = ""
    network: str = "full"
    mounts: tuple[str, ...] = ()
    limits: ContainerLimits = ContainerLimits()


class Contained(Isolation):
    """`container` says which; the words of one are the program `enclose` and its order."""

    container: Container
    engine = ""
    image: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, container: Container, home: Path, secrets: Sequence[Path], env: Mapping[str, str]
    ) -> Contained:
        kind = InEngine if container.program in {"docker", "podman"} else InBubblewrap
        made = kind(home, secrets, env)
        made.container = container
        return made

    def before(self, run_id: str, launch: Launch) -> tuple[str, ...]:
        words = super().before(run_id, launch)
        return self._enclosed(words, self._home / "runs" / run_id, self._ways(launch), run_id)

    def _ways(self, launch: Launch) -> list[Way]:
        """The ways out: to our own server for the run's questions and tools, and to the gateway if so set."""
        if self.container.network == "full":
            return []
        addresses = [launch.env.get("FLEET_RUN_SERVER", "")]
        if self.container.network == "gateway":
            addresses.append(launch.gateway)
        return [_way(address) for address in dict.fromkeys(addresses) if address]

    def _enclosed(
        self,
        words: Sequence[str],
        folder: Path,
        ways: Sequence[Way] = (),
        run_id: str = "trial",
        limits: ContainerLimits | None = None,
    ) -> tuple[str, ...]:
        name = f"fleet-{run_id}-{uuid.uuid4().hex[:12]}"
        limits = limits or self.container.limits
        capped, scope = self._capped(list(words), name, limits)
        order = enclose.Order(
            name, str(folder), capped, limits, list(ways), self.engine, self.image, scope
        )
        return (*enclose.program(), json.dumps(order._asdict()))

    def _capped(
        self, words: list[str], name: str, limits: ContainerLimits
    ) -> tuple[list[str], str]:
        """The words with the caps of a program that sets them, and the unit of systemd's."""
        raise NotImplementedError

    def closed(self, folders: Sequence[Path]) -> list[Path]:
        del folders  # that nobody can write elsewhere is what it is for
        return []

    def caps(self) -> str:
        """How the caps hold, by a program that exceeds them. Raise `Unavailable` if they do not."""
        with tempfile.TemporaryDirectory() as folder:
            words = self._enclosed(self._trial(Path(folder)), Path(folder), limits=TRIAL)
            done = self._run([*words, *EXCEED])
            try:
                report = json.loads(Path(folder, enclose.REPORT).read_bytes())
            except (OSError, ValueError):
                report = {}
        if report.get("over") != "memory":
            why = done.stderr.decode("utf-8", "replace").strip() or "nothing stopped it"
            raise Unavailable(f"A program could exceed its memory: {why}.", fix=self.fix)
        return str(report["by"])

    def _trial(self, folder: Path) -> tuple[str, ...]:
        """The words before a trial's command."""
        raise NotImplementedError

    def _run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        env = {name: self._env[name] for name in self._env if not name.startswith("FLEET_")}
        try:
            return subprocess.run(
                argv, capture_output=True, timeout=TRIAL_SECONDS, check=False, env=env
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable("The container did not start in time.", fix=self.fix) from error

    def _mounts(self) -> list[tuple[Path, bool]]:
        """Each path, and whether it can be changed there."""
        mounts = []
        for written in self.container.mounts:
            path = written.removesuffix(":ro")
            home = self._env.get("HOME", "")
            path = f"{home}{path[1:]}" if path.startswith("~/") else path
            if Path(path).exists():
                mounts.append((Path(path), not written.endswith(":ro")))
        return mounts

    def _program_named(self, name: str) -> str:
        program = shutil.which(name, path=self._env.get("PATH", os.defpath))
        if program is None:
            setting = f"workspace.container.program={self.container.program}"
            raise Unavailable(f"`{setting}` is set, but there is no {name} here.", fix=self.fix)
        return program


class InBubblewrap(Contained, Bubblewrap):
    fix = Bubblewrap.fix

    def _base(self) -> list[str]:
        words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
        words += [] if self.container.network == "full" else ["--unshare-net"]
        words += ["--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        words += ["--tmpfs", str(TMP)]
        for path in self._programs():
            words += ["--ro-bind", path, path]
        return words

    def _programs(self) -> list[str]:
        """The folders of programs, and our own, that an empty /tmp would hide."""
        folders = [*self._env.get("PATH", "").split(":"), sys.prefix, sys.base_prefix, *sys.path]
        paths = {Path(os.path.realpath(folder)) for folder in folders if folder}
        return sorted(str(p) for p in paths if p.is_dir() and p.is_relative_to(TMP) and p != TMP)

    def _words_for(
        self, launch: Launch, worktree: Path, believed: Sequence[Path]
    ) -> tuple[str, ...]:
        paths = [(worktree.resolve(), True), *self._mounts()]
        if folder := git_folder(worktree):
            paths.append((folder, True))
        return (*binds(paths), *super()._words_for(launch, worktree, believed))

    def _capped(
        self, words: list[str], name: str, limits: ContainerLimits
    ) -> tuple[list[str], str]:
        if self.container.program != "systemd":
            return words, ""
        return [
            *scope_words(self._program_named("systemd-run"), name, limits),
            *words,
        ], f"{name}.scope"

    def _trial(self, folder: Path) -> tuple[str, ...]:
        return (*self._words([]), "--bind", str(folder), str(folder), *self._last)


class InEngine(Contained):
    fix = "Start the engine, set workspace.container.image, or choose another program: fleet config"
    _last = ()

    @property
    def engine(self) -> str:  # type: ignore[override]
        return self._program_named(self.container.program)

    @property
    def image(self) -> tuple[str, ...]:  # type: ignore[override]
        image = self.container.image
        if not image:
            raise Unavailable("workspace.container.image is not set.", fix=self.fix)
        if not image.startswith("/"):
            return (image,)
        if self.container.program == "docker":
            raise Unavailable("Docker runs images; only Podman runs a directory.", fix=self.fix)
        return ("--rootfs", image)

    def _words(self, own: Sequence[Path]) -> tuple[str, ...]:
        words = ["run", "--interactive", "--init", "--cap-drop", "ALL"]
        words += ["--security-opt", "no-new-privileges", "--pull", "never", *self._user()]
        words += ["--network", "host" if self.container.network == "full" else "none"]
        words += self._empty(self._home)
        for path in own:
            words += _volume(path)
        if self.container.image.startswith("/"):  # this machine's own files, perhaps
            for path in (*self._controls(), *(p for p in self._secrets if p.exists())):
                words += self._empty(path) if path.is_dir() else _volume(path, os.devnull)
        return tuple(words)

    def _empty(self, folder: Path) -> list[str]:
        """Podman would copy what the image has there."""
        options = ":notmpcopyup" if self.container.program == "podman" else ""
        return ["--tmpfs", f"{folder}{options}"]

    def _user(self) -> list[str]:
        if self.container.program == "podman" and os.geteuid():
            return ["--userns", "keep-id"]
        return ["--user", f"{os.geteuid()}:{os.getegid()}"]

    def _words_for(
        self, launch: Launch, worktree: Path, believed: Sequence[Path]
    ) -> tuple[str, ...]:
        if launch.sandboxes:
            name = Path(launch.argv[0]).name
            raise Refused(
                SANDBOX.format(name, self.container.program),
                fix="Use workspace.container.program=bubblewrap, or permissions: full.",
            )
        words = ["--workdir", launch.cwd, "--env", NO_PACKING]
        if not worktree.resolve().is_relative_to(self._home):
            words += _volume(worktree)
        if folder := git_folder(worktree):
            words += _volume(folder)
        guarded = [*guarded_in(worktree), *((path, False) for path in believed)]
        for path, writable in (*guarded, *self._mounts()):
            words += _volume(path, mode="rw" if writable else "ro")
        return tuple(words)

    def _capped(
        self, words: list[str], name: str, limits: ContainerLimits
    ) -> tuple[list[str], str]:
        caps = ["--name", name]
        if limits.memory:
            caps += ["--memory", str(limits.memory), "--memory-swap", str(limits.memory)]
        if limits.cpus:
            caps += ["--cpus", f"{limits.cpus:g}"]
        if limits.pids:
            caps += ["--pids-limit", str(limits.pids)]
        return [self.engine, words[0], *caps, *words[1:]], ""

    def _trial(self, folder: Path) -> tuple[str, ...]:
        del folder
        mounts = [
            w for p, writable in self._mounts() for w in _volume(p, mode="rw" if writable else "ro")
        ]
        return (*self._words([]), *mounts)

    def readable(self, secrets: Sequence[Path]) -> list[Path]:
        return self._try(READ, secrets)

    def sockets(self) -> list[Path]:
        paths = [q for p in self._controls() for q in ([p] if p.is_socket() else p.rglob("*"))]
        return self._try(SEE, [path for path in paths if path.is_socket()])

    def _try(self, script: str, paths: Sequence[Path]) -> list[Path]:
        with tempfile.TemporaryDirectory() as folder:
            words = self._enclosed(self._trial(Path(folder)), Path(folder))
            done = self._run([*words, "sh", "-c", script, "sh", *map(str, paths)])
        if done.returncode:
            raise Unavailable(self._complaint(done.stderr.decode("utf-8", "replace")), fix=self.fix)
        lines = set(done.stdout.decode("utf-8", "replace").splitlines())
        return [path for path in paths if str(path) in lines]

    def _complaint(self, errors: str) -> str:
        return f"{self.container.program} does not work here: {errors.strip()[-500:]}"


def scope_words(program: str, name: str, limits: ContainerLimits) -> list[str]:
    """A scope of the user's own systemd, which caps what is started in it."""
    words = [program, "--user", "--scope", "--quiet", f"--unit={name}.scope"]
    if limits.memory:
        words += [f"--property=MemoryMax={limits.memory}", "--property=MemorySwapMax=0"]
    if limits.cpus:
        words.append(f"--property=CPUQuota={round(limits.cpus * 100)}%")
    if limits.pids:
        words.append(f"--property=TasksMax={limits.pids}")
    return [*words, "--"]


def _volume(path: Path, source: str = "", *, mode: str = "rw") -> list[str]:
    """`--mount` refuses what does not exist; `--volume` would make a folder of it."""
    option = ",readonly" if mode == "ro" else ""
    return ["--mount", f"type=bind,source={source or path},target={path}{option}"]


def _way(address: str) -> Way:
    parts = urlsplit(address)
    if parts.hostname not in HERE or not parts.port:
        raise Refused(
            f"A container without a network cannot reach {parts.hostname}: only what listens on "
            "this machine's loopback.",
            fix="fleet config set workspace.container.network=full",
        )
    return Way(LOOPBACK, parts.port)
