"""Who sees what, and that a run which is over may do nothing more."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import FleetError, Forbidden, NotFound
from fleet.domain.record_json import dumps
from fleet.domain.run import Ending, Summary
from fleet.operations.catalogue import perform
from fleet.operations.compat.issues import ListIssues
from fleet.operations.messages.ask_answer_send import (
    Answer,
    Ask,
    Comment,
    ListQuestions,
    TakeAnswer,
)
from fleet.operations.messages.boards import Post
from fleet.operations.messages.chats import OpenChat
from fleet.operations.messages.mail import ListMail, SendMail
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import AddTask, CloseTask
from fleet.operations.tasks.dependencies import AddDependency, RemoveDependency
from fleet.operations.tasks.list import ListTasks, ReadyTasks
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.tasks.transcript import ReadTranscript
from fleet.operations.team.checkpoints import LatestCheckpoint, ListCheckpoints, SaveCheckpoint
from tests.unit.operations.conftest import Office
from tests.unit.operations.samples import DECLARED, SECRET, sample

BY_NAME = pytest.mark.parametrize("name", DECLARED)
PERSONAL = {
    "host.join",  # for whoever has the secret of an invitation
    "inbox.seen",  # what one person has put away
    "inbox.snooze",
    "session.open",
    "session.renew",
}  # they make a token for whoever proves to be that person


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.COORDINATOR])
@pytest.mark.parametrize("name", [n for n in DECLARED if n not in PERSONAL])
def test_a_team_is_shown_and_changes_nothing_of_another(name, role, office):
    request = sample(name, office, team="blue")
    before = office.snapshot()
    reply = ()
    actor = replace(office.person(role, "red", name="ada"), remote=True)
    context = office.context(actor)._replace(offers=lambda _, directory: SECRET not in directory)
    with suppress(Forbidden, NotFound):
        reply = perform(context, request)
    assert SECRET not in dumps(reply)
    assert office.snapshot() == before


@BY_NAME
def test_what_every_team_hears_names_nothing_of_one(name, office):
    """An event about no task, and without a team, is everybody's."""
    with suppress(FleetError):
        office.call(sample(name, office, team="blue"))
    heard = [
        event for event in office.store.events() if not event.task and "team" not in event.data
    ]
    assert {event.type.partition(".")[0] for event in heard} <= {"host"}
    assert SECRET not in dumps([dict(event.data) for event in heard])


ID = re.compile(r"\b[tmel]-[0-9]+\b")
NOTHING = {kind: f"{kind}-999999" for kind in "tmel"}


def of_nothing(value):
    """The same request with ids that nothing has."""
    if isinstance(value, str):
        return ID.sub(lambda found: NOTHING[found[0][0]], value)
    if isinstance(value, tuple):
        return tuple(map(of_nothing, value))
    if is_dataclass(value):
        return replace(value, **{f.name: of_nothing(getattr(value, f.name)) for f in fields(value)})
    return value


def answer_to(office, request, actor):
    """The refusal, without the ids in it; or the reply."""
    try:
        return office.call(request, actor)
    except FleetError as error:
        return type(error), error.code, ID.sub("ID", error.message), ID.sub("ID", error.fix)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.COORDINATOR])
@BY_NAME
def test_an_id_of_another_team_is_answered_as_an_id_of_nothing(name, role, office):
    request = sample(name, office, team="blue")
    actor = office.person(role, "red", name="ada")
    if (other := of_nothing(request)) == request:
        return  # it names no id
    assert answer_to(office, request, actor) == answer_to(office, other, actor)


def strange_ids(office) -> tuple[str, ...]:
    """Of what the team blue has: a task, its run, a message, a landing."""
    task = office.add("Theirs", team="blue")
    office.start(task)
    office.ask(task)
    landing = sample("land.show", office, "blue")
    (message,) = office.store.messages(task)
    return task, f"{task}.1", message.id, landing.landing


def named(request, field: str, value: str):
    """The request with this id in this field; None: such a field takes no text."""
    old = getattr(request, field)
    if isinstance(old, str):
        return replace(request, **{field: value})
    if isinstance(old, tuple) and all(isinstance(each, str) for each in old):
        return replace(request, **{field: (value,)})
    return None


