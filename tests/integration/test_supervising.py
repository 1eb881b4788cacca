"""A real supervisor turns ready tasks into runs: in parallel, at once, in order."""

import time
from pathlib import Path

from contract.launching import until
from integration.nodes import NodeStandIn

WORK = ("write {name}.txt by {name}", "commit {name}")


def work(name, *more):
    return [line.format(name=name) for line in WORK[:1]] + list(more) + [WORK[1].format(name=name)]


def test_tasks_run_side_by_side_up_to_the_limit(yard):
    tasks = [yard.add("sleep 0.6", *work(f"w{n}")) for n in range(5)]
    yard.start("--max", "3")
    most = 0
    begun = time.monotonic()
    while any(yard.state(t) != "done" for t in tasks):
        assert time.monotonic() - begun < 30, yard.said()
        most = max(most, len(yard.store.live_runs()))
        time.sleep(0.02)
    assert most == 3
    assert [yard.endings(t) for t in tasks] == [["succeeded"]] * 5
    assert all(not s.holders for s in yard.store.slots().values())
    for n, task in enumerate(tasks):
        assert yard.commits(f"fleet/{task}") == ["first", f"w{n}"]


def test_a_task_that_is_added_or_becomes_ready_starts_at_once(yard):
    yard.start()
    first = yard.add("sleep 0.2")
    second = yard.add("say me too", after=[first])
    yard.wait(first, second)
    one, two = yard.run(first), yard.run(second)
    waited = one.claimed_at - yard.task(first).created_at
    assert waited < 500_000, f"{waited} us after it was added"
    gap = two.claimed_at - one.ended_at
    assert gap < 500_000, f"{gap} us after what it waited for was done"


def test_a_dependent_task_begins_with_the_work_of_those_before_it(yard):
    one, two = yard.add(*work("one")), yard.add(*work("two"))
    three = yard.add("run cat one.txt two.txt", *work("three"), after=[one, two])
    yard.start("--once")
    assert yard.supervisor.wait(30) == 0, yard.said()
    assert "by one\\nby two" in yard.transcript(three)
    assert sorted(yard.commits(f"fleet/{three}")) == sorted(
        ["first", "one", "two", "three", f"Merge fleet/{two} for {three}"]
    )


def test_work_that_cannot_be_merged_is_a_reason_and_never_starts_without_it(yard):
    one, two = (yard.add(f"write same {n}", f"commit {n}") for n in ("one", "two"))
    three = yard.add("say I started", after=[one, two])
    yard.start()
    yard.wait(three, state="failed")
    assert yard.endings(three) == ["failed", "failed"]
    assert "conflicts in same" in yard.task(three).tally.why
    assert "I started" not in yard.transcript(three)
    assert "by hand" in yard.task(three).tally.why


def test_a_coder_that_fails_is_tried_again_later_and_not_for_ever(yard):
    good = yard.add("fail 1 no luck", *work("good"))
    bad = yard.add("fail 9 never any luck")
    yard.start(FLEET_RUN_BACKOFF="0.4")
    yard.wait(good)
    yard.wait(bad, state="failed")
    assert yard.endings(good) == ["failed", "succeeded"]
    assert yard.endings(bad) == ["failed", "failed"]
    assert "never any luck" in yard.task(bad).tally.why
    pause = yard.run(good, 2).claimed_at - yard.run(good, 1).ended_at
    assert 400_000 <= pause < 2_000_000
    assert yard.commits(f"fleet/{good}") == ["first", "good"]


def test_a_rate_limit_postpones_and_costs_no_attempt(yard):
    task = yard.add("limit 0.7", "limit 0.1", "limit 0.1", *work("in the end"), attempts=1)
    yard.start()
    yard.wait(task)
    assert yard.endings(task) == ["rate_limited"] * 3 + ["succeeded"]
    first, second = yard.run(task, 1), yard.run(task, 2)
    assert second.claimed_at >= first.outcome.resume_at > first.started_at + 500_000
    assert yard.task(task).tally.failures == 0


