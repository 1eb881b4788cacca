"""Files that are there whole or not at all. The keeper imports this, so it imports little."""

from __future__ import annotations

import _thread
import errno
import os
import stat

TYPE_CHECKING = False  # `typing` would be a fifth of a keeper's start
if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(
    path: Path | str,
    content: str | bytes,
    *,
    mode: int = 0o600,
    exact: bool = False,
    durable: bool = True,
) -> None:
    """Replace the file; a reader sees the old content or the new.

    `exact`: it has this mode whatever the umask is. `durable`: also after a power cut.
    """
    mine = _written_beside(path, content, mode, exact=exact, durable=durable)
    try:
        os.replace(mine, path)
    except BaseException:
        os.unlink(mine)
        raise


def write_once(path: Path | str, text: str, *, durable: bool = True) -> bool:
    """Make this file, whole, unless it is there. True when we made it."""
    mine = _written_beside(path, text, 0o600, exact=False, durable=durable)
    try:
        os.link(mine, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(mine)
    return True


def _written_beside(
    path: Path | str, content: str | bytes, mode: int, *, exact: bool, durable: bool
) -> str:
    """The name of a file of this process and thread alone, in the same folder."""
    folder, name = os.path.split(path)
    mine = os.path.join(folder, f".{name}.{os.getpid()}-{_thread.get_ident():x}")
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if exact:
                os.fchmod(fd, mode)
            if durable:
                os.fsync(fd)
    except BaseException:
        os.unlink(mine)
        raise
    return mine


def read_regular(path: Path, *, most: int = 64 << 20) -> bytes:
    """What an agent put there may be anything: a FIFO would make us wait for ever."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        return file.read(most)
