"""Files generated from the settings: which to write, which to delete and which to leave alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class File(NamedTuple):
    """`target` is the program it is for; `path` is relative to the output folder."""

    target: str
    path: str
    text: str
    mode: int = 0o644


class WrittenFile(NamedTuple):
    """A file that we wrote. It has two hashes while a newer text is being written."""

    target: str
    hashes: tuple[str, ...]


class WritePlan(NamedTuple):
    """`edited`: files that we wrote and a person changed since. `foreign`: files that we never wrote.

    `orphans`: files that are no longer generated, but stay because a person edited them.
    """

    write: tuple[File, ...] = ()
    same: tuple[str, ...] = ()
    prune: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()


def plan(
    wanted: Sequence[File],
    known: Mapping[str, WrittenFile],
    on_disk: Mapping[str, str],
    digest: Mapping[str, str],
    *,
    targets: Collection[str],
    force: bool = False,
    kept: Collection[str] = (),
) -> WritePlan:
    """Decide what to do with each file of these targets.

    `on_disk`: by path, the hash of every file that exists; `digest`: the hash of every wanted text.
    `kept`: paths that are left as they are.
    """
    write, same, edited, foreign = [], [], [], []
    for file in wanted:
        current = on_disk.get(file.path)
        if current == digest[file.path]:
            same.append(file.path)
        elif current is None or force or is_ours(known.get(file.path), current):
            write.append(file)
        elif file.path in known:
            edited.append(file.path)
        else:
            foreign.append(file.path)
    keep = {file.path for file in wanted} | set(kept)
    unwanted = [
        p for p, k in known.items() if k.target in targets and p not in keep and p in on_disk
    ]
    prune = [p for p in unwanted if force or is_ours(known[p], on_disk[p])]
    orphans = [p for p in unwanted if p not in prune]
    return WritePlan(
        tuple(write), tuple(same), tuple(prune), tuple(edited), tuple(foreign), tuple(orphans)
    )


def is_ours(known: WrittenFile | None, digest: str) -> bool:
    """Whether the file is as we wrote it."""
    return known is not None and digest in known.hashes