def test_a_run_that_takes_too_long_is_ended(yard):
    task = yard.add("say begun", "ignore-term", "sleep 60", attempts=1, time_limit=1)
    yard.start(FLEET_RUN_GRACE="0.3")
    yard.wait(task, state="failed")
    run = yard.run(task)
    assert str(run.outcome.ending) == "timed_out"
    assert yard.task(task).tally.why == "Its time limit ran out."
    assert 1_000_000 <= run.ended_at - run.started_at < 5_000_000
    assert yard.strays() == []


FULL = """
nodes:
  box: {{endpoint: "{url}", kind: ollama}}
models:
  small: {{node: box, upstream: small, context: {context}}}
"""


def test_a_run_whose_context_is_full_ends_at_a_checkpoint_and_goes_on_afresh(yard):
    node = NodeStandIn()
    (yard.repo / "fleet.yaml").write_text(FULL.format(url=node.url, context=10_000))
    script = ["append log begun", "commit one", "usage 8000 10", "usage 9500 10", "sleep 60"]
    task = yard.add(*script, model="small", attempts=1)
    yard.start()
    until(lambda: yard.endings(task)[:1] == ["context_full"], why=lambda: yard.story(task))
    yard.running(task, 2)
    first = yard.run(task, 1)
    assert first.outcome.detail == "Its context was full."
    assert first.outcome.checkpoint.commit != first.workspace.base
    assert yard.run(task, 2).workspace == first.workspace
    prompt = (yard.home / "runs" / f"{task}.2" / "input").read_text()
    assert "append log begun" in prompt
    assert "The last run filled its context" in prompt
    assert yard.task(task).tally.failures == 0
    yard.type("cancel", task)
    node.stop()


def test_settings_that_become_wrong_leave_the_last_good_ones_in_force(yard):
    (yard.repo / "fleet.yaml").write_text("workspace: {branch_prefix: good/}\n")
    yard.start()
    first = yard.add("say one")
    yard.wait(first)
    (yard.repo / "fleet.yaml").write_text("workspace: {branch_prefix: [not, a, name}\n")
    second = yard.add("say two")
    yard.wait(second)
    assert yard.run(second).workspace.branch == f"good/{second}"
    (yard.repo / "fleet.yaml").write_text("workspace: {branch_prefix: better/}\n")
    third = yard.add("say three")
    yard.wait(third)
    assert yard.run(third).workspace.branch == f"better/{third}"


def test_a_project_that_is_gone_fails_with_its_reason_and_holds_up_nobody(yard):
    gone = yard.place / "moved away"
    gone.mkdir()
    lost = yard.add("say hello", project=gone)
    gone.rmdir()
    fine = yard.add("say hello", after=())
    yard.start("--max", "1")
    yard.wait(fine)
    yard.wait(lost, state="failed")
    assert yard.task(lost).tally.why == f"{gone} is not a directory. Was the project moved?"


def test_a_workspace_that_is_deleted_while_its_coder_works_still_lets_the_run_end(yard):
    task = yard.add("say begun", "sleep 0.5", attempts=1)
    yard.start()
    yard.heard(task, "begun")
    workspace = Path(yard.run(task).workspace.root)
    workspace.rename(workspace.with_name("elsewhere"))
    until(lambda: yard.state(task) in {"done", "failed"}, why=lambda: yard.story(task))


def test_a_workspace_that_cannot_be_made_is_a_reason_not_a_hang(yard):
    (yard.home / "worktrees").write_text("a file where a directory should be")
    task = yard.add("say hello")
    yard.start()
    yard.wait(task, state="failed")
    assert "worktrees" in yard.task(task).tally.why


def test_a_supervisor_that_is_stopped_in_the_middle_of_a_set_up_ends_at_once(yard):
    (yard.home / "config.yaml").write_text('workspace:\n  setup: ["sleep 2; touch set-up"]\n')
    task = yard.add("run ls", "say begun")
    yard.start()
    root = until(lambda: yard.store.runs(task) and yard.run(task).workspace).root
    until(lambda: Path(root, ".git").exists())
    begun = time.monotonic()
    assert yard.end(15) == 0
    assert time.monotonic() - begun < 1.5
    yard.start()
    yard.wait(task)
    assert yard.endings(task) == ["succeeded"]
    assert "set-up" in yard.transcript(task)
