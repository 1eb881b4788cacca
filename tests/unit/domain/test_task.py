from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.errors import BadInput, Refused
from fleet.domain.run import Checkpoint, Choice, Ending, Outcome, Usage, end
from fleet.domain.task import (
    MAX_FULLS,
    MAX_LOSSES,
    MAX_OUTAGES,
    OUTAGE_PAUSE,
    SECOND,
    Cuts,
    Join,
    Limits,
    Retry,
    Spec,
    Tally,
    Task,
    TaskState,
    cancel,
    claim,
    close,
    depend,
    find_path,
    grant,
    join,
    reopen,
    settle,
)  # fmt: skip

NOW = 1_000 * SECOND


def a_task(task_id: str = "t-1", **given) -> Task:
    given = {"state": TaskState.OPEN} | given
    return Task(task_id, 1, title="x", prompt="", project="/p", author="me", created_at=0, **given)


def running(**given) -> Task:
    task, _ = claim(a_task(**given), Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    return task


def settled(ending: Ending, task: Task | None = None, **outcome) -> Task:
    return settle(
        task or running(), Outcome(ending, **outcome), retry=Retry(2, 10 * SECOND), now=NOW
    )


def test_a_claim_gives_the_next_number_and_only_an_open_task_can_be_claimed():
    task, run = claim(a_task(), Choice("a", "c"), host="h", holder="1", slots=("s",), at=NOW)
    assert (task.state, task.run_id, run.id, run.number) == (TaskState.RUNNING, "t-1.1", "t-1.1", 1)
    with pytest.raises(Refused):
        claim(task, Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    with pytest.raises(Refused):
        claim(a_task(join=Join.ALL), Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)


def test_every_ending_has_a_consequence():
    for ending in Ending:
        assert settled(ending).state is not TaskState.RUNNING


def test_success_is_done_or_waits_for_a_review():
    assert settled(Ending.SUCCEEDED).state is TaskState.DONE
    assert settled(Ending.SUCCEEDED, running(spec=Spec(review=True))).state is TaskState.REVIEW


@pytest.mark.parametrize(
    "ending", [Ending.FAILED, Ending.TIMED_OUT, Ending.STALLED, Ending.OUT_OF_MEMORY]
)
def test_a_failure_is_tried_again_after_a_pause_until_its_attempts_are_spent(ending):
    once = settled(ending, detail="boom")
    assert once.state is TaskState.OPEN
    assert once.tally.not_before == NOW + 10 * SECOND
    again, _ = claim(once, Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    twice = settled(ending, again, detail="boom")
    assert (twice.state, twice.tally.why) == (TaskState.FAILED, "boom")


def test_a_task_may_have_its_own_number_of_attempts():
    assert settled(Ending.FAILED, running(spec=Spec(limits=Limits(1)))).state is TaskState.FAILED


def test_pauses_double_and_never_exceed_an_hour():
    retry = Retry(backoff=10 * SECOND)
    assert [retry.pause(n, 0.0) // SECOND for n in (1, 2, 3, 20)] == [10, 20, 40, 3600]
    assert retry.pause(1, 0.999) > retry.pause(1, 0.0)


def test_a_rate_limit_postpones_the_task_and_costs_no_attempt():
    until = settled(Ending.RATE_LIMITED, resume_at=NOW + 5)
    assert (until.state, until.tally.not_before, until.tally.failures) == (
        TaskState.OPEN,
        NOW + 5,
        0,
    )
    assert settled(Ending.RATE_LIMITED).tally.not_before > NOW


def test_being_lost_costs_no_attempt_but_not_for_ever():
    task = running()
    for _ in range(MAX_LOSSES - 1):
        task = settled(Ending.LOST, task)
        assert (task.state, task.tally.failures) == (TaskState.OPEN, 0)
        task, _ = claim(task, Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    assert settled(Ending.LOST, task).state is TaskState.FAILED


def test_outages_count_as_no_loss_and_wait_until_the_node_is_seen_to_be_down():
    task, pauses = running(), []
    for _ in range(MAX_OUTAGES - 1):
        task = settled(Ending.LOST, task, outage=True)
        assert (task.state, task.tally.failures, task.tally.cuts.losses) == (TaskState.OPEN, 0, 0)
        pauses.append(task.tally.not_before - NOW)
        task, _ = claim(task, Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    assert settled(Ending.LOST, task).state is TaskState.OPEN
    assert settled(Ending.LOST, task, outage=True).state is TaskState.FAILED
    assert all(OUTAGE_PAUSE <= pause <= 2 * OUTAGE_PAUSE for pause in pauses[:5])
    assert sum(pauses) > 3 * 3600 * SECOND  # it outlasts a model that is broken for a while


def test_a_question_or_a_full_context_opens_it_again_with_its_checkpoint():
    for ending in (Ending.ASKED, Ending.CONTEXT_FULL):
        task = settled(ending, checkpoint=Checkpoint("commit", "session"))
        assert (task.state, task.tally.not_before) == (TaskState.OPEN, 0)
        assert task.tally.checkpoint == Checkpoint("commit", "session")


def test_being_stopped_pauses_it():
    assert settled(Ending.STOPPED).paused


def test_over_budget_costs_no_attempt_and_its_question_holds_it():
    task = settled(Ending.OVER_BUDGET)
    assert (task.state, task.tally.failures, task.paused) == (TaskState.OPEN, 0, False)
    assert grant(task).tally.grants == 1


def test_what_its_runs_came_to_adds_up():
    outcome = Outcome(Ending.ASKED, usage=Usage(10, 5, 100, 50, 0.25))
    once = settle(running(), outcome, retry=Retry(), now=NOW, took=7)
    again = replace(once, state=TaskState.RUNNING)
    twice = settle(again, outcome, retry=Retry(), now=NOW, took=5)
    assert twice.tally.spent == Usage(20, 10, 200, 50, 0.5)
    assert twice.tally.worked == 12


def test_words_that_nobody_heard_keep_it_open():
    done = Outcome(Ending.SUCCEEDED)
    assert settle(running(), done, retry=Retry(), now=NOW).state is TaskState.DONE
    waiting = settle(running(), done, retry=Retry(), now=NOW, waiting=True)
    assert waiting.state is TaskState.OPEN


def test_a_context_that_is_full_again_and_again_ends_it_at_last():
    task = running(tally=Tally(runs=1, cuts=Cuts(fulls=MAX_FULLS - 1)))
    assert settled(Ending.CONTEXT_FULL).state is TaskState.OPEN
    ended = settled(Ending.CONTEXT_FULL, task)
    assert (ended.state, ended.tally.why) == (TaskState.FAILED, "Its context was full 25 times.")


def test_a_run_ends_once():
    _, run = claim(a_task(), Choice("a", "c"), host="h", holder="1", slots=(), at=NOW)
    over = end(run, Outcome(Ending.SUCCEEDED), at=NOW)
    with pytest.raises(Refused):
        end(over, Outcome(Ending.FAILED), at=NOW)


def test_reopening_gives_the_attempts_back_and_only_what_has_ended_can_be():
    failed = settled(Ending.FAILED, running(spec=Spec(limits=Limits(1))))
    assert (reopen(failed).state, reopen(failed).tally.failures) == (TaskState.OPEN, 0)
    with pytest.raises(Refused):
        reopen(a_task())
    with pytest.raises(Refused):
        reopen(a_task(join=Join.ALL, state=TaskState.FAILED))


def test_a_running_task_is_neither_closed_nor_cancelled_by_word():
    with pytest.raises(Refused):
        close(running(), "", now=NOW)
    with pytest.raises(Refused):
        cancel(running(), "", now=NOW)
    assert close(a_task(), "mine", now=NOW).tally.why == "mine"


def test_two_tasks_cannot_wait_for_each_other():
    needs = {"t-1": (), "t-2": ("t-1",), "t-3": ("t-2",)}
    with pytest.raises(BadInput, match="t-1 → t-3 → t-2 → t-1"):
        depend(a_task("t-1"), "t-3", needs.__getitem__)
    with pytest.raises(BadInput):
        depend(a_task("t-1"), "t-1", needs.__getitem__)
    assert depend(a_task("t-3", after=("t-2",)), "t-1", needs.__getitem__).after == ("t-2", "t-1")
    assert find_path("t-1", "t-3", needs.__getitem__) == []


def children(*states: TaskState) -> list[Task]:
    return [a_task(f"t-{n}", state=s) for n, s in enumerate(states)]


@pytest.mark.parametrize(
    ("how", "states", "expected"),
    [
        (Join.ALL, ("done", "done"), "done"),
        (Join.ALL, ("done", "open"), "open"),
        (Join.ALL, ("done", "failed"), "failed"),
        (Join.ALL, ("failed", "running"), "open"),
        (Join.ALL, ("cancelled", "cancelled"), "cancelled"),
        (Join.ANY, ("done", "running"), "done"),
        (Join.ANY, ("failed", "cancelled"), "failed"),
        (Join.ANY, ("failed", "review"), "open"),
    ],
)
def test_a_parent_is_what_its_children_make_it(how, states, expected):
    parent = a_task("t-9", join=how)
    assert join(parent, children(*map(TaskState, states)), now=NOW).state == expected


def test_a_parent_opens_again_with_one_of_its_children():
    parent = a_task("t-9", join=Join.ALL, state=TaskState.DONE)
    assert join(parent, children(TaskState.OPEN, TaskState.DONE), now=NOW).state is TaskState.OPEN
    assert join(parent, [], now=NOW) is parent
