"""What a team keeps: swarms, boards, mail, checkpoints, memory, claimed files, tokens."""

from __future__ import annotations

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.run import Ending, Summary
from fleet.domain.task import Spec
from fleet.operations.compat.mark import MarkTask
from fleet.operations.messages.ask_answer_send import Answer, ReadMessage
from fleet.operations.messages.boards import ArchivePosts, MarkRead, Post, ReadBoard
from fleet.operations.messages.chats import ListChats, MarkChat, OpenChat, ReadChat, Say
from fleet.operations.messages.deliver import is_read, read_marks
from fleet.operations.messages.mail import Broadcast, ListMail, ReadMail, SendMail
from fleet.operations.messages.remembered import known_to
from fleet.operations.tasks.change import CancelTask
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.team.checkpoints import (
    AcceptCheckpoint,
    LatestCheckpoint,
    ListCheckpoints,
    LoadCheckpoint,
    RejectCheckpoint,
    SaveCheckpoint,
)
from fleet.operations.team.file_claims import ClaimFile, ListFiles, ReleaseFile
from fleet.operations.team.members import BeSeen, ListMembers
from fleet.operations.team.memory import ListMemory, Recall, SearchMemory, StoreMemory
from fleet.operations.team.swarms import CreateSwarm, KillSwarm, ListSwarms, ShowSwarm
from fleet.operations.team.tokens import CreateToken, ListTokens, RevokeToken


@pytest.fixture
def bob(office):
    return office.person(Role.WORKER, name="bob")


@pytest.fixture
def cat(office):
    return office.person(Role.WORKER, name="cat")


def test_of_a_swarm_only_so_many_agents_run_at_once(office):
    swarm = office.call(CreateSwarm("Builders", 1)).id
    first, second = (office.add(t, parent=swarm) for t in ("One", "Two"))
    assert office.call(ShowSwarm(swarm)).tasks == 2
    assert office.store.task(swarm).spec.limits.agents == 1
    office.start(first)
    row = office.call(ShowSwarm(swarm))
    assert (row.agents, row.max_agents, row.state) == (1, 1, "open")
    assert second


@pytest.mark.parametrize("most", [0, 101, -1])
def test_a_swarm_has_a_sensible_size(office, most):
    office.refused(CreateSwarm("x", most), kind=BadInput)


def test_a_swarm_outlives_its_tasks_and_takes_more(office):
    swarm = office.call(CreateSwarm("Builders")).id
    office.finish(office.add("One", parent=swarm))
    assert office.call(ShowSwarm(swarm)).state == "done"
    second = office.add("Two", parent=swarm)
    assert office.call(ShowSwarm(swarm)).state == "open"
    office.call(CancelTask(second))
    lone = office.call(CreateSwarm("Lone")).id
    office.call(CancelTask(office.add("Only", parent=lone)))
    assert office.call(ShowSwarm(lone)).state == "open"


def test_an_ended_swarm_takes_nothing_more(office):
    swarm = office.call(CreateSwarm("Builders")).id
    task = office.add("One", parent=swarm)
    assert office.call(KillSwarm(swarm)).state == "cancelled"
    assert office.show(task).task.state == "cancelled"
    assert office.call(ListSwarms()) == ()
    assert [s.id for s in office.call(ListSwarms(all=True))] == [swarm]
    with pytest.raises(Refused):
        office.add("Late", parent=swarm)
    office.refused(Post(swarm, "{}"))
    office.refused(KillSwarm(swarm))


@pytest.mark.parametrize("tasks", [0, 1])
def test_a_swarm_with_nothing_left_in_it_ends_when_it_is_ended(office, tasks):
    swarm = office.call(CreateSwarm("Builders")).id
    for _ in range(tasks):
        office.call(CancelTask(office.add("One", parent=swarm)))
    office.call(KillSwarm(swarm))
    assert office.show(swarm).task.status == "cancelled"
    assert office.call(ListTasks()) == ()


def test_swarms_are_listed_in_pages(office):
    made = [office.call(CreateSwarm(f"S{n}")).id for n in range(5)]
    office.call(KillSwarm(made[3]))
    first = office.call(ListSwarms(limit=2))
    assert [s.id for s in first] == [made[4], made[2]]
    rest = office.call(ListSwarms(limit=2, before=first[-1].id))
    assert [s.id for s in rest] == [made[1], made[0]]


def test_a_post_for_one_is_read_by_them_its_author_and_who_leads(office, bob, cat):
    swarm = office.call(CreateSwarm("Builders")).id
    post = office.call(Post(swarm, '{"a": 1}', "request", "cat", "critical"), bob)
    dan = office.person(Role.WORKER, name="dan")
    seen = {a.name: [p.id for p in office.call(ReadBoard(swarm), a)] for a in (bob, cat, dan)}
    assert seen == {"bob": [post.id], "cat": [post.id], "dan": []}
    assert office.call(ReadBoard(swarm))[0].payload == '{"a":1}'
    with pytest.raises(NotFound):
        office.call(MarkRead((post.id,)), dan)


