"""Write generated files, all or none of them, and record what fleet wrote."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from fleet.base.files import write_atomically
from fleet.domain.errors import BadInput, Refused, Unavailable
from fleet.domain.generated.files import WritePlan, WrittenFile, is_ours, plan

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleet.domain.generated.files import File

RECORD = ".fleet/generated.json"
FORMAT = 1


NO_OTHERS: Mapping[str, Collection[str]] = MappingProxyType({})


class Generated:
    def __init__(self, top: Path) -> None:
        self.top = top

    def plan(
        self, wanted: Sequence[File], targets: Collection[str], *, force: bool,
        others: Mapping[str, Collection[str]] = NO_OTHERS,
    ) -> WritePlan:  # fmt: skip
        """`others`: by target, the paths of earlier targets that still belong to the fleet."""
        known = self.known()
        self._check(wanted)
        existing = self._there({*known, *(file.path for file in wanted)})
        texts = {file.path: digest(file.text.encode()) for file in wanted}
        kept = {path for paths in others.values() for path in paths}
        targets = {*targets, *others}
        return plan(wanted, known, existing, texts, targets=targets, force=force, kept=kept)

    def apply(self, wanted: Sequence[File], planned: WritePlan) -> None:
        """After a crash here the next `generate` still recognizes the files as fleet's."""
        refuse(planned)
        self._make_top()
        before = self.known()
        files = {f.path: WrittenFile(f.target, (digest(f.text.encode()),)) for f in wanted}
        for path in files.keys() & before.keys():
            both = (*before[path].hashes, *files[path].hashes)
            files[path] = files[path]._replace(hashes=tuple(dict.fromkeys(both)))
        self._record({**before, **files})
        staged = self._stage(planned.write)
        self._replace(staged)
        self._remove(planned.prune)
        remaining = {path: known for path, known in before.items() if path not in planned.prune}
        ends = {f.path: WrittenFile(f.target, (digest(f.text.encode()),)) for f in wanted}
        self._record({**remaining, **ends})

    def _make_top(self) -> None:
        try:
            self.top.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"The directory {self.top} cannot be made: {error.strerror}."
            raise Unavailable(message, fix="Choose another one: --out DIR") from None

    def known(self) -> dict[str, WrittenFile]:
        try:
            record = json.loads((self.top / RECORD).read_text("utf-8"))
            files = record["files"].items()
            known = {
                path: WrittenFile(each["target"], tuple(each["hashes"])) for path, each in files
            }
            if not all(_is_inside(path) for path in known):
                raise ValueError("a path that leads elsewhere")  # noqa: TRY301  # as any other
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Refused(
                f"{self.top / RECORD} is not a record of generated files.",
                fix="Move it away; then `fleet generate --force` writes all of them again.",
            ) from None
        return known

    def ours(self) -> tuple[list[str], list[str]]:
        """The files that fleet wrote and that still exist: unchanged ones, and edited ones."""
        known = self.known()
        existing = self._there(known)
        same = [path for path in known if path in existing and is_ours(known[path], existing[path])]
        return same, [path for path in known if path in existing and path not in same]

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files and their records; the record file goes with the last one."""
        self._remove(paths)
        existing = self._there(self.known())
        remaining = {path: known for path, known in self.known().items() if path in existing}
        if remaining:
            self._record(remaining)
        else:
            self._remove([RECORD])

    def _check(self, wanted: Sequence[File]) -> None:
        for name in (RECORD, *(file.path for file in wanted)):
            for above in Path(name).parents[:-1]:
                if (self.top / above).exists() and not (self.top / above).is_dir():
                    message = f"{above} is a file, where a folder is needed for {name}."
                    raise Refused(message, fix="Move it away.")
        for file in wanted:
            path = self.top / file.path
            if path.is_dir():
                raise Refused(f"{file.path} is a directory.", fix="Move it away.")
            if not path.parent.resolve().is_relative_to(self.top.resolve()):
                raise BadInput(f"{file.path} would be written outside of {self.top}.")

    def _there(self, paths: Collection[str]) -> dict[str, str]:
        existing = {}
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                existing[path] = digest((self.top / path).read_bytes())
        return existing

    def _stage(self, files: Sequence[File]) -> list[tuple[Path, Path]]:
        """Write the texts beside their targets, so that a full disk replaces none of them."""
        staged: list[tuple[Path, Path]] = []
        try:
            for file in files:
                path = self.top / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_name(f".{path.name}.new")
                write_atomically(beside, file.text, mode=file.mode)
                beside.chmod(file.mode)
                staged.append((beside, path))
        except BaseException:  # also after Ctrl-C: all files or none
            for beside, _ in staged:
                beside.unlink(missing_ok=True)
            raise
        return staged

    def _replace(self, staged: Sequence[tuple[Path, Path]]) -> None:
        undo: list[tuple[Path, tuple[bytes, int] | None]] = []
        try:
            for beside, path in staged:
                undo.append((path, _content_and_mode(path)))
                beside.replace(path)
        except BaseException:
            for path, before in undo:
                _restore(path, before)
            for beside, _ in staged:
                beside.unlink(missing_ok=True)
            raise

    def _remove(self, paths: Sequence[str]) -> None:
        """Delete the files, and the directories that become empty."""
        for name in paths:
            path = self.top / name
            path.unlink(missing_ok=True)
            for parent in Path(name).parents:
                with suppress(OSError):
                    if str(parent) != ".":
                        (self.top / parent).rmdir()

    def _record(self, files: Mapping[str, WrittenFile]) -> None:
        body = {
            "fleet": FORMAT,
            "files": {path: files[path]._asdict() for path in sorted(files)},
        }
        (self.top / RECORD).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.top / RECORD, json.dumps(body, indent=1) + "\n", mode=0o644)


def _is_inside(path: str) -> bool:
    """Any author of the project may have written the record, so a path in it may lead anywhere."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def refuse(planned: WritePlan) -> None:
    if planned.edited:
        raise Refused(
            f"Edited since they were generated: {', '.join(planned.edited)}.",
            fix="`fleet generate --diff` shows the differences; `--force` writes over them.",
        )
    if planned.foreign:
        raise Refused(
            f"Not generated by fleet: {', '.join(planned.foreign)}.",
            fix="Move them away, generate elsewhere with `--out DIR`, or write over them "
            "with `--force`.",
        )


def _content_and_mode(path: Path) -> tuple[bytes, int] | None:
    return (path.read_bytes(), path.stat().st_mode & 0o777) if path.exists() else None


def _restore(path: Path, before: tuple[bytes, int] | None) -> None:
    with suppress(OSError):
        if before is None:
            path.unlink(missing_ok=True)
        else:
            content, mode = before
            write_atomically(path, content, mode=mode, exact=True)
