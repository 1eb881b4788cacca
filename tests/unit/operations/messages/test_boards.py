"""Posts of a board that are archived by their age."""

from __future__ import annotations

import pytest

from fleet.operations.messages.ask_answer_send import Comment
from fleet.operations.messages.boards import ArchivePosts, Post, ReadBoard
from fleet.operations.team.swarms import CreateSwarm
from fleet.testing.memory_store import MemoryStore
from tests.unit.operations.conftest import Office

HOUR = 3600


class Counted(MemoryStore):
    rows = 0

    def find_messages(self, query):
        posts = super().find_messages(query)
        self.rows += len(posts)
        return posts


@pytest.fixture
def board():
    office = Office()
    office.store = Counted(office.clock)
    swarm = office.call(CreateSwarm("s")).id
    return office, swarm


def posted(office, swarm, count):
    ids = []
    for _ in range(count):
        office.call(Comment(swarm, "Beside them."))
        ids.append(office.call(Post(swarm, "{}")).id)
        office.clock.advance(1)
    return ids


@pytest.mark.parametrize("old", [0, 1, 2, 7])
@pytest.mark.parametrize("new", [0, 1, 2, 9])
def test_only_the_posts_that_are_as_old_are_archived(board, old, new):
    office, swarm = board
    olds = posted(office, swarm, old)
    office.clock.advance(2 * HOUR)
    news = posted(office, swarm, new)
    gone = office.call(ArchivePosts(task=swarm, older_than=HOUR))
    assert {row.id for row in gone} == set(olds)
    assert [row.id for row in office.call(ReadBoard(swarm))] == news[::-1]


def test_a_board_of_many_new_posts_is_not_read_to_find_that_none_is_old(board):
    office, swarm = board
    posted(office, swarm, 500)
    office.store.rows = 0
    assert office.call(ArchivePosts(task=swarm, older_than=HOUR)) == ()
    assert office.store.rows < 30
