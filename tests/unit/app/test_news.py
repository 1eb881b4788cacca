"""How a client of a server elsewhere waits for news."""

from __future__ import annotations

import threading

from fleet.client.remote import EventNews
from fleet.domain.errors import Unavailable
from tests.wait import LIMIT, until


class Server:
    def __init__(self) -> None:
        self.event = threading.Event()
        self.streams = 0

    def lines(self, path):
        assert path == "/events"
        self.streams += 1
        yield "event: ready"
        while self.event.wait(LIMIT):
            self.event.clear()
            yield "data: {}"


def test_a_wait_ends_with_the_next_event_and_uses_one_stream():
    server = Server()
    news = EventNews(server)
    for _ in range(3):
        waiting = threading.Thread(target=news.wait, args=(60,))
        waiting.start()
        until(lambda: server.streams, "the stream to begin")
        server.event.set()
        waiting.join(LIMIT)
        assert not waiting.is_alive()
    assert server.streams == 1


class Down:
    def lines(self, path):
        raise Unavailable("No server.")
        yield path


def test_a_stream_that_cannot_be_read_is_no_error():
    news = EventNews(Down())
    news.wait(0.01)
    news.wait(0.01)
