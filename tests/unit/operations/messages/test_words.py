"""Words to an agent, its own word that it is done, and what a spent budget leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.errors import NotFound
from fleet.domain.run import Ending, Host, Slots
from fleet.domain.spending.budget import GIVE_UP, GO_ON
from fleet.domain.task import Spec
from fleet.operations.messages.ask_answer_send import Answer, ReadMessage, SendWords
from fleet.operations.tasks.change import CancelTask, CloseTask, ResumeTask
from fleet.ports import Put


def test_words_are_queued_until_a_run_has_heard_them(office):
    sent = office.call(SendWords(office.add(), "Add tests too."))
    assert (sent.kind, sent.status, sent.author) == ("words", "queued", "ada")
    assert office.call(ReadMessage(sent.id)) == sent
    assert office.told()[-1] == "message.sent"


def test_words_to_a_run_that_is_not_there_are_refused(office):
    task = office.add()
    refused = office.refused(SendWords(f"{task}.1", "Hello?"), kind=NotFound)
    assert refused.message == f"{task} has no run 1."
    office.start(task)
    assert office.call(SendWords(f"{task}.1", "Hello?")).task == task


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
def test_words_to_a_task_that_has_ended_are_refused(office, ending):
    task = office.add()
    office.finish(task, ending)
    refused = office.refused(SendWords(task, "Hello?"))
    assert refused.code == "ended"
    assert f"fleet retry {task}" in refused.fix


def test_words_that_come_while_the_run_is_settled_keep_the_task_open(office):
    task = office.add()
    run = office.start(task)
    office.call(SendWords(task, "One more thing."))
    office.end(run)
    assert office.show(task).task.status == "ready"


def test_words_that_come_while_it_is_claimed_are_for_that_run_to_hear(office):
    """They are later than the claim, so that they are told to it, not taken for part of its prompt."""
    task = office.add()

    def claimed_meanwhile():
        office.clock.advance(1)
        office.claim(task)
        office.clock.advance(1)

    sent = office.call(SendWords(task, "Hello"), meanwhile=claimed_meanwhile)
    assert sent.at > office.store.run(f"{task}.1").claimed_at


def test_a_run_says_that_its_task_is_done_and_it_is_once_the_run_has_ended(office):
    task = office.add()
    run = office.start(task)
    row = office.call(CloseTask(task, "Fixed it."), office.agent(run))
    assert row.status == "running"
    assert office.store.run(run).closed == "Fixed it."
    office.refused(CloseTask(task))  # a person has to stop it first


def spent(office, **given) -> str:
    task = office.add(**given)
    office.end(office.start(task), Ending.OVER_BUDGET, "It has cost $0.51 of $0.50.")
    return task


def test_a_spent_budget_asks(office):
    task = spent(office)
    (question,) = office.show(task).messages
    assert (question.author, question.options) == ("supervisor", (GO_ON, GIVE_UP))
    assert question.text == "The task has reached its budget. It has cost $0.51 of $0.50. Continue?"
    assert office.show(task).task.status == "asking"


def test_going_on_gives_as_much_again(office):
    task = spent(office)
    assert office.call(Answer(task, "1")).status == "delivered"
    assert office.store.task(task).tally.grants == 1
    assert office.show(task).task.status == "ready"


def test_other_words_go_on_too_and_are_for_the_agent(office):
    task = spent(office)
    assert office.call(Answer(task, "Yes, but leave out the docs.")).status == "queued"
    assert office.store.task(task).tally.grants == 1


def test_giving_up_cancels_it(office):
    parent, child, _ = office.family("a", "b")
    office.end(office.start(child), Ending.OVER_BUDGET, "Spent.")
    office.call(Answer(child, "2"))
    assert office.show(child).task.status == "cancelled"
    assert office.show(child).why == "Its budget was spent."
    assert office.show(parent).task.status == "children"


def test_resuming_it_answers_the_question(office):
    task = spent(office)
    assert office.call(ResumeTask(task)).status == "ready"
    assert office.store.task(task).tally.grants == 1


def test_it_can_be_cancelled_instead(office):
    task = spent(office)
    assert office.call(CancelTask(task)).status == "cancelled"


def test_a_rate_limit_parks_its_credential_and_others_go_on(office):
    first, second, other = office.add(), office.add(), office.add(spec=Spec(agent="shell"))
    until = office.clock.now() + 60_000_000
    office.end(office.start(first), Ending.RATE_LIMITED, "Too many.", resume_at=until)
    office.store.commit([Put(Host("box-1", 0, "box", "h", "boot", 0))], [])
    (wait,) = office.show(second).waits
    assert (wait.code, wait.why) == (
        "rate_limited",
        "The credential scripted is rate-limited for 60 s more: Too many.",
    )
    assert office.show(other).waits == ()


def test_resuming_one_of_them_ends_the_parking(office):
    first, second = office.add(), office.add()
    office.end(office.start(first), Ending.RATE_LIMITED, "Too many.")
    office.store.commit([Put(Host("box-1", 0, "box", "h", "boot", 0))], [])
    assert [w.code for w in office.show(second).waits] == ["rate_limited"]
    office.call(ResumeTask(second))
    assert office.show(second).waits == ()


def test_a_node_that_no_host_can_reach_is_named(office):
    task = office.add(spec=Spec(agent="implementer"))
    soon = office.clock.now() + 60_000_000
    host = Host("box-1", 0, "box", "h", "boot", soon, ("http://big:11434 connection refused",))
    office.store.commit([Put(host)], [])
    (wait,) = office.show(task).waits
    assert wait.why == "No node that serves its model answers: big (connection refused)."
    assert "fleet nodes" in wait.fix
    other = replace(host, id="box-2", down=())
    office.store.commit([Put(other)], [])
    assert office.show(task).waits == ()


def test_capacity_that_another_task_holds_is_named_with_its_node(office):
    task = office.add(spec=Spec(agent="implementer"))
    office.store.commit(
        [
            Put(Host("box-1", 0, "box", "h", "boot", 0)),
            Put(Slots("qwen@http://big:11434", 0, ("x",))),
        ],
        [],
    )
    assert "on node big is full (1/1)" in office.show(task).waits[0].why


def test_words_to_a_task_in_review_open_it_again(office):
    task = office.add(spec=Spec(review=True))
    office.finish(task)
    assert office.show(task).task.status == "review"
    office.call(SendWords(task, "One more thing."))
    assert office.show(task).task.status == "ready"


def test_words_that_nobody_heard_are_refused_when_their_task_is_cancelled(office):
    task = office.add()
    sent = office.call(SendWords(task, "Hello?"))
    office.call(CancelTask(task))
    assert office.call(ReadMessage(sent.id)).status == "refused"


def test_an_answer_to_a_task_that_has_ended_is_refused(office):
    task = office.add()
    question = office.ask(task)
    office.call(CancelTask(task))
    assert office.refused(Answer(question, "Left.")).code == "ended"
