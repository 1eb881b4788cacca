"""A git repository, and how fleet runs git."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git import refs as git_refs
from fleet.adapters.machine.digest import digest_of
from fleet.adapters.processes import run as process
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GIT_SECONDS = 120.0  # a checkout of a large repository on a slow disk; nothing else comes near it
DIFF_SECONDS = 60.0  # for git to read a worktree, or to compare two trees
GIT_LOCK_SECONDS = 10.0  # to wait for another git process that holds the lock
ALONE_SECONDS = 330.0  # longer than the hooks of a commit may take
LONGEST_WAIT = 0.02  # seconds between two looks at a lock
STALE = 1.0  # seconds after which a lock that no process of ours holds was left behind
FRESH = 5.0  # seconds for which the path of the hooks is trusted
QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")  # no packing while others work
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
LOCKED = ("could not lock config file", ".lock': File exists", "Unable to create '")
LONGEST_BRANCH = 240  # bytes: git writes `<name>.lock`, and a file's name has at most 255
_NOT_IN_NAMES = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{")
_PASSED = ("GIT_CONFIG", "GIT_AUTHOR", "GIT_COMMITTER", "GIT_SSH", "GIT_EXEC_PATH", "GIT_LFS_")


@dataclass(frozen=True, slots=True)
class Repo:
    """`top` is the checkout; `common` is the git directory that all its worktrees share."""

    top: Path
    common: Path

    @staticmethod
    def of(cwd: Path) -> Repo:
        """Runs git once for each checkout, until another repository takes its place."""
        stamp = _stamp(cwd)
        known_repo = _KNOWN.get(cwd)
        if known_repo is not None and stamp and known_repo[0] == stamp:
            return known_repo[1]
        repo = Repo._ask_git(cwd)
        if stamp:
            if len(_KNOWN) >= MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[cwd] = (stamp, repo)
        return repo

    @staticmethod
    def at(common: Path) -> Repo:
        """The repository alone, whichever of its checkouts there are."""
        return Repo(common, common)

    @property
    def checkout(self) -> Path:
        """What a person knows it by, also where only its .git directory is known."""
        return self.top.parent if self.top.name == ".git" else self.top

    @staticmethod
    def _ask_git(cwd: Path) -> Repo:
        words = ("--git-common-dir", "--is-bare-repository", "--show-toplevel")
        done = run_git(cwd, "rev-parse", "--path-format=absolute", *words)
        common, _, rest = text_of(done.raw).rstrip("\n").partition("\n")
        if rest.startswith("true"):
            return Repo(Path(common).resolve(), Path(common).resolve())
        if done.status and common:
            raise Refused(f"{cwd} is inside a .git directory.", fix="cd to the checkout itself.")
        if done.status:
            raise Refused(
                f"{cwd} is not in a git repository.",
                fix="git init, or use --in-place.",
                code="outside_git",
            )
        top = rest.removeprefix("false\n")
        return Repo(Path(top).resolve(), Path(common).resolve())

    def git(self, *args: str, check: bool = True, mark: str = "") -> process.Done:
        """Tries again while another git process holds a lock."""
        until = time.monotonic() + GIT_LOCK_SECONDS
        done = run_git(self.top, *args, mark=mark)
        while done.status and is_locked(done) and time.monotonic() < until:
            time.sleep(0.05)
            done = run_git(self.top, *args, mark=mark)
        if check and done.status:
            raise Refused(f"git {args[0]} {args[1]} failed: {done.words}")
        return done

    def has_branch(self, name: str) -> bool:
        if git_refs.in_files(self.common):
            return name in git_refs.names_around(self.common, name)
        return self.has_ref(f"refs/heads/{name}")

    def has_ref(self, ref: str) -> bool:
        return self.git("show-ref", "--verify", "--quiet", ref, check=False).status == 0

    def was_at(self, branch: str, commit: str) -> bool:
        """Whether somebody has moved the branch away from this commit, by what git remembers."""
        log = self.git("reflog", "show", "--format=%H", f"refs/heads/{branch}", "--", check=False)
        return commit in log.out.split()

    def has_commit(self, name: str) -> bool:
        return self.git("cat-file", "-e", f"{name}^{{commit}}", check=False).status == 0

    def starting_branch(self, base: str) -> str:
        """The branch that work based on this would land on; empty: it names no branch."""
        if not base or base == "HEAD":
            branch = git_refs.head_branch(self.top)
            if branch is None:
                done = self.git("symbolic-ref", "--quiet", "--short", "HEAD", check=False)
                branch = text_of(done.raw).strip()
            return branch
        name = base.removeprefix("refs/heads/")
        return name if is_name(name) and self.has_branch(name) else ""

    def is_ancestor(self, ancestor: str, of: str) -> bool:
        """Raise `Unavailable` when git was killed: that says nothing about the two."""
        done = self.git("merge-base", "--is-ancestor", ancestor, of, check=False)
        if done.status < 0:
            raise Unavailable("git was killed while it compared two commits.", fix="Try again.")
        return done.status == 0

    def commit(self, name: str) -> str:
        if name == "HEAD" and (sha := git_refs.head_commit(self.top, self.common)):
            return sha
        done = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        if done.status:
            if name == "HEAD":
                raise Refused(
                    f"{self.top} has no commit yet, so there is nothing to start from.",
                    fix="Make one: git commit --allow-empty -m Begin",
                    code="no_commit",
                )
            raise Refused(
                f"There is no commit '{name}' in {self.top} to start from.",
                fix="Name a branch, a tag or a commit: `git branch --all` lists branches.",
                code="no_commit",
            )
        return done.out.strip()

    def has_hook(self, name: str) -> bool:
        """Trusts the path of the hooks for some seconds only: a setting may move them."""
        at, folder = _HOOKS.get(self.common, (0.0, Path()))
        if time.monotonic() - at > FRESH:
            done = self.git("rev-parse", "--path-format=absolute", "--git-path", "hooks")
            at, folder = time.monotonic(), Path(text_of(done.raw).rstrip("\n"))
            _HOOKS[self.common] = at, folder
        return (folder / name).exists()

    def check_name(self, branch: str) -> bool:
        """Raise when git cannot create this branch beside the existing ones; True: it exists."""
        if not is_name(branch):
            raise BadInput(f"'{branch[:80]}' is not a name for a branch.", fix="Try fix/login.")
        if any(len(os.fsencode(part)) > LONGEST_BRANCH for part in branch.split("/")):
            raise BadInput(
                f"'{branch[:40]}…' is too long for a branch.",
                fix=f"Use at most {LONGEST_BRANCH} bytes between slashes.",
            )
        names = self._names_around(branch)
        if other := next((name for name in names if name != branch), ""):
            raise Refused(
                f"There is a branch {other}, so git cannot have {branch} too.",
                fix=f"Choose another name, or: git branch -m {other} NEW",
                code="branch_in_the_way",
            )
        return branch in names

    def _names_around(self, branch: str) -> list[str]:
        """The branches of this name, above its path and below it."""
        if git_refs.in_files(self.common):
            return git_refs.names_around(self.common, branch)
        parts = branch.split("/")
        above = ["/".join(parts[:n]) for n in range(1, len(parts))]
        patterns = (f"refs/heads/{name}" for name in (*above, branch))
        refs = text_of(self.git("for-each-ref", "--format=%(refname)", *patterns).raw)
        names = (ref.removeprefix("refs/heads/") for ref in refs.split("\n"))
        wanted = {*above, branch}
        return [name for name in names if name in wanted or name.startswith(f"{branch}/")]

    @contextmanager
    def alone(self, seconds: float = ALONE_SECONDS) -> Iterator[None]:
        """Hold the lock under which fleet changes this repository's worktrees.

        Raise `Unavailable` after this time: an agent that can read the file can hold it for ever.
        """
        how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC  # an agent may write here
        path = self.common / "fleet.lock"
        lock = os.open(path, how, 0o666)
        try:
            until, wait = time.monotonic() + seconds, 0.001
            while not _lock(lock):
                if time.monotonic() > until:
                    raise _locked(path, lock, seconds)
                time.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
            yield
        finally:
            os.close(lock)


def _lock(lock: int) -> bool:
    """False: another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: Path, lock: int, seconds: float) -> Unavailable:
    pid = _holder(os.fstat(lock))
    who = f"Process {pid}" if pid else "Another process"
    return Unavailable(
        f"{who} has held {path} for {seconds:.0f} s, so Fleet cannot change this repository's worktrees.",
        fix=f"Look what it is (ps -fp {pid}), and end it if it is no Fleet of yours: fleet cancel TASK,"
        f" or kill {pid}."
        if pid
        else f"Find it with `fuser {path}`, and end it if it is no Fleet of yours.",
        code="repository_locked",
    )


