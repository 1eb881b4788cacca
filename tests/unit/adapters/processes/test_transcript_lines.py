"""Any line of a transcript is read by its number, however long the file is."""

from __future__ import annotations

import pytest

from fleet.adapters.processes.transcript_lines import (
    LONGEST_LINE,
    PAGE_BYTES,
    STEP,
    TranscriptLines,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript"


def test_lines_are_read_by_number_as_the_file_grows(path):
    lines = TranscriptLines(path)
    assert lines.count(final=True) == 0
    assert lines.read(0, 5, last=False) == (0, ())
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(3 * STEP)))
    assert lines.count(final=False) == 3 * STEP
    assert lines.read(2 * STEP + 7, 2, last=False) == (
        2 * STEP + 7, (f"line {2 * STEP + 7}", f"line {2 * STEP + 8}"),
    )  # fmt: skip
    with path.open("ab") as file:
        file.write(b"next\nhalf")
    assert lines.count(final=False) == 3 * STEP + 1
    assert lines.count(final=True) == 3 * STEP + 2
    assert lines.read(3 * STEP, 9, last=False)[1] == ("next", "half")


def test_a_line_of_many_megabytes_is_cut_and_the_next_one_is_whole(path):
    path.write_bytes(b"x" * (3 * LONGEST_LINE) + b"\nnext\n")
    _, (long, following) = TranscriptLines(path).read(0, 2, last=False)
    assert (len(long), following) == (LONGEST_LINE, "next")


def test_of_too_many_bytes_there_are_the_first_lines_or_the_last(path):
    many = 2 * PAGE_BYTES // LONGEST_LINE
    path.write_bytes(
        b"".join(b"%02d" % n + b"x" * (LONGEST_LINE - 10) + b"\n" for n in range(many))
    )
    lines = TranscriptLines(path)
    first, some = lines.read(0, many, last=False)
    assert (first, some[0][:2]) == (0, "00")
    assert len(some) < many
    first, some = lines.read(0, many, last=True)
    assert first == many - len(some) > 0
    assert some[-1][:2] == f"{many - 1:02d}"
