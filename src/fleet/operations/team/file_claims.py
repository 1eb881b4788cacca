"""Claims of files for a while, so that two agents do not change one file at once."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Rows, TextLimit, Whole
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, new_entry, query_of, the_team
from fleet.operations.shared.pages import pages

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

SECOND = 1_000_000

FilePath = Annotated[str, TextLimit(1000, some=True, what="path", example="src/login.py")]


@dataclass(frozen=True, slots=True)
class FileRow:
    """`holder` has the file until `until`, or until its `run` ends, if a run claimed it."""

    id: str
    path: str
    team: str
    holder: str
    run: str
    at: Time
    until: Time


@dataclass(frozen=True, slots=True)
class ClaimFile(Request[FileRow]):
    """Claims it for `seconds`; repeating it extends the claim."""

    path: FilePath
    seconds: Annotated[int, Whole(1, 86400)] = 600
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ReleaseFile(Request[FileRow]):
    path: FilePath
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ListFiles(Request[tuple[FileRow, ...]]):
    """`holder`: only the files that this member has claimed."""

    holder: Name = ""
    team: Name = ""
    before: str = ""
    limit: Rows = 100


def claim(context: Context, request: ClaimFile) -> FileRow:
    team, path = the_team(context, request.team, Permission.CLAIM), _path(request.path)
    actor, now = context.actor, context.store.now()
    until = now + request.seconds * SECOND
    entry = context.store.entry(EntryKind.FILE, team, path)
    if entry is None:
        entry = new_entry(context, EntryKind.FILE, team=team, key=path, owner="")
    elif _is_held(context, entry, now):
        if entry.owner != actor.name:
            raise _taken(entry, now)
        if until <= entry.until:
            return _row(entry)
        return _row(keep(context, replace(entry, until=until), Kind.FILE_CLAIMED))
    taken = replace(entry, owner=actor.name, at=now, until=until, body={"run": actor.run})
    return _row(keep(context, taken, Kind.FILE_CLAIMED))


def _path(text: str) -> str:
    """The path within the project, normalized. The file need not exist."""
    path = posixpath.normpath(text.strip())
    if path in {".", ".."} or path.startswith("../"):
        raise Refused(
            f"'{text[:60]}' is not a file of the project.",
            fix="Name one, such as src/login.py.",
            code="no_such_file",
        )
    return path


def _is_held(context: Context, entry: Entry, now: int) -> bool:
    """Whether the claim holds: its time is not over, and its run has not ended."""
    if not entry.owner or not entry.counts(now):
        return False
    run = entry.body.get("run")
    if not run:
        return True
    try:
        return context.store.run(run).live
    except NotFound:
        return False


def _taken(entry: Entry, now: int) -> Refused:
    seconds = (entry.until - now + SECOND - 1) // SECOND
    error = Refused(
        f"{entry.key} is claimed by {entry.owner}, for {seconds} s more.",
        fix=f"Wait, or ask {entry.owner}.",
        code="claimed",
    )
    error.about = {"holder": entry.owner, "until": entry.until}
    return error


def release(context: Context, request: ReleaseFile) -> FileRow:
    team, path = the_team(context, request.team, Permission.CLAIM), _path(request.path)
    entry, now = context.store.entry(EntryKind.FILE, team, path), context.store.now()
    if entry is None or not _is_held(context, entry, now):
        raise Refused(f"{path} is not claimed.", fix="There is nothing to release.")
    if entry.owner != context.actor.name:
        raise _taken(entry, now)
    return _row(keep(context, replace(entry, until=now), Kind.FILE_RELEASED))


def list_files(context: Context, request: ListFiles) -> tuple[FileRow, ...]:
    now, owner = context.store.now(), request.holder
    query = query_of(
        context,
        EntryKind.FILE,
        team=request.team,
        owner=owner,
        counting_at=now,
        limit=request.limit,
        before=request.before,
    )
    entries = (e for page in pages(context.store.entries, query) for e in page)
    rows = (_row(entry) for entry in entries if _is_held(context, entry, now))
    return tuple(islice(rows, request.limit))


def _row(entry: Entry) -> FileRow:
    run = entry.body.get("run", "")
    return FileRow(entry.id, entry.key, entry.team, entry.owner, run, entry.at, entry.until)


_P = Permission
OPERATIONS = (
    Operation("file.claim", ClaimFile, _P.CLAIM, claim, "Claim a file for some time."),
    Operation("file.release", ReleaseFile, _P.CLAIM, release, "Release a file."),
    Operation("file.list", ListFiles, _P.READ, list_files, "List the claimed files."),
)