def _holder(file: os.stat_result) -> str:
    """The process that has locked this file, by the kernel's list; empty: it does not say."""
    device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            parts = line.split()
            if device in parts and "->" not in parts and "FLOCK" in parts:
                pid = parts[parts.index(device) - 1]
                return pid if pid.isdigit() and pid != "0" else ""
    return ""


_HOOKS: dict[Path, tuple[float, Path]] = {}
MOST_KNOWN = 1000  # checkouts, of which each has worktrees that come and go
_KNOWN: dict[Path, tuple[tuple[int, ...], Repo]] = {}


def _stamp(cwd: Path) -> tuple[int, ...]:
    """Differs when another checkout takes this one's place; empty: no checkout begins here."""
    try:
        link = (cwd / ".git").lstat()
        if stat.S_ISREG(link.st_mode):  # a worktree: the file names its git directory
            return (link.st_dev, link.st_ino, link.st_size, link.st_mtime_ns)
        config = (cwd / ".git" / "config").stat()
    except OSError:
        return ()
    if not stat.S_ISDIR(link.st_mode):
        return ()
    return (link.st_dev, link.st_ino, config.st_ino, config.st_mtime_ns)


def is_name(branch: str) -> bool:
    """Decide what `git check-ref-format --branch` would, without starting git for every name."""
    if not branch or branch in {"@", "HEAD"} or branch.startswith("-") or branch.endswith("."):
        return False
    if _NOT_IN_NAMES.search(branch):
        return False
    parts = branch.split("/")
    return all(p and not p.startswith(".") and not p.endswith(".lock") for p in parts)


