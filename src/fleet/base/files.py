"""Write files whole or not at all. The keeper imports this module, so it imports little."""

from __future__ import annotations

import _thread
import errno
import os
import stat

PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

TYPE_CHECKING = False  # `typing` would be a fifth of a keeper's start
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import BufferedReader
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

    `exact`: the file gets this mode whatever the umask is. `durable`: it survives a power cut.
    """
    temporary = _write_temporary(path, content, mode, exact=exact, durable=durable)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_once(path: Path | str, content: str | bytes, *, durable: bool = True) -> bool:
    """Make this file, whole, unless it exists. Return whether we made it."""
    temporary = _write_temporary(path, content, 0o600, exact=False, durable=durable)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def _write_temporary(
    path: Path | str, content: str | bytes, mode: int, *, exact: bool, durable: bool
) -> str:
    """Write a file in the same folder, named for this process and thread; return its path."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{_thread.get_ident():x}")
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    try:
        _write_new(temporary, data, mode, exact=exact, durable=durable)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _write_new(path: str, data: bytes, mode: int, *, exact: bool, durable: bool) -> None:
    """Write without a file object, which makes three more system calls for each file."""
    fd = _make(path, mode)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
        if exact:
            os.fchmod(fd, mode)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _make(path: str, mode: int) -> int:
    """Make a new file and never follow a link: an agent may write in the folder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, mode)
    except FileExistsError:  # left by a process that was killed, or planted by an agent
        os.unlink(path)
        return os.open(path, flags, mode)


def make_folder(path: Path | str, files: Mapping[str, str]) -> bool:
    """Make this folder with these files, whole, unless it exists. Return whether we made it.

    It may not survive a power cut.
    """
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, f".{name}.{os.getpid()}-{_thread.get_ident():x}")
    try:
        os.mkdir(temporary, 0o700)
    except FileNotFoundError:
        os.makedirs(parent, 0o700, exist_ok=True)
        os.mkdir(temporary, 0o700)
    try:
        for each, text in files.items():
            data = text.encode("utf-8", "surrogateescape")
            _write_new(os.path.join(temporary, each), data, 0o600, exact=False, durable=False)
        os.rename(temporary, path)
    except BaseException as error:
        for each in os.listdir(temporary):
            os.unlink(os.path.join(temporary, each))
        os.rmdir(temporary)
        if isinstance(error, OSError) and os.path.lexists(path):
            return False
        raise
    return True


def read_regular(path: Path | str, *, most: int = 64 << 20) -> bytes:
    """Read a regular file. Raise `OSError` for anything else: an agent may have put a FIFO there."""
    fd = os.open(path, PLAINLY)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        return file.read(most)


def open_regular(path: Path | str) -> BufferedReader:
    """Open a regular file where an agent may write. Raise `FileNotFoundError` for anything else.

    A link could lead to a file that the agent itself cannot read, and a FIFO would block us.
    """
    try:
        fd = os.open(path, PLAINLY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _missing(path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _missing(path)
    return os.fdopen(fd, "rb")


def _missing(path: Path | str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