def test_a_board_tells_what_one_has_not_read(office, bob, cat):
    swarm = office.call(CreateSwarm("Builders")).id
    first, second = (office.call(Post(swarm, "{}"), bob).id for _ in range(2))
    office.call(MarkRead((first,)), cat)
    assert [p.id for p in office.call(ReadBoard(swarm, unread=True), cat)] == [second]
    assert len(office.call(ReadBoard(swarm, unread=True), bob)) == 2
    assert len(office.call(ArchivePosts(task=swarm))) == 2
    assert office.call(ReadBoard(swarm)) == ()
    with pytest.raises(Forbidden):
        office.call(ArchivePosts((first,)), bob)


@pytest.mark.parametrize("payload", ["", "[]", "{", "3", '"x"'])
def test_a_payload_is_an_object(office, payload):
    office.refused(Post(office.call(CreateSwarm("x")).id, payload), kind=BadInput)


def test_mail_is_for_whom_it_is_for(office, bob, cat):
    mail = office.call(SendMail("cat", "Words.", "Hi"), bob)
    assert [m.id for m in office.call(ListMail(), cat)] == [mail.id]
    assert office.call(ListMail(), bob) == ()
    assert [m.id for m in office.call(ListMail("cat"))] == [mail.id]
    for request in (ListMail("cat"), ReadMail(mail.id), SendMail("x", "y", sender="cat")):
        office.refused(request, bob, Forbidden)
    refused = office.refused(ListMail("cat"), bob, Forbidden)
    assert refused.message == "This mail belongs to cat, not to bob."
    assert office.call(ReadMail(mail.id), cat).read_at
    assert office.call(ListMail(unread=True), cat) == ()


def test_a_broadcast_reaches_everyone_who_was_seen(office, bob, cat):
    office.refused(Broadcast("Hear!"))
    for actor in (bob, cat):
        office.call(BeSeen(), actor)
    assert {m.to for m in office.call(Broadcast("Hear!"))} == {"bob", "cat"}
    assert {m.name for m in office.call(ListMembers())} == {"bob", "cat"}


def test_mail_a_chat_and_a_hand_off_are_not_read_as_messages_of_a_task(office, bob, cat):
    task = office.add()
    agent = office.agent(office.start(task))
    for actor in (bob, cat):
        office.call(BeSeen(), actor)
    chat = office.call(OpenChat(("cat",)), bob).id
    said = (
        office.call(SendMail("cat", "Words."), bob),
        office.call(Say(chat, "Words."), bob),
        office.call(SaveCheckpoint(Summary("Goal", "Half"), to="cat"), bob),
    )
    for actor in (agent, bob, cat):
        for row in said:
            office.refused(ReadMessage(row.id), actor, NotFound)
            office.refused(Answer(row.id, "Yes."), office.person(Role.TEAM_LEAD), NotFound)
    for row in said[1:]:
        office.refused(ReadMail(row.id), cat, NotFound)
    office.refused(AcceptCheckpoint(said[0].id), cat, NotFound)


def test_one_agent_hears_a_line_once_by_however_many_names_it_is_in_the_chat(office, bob):
    task = office.add(spec=Spec(branch="seat"))
    run = office.start(task)
    chat = office.call(OpenChat((task, run, "seat")), bob).id
    line = office.call(Say(chat, "Hello."), bob)
    (words,) = office.store.messages(task)
    assert (words.text, words.data["id"]) == (f"[Chat {chat}, from bob]\nHello.", line.id)
    assert not is_read(office.store, words, run)
    office.call(MarkChat(chat), office.agent(run))
    assert is_read(office.store, words, run)


def test_what_an_agent_heard_of_a_chat_is_not_unread_for_it(office, bob):
    task = office.add()
    run = office.start(task)
    chat = office.call(OpenChat((run,)), bob).id
    first, _ = (office.call(Say(chat, text), bob) for text in ("One.", "Two."))
    heard = office.store.messages(task)[0]
    assert office.call(ListChats(), office.agent(run))[0].unread == 2
    office.store.commit(read_marks(office.store, heard, run, now=9), [])
    assert office.store.message(first.id).receipt.readers == (run,)
    assert office.call(ListChats(), office.agent(run))[0].unread == 1


