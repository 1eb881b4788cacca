import pytest

from fleet.cli.terminal.measure import fit, harmless, pad, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),  # e and a combining acute accent
        ("한", 2),
        ("🙂", 2),
        ("a\u200db", 2),
    ],
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "room", "cut"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
    ],
)
def test_a_cut_text_never_takes_more_than_its_room(text, room, cut):
    assert fit(text, room) == cut
    assert width(fit(text, room)) <= room


def test_padding_counts_columns_and_not_characters():
    assert pad("日本", 6) == "日本  "
    assert pad("7", 3, right=True) == "  7"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("title\x07", "title\\x07"),
        ("safe\u202eexe.txt", "safe\\u202eexe.txt"),
        ("\udcff", "\\udcff"),
        ("a\tb\r\nc\u2028d", "a b c d"),
        ("\u00a0\u3000日本 e\u0301 👩\u200d💻", "\u00a0\u3000日本 e\u0301 👩\u200d💻"),
    ],
)
def test_what_a_terminal_would_obey_is_made_visible(text, shown):
    assert harmless(text) == shown


def test_line_breaks_stay_where_lines_are_wanted():
    assert harmless("a\r\nb\rc\n\td\x1b", lines=True) == "a\nb\nc\n\td\\x1b"