def words_of(answer) -> str:
    plain = answer if isinstance(answer, tuple) and answer and isinstance(answer[0], type) else None
    return ID.sub("ID", str(plain) if plain else dumps(answer))


PLACES = {  # where a page begins: what is older than such a number, whatever has it
    *("message.questions", "board.read", "mail.list", "checkpoint.list", "land.list", "chat.read"),
}


@pytest.mark.parametrize("name", [n for n in DECLARED if n not in PERSONAL])
def test_an_id_of_another_team_in_any_field_is_answered_as_an_id_of_nothing(name):
    """In whatever field: as a cursor, as a place in a line, as a name or a text."""
    for field in fields(sample(name, Office(), team="red")):
        if field.name in {"before", "after"} and name in PLACES:
            continue
        answers = []
        for is_there in (True, False):
            office = Office()
            ids, request = strange_ids(office), sample(name, office, team="red")
            lead, given = office.person(Role.TEAM_LEAD, "red", name="ada"), []
            for each in ids if is_there else map(of_nothing, ids):
                asked = named(request, field.name, each)
                given.append(asked and words_of(answer_to(office, asked, lead)))
            answers.append(given)
        assert answers[0] == answers[1], field.name


FROM_RED = {
    "after": lambda blue: AddTask("x", after=(blue,)),
    "parent": lambda blue: AddTask("x", parent=blue),
    "swarm": lambda blue: SpawnAgent("", "x", "red", "/repo", swarm=blue),
    "spawn after": lambda blue: SpawnAgent("", "x", "red", "/repo", after=(blue,)),
    "needs": lambda blue: AddDependency("OWN", blue),
    "needs no more": lambda blue: RemoveDependency("OWN", blue),
    "issues": lambda blue: ListIssues(("OWN", blue)),
    "before": lambda blue: ListTasks(before=blue),
    "ready before": lambda blue: ReadyTasks(before=blue),
    "agents before": lambda blue: ListAgents(before=blue),
    "issues before": lambda blue: ListIssues(before=blue),
    "mail to": lambda blue: SendMail(blue, "x"),
    "mail of": lambda blue: ListMail(to=blue),
    "mail to a run": lambda blue: SendMail(f"{blue}.1", "x"),
    "post to": lambda blue: Post("OWN", "{}", to=blue),
    "checkpoint for": lambda blue: SaveCheckpoint(Summary("g", "n"), blue),
    "checkpoints of": ListCheckpoints,
    "latest of": LatestCheckpoint,
    "chat with": lambda blue: OpenChat((blue,)),
    "a run": lambda blue: ReadTranscript(f"{blue}.1"),
    "answer": lambda blue: Answer(blue, "x"),
}


@pytest.mark.parametrize("way", FROM_RED)
def test_an_id_beside_ones_own_is_answered_as_an_id_of_nothing(way, office):
    """In lists, as a parent, to wait for, as an address."""
    lead = office.person(Role.TEAM_LEAD, "red")
    own, blue = office.add("Own", team="red"), office.add("Theirs", team="blue")
    office.start(blue)
    office.ask(blue)

    def asked(other: str):
        request = FROM_RED[way](other)
        for field in fields(request):
            value = getattr(request, field.name)
            if value == "OWN":
                request = replace(request, **{field.name: own})
            elif isinstance(value, tuple):
                request = replace(
                    request, **{field.name: tuple(own if v == "OWN" else v for v in value)}
                )
        return request

    before = office.snapshot()
    theirs = answer_to(office, asked(blue), lead)
    assert office.snapshot() == before
    assert theirs == answer_to(office, asked("t-999999"), lead)


@BY_NAME
def test_a_coordinator_reaches_every_team(name, office):
    reply = office.call(sample(name, office, team="blue"))
    assert reply


