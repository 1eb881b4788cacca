"""Many readers, and some who do not read: nobody waits for them, and nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.domain.event import Event
from fleet.server.http.wire import IN_KERNEL
from fleet.server.live.stream import MOST_BUFFERED
from fleet.server.read_queue import THREADS
from tests.integration.listeners import Inside, Sse, Ws
from tests.wait import LIMIT, until

KEPT = {"Reader", "Wire", "WSProtocol", "RequestResponseCycle", "_SelectorSocketTransport"}
SMALL = 4096  # what an idle reader's own side holds


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Inside(tmp_path_factory.mktemp("readers"))
    made.streams.pace = 1.5
    yield made
    made.end()


@pytest.fixture(scope="module")
def root(server):
    token = server.token("root")
    server.ok(token, "member.seen")  # the first request of anybody is an event
    return token


def flood(server, count: int, size: int) -> None:
    """So many events of so many bytes, as another process would write them."""
    store = server.another_store()
    try:
        for _ in range(count // 50):
            now = store.now()
            some = [Event("test.said", "", "root", now, data={"text": "x" * size})] * 50
            store.commit([], some)
    finally:
        store.close()


def numbers_of(stream: Sse, last: int) -> list[int]:
    found = []
    while not found or found[-1] < last:
        name, _, data = stream.next()
        if name == "test.said":
            found.append(data["number"])
    return found


def test_a_reader_that_does_not_read_is_let_go_and_delays_nobody(server, root):
    start = server.newest()
    idle_stream = Sse(server.port, root, room=SMALL)
    idle_socket = Ws(server.port, room=SMALL)
    idle_socket.send({"type": "auth", "token": root})
    good, talk = Sse(server.port, root), Ws(server.port)
    talk.auth(root)
    until(lambda: len(server.streams) == 4)
    heard = {}
    count, size = 1200, 2000
    assert count * size > 2 * (MOST_BUFFERED + IN_KERNEL)
    last = start + count

    def read_stream():
        heard["stream"] = numbers_of(good, last)

    def read_socket():
        found = []
        while not found or found[-1] < last:
            found.append(talk.next()["number"])
        heard["socket"] = found

    threads = [threading.Thread(target=read) for read in (read_stream, read_socket)]
    for thread in threads:
        thread.start()
    flood(server, count, size)
    for thread in threads:
        thread.join(LIMIT)
    everything = list(range(start + 1, last + 1))
    assert heard == {"stream": everything, "socket": everything}
    until(lambda: len(server.streams) == 2)  # the two who slept are gone,
    until(lambda: len(server.connections()) == 2)  # and cut off: they would be held for ever

    seen = cut_off(idle_stream, idle_socket)
    for numbers in seen:  # what they had got is whole, and they come back with its last number
        after = numbers[-1] if numbers else start
        assert numbers == list(range(start + 1, after + 1))
        assert after < last
        again = Sse(server.port, root, after)
        assert numbers + numbers_of(again, last) == everything
        again.close()
    for each in (idle_stream, idle_socket, good, talk):
        each.close()


def cut_off(stream: Sse, socket: Ws) -> tuple[list[int], list[int]]:
    """All that they still find when they wake up, until it breaks off."""
    streamed, framed = [], []
    try:
        while said := stream.next():
            if said[0] == "test.said":
                streamed.append(said[2]["number"])
    except (OSError, http.client.IncompleteRead):  # in the middle of a chunk
        pass
    try:
        while said := socket.next():
            if said["type"] == "event":
                framed.append(said["number"])
    except (OSError, ValueError):
        pass
    return streamed, framed


def test_a_slow_reader_that_wakes_up_in_time_is_told_its_number(server, root):
    stream = Sse(server.port, root, room=SMALL)
    stream.next()
    until(lambda: len(server.streams) == 1)
    flooding = threading.Thread(target=flood, args=(server, 1200, 2000))
    flooding.start()
    until(lambda: len(server.streams) == 0)
    numbers = []
    while (said := stream.next()) and said[0] != "ended":
        numbers.append(said[2]["number"])
    flooding.join()
    assert (said[2]["code"], said[2]["after"]) == ("slow_reader", numbers[-1])
    stream.close()


def test_a_reader_of_a_long_past_gets_all_of_it_at_its_own_pace(server, root):
    last = server.newest()
    stream = Sse(server.port, root, 0, room=SMALL)
    other = Sse(server.port, root)
    other.next()
    task = server.add(root)
    assert other.next()[2]["task"] == task  # while the first one has read nothing yet
    found = [0]
    while found[-1] < last:
        name, number, _ = stream.next()
        if name != "ready":
            found.append(number)
    assert found == list(range(last + 1))
    stream.close()
    other.close()


def have_all_threads(server) -> None:
    """Of those that read, which stay once they were needed."""
    together = threading.Barrier(THREADS)

    def read(store):
        together.wait()
        return store.counts()

    reads, loop = server.serving._server.reads, server.streams._loop
    asked = [reads.do(f"n{n}", read, beside=True) for n in range(THREADS)]
    for one in [asyncio.run_coroutine_threadsafe(each, loop) for each in asked]:
        one.result(LIMIT)


def counted(server) -> dict[str, int]:
    gc.collect()
    return {
        "readers": len(server.streams),
        "kept": sum(type(thing).__name__ in KEPT for thing in gc.get_objects()),
        "tasks": len(asyncio.all_tasks(server.streams._loop)),
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
    }


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count files")
def test_hundreds_who_come_and_go_leave_nothing(server, root):
    until(lambda: len(server.streams) == 0)
    task = server.add(root)
    until((server.home / "tasks" / task / "task.json").exists)  # so that all it opens is open
    have_all_threads(server)
    flood(server, 50, 1)  # SQLite keeps one file of a closed connection, and uses it again
    before = until(lambda: settled(server))
    past = server.newest() - 200

    def come_and_go(which: int) -> None:
        for n in range(75):
            match (n + which) % 5:
                case 0:
                    stream = Sse(server.port, root)
                    stream.next()
                    stream.close()
                case 1:
                    Sse(server.port, root, past, room=SMALL).close()  # in the middle of the past
                case 2:
                    socket = Ws(server.port)
                    socket.auth(root, topics=["team", f"x-{n}"])
                    socket.send({"type": "subscribe", "chatId": task, "after": past})
                    socket.close()
                case 3:
                    Ws(server.port).close()  # without a word
                case 4:
                    socket = Ws(server.port)
                    socket.auth(root)
                    socket.send(b"\x03\xe8", kind=8)
                    while socket.next() is not None:
                        pass
                    assert socket.closed == 1000
                    socket.close()

    with ThreadPoolExecutor(4) as pool:
        crowds = [pool.submit(come_and_go, n) for n in range(4)]
        flood(server, 200, 100)
        for crowd in crowds:
            crowd.result(100)
    until(lambda: counted(server) == before, why=lambda: f"{counted(server)}, not {before}")
    assert not server.streams._views
    assert not server.streams._recent


def settled(server) -> dict[str, int] | None:
    """What it holds, once that is the same twice."""
    first = counted(server)
    return first if not threading.Event().wait(0.3) and counted(server) == first else None
