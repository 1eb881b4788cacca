"""Files that are there whole or not at all. The keeper imports this, so it imports little."""

from __future__ import annotations

import _thread
import errno
import os
import stat

TYPE_CHECKING = False  # `typing` would be a fifth of a keeper's start
if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace the file; a reader sees the old text or the new, also after a power cut."""
    mine = path.with_name(f".{path.name}.{_me()}")
    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mine.replace(path)
    except BaseException:
        mine.unlink(missing_ok=True)
        raise


def _me() -> str:
    """Of this process alone, and of this thread."""
    return f"{os.getpid()}-{_thread.get_ident():x}"


def read_regular(path: Path, *, most: int = 64 << 20) -> bytes:
    """What an agent put there may be anything: a FIFO would make us wait for ever."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        return file.read(most)


def write_once(path: str, text: str) -> bool:
    """Make this file, whole, unless it is there. True when we made it."""
    mine = f"{path}.{_me()}"
    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(mine, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(mine)
    return True