def run_git(
    cwd: Path,
    *args: str,
    mark: str = "",
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = GIT_SECONDS,
) -> process.Done:
    """`env` is added to what git inherits. A worktree's file `commondir` is not believed."""
    full_env = {**git_env(), **_common_of(cwd), **(env or {})}
    return process.run(
        ["git", *args], cwd, env=full_env, timeout=timeout, mark=mark, stdin=stdin, in_memory=True
    )


def _common_of(cwd: Path) -> dict[str, str]:
    """Where the settings of a linked worktree are: agents of others may write its records."""
    for folder in (cwd, *cwd.parents):
        git = folder / ".git"
        try:
            raw = git.read_bytes()
        except FileNotFoundError:
            continue
        except OSError:  # a directory: no linked worktree
            return {}
        gitdir = folder / os.fsdecode(raw).rstrip("\n").removeprefix("gitdir: ")
        linked = gitdir.parent.name == "worktrees"
        return {"GIT_COMMON_DIR": str(gitdir.parent.parent)} if linked else {}
    return {}


def uncommitted(cwd: Path) -> int:
    """How many tracked files of this checkout differ from HEAD; 0 where there is no checkout."""
    words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
    return len(names_of(run_git(cwd, *words).raw))


def unlock(lock: Path) -> None:
    """Remove a lock that a git of ours left behind when it was killed: nothing else would.

    Waits for a git that has just made it. Call this beside the loop.
    """
    with suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime <= STALE:
            time.sleep(STALE)
        if time.time() - lock.stat().st_mtime > STALE:
            lock.unlink()


def is_locked(done: process.Done) -> bool:
    return any(words in done.err for words in LOCKED)


def git_env() -> dict[str, str]:
    """Without the variables of a git hook that may have started fleet."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_PASSED)}
    return env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def identity(root: Path) -> list[str]:
    """Options that give git an author, where the user has configured none."""
    known = run_git(root, "var", "GIT_COMMITTER_IDENT").status == 0
    return [] if known else ["-c", "user.name=fleet", "-c", "user.email=fleet@localhost"]


def digest(text: str) -> str:
    return digest_of(text.encode("utf-8", "surrogateescape"))[:8]


def text_of(raw: bytes) -> str:
    """Decoded as Python decodes a path."""
    return os.fsdecode(raw)


def names_of(raw: bytes) -> list[str]:
    """The names in a list that ends each with a NUL."""
    return [text_of(name) for name in raw.split(b"\0") if name]
