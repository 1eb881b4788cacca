"""The parts of `json`, `signal` and `contextlib` that a keeper needs, without loading them.

Those modules would take half of its start-up time and memory. We use their C parts directly, or
the modules themselves on a Python without those parts.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is as large as these three together
if TYPE_CHECKING:
    import signal as signal  # noqa: PLC0414  # imported from here
    from contextlib import suppress as suppress  # noqa: PLC0414  # likewise
    from json import dumps as dumps  # noqa: PLC0414  # likewise
    from json import loads as loads  # noqa: PLC0414  # likewise
else:
    try:
        import _signal as signal  # imported from here
        from _json import encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:
        import signal  # noqa: F401  # likewise
        from json import dumps, loads
    else:

        class _Rules:
            strict = True
            object_hook = object_pairs_hook = None
            parse_float = parse_constant = float
            parse_int = int
            memo = None

        _scan = make_scanner(_Rules)
        _encode = make_encoder(
            None, None, encode_basestring_ascii, None, ": ", ", ", False, False, True
        )

        def loads(text: str | bytes) -> object:
            text = (text.decode() if isinstance(text, bytes) else text).strip(" \t\n\r")
            try:
                value, end = _scan(text, 0)
            except (
                StopIteration,
                SystemError,
            ) as error:  # `json` would put these into a ValueError too
                raise ValueError(f"this is not JSON: {text[:40]!r}") from error
            if end != len(text):
                raise ValueError(f"there is more than one value: {text[end : end + 40]!r}")
            return value

        def dumps(value: object) -> str:
            return "".join(_encode(value, 0))

    class suppress:  # noqa: N801  # as in `contextlib`
        def __init__(self, *kinds: type[BaseException]) -> None:
            self._kinds = kinds

        def __enter__(self) -> None: ...

        def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
            return kind is not None and issubclass(kind, self._kinds)
