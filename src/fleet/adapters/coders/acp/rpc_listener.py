"""Reads a conversation in JSON-RPC line by line. What a line means, a program's subclass says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.domain.transcript import Said

AGAIN = "again:"  # before the id of words that were refused once


class LineListener(ABC):
    """Reads lines of JSON. What `hear` returns depends only on the opening and the lines."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self._opening = opening
        self._heard = 0

    def hear(self, line: str) -> Sequence[Said]:
        self._heard += 1
        message = rpc.read(line)
        if message is None:
            return ()
        try:
            return tuple(self._read(message))
        except rpc.UNREADABLE:
            return ()

    @abstractmethod
    def _read(self, message: dict[str, Any]) -> Iterable[Said]:
        """Read one line."""


class RpcListener(LineListener):
    """Lines of JSON-RPC."""

    def _read(self, message: dict[str, Any]) -> Iterable[Said]:
        params = message.get("params") or {}
        if "method" not in message:
            return self._replied(message)
        if "id" in message:
            return self._on_request(message["id"], message["method"], params)
        return self._on_notification(message["method"], params)

    @abstractmethod
    def _replied(self, message: dict[str, Any]) -> Iterable[Said]:
        """Handle the program's reply to a request of ours."""

    @abstractmethod
    def _on_request(self, ident: Any, method: str, params: dict[str, Any]) -> Iterable[Said]:
        """Handle a request of the program, which waits for our reply."""

    @abstractmethod
    def _on_notification(self, method: str, params: dict[str, Any]) -> Iterable[Said]:
        """Handle a notification, for which the program expects no reply."""
