"""Slow reads: how many of one member may wait, and that others need not."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from fleet.domain.errors import Refused, TooSlow
from fleet.server.read_queue import EACH, THREADS, WORK, Reads
from fleet.testing.memory_store import MemoryStore
from tests.wait import LIMIT


def test_of_one_member_so_many_slow_reads_wait_and_others_are_read_for():
    gate, begins = threading.Event(), threading.Semaphore(0)
    reads = Reads(MemoryStore, MemoryStore(), is_near=False)
    reads.most = 3

    def slow(_store) -> bool:
        begins.release()
        return gate.wait(LIMIT)

    async def flood() -> list[bool]:
        begun = [asyncio.create_task(reads.do("red/mon", slow)) for _ in range(EACH)]
        for _ in begun:
            await asyncio.to_thread(begins.acquire)
        waiting = [asyncio.create_task(reads.do("red/mon", slow)) for _ in range(reads.most)]
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await reads.do("red/mon", slow)
        assert refused.value.code == "too_many_at_once"
        for who in ("red/ann", "tokens", "streams", ""):
            assert await reads.do(who, lambda _store: True)
        gate.set()
        return await asyncio.gather(*begun, *waiting)

    try:
        assert all(asyncio.run(flood()))
    finally:
        gate.set()
        reads.stop()


def test_reads_that_come_at_the_same_moment_do_not_wait_for_each_other():
    reads = Reads(MemoryStore, MemoryStore(), is_near=False)
    together = threading.Barrier(THREADS)

    async def rush() -> None:
        await reads.do("ann", lambda _store: True)  # so that one thread has nothing to do
        await asyncio.gather(
            *(reads.do(f"n{n}", lambda _store: together.wait(LIMIT)) for n in range(THREADS))
        )

    try:
        asyncio.run(rush())
    finally:
        together.abort()
        reads.stop()


def test_only_what_took_long_twice_is_not_tried_in_the_loop_again():
    reads = Reads(MemoryStore, MemoryStore(), is_near=True)
    tried: list[bool] = []  # in the loop

    def slow(_store) -> None:
        in_loop = threading.current_thread() is threading.main_thread()
        tried.append(in_loop)
        if in_loop:
            work_for(2 * WORK)
            raise TooSlow("Reading this took too long.")

    async def ask(times: int) -> None:
        for _ in range(times):
            await reads.do("ann", slow, kind="task.list")

    try:
        asyncio.run(ask(3))
    finally:
        reads.stop()
    assert tried == [True, False, True, False, False]


def test_what_only_had_to_wait_for_its_turn_is_tried_in_the_loop_again():
    """On a busy machine any read takes long at times, and in a thread it would take longer."""
    reads = Reads(MemoryStore, MemoryStore(), is_near=True)
    tried: list[bool] = []  # in the loop

    def kept_waiting(_store) -> None:
        in_loop = threading.current_thread() is threading.main_thread()
        tried.append(in_loop)
        if in_loop:
            raise TooSlow("Reading this took too long.")

    async def ask(times: int) -> None:
        for _ in range(times):
            await reads.do("ann", kept_waiting, kind="task.list")

    try:
        asyncio.run(ask(3))
    finally:
        reads.stop()
    assert tried == [True, False, True, False, True, False]


def work_for(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
