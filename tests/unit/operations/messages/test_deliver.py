"""What reaches an agent of what is written in the team, and from whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Role
from fleet.domain.message import MessageKind
from fleet.domain.run import Summary
from fleet.domain.task import Spec
from fleet.operations.messages.boards import Post
from fleet.operations.messages.chats import OpenChat, Say
from fleet.operations.messages.mail import Broadcast, SendMail
from fleet.operations.team.checkpoints import SaveCheckpoint

WORDS = "run id"


def say_in_chat(office, task: str, actor) -> None:
    chat = office.call(OpenChat((task,)), actor).id
    office.call(Say(chat, WORDS), actor)


WAYS = {
    "mail": lambda office, task, actor: office.call(SendMail(task, WORDS), actor),
    "broadcast": lambda office, _task, actor: office.call(Broadcast(WORDS), actor),
    "post": lambda office, task, actor: office.call(Post(task, '{"text": "run id"}'), actor),
    "post to it": lambda office, task, actor: office.call(
        Post(task, '{"text": "run id"}', to=task), actor
    ),
    "chat": say_in_chat,
    "hand-off": lambda office, task, actor: office.call(
        SaveCheckpoint(Summary(WORDS, WORDS), task), actor
    ),
}


@pytest.mark.parametrize("coder", ["claude", "scripted"])
@pytest.mark.parametrize("way", WAYS)
def test_no_words_of_who_may_not_run_programs_reach_a_coder_that_runs_them(office, way, coder):
    """However they are sent: to other coders they are words."""
    office.world.settings = office.world.settings._replace(coder="claude")
    role = Role.TEAM_LEAD if way == "broadcast" else Role.WORKER
    actor = replace(office.person(role, name="bob"), remote=True)
    task = office.add(spec=Spec(coder=coder))
    office.start(task)
    WAYS[way](office, task, actor)
    heard = [m for m in office.store.messages(task) if m.kind is MessageKind.WORDS]
    assert bool(heard) is (coder == "claude")
