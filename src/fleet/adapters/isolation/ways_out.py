"""The ways out of a container without a network: single ports of its loopback that lead outside.

We open the port from outside, in the container's network, so nothing is needed in its image. What
comes in is passed on from our own network.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

from fleet.domain.data import NamedTuple

OWNER = 0xB701  # ioctl NS_GET_USERNS: the user namespace that a namespace belongs to
NEW_USER, NEW_NET = 0x10000000, 0x40000000
LOOPBACK = "127.0.0.1"
PIECE = 1 << 16


class Way(NamedTuple):
    """`port` is the same inside and outside, so addresses that a run was given hold."""

    host: str
    port: int


def lead_out(pid: int, ways: list[Way]) -> None:
    """Lead out of the network of this process. Raise `OSError` when we may not enter it."""
    for listener, way in zip(_listen_inside(pid, [w.port for w in ways]), ways, strict=True):
        threading.Thread(target=_serve, args=(listener, way), daemon=True).start()


def _listen_inside(pid: int, ports: list[int]) -> list[socket.socket]:
    """A copy of this process enters the network, listens there, and hands us what it opened."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        copy = os.fork()
        if copy == 0:
            try:
                _enter(pid)
                sockets = [socket.create_server((LOOPBACK, port)) for port in ports]
                socket.send_fds(theirs, [b"!"], [each.fileno() for each in sockets])
                os._exit(0)
            except OSError as error:
                os._exit(error.errno or 1)
        status = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        if status:
            raise OSError(status, f"its network cannot be entered: {os.strerror(abs(status))}")
        fds = socket.recv_fds(ours, 1, len(ports))[1]
    return [socket.socket(fileno=fd) for fd in fds]


def _enter(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    net = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    with suppress(OSError):  # it belongs to one above ours
        owner = fcntl.ioctl(net, OWNER)
        mine = Path("/proc/self/ns/user").stat()
        if not os.path.samestat(os.fstat(owner), mine):
            libc.setns(ctypes.c_int(owner), ctypes.c_int(NEW_USER))
    if libc.setns(ctypes.c_int(net), ctypes.c_int(NEW_NET)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _serve(listener: socket.socket, way: Way) -> None:
    while True:
        try:
            inside, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_connect, args=(inside, way), daemon=True).start()


def _connect(inside: socket.socket, way: Way) -> None:
    with inside, suppress(OSError), socket.create_connection(way, timeout=10) as outside:
        outside.settimeout(None)
        back = threading.Thread(target=_copy, args=(outside, inside), daemon=True)
        back.start()
        _copy(inside, outside)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