def test_a_later_run_of_a_task_is_in_the_chats_of_the_earlier(office, bob):
    task = office.add()
    run = office.start(task)
    chat = office.call(OpenChat((run,)), bob).id
    office.end(run, Ending.LOST)
    office.call(Say(chat, "Still there?"), bob)
    (words,) = office.store.messages(task)
    assert words.state == "open"
    later = office.agent(office.start(task))
    assert office.call(ReadChat(chat), later)[0].text == "Still there?"
    other = office.agent(office.start(office.add("Another")))
    office.refused(ReadChat(chat), other, NotFound)


def test_a_hand_off_for_an_agent_is_words_for_it_until_it_is_settled(office, bob):
    task = office.add()
    run = office.start(task)
    saved = office.call(SaveCheckpoint(Summary("Goal", "Half"), to=task), bob)
    (words,) = office.store.messages(task)
    assert words.text == '[Checkpoint from bob]\n{"goal": "Goal", "now": "Half"}'
    assert known_to(office.store, office.store.task(task), [words]) == ""
    assert known_to(office.store, office.store.task(task), []) == words.text
    office.call(AcceptCheckpoint(saved.id), office.agent(run))
    assert is_read(office.store, words, run)
    assert known_to(office.store, office.store.task(task), []) == ""


def test_a_checkpoint_that_a_run_saves_for_itself_is_not_told_to_it_but_to_the_next(office):
    task = office.add()
    run = office.start(task)
    office.progress(run, session="s-1")
    saved = office.call(SaveCheckpoint(Summary("Goal", "Half")), office.agent(run))
    assert office.store.messages(task) == []
    assert office.store.message(saved.id).details.checkpoint.session == "s-1"
    told = known_to(office.store, office.store.task(task), [])
    assert told.startswith(f"[Checkpoint from {run}]")


def test_a_checkpoint_is_taken_up_once_by_whom_it_is_for(office, bob, cat):
    saved = office.call(SaveCheckpoint(Summary("Goal", "Half"), to="cat"), bob)
    office.refused(AcceptCheckpoint(saved.id), bob, Forbidden)
    assert office.call(LatestCheckpoint(), cat).id == saved.id
    assert office.call(AcceptCheckpoint(saved.id), cat).status == "accepted"
    assert office.refused(RejectCheckpoint(saved.id), cat).code == "settled"
    office.refused(LatestCheckpoint(), bob, NotFound)


def test_a_run_saves_its_checkpoint_with_its_task(office):
    task = office.add()
    agent = office.agent(office.start(task))
    assert office.call(SaveCheckpoint(Summary("Goal", "Half")), agent).task == task


def test_memory_is_ones_own_and_the_team_finds_it(office, bob, cat):
    office.call(StoreMemory("port", "It is 5432.", tags=("db",)), bob)
    office.call(StoreMemory("port", "It is 5433.", tags=("db",)), bob)
    office.call(StoreMemory("port", "None.", "decision"), cat)
    assert office.call(Recall("port", "bob"), cat).value == "It is 5433."
    assert [m.agent for m in office.call(SearchMemory("DB 5433"), cat)] == ["bob"]
    assert [m.agent for m in office.call(SearchMemory("none", type="decision"), bob)] == ["cat"]
    office.refused(StoreMemory("port", "Mine now.", agent="bob"), cat, Forbidden)
    office.refused(Recall("nothing"), bob, NotFound)


def test_a_claimed_file_is_one_holders_until_the_time_is_over(office, bob, cat):
    office.call(ClaimFile("src/a.py", 60), bob)
    error = office.refused(ClaimFile("src//a.py"), cat)
    assert (error.code, error.about["holder"]) == ("claimed", "bob")
    office.refused(ReleaseFile("src/a.py"), cat)
    assert [f.holder for f in office.call(ListFiles())] == ["bob"]
    office.clock.advance(61)
    assert office.call(ListFiles()) == ()
    assert office.call(ClaimFile("src/a.py"), cat).holder == "cat"
    office.call(ReleaseFile("src/a.py"), cat)
    assert office.call(ClaimFile("src/a.py"), bob).holder == "bob"


def test_a_runs_files_are_free_when_it_has_ended(office, bob):
    run = office.start(office.add())
    office.call(ClaimFile("a.py", 3600), office.agent(run))
    office.refused(ClaimFile("a.py"), bob)
    office.end(run)
    assert office.call(ListFiles()) == ()
    assert office.call(ClaimFile("a.py"), bob).holder == "bob"


def test_of_two_that_claim_at_once_one_gets_it(office, bob, cat):
    with pytest.raises(Refused) as caught:
        office.call(ClaimFile("a.py"), cat, meanwhile=lambda: office.call(ClaimFile("a.py"), bob))
    assert caught.value.code == "claimed"


@pytest.mark.parametrize("path", ["", " ", "a\0b"])
def test_a_path_that_is_none_is_refused(office, path):
    office.refused(ClaimFile(path), kind=BadInput)


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x"])
def test_a_path_outside_the_project_is_refused(office, path):
    assert office.refused(ClaimFile(path), kind=Refused).code == "no_such_file"