def test_without_a_team_everyone_sees_their_own_and_a_coordinator_all(office):
    blue, red = office.add("Blue", team="blue"), office.add("Red", team="red")
    questions = {office.ask(blue): blue, office.ask(red): red}
    more = {office.add("More blue", team="blue"), office.add("More red", team="red")}
    worker = office.person(Role.WORKER, "blue")

    def seen(request, actor):
        return {row.id for row in office.call(request, actor)}

    everyone = office.person(Role.COORDINATOR, "blue")
    assert seen(ListTasks(), worker) == {blue, "t-3"}
    assert seen(ListTasks(), everyone) == {blue, red} | more
    assert seen(ReadyTasks(), worker) == {"t-3"}
    assert seen(ReadyTasks(), everyone) == more
    assert seen(ListQuestions(), worker) == {q for q, task in questions.items() if task == blue}
    assert seen(ListQuestions(), everyone) == questions.keys()
    assert seen(ListTasks(team="red"), everyone) == {red, "t-4"}
    with pytest.raises(Forbidden):
        office.call(ListTasks(team="red"), worker)


def test_what_others_have_does_not_crowd_out_ones_own(office):
    for number in range(5):
        office.ask(office.add(f"Blue {number}", team="blue"))
        office.add(f"Ready blue {number}", team="blue")
    mine = office.add("Red", team="red")
    question = office.ask(office.add("Asking red", team="red"))
    worker = office.person(Role.WORKER, "red")
    assert [t.id for t in office.call(ReadyTasks(limit=1), worker)] == [mine]
    assert [q.id for q in office.call(ListQuestions(limit=1), worker)] == [question]


def test_a_new_task_is_its_authors_teams(office):
    worker = office.person(Role.WORKER, "red")
    assert office.call(AddTask("Mine"), worker).team == "red"
    with pytest.raises(Forbidden):
        office.call(AddTask("Theirs", team="blue"), worker)
    with pytest.raises(NotFound):
        office.call(AddTask("After theirs", after=(office.add(team="blue"),)), worker)


def test_inside_a_run_the_actor_is_the_run_and_its_task_is_meant(office):
    task = office.add()
    agent = office.agent(office.start(task))
    asked = office.call(Ask("Which way?"), agent)
    office.call(Comment("", "Half done."), agent)
    assert (asked.task, asked.author) == (task, f"{task}.1")
    assert [m.author for m in office.show(task).messages] == [f"{task}.1"] * 2
    told = [(e.actor, e.run) for e in office.store.log if e.type.startswith("message.")]
    assert told == [(f"{task}.1", f"{task}.1")] * 2
    assert office.call(ShowTask(""), agent).task.id == task


def test_a_person_has_no_task_of_their_own(office):
    assert "No task was named" in office.refused(ShowTask(" "), kind=Exception).message


@pytest.mark.parametrize("over", ["ended", "superseded"])
@BY_NAME
def test_a_run_that_is_over_may_do_nothing(name, over, office):
    task = office.add("Its task")
    stale = office.start(task)
    if over == "ended":
        office.end(stale)
    else:
        office.end(stale, Ending.LOST)
        office.start(task)
    request = sample(name, office)
    error = office.refused(request, office.agent(stale, Role.COORDINATOR), Forbidden)
    assert error.code == "stale_run"


WRITES = ["task.add", "task.close", "message.comment", "message.ask"]


@pytest.mark.parametrize("name", WRITES)
def test_a_run_that_is_taken_over_while_it_writes_writes_nothing(name, office):
    task = office.add("Its task")
    run = office.start(task)
    request = sample(name, office)
    told = office.told()

    def take_over():
        office.end(run, Ending.LOST)
        office.start(task)

    with pytest.raises(Forbidden) as caught:
        office.call(request, office.agent(run), meanwhile=take_over)
    assert caught.value.code == "stale_run"
    assert office.told() == [*told, "run.ended", "task.settled"]


def test_a_run_hears_its_own_answer_and_nobody_elses(office):
    mine, other = office.add("Mine"), office.add("Other")
    agent, else_ = office.agent(office.start(mine)), office.agent(office.start(other))
    question = office.call(Ask("Which way?"), agent).id
    office.call(Answer(question, "Left."))
    error = office.refused(TakeAnswer(question), else_, Forbidden)
    assert mine in error.fix
    assert office.call(TakeAnswer(question), agent).text == "Left."


def test_a_run_cannot_close_the_task_of_another_that_runs(office):
    other, agent = office.add(), office.agent(office.start(office.add()))
    office.start(other)
    assert "is running" in office.refused(CloseTask(other), agent).message


def test_a_run_of_a_task_that_is_not_there_is_nobody(office):
    with pytest.raises(NotFound):
        office.call(ListTasks(), office.agent("t-9.1"))
