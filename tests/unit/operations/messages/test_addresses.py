"""A name means a person or an agent, never both; a branch never takes a person's mail."""

from __future__ import annotations

from fleet.domain.access import Role
from fleet.domain.errors import BadInput, NotFound
from fleet.domain.message import MessageKind
from fleet.domain.task import Spec
from fleet.operations.messages.boards import Post
from fleet.operations.messages.chats import OpenChat
from fleet.operations.messages.mail import ListMail, ReadMail, SendMail
from fleet.operations.team.checkpoints import LatestCheckpoint
from fleet.operations.team.enrolments import CreateEnrolment
from fleet.operations.team.members import BeSeen
from fleet.operations.team.tokens import CreateToken


def words(office, task: str) -> list[str]:
    return [m.text for m in office.store.messages(task) if m.kind is MessageKind.WORDS]


def test_a_person_comes_before_a_branch_of_the_same_name(office):
    known = {
        "seen": lambda: office.call(BeSeen(), office.person(Role.TEAM_LEAD, name="lead")),
        "token": lambda: office.call(CreateToken("lead", "team-lead")),
        "secret": lambda: office.call(CreateEnrolment("team-lead", name="lead")),
    }
    lead = office.person(Role.TEAM_LEAD, name="lead")
    task = office.add(spec=Spec(branch="lead"))
    agent = office.agent(office.start(task))
    for make_known in known.values():
        office.store.records = {
            i: r for i, r in office.store.records.items() if not str(i).startswith("e-")
        }
        make_known()
        mail = office.call(SendMail("lead", "For the lead."))
        office.call(Post(task, '{"text": "For the lead."}', to="lead"))
        assert words(office, task) == []
        assert mail.id in [row.id for row in office.call(ListMail(unread=True), lead)]
        assert office.call(ListMail(), agent) == ()
        office.refused(ReadMail(mail.id), agent, NotFound)


def test_an_agent_is_reached_by_its_branch_which_becomes_its_id(office):
    task = office.add(spec=Spec(branch="fix-login"))
    agent = office.agent(office.start(task))
    mail = office.call(SendMail("fix-login", "For the agent."))
    assert mail.to == task
    assert words(office, task) == ["[Mail from ada]\nFor the agent."]
    late = office.person(Role.WORKER, name="fix-login")
    office.call(BeSeen(), late)
    assert office.call(ListMail(), late) == ()
    assert [row.id for row in office.call(ListMail(), agent)] == [mail.id]
    assert [row.id for row in office.call(ListMail("fix-login"))] == []
    assert [row.id for row in office.call(ListMail(task))] == [mail.id]


def test_a_branch_of_two_agents_is_refused_with_both(office):
    one, two = (office.add(title, spec=Spec(branch="same")) for title in ("One", "Two"))
    for request in (SendMail("same", "x"), Post(one, "{}", to="same"), OpenChat(("same",))):
        error = office.refused(request, kind=BadInput)
        assert error.code == "ambiguous"
        assert one in error.message
        assert two in error.message


def test_mail_to_a_task_that_is_not_there_is_refused(office):
    assert "There is no task 't-99'" in office.refused(SendMail("t-99", "x"), kind=NotFound).message
    assert "no checkpoint" in office.refused(LatestCheckpoint("t-99"), kind=NotFound).message


def test_a_person_is_not_called_like_an_agent(office):
    assert "A task's id" in office.refused(CreateToken("t-5"), kind=BadInput).fix
    office.refused(CreateEnrolment("worker", name="t-5"), kind=BadInput)
