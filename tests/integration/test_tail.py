"""A file that others add to, followed through what rotation does to it."""

from __future__ import annotations

import os
import queue
import threading
from typing import TYPE_CHECKING

import pytest

from fleet.adapters.home.tail import LONGEST_LINE, Tail
from tests.wait import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reader:
    """Reads in a thread, as a command would for ever."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._read: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._go, args=(lines,), daemon=True).start()

    def _go(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            self._read.put(line)

    def next(self) -> bytes:
        return self._read.get(timeout=LIMIT)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "x.log"


def test_the_past_has_its_predecessors_first_and_leaves_half_a_line(log):
    log.with_name("x.log.2").write_bytes(b"1\n")
    log.with_name("x.log.1").write_bytes(b"2\r\n3\n")
    log.write_bytes(b"4\n5")
    tail = Tail(log)
    assert list(tail.past()) == [b"1", b"2", b"3", b"4"]
    reader = Reader(tail.follow())
    with log.open("ab") as file:
        file.write(b"\n6\n")
    assert [reader.next(), reader.next()] == [b"5", b"6"]


def test_a_file_that_was_rotated_while_it_was_opened_is_read_once(log):
    log.write_bytes(b"1\n2\n")
    tail = Tail(log)
    log.replace(log.with_name("x.log.1"))
    assert list(tail.past()) == [b"1", b"2"]


def test_what_came_last_into_the_old_file_is_read_before_the_new(log):
    log.write_bytes(b"")
    tail = Tail(log)
    with log.open("ab") as old:
        log.replace(log.with_name("x.log.1"))
        log.write_bytes(b"new\n")
        old.write(b"old\nwithout an end")
    reader = Reader(tail.follow())
    assert [reader.next() for _ in range(3)] == [b"old", b"without an end", b"new"]


def test_a_file_that_became_shorter_is_read_from_its_beginning(log):
    log.write_bytes(b"1\n2\n3\n")
    tail = Tail(log)
    tail.skip()
    reader = Reader(tail.follow())
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(b"4\n")
    assert reader.next() == b"4"


def test_a_file_that_is_not_there_is_waited_for(log):
    tail = Tail(log)
    assert list(tail.past()) == []
    reader = Reader(tail.follow())
    log.write_bytes(b"1\n")
    assert reader.next() == b"1"


def test_a_line_without_an_end_comes_in_pieces(log):
    log.write_bytes(b"x" * (LONGEST_LINE + 5) + b"\n")
    assert [len(line) for line in Tail(log).past()] == [LONGEST_LINE, 5]
