"""What comes in from a terminal in raw mode, as keys and pastes: a fold over bytes."""

from __future__ import annotations

PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~"


class KeyKind:
    """Not an `Enum`: that would be a third of the program's start."""

    TEXT = "text"
    PASTE = "paste"
    ENTER = "enter"
    ERASE = "erase"
    ESCAPE = "escape"
    INTERRUPT = "interrupt"


SINGLE = {
    b"\r": KeyKind.ENTER,
    b"\x15": KeyKind.ERASE,  # Ctrl-U
    b"\x1b": KeyKind.ESCAPE,
    b"\x03": KeyKind.INTERRUPT,
}


class Keystrokes:
    """A sequence that is torn between two reads is one; an Escape that nothing follows is a key."""

    def __init__(self) -> None:
        self._pending = b""
        self._paste: list[bytes] | None = None

    def take(self, data: bytes) -> list[tuple[str, str]]:
        """What is whole now. No data: time has passed, so that nothing more belongs to it."""
        late, self._pending = not data, self._pending + data
        keys: list[tuple[str, str]] = []
        while self._pending and (got := self._next(late=late)) is not None:
            keys.append(got)
        return keys

    def _next(self, *, late: bool) -> tuple[str, str] | None:
        """None: it is not whole."""
        if self._paste is not None:
            return self._pasted()
        pending = self._pending
        if pending.startswith(PASTE):
            self._pending, self._paste = pending[len(PASTE) :], []
            return self._pasted()
        if pending.startswith(b"\x1b"):
            if not late and PASTE.startswith(pending):
                return None
            self._pending = pending[1:]
            return KeyKind.ESCAPE, "\x1b"
        if pending[:1] in SINGLE:
            self._pending = pending[1:]
            return SINGLE[pending[:1]], pending[:1].decode()
        return self._typed()

    def _pasted(self) -> tuple[str, str] | None:
        assert self._paste is not None
        text, end, rest = self._pending.partition(PASTE_END)
        if not end:
            keep = next((n for n in range(5, 0, -1) if text.endswith(PASTE_END[:n])), 0)
            self._paste.append(text[: len(text) - keep])
            self._pending = text[len(text) - keep :]
            return None
        whole = b"".join([*self._paste, text])
        self._pending, self._paste = rest, None
        return KeyKind.PASTE, _text(whole)

    def _typed(self) -> tuple[str, str] | None:
        """Up to the next key. A character that is torn waits for its rest."""
        cut = min((i for key in SINGLE if (i := self._pending.find(key)) >= 0), default=-1)
        text = self._pending if cut < 0 else self._pending[:cut]
        whole = text if cut >= 0 else text[: len(text) - _torn(text)]
        if not whole:
            return None
        self._pending = self._pending[len(whole) :]
        return KeyKind.TEXT, _text(whole)


def _torn(data: bytes) -> int:
    """How many bytes at the end begin a character that is not whole."""
    for back in range(1, min(3, len(data)) + 1):
        first = data[-back]
        if first >= 0xC0:
            need = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return back if back < need else 0
        if first < 0x80:
            return 0
    return 0


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
