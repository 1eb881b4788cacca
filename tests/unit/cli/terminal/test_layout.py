from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.terminal.layout import lines
from fleet.cli.terminal.live import bare
from fleet.cli.terminal.measure import width
from fleet.cli.terminal.view import Cell, Column, Pairs, Stack, Table, Text


def draw(view, room=None, *, colour=False):
    return lines(view, room=room, colour=colour)


def test_columns_are_aligned_by_what_the_eye_sees():
    table = Table(
        ["task", Column("cost", right=True), "title"], [("t-1", 7, "日本"), ("t-22", 120, None)]
    )
    assert draw(table) == ["TASK  COST  TITLE", "t-1      7  日本", "t-22   120  -"]


def test_a_narrow_terminal_cuts_the_widest_flexible_column_first():
    table = Table(
        ["task", Column("title", flexible=True), Column("agent", flexible=True)],
        [("t-1", "a title of thirty characters..", "implementer")],
    )
    assert draw(table, 40) == [
        "TASK  TITLE                  AGENT",
        "t-1   a title of thirty ch…  implementer",
    ]


def test_a_pipe_gets_whole_cells():
    table = Table(["task", Column("title", flexible=True)], [("t-1", "x" * 5000)])
    assert draw(table)[1] == "t-1   " + "x" * 5000


def test_columns_that_may_not_shrink_are_never_cut():
    table = Table(["a", Column("b", flexible=True)], [("x" * 30, "y" * 30)])
    assert draw(table, 20)[1] == "x" * 30 + "  " + "y" * 7 + "…"


def test_where_cutting_is_not_enough_spare_columns_are_left_out():
    columns = ["a", Column("b", spare=1), Column("c", spare=2), Column("d", flexible=True)]
    table = Table(columns, [("x" * 6, "y" * 6, "z" * 6, "w" * 20)])
    assert draw(table)[0].split() == draw(table, 40)[0].split() == ["A", "B", "C", "D"]
    assert draw(table, 30) == ["A       B       D", "xxxxxx  yyyyyy  wwwwwwwwwwwww…"]
    assert draw(table, 20) == ["A       D", "xxxxxx  wwwwwwwwwww…"]
    assert draw(table, 8)[0].split() == ["A", "D"]


def test_a_terminal_does_not_show_a_spare_column_that_is_empty():
    table = Table(["a", Column("b", spare=1), "c"], [("x", None, None), ("y", None, None)])
    assert draw(table, 80)[0].split() == ["A", "C"]
    assert draw(table)[0].split() == ["A", "B", "C"]


def test_spare_columns_are_left_out_until_every_other_has_what_it_wants():
    columns = ["a", Column("b", spare=1), Column("title", flexible=True, wants=20)]
    table = Table(columns, [("x" * 6, "y" * 6, "w" * 40)])
    assert draw(table, 36)[1] == "xxxxxx  yyyyyy  " + "w" * 19 + "…"
    assert draw(table, 35)[1] == "xxxxxx  " + "w" * 26 + "…"
    assert draw(table, 18)[1] == "xxxxxx  wwwwwwwww…"


def test_a_column_that_wants_its_room_is_cut_last():
    columns = [Column("title", flexible=True, wants=20), Column("cwd", flexible=True, spare=1)]
    table = Table(columns, [("w" * 20, "/" * 40)])
    assert draw(table, 30)[1] == "w" * 20 + "  " + "/" * 7 + "…"


@given(
    st.lists(st.tuples(st.text(max_size=40), st.text(max_size=200)), min_size=1, max_size=5),
    st.integers(min_value=60, max_value=200),
)
def test_every_row_fits_the_terminal_when_columns_may_shrink(rows, room):
    columns = [Column("a", flexible=True), Column("b", flexible=True)]
    for line in draw(Table(columns, rows), room, colour=True):
        assert width(bare(line)) <= room
        assert "\n" not in line


def test_a_style_colours_the_text_and_not_the_space_around_it():
    table = Table(["state", "task"], [(Cell("done", "green"), Cell("t-1", "bold"))])
    assert draw(table, colour=True) == [
        "\x1b[1mSTATE\x1b[0m  \x1b[1mTASK\x1b[0m",
        "\x1b[32mdone\x1b[0m   \x1b[1mt-1\x1b[0m",
    ]


def test_a_title_cannot_colour_the_terminal():
    assert draw(Table(["title"], [("\x1b[31mred",)]), 80, colour=True)[1] == "\\x1b[31mred"
    assert draw(Text("\x1b[2J"), colour=True) == ["\\x1b[2J"]
    assert draw(Pairs([("title", "\x1b]0;x\x07")])) == ["title  \\x1b]0;x\\x07"]


def test_a_table_without_rows_says_so():
    assert draw(Table(["task"], [], empty="No tasks.")) == ["No tasks."]
    assert draw(Table(["task"], [])) == []


def test_pairs_are_aligned_and_keep_their_lines():
    view = Pairs([("task", "t-1"), ("prompt", "one\ntwo"), ("cost", None)])
    assert draw(view) == ["task    t-1", "prompt  one", "        two", "cost    -"]


def test_a_stack_leaves_out_what_is_empty():
    view = Stack([("Runs", Table(["run"], [("t-1.1",)])), ("Notes", Text("")), ("", Text("end"))])
    assert draw(view) == ["Runs", "RUN", "t-1.1", "", "end"]


def test_a_path_begins_with_a_tilde_and_keeps_its_end_where_there_is_little_room(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    columns = ["task", Column("cwd", flexible=True, spare=1, path=True)]
    table = Table(columns, [("t-1", "/home/ada/code/shop"), ("t-2", "/home/adam/code/other")])
    assert draw(table, 40) == ["TASK  CWD", "t-1   ~/code/shop", "t-2   /home/adam/code/other"]
    assert draw(table, 18) == ["TASK  CWD", "t-1   ~/code/shop", "t-2   …/code/other"]
    assert draw(table)[1] == "t-1   /home/ada/code/shop"


def test_paths_that_are_all_the_same_are_left_out_on_a_terminal():
    columns = ["task", Column("cwd", flexible=True, spare=1, path=True)]
    table = Table(columns, [("t-1", "/shop"), ("t-2", "/shop")])
    assert draw(table, 40) == ["TASK", "t-1", "t-2"]
    assert draw(table) == ["TASK  CWD", "t-1   /shop", "t-2   /shop"]


def test_a_value_that_is_wider_than_the_terminal_goes_on_below_itself():
    view = Pairs([("supervisor", "running, started 5m ago, pid 7"), ("log", "/a/b/" + "c" * 40)])
    assert draw(view, 36) == [
        "supervisor  running, started 5m ago,",
        "            pid 7",
        f"log         /a/b/{'c' * 40}",
    ]
    assert draw(view)[0] == "supervisor  running, started 5m ago, pid 7"
    assert draw(view, 25)[0] == "supervisor  running, started 5m ago, pid 7"  # too narrow for that