def test_a_token_is_revoked_by_its_id_or_with_all_of_a_name(office):
    one, two, three = (office.call(CreateToken(n)).id for n in ("bob", "bob", "cat"))
    office.call(RevokeToken(one))
    assert {t.id for t in office.call(ListTokens())} == {two, three}
    gone = office.call(RevokeToken("bob"))
    assert (gone.name, gone.token) == ("bob", "")
    assert [t.id for t in office.call(ListTokens())] == [three]
    assert {t.id: t.revoked for t in office.call(ListTokens(all=True))} == {
        one: True, two: True, three: False,
    }  # fmt: skip
    office.refused(RevokeToken("dan"), kind=NotFound)
    office.refused(CreateToken("x", "boss"), kind=BadInput)
    office.refused(CreateToken("x", seconds=0), kind=BadInput)


def test_a_task_is_marked_by_the_words_of_the_team(office, bob, cat):
    need = office.add("Need")
    task = office.add("Mine", after=(need,))
    office.call(MarkTask(task, "in_progress"), bob)
    assert office.store.task(task).spec.assignee == "bob"
    office.refused(MarkTask(task, "in_progress"), cat)
    assert office.refused(MarkTask(task, "resolved"), bob).code == "blocked"
    office.call(MarkTask(need, "resolved"), bob)
    assert office.call(MarkTask(task, "resolved"), bob).status == "done"
    assert office.call(MarkTask(task, "open")).status == "assigned"
    assert office.call(MarkTask(task, "blocked")).status == "paused"
    office.refused(MarkTask(task, "solved"), kind=BadInput)


def test_a_spawned_agent_is_a_task_in_its_swarm(office, bob):
    swarm = office.call(CreateSwarm("Builders")).id
    asked = SpawnAgent("fixer", "Fix it.", cwd="/repo", swarm=swarm, session="s-1", model="small")
    row = office.call(asked)
    task = office.store.task(row.id)
    assert (task.parent, task.spec.branch, task.spec.mode) == (swarm, "fixer", "")
    assert task.tally.checkpoint.session == "s-1"
    office.refused(asked, bob, Forbidden)
    office.refused(SpawnAgent("deep", "x", cwd="/repo", depth=4))
    office.refused(SpawnAgent("nowhere", "x"), kind=BadInput)


def test_a_board_is_read_page_by_page_past_what_is_for_others(office, bob, cat):
    swarm = office.call(CreateSwarm("Builders")).id
    made = [office.call(Post(swarm, "{}", to="" if n % 2 else "dan"), bob).id for n in range(8)]
    first = office.call(ReadBoard(swarm, limit=2), cat)
    assert [p.id for p in first] == [made[7], made[5]]
    rest = office.call(ReadBoard(swarm, before=first[-1].id, limit=3), cat)
    assert [p.id for p in rest] == [made[3], made[1]]


def test_a_list_goes_on_past_pages_that_hold_nothing_wanted(office):
    for number in range(5):
        office.call(StoreMemory(f"key {number}", "x", type="fact" if number else "decision"))
    (found,) = office.call(ListMemory(type="decision", limit=1))
    assert found.key == "key 0"


@pytest.mark.parametrize("request_", [ListMemory(limit=0), ListFiles(limit=-1)])
def test_a_list_of_less_than_one_is_refused(office, request_):
    office.refused(request_, kind=BadInput)


def test_what_an_agent_saved_for_itself_is_listed_under_its_run(office):
    run = office.start(office.add())
    saved = office.call(SaveCheckpoint(Summary("A port", "Half.")), office.agent(run))
    assert [row.id for row in office.call(ListCheckpoints(run))] == [saved.id]


def test_a_monitor_reads_the_memories_of_its_team_and_stores_none(office, bob):
    monitor = office.person(Role.MONITOR, name="mon")
    office.call(StoreMemory("port", "5433"), bob)
    assert office.call(Recall("port", "bob"), monitor).value == "5433"
    assert len(office.call(SearchMemory("5433"), monitor)) == 1
    office.refused(StoreMemory("port", "1"), monitor, kind=Forbidden)


def test_a_monitor_reads_no_hand_off_for_another(office, bob):
    monitor = office.person(Role.MONITOR, name="mon")
    saved = office.call(SaveCheckpoint(Summary("Login", "Half done"), "cat"), bob)
    assert office.call(ListCheckpoints("cat"), monitor) == ()
    office.refused(LoadCheckpoint(saved.id), monitor, kind=NotFound)
    office.refused(SaveCheckpoint(Summary("x", "y")), monitor, kind=Forbidden)
