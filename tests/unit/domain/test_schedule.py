from __future__ import annotations

from dataclasses import replace

from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Slots
from fleet.domain.schedule import ReadyTask, Slot, schedule, waits
from fleet.domain.task import Join, Tally, Task, TaskState

CHOICE = Choice("agent", "coder", "model")


def a_task(task_id: str = "t-1", **given) -> Task:
    given = {"state": TaskState.OPEN} | given
    return Task(task_id, 1, title="x", prompt="", project="/p", author="me", created_at=0, **given)


def ask(task_id: str, *needs: tuple[Slot, ...]) -> ReadyTask:
    return ReadyTask(a_task(task_id), CHOICE, needs)


def plan_of(asks, held=(), now: int = 0):
    rows = {name: Slots(name, 1, ("t-99.1",) * count) for name, count in dict(held).items()}
    return schedule(asks, rows, now=now)


def started(plan) -> list[str]:
    return [s.task.id for s in plan.starts]


HOST = Slot("host", 2)


def test_asks_start_in_their_order_until_the_slots_are_taken():
    plan = plan_of([ask(f"t-{n}", (HOST,)) for n in range(4)], {})
    assert started(plan) == ["t-0", "t-1"]
    assert [w.task for w in plan.waits] == ["t-2", "t-3"]
    assert plan.waits[0].why == "No free slot: host is full (2/2)."


def test_what_is_held_already_counts():
    assert started(plan_of([ask("t-1", (HOST,))], {"host": 2})) == []
    assert started(plan_of([ask("t-1", (HOST,))], {"host": 1})) == ["t-1"]


def test_one_that_lacks_its_model_holds_up_nobody_behind_it():
    gpu = Slot("gpu", 1)
    plan = plan_of([ask("t-1", (HOST,), (gpu,)), ask("t-2", (HOST,))], {"gpu": 1})
    assert started(plan) == ["t-2"]


def test_of_several_servings_the_first_free_one_is_taken_and_named():
    near, far = Slot("m@near", 1, node="near"), Slot("m@far", 1, node="far")
    plan = plan_of([ask(f"t-{n}", (near, far)) for n in range(3)], {})
    assert [(s.choice.node, s.slots) for s in plan.starts] == [
        ("near", ("m@near",)),
        ("far", ("m@far",)),
    ]
    why = "m@near on node near is full (1/1); m@far on node far is full (1/1)"
    assert why in plan.waits[0].why


def test_a_node_that_is_down_is_passed_over_and_named():
    near = Slot("m@near", 1, node="near", down="connection refused")
    plan = plan_of([ask("t-1", (near,))], {})
    why = "No node that serves its model answers: near (connection refused)."
    assert plan.waits[0].why == why


def test_a_node_that_is_full_as_a_whole_is_full_for_each_of_its_models():
    near = Slot("node near", 1)
    one, other = (Slot(f"{m}@near", 2, node="near", within=near) for m in ("m", "k"))
    plan = plan_of([ask("t-1", (one,)), ask("t-2", (other,))])
    assert [s.slots for s in plan.starts] == [("m@near", "node near")]
    assert plan.waits[0].why == "No free slot: node near is full (1/1)."


def test_a_parked_credential_holds_only_those_who_use_it():
    claude = ReadyTask(a_task("t-1"), CHOICE, (), "credential claude")
    codex = ReadyTask(a_task("t-2"), CHOICE, (), "credential codex")
    rows = {"credential claude": Slots("credential claude", 1, (), 9_000_000, "5 hours")}
    plan = schedule([claude, codex], rows, now=1_000_000)
    assert started(plan) == ["t-2"]
    assert plan.waits[0].why == "The credential claude is rate-limited for 8 s more: 5 hours"
    assert started(schedule([claude, codex], rows, now=9_000_000)) == ["t-1", "t-2"]


def test_a_task_that_got_only_some_of_its_slots_takes_none():
    plan = plan_of(
        [ask("t-1", (HOST,), (Slot("gpu", 0),)), ask("t-2", (HOST,)), ask("t-3", (HOST,))], {}
    )
    assert started(plan) == ["t-2", "t-3"]


def codes(task: Task, needs=(), messages=(), now: int = 0) -> list[str]:
    return [w.code for w in waits(task, needs, messages, now=now)]


def test_an_open_task_says_everything_that_holds_it():
    question = Message(
        "m-1", 1, "t-1", "t-1.1", MessageKind.QUESTION, "Which?", MessageState.OPEN, 0
    )
    task = a_task(paused=True, tally=Tally(not_before=3_000_000, why="rate limit"), after=("t-2",))
    held = waits(task, [a_task("t-2", state=TaskState.FAILED)], [question], now=500_000)
    assert [w.code for w in held] == ["after", "asking", "paused", "postponed"]
    assert held[0].why == "It waits for t-2, which is failed."
    assert held[0].fix == "fleet retry t-2, or fleet dep rm t-1 t-2"
    assert held[1].fix == "fleet answer t-1 TEXT"
    assert held[3].why == "It is tried again in 3 s: rate limit"


def test_a_ready_or_running_task_has_no_reason_to_wait():
    assert codes(a_task()) == []
    assert codes(a_task(state=TaskState.RUNNING)) == []
    assert codes(a_task(after=("t-2",)), [a_task("t-2", state=TaskState.DONE)]) == []


def test_ended_and_compound_tasks_say_so():
    assert codes(a_task(join=Join.ALL)) == ["children"]
    for state in (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.REVIEW):
        assert codes(replace(a_task(), state=state)) == ["ended"]


def test_a_need_in_review_names_the_way_out():
    (held,) = waits(a_task(), [a_task("t-2", state=TaskState.REVIEW)], [], now=0)
    assert held.fix == "fleet close t-2"
