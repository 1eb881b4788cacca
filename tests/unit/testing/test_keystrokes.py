"""What a program reads from its terminal comes in pieces; what it understands does not depend on them."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.testing.keystrokes import KeyKind, Keystrokes

START, END = b"\x1b[200~", b"\x1b[201~"


def taken(*pieces):
    keys = Keystrokes()
    found = [got for piece in pieces for got in keys.take(piece)]
    return found + keys.take(b"")


def test_a_paste_is_one_thing_whatever_is_in_it():
    assert taken(START + b"a\r\x03\x1b[A\n" + END + b"\r") == [
        (KeyKind.PASTE, "a\r\x03\x1b[A\n"),
        (KeyKind.ENTER, "\r"),
    ]


def test_an_escape_that_nothing_follows_is_a_key():
    assert taken(b"\x1b") == [(KeyKind.ESCAPE, "\x1b")]
    assert taken(b"a\x1b", b"b") == [
        (KeyKind.TEXT, "a"),
        (KeyKind.ESCAPE, "\x1b"),
        (KeyKind.TEXT, "b"),
    ]


def test_keys_between_letters_are_keys():
    got = taken("grüße\r\x03\x15".encode())
    assert got == [
        (KeyKind.TEXT, "grüße"),
        (KeyKind.ENTER, "\r"),
        (KeyKind.INTERRUPT, "\x03"),
        (KeyKind.ERASE, "\x15"),
    ]


@given(st.text(max_size=200), st.lists(st.integers(0, 900), max_size=8))
def test_a_paste_is_the_same_however_it_is_torn(text, cuts):
    text = text.encode("utf-8", "ignore").decode().replace("\x1b[201~", "")
    data = START + text.encode() + END + b"\r"
    places = sorted({cut for cut in cuts if 0 < cut < len(data)})
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert taken(*pieces) == [(KeyKind.PASTE, text), (KeyKind.ENTER, "\r")]
