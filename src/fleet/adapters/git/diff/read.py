"""A diff as git writes it, and in parts: files, hunks and lines, as much as a reply has room for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import DIFF_SECONDS, QUIET, run_git
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused
from fleet.ports import FileDiff, Hunk, TaskDiff

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.adapters.git.diff.span import DiffSpan
    from fleet.adapters.processes import run as process

MOST_BYTES = 400_000  # of a reply, as JSON
MOST_LINES = 5000  # of one file's hunks
MOST_FOLDED = 400  # a longer change is folded
BIG_FILE = 8_000_000  # bytes; the lines of a larger file are not read
MOST_READ = 32_000_000  # bytes of all files whose lines are read at once
MOST_LINES_READ = 10_000  # of all files at once: 40 bytes each fill a reply
KEPT_LISTS, MOST_KEPT = 16, 2000  # lists of changed files that are remembered, and files of each
ROOM = 200  # bytes of a file or a hunk in a reply, besides its names and lines

CHANGES = {"A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
LOCK_FILES = frozenset(
    [
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "deno.lock",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "Pipfile.lock",
        "pylock.toml",
        "conda-lock.yml",
        "Cargo.lock",
        "go.sum",
        "Gemfile.lock",
        "composer.lock",
        "mix.lock",
        "Podfile.lock",
        "pubspec.lock",
        "flake.lock",
        "gradle.lockfile",
        "packages.lock.json",
        ".terraform.lock.hcl",
    ]
)
GENERATED = re.compile(
    r"\.min\.(js|css|mjs)$|\.(js|css|mjs)\.map$|_pb2(_grpc)?\.pyi?$|\.pb\.(go|cc|h)$|\.snap$"
    r"|\.g\.dart$|\.designer\.cs$|(^|/)(node_modules|vendor|third_party|__generated__)/",
    re.IGNORECASE,
)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_FIRST = re.compile(r"^@@ -", re.MULTILINE)
# A person's settings change what git writes for people, not what is read here.
_PLAIN = ("-c", "diff.suppressBlankEmpty=false", "-c", "diff.orderFile=/dev/null")
_HOW = ("--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--find-renames")


class FileBlobs(NamedTuple):
    """A changed file, with the ids of its contents."""

    file: FileDiff
    blobs: tuple[str, str]
    sections: int = 1  # of the diff that are about it


_LISTS: dict[DiffSpan, tuple[FileBlobs, ...]] = {}


def text(span: DiffSpan, *how: str) -> str:
    """The diff as git writes it for programs."""
    return _diff(span, *how).out


def is_empty(span: DiffSpan) -> bool:
    return not _diff(span, "--raw").raw


def read(task: str, span: DiffSpan, path: str = "", *, stat: bool = False) -> TaskDiff:
    """`path`: only this file. `stat`: without the lines."""
    changed = _changed(span)
    if path:
        changed = tuple(each for each in changed if each.file.path == path)
    if path and not changed:
        raise Refused(
            f"{task} has not changed {path[:200]}.",
            fix=f"`fleet diff {task} --stat` lists the files that it changed.",
            code="unchanged",
        )
    files = [each.file for each in changed]
    whole = TaskDiff(
        task, span.start, span.end, (), len(files),
        sum(file.added for file in files), sum(file.removed for file in files),
    )  # fmt: skip
    listed, room = _list(files)
    if not stat:
        listed = _fill(span, changed[: len(listed)], room)
    return replace(whole, files=tuple(listed))


def _changed(span: DiffSpan) -> tuple[FileBlobs, ...]:
    """The two trees never change, and whoever reads a diff has just looked at the list of its files."""
    known = _LISTS.get(span)
    if known is None:
        known = tuple(_known(_diff(span, "--raw", "--no-abbrev", "--numstat", "-z").raw))
        if len(_LISTS) >= KEPT_LISTS:
            _LISTS.clear()
        if len(known) <= MOST_KEPT:
            _LISTS[span] = known
    return known


def _diff(span: DiffSpan, *words: str, paths: Sequence[str] = ()) -> process.Done:
    literal = [f":(literal){path}" for path in paths]
    argv = (*QUIET, *_PLAIN, "diff", *_HOW, *words, span.start, span.end, "--", *literal)
    done = run_git(span.directory, *argv, timeout=DIFF_SECONDS)
    if done.status:
        raise Refused(f"git diff failed: {done.words}")
    return done


def _known(raw: bytes) -> Iterator[FileBlobs]:
    """Read `git diff --raw --numstat -z`: all files first, then how many lines each one changed."""
    parts = iter(raw.split(b"\0"))
    entries: list[tuple[str, tuple[str, str], str, str]] = []
    for part in parts:
        if not part.startswith(b":"):
            break
        _, _, old, new, status = part.decode("ascii").split(" ")
        first = _name(next(parts))
        path = _name(next(parts)) if status[0] in "RC" else first
        entries.append((status[0], (old, new), first if path != first else "", path))
    else:
        part = b""
    for status, blobs, old_path, path in entries:
        added, removed, name = part.decode("utf-8", "replace").split("\t", 2)
        if not name:  # a renamed file: its two names follow
            next(parts), next(parts)
        binary = added == "-"
        lines = (0, 0) if binary else (int(added), int(removed))
        file = FileDiff(
            path, CHANGES.get(status, "modified"), *lines, old_path=old_path, binary=binary,
            folded=_folded(path, sum(lines)),
        )  # fmt: skip
        yield FileBlobs(file, blobs, 2 if status == "T" else 1)
        part = next(parts, b"")


def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _folded(path: str, lines: int) -> str:
    if PurePosixPath(path).name in LOCK_FILES:
        return "lock file"
    if GENERATED.search(path):
        return "generated"
    return "long" if lines > MOST_FOLDED else ""


def _list(files: list[FileDiff]) -> tuple[list[FileDiff], int]:
    """As many files as a reply has room for, and the room that is left."""
    room = MOST_BYTES
    for number, file in enumerate(files):
        room -= ROOM + _size(file.path) + _size(file.old_path)
        if room < 0:
            return files[:number], 0
    return files, room


def _size(string: str) -> int:
    return len(json.dumps(string))


def _fill(span: DiffSpan, files: Sequence[FileBlobs], room: int) -> list[FileDiff]:
    """The files with their lines; those that are folded come last to the room."""
    chosen = _readable(span, _first(files))
    patches = dict(zip((k.file.path for k in chosen), _sections(span, chosen), strict=True))
    full: dict[str, FileDiff] = {}
    for each in sorted(files, key=lambda k: bool(k.file.folded)):
        file = each.file
        if file.path in patches:
            full[file.path], room = _fit(file, patches[file.path], room)
        else:
            full[file.path] = replace(file, cut=file.added + file.removed)
    return [full[each.file.path] for each in files]


def _first(files: Sequence[FileBlobs]) -> list[FileBlobs]:
    """As many files as a reply may have room for, the folded ones last, at least one of them."""
    chosen, lines = [], 0
    for each in sorted(files, key=lambda k: bool(k.file.folded)):
        if lines >= MOST_LINES_READ:
            break
        chosen.append(each)
        lines += each.file.added + each.file.removed
    wanted = {each.file.path for each in chosen}
    return [each for each in files if each.file.path in wanted]  # in the order in which git writes


def _readable(span: DiffSpan, files: list[FileBlobs]) -> list[FileBlobs]:
    """The files whose lines are read: neither binary, nor so large that they would fill the memory."""
    ids = [blob for each in files for blob in each.blobs]
    stdin = "".join(f"{blob}\n" for blob in ids).encode()
    words = ("cat-file", "--batch-check=%(objectsize)", "--buffer")
    lines = run_git(span.directory, *words, stdin=stdin, timeout=DIFF_SECONDS).out.splitlines()
    sizes = [int(line) if line.isdigit() else 0 for line in lines]
    bytes_left, chosen = MOST_READ, []
    for each, old, new in zip(files, sizes[::2], sizes[1::2], strict=True):
        if each.file.binary or max(old, new) > BIG_FILE or old + new > bytes_left:
            continue
        bytes_left -= old + new
        chosen.append(each)
    return chosen


def _sections(span: DiffSpan, files: list[FileBlobs]) -> Iterator[list[str]]:
    """The lines about each file, from its first hunk on."""
    if not files:
        return
    names = [name for k in files for name in (k.file.path, k.file.old_path) if name]
    everything = _diff(span, "--unified=3", paths=names).out
    sections = iter(re.split(r"^diff --git .*\n", everything, flags=re.MULTILINE)[1:])
    for each in files:
        lines: list[str] = []
        for section in [next(sections, "") for _ in range(each.sections)]:
            if first := _FIRST.search(section):
                lines += section[first.start() :].removesuffix("\n").split("\n")
        yield lines


def _fit(file: FileDiff, lines: list[str], room: int) -> tuple[FileDiff, int]:
    """As many of the file's lines as there is room for."""
    hunks: list[Hunk] = []
    body: list[str] = []
    count = 0
    for line in lines:
        match = _HUNK.match(line)
        size = ROOM if match else _size(line) + 1
        if count >= MOST_LINES or size > room:
            break
        room -= size
        if match:
            hunks, body = _closed(hunks, body), []
            old, olds, new, news, heading = match.groups()
            hunks.append(Hunk(int(old), int(olds or 1), int(new), int(news or 1), heading[:200]))
        else:
            body.append(line)
            count += 1
    total = sum(not _HUNK.match(line) for line in lines)
    return replace(file, hunks=tuple(_closed(hunks, body)), cut=total - count), room


def _closed(hunks: list[Hunk], body: list[str]) -> list[Hunk]:
    return [*hunks[:-1], replace(hunks[-1], lines=tuple(body))] if hunks else []
