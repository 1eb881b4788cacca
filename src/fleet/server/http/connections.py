"""How many connections there may be at once, and who has to leave when another one comes."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GUEST = "fleet.guest"  # in a scope's state: the `Guest` that a request came with
MAX_CONNECTIONS = 10_000  # connections; each takes about 14 KB
LOOKS = 64  # connections that are looked at for one that can leave


class Guest:
    """One connection. `known`: it has shown a valid token. `is_busy`: a request is being answered.

    `paced`: it is a live stream, which itself checks whether its client reads.
    """

    __slots__ = ("_door", "address", "is_busy", "known", "paced", "show_out")

    def __init__(
        self, door: Door, address: str, is_busy: Callable[[], bool], show_out: Callable[[], None]
    ) -> None:
        self._door, self.address, self.known, self.paced = door, address, False, False
        self.is_busy, self.show_out = is_busy, show_out

    def prove(self) -> None:
        """Note that the connection has shown a valid token."""
        if not self.known:
            self.known = True
            self._door.sort(self)

    def refuse(self, code: str) -> None:
        """Note that a request was refused before its caller was identified."""
        self._door.refused(self.address, code)

    def leave(self) -> None:
        self._door.leave(self)
        self.is_busy, self.show_out = _is_idle, _nothing


class Door:
    """Limits connections to `most`, and to half of that from one address.

    Proxies and this machine may have all. Over the limit, the oldest idle connection without a
    token is closed, else the oldest idle one with a token. So a flood from one address only
    closes its own connections.
    """

    def __init__(self, most: int = MAX_CONNECTIONS, proxies: Sequence[str] = ()) -> None:
        self.most, self._proxies = most, frozenset(proxies)
        self.turned_away = 0
        self.refused: Callable[[str, str], None] = _unheard  # called with the address and a code
        self._strangers: dict[Guest, None] = {}
        self._known: dict[Guest, None] = {}
        self._from: dict[str, dict[Guest, None]] = {}

    def __len__(self) -> int:
        return len(self._strangers) + len(self._known)

    def enter(self, guest: Guest) -> bool:
        """Count a new connection; return False when it is over the limit and none can be closed."""
        group = self._group_of(guest)
        same = self._from.get(group, {})
        if (group and len(same) >= max(1, self.most // 2) and not self._make_room(same)) or (
            len(self) >= self.most
            and not (self._make_room(self._strangers) or self._make_room(self._known))
        ):
            self.turned_away += 1
            return False
        self._strangers[guest] = None
        if group:
            self._from.setdefault(group, {})[guest] = None
        return True

    def sort(self, guest: Guest) -> None:
        if guest in self._strangers:
            del self._strangers[guest]
            self._known[guest] = None

    def leave(self, guest: Guest) -> None:
        self._strangers.pop(guest, None)
        self._known.pop(guest, None)
        group = self._group_of(guest)
        same = self._from.get(group)
        if same is not None:
            same.pop(guest, None)
            if not same:
                del self._from[group]

    def _group_of(self, guest: Guest) -> str:
        return "" if guest.address in self._proxies else group_of(guest.address)

    def _make_room(self, among: dict[Guest, None]) -> bool:
        for _ in range(min(LOOKS, len(among))):
            guest = next(iter(among))
            if guest.is_busy():  # looked at again after all others
                among[guest] = among.pop(guest)
                continue
            show_out = guest.show_out
            guest.leave()
            self.turned_away += 1
            show_out()
            return True
        return False


@lru_cache(maxsize=4096)
def group_of(address: str) -> str:
    """Return what connections are counted by: an IPv4 address or an IPv6 /64 network.

    Empty for this machine, where a proxy may run.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return group_of(str(ip.ipv4_mapped))
        return "" if ip.is_loopback else str(ipaddress.ip_network((ip, 64), strict=False))
    return "" if ip.is_loopback else address


def _is_idle() -> bool:
    return False


def _nothing() -> None:
    pass


def _unheard(_address: str, _code: str) -> None:
    pass
