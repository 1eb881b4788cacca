"""A real supervisor turns ready tasks into runs: in parallel, at once, in order."""

from pathlib import Path

from tests.integration.nodes import NodeStandIn
from tests.wait import LIMIT, until

WORK = ("write {name}.txt by {name}", "commit {name}")


def work(name, *more):
    return [line.format(name=name) for line in WORK[:1]] + list(more) + [WORK[1].format(name=name)]


def test_tasks_run_side_by_side_up_to_the_limit(supervised):
    tasks = [supervised.add(supervised.held(), *work(f"w{n}")) for n in range(5)]
    supervised.start("--max", "3")
    assert supervised.most_at_once(tasks, at_least=3) == 3
    assert [supervised.endings(t) for t in tasks] == [["succeeded"]] * 5
    assert all(not s.holders for s in supervised.store.slots().values())
    for n, task in enumerate(tasks):
        assert supervised.commits(f"fleet/{task}") == ["first", f"w{n}"]


def test_a_task_that_is_added_or_becomes_ready_starts_at_once(supervised):
    supervised.start()
    first = supervised.add("sleep 0.2")
    second = supervised.add("say me too", after=[first])
    supervised.wait(first, second)
    one, two = supervised.run(first), supervised.run(second)
    waited = one.claimed_at - supervised.task(first).created_at
    assert waited < 500_000, f"{waited} us after it was added"
    gap = two.claimed_at - one.ended_at
    assert gap < 500_000, f"{gap} us after what it waited for was done"


def test_a_dependent_task_begins_with_the_work_of_those_before_it(supervised):
    one, two = supervised.add(*work("one")), supervised.add(*work("two"))
    three = supervised.add("run cat one.txt two.txt", *work("three"), after=[one, two])
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0, supervised.said()
    assert "by one\\nby two" in supervised.transcript(three)
    assert sorted(supervised.commits(f"fleet/{three}")) == sorted(
        ["first", "one", "two", "three", f"Merge fleet/{two} for {three}"]
    )


def test_work_that_cannot_be_merged_is_a_reason_and_never_starts_without_it(supervised):
    one, two = (supervised.add(f"write same {n}", f"commit {n}") for n in ("one", "two"))
    three = supervised.add("say I started", after=[one, two])
    supervised.start()
    until(lambda: supervised.task(three).paused, why=lambda: supervised.story(three))
    assert supervised.endings(three) == ["stopped"]
    assert "in same" in supervised.task(three).tally.why
    assert "I started" not in supervised.transcript(three)
    assert "by hand" in supervised.task(three).tally.why


def test_a_coder_that_fails_is_tried_again_later_and_not_for_ever(supervised):
    good = supervised.add("fail 1 no luck", *work("good"))
    bad = supervised.add("fail 9 never any luck")
    supervised.start(FLEET_RUN_BACKOFF="0.4")
    supervised.wait(good)
    supervised.wait(bad, state="failed")
    assert supervised.endings(good) == ["failed", "succeeded"]
    assert supervised.endings(bad) == ["failed", "failed"]
    assert "never any luck" in supervised.task(bad).tally.why
    pause = supervised.run(good, 2).claimed_at - supervised.run(good, 1).ended_at
    assert 400_000 <= pause < 2_000_000
    assert supervised.commits(f"fleet/{good}") == ["first", "good"]


def test_a_rate_limit_postpones_and_costs_no_attempt(supervised):
    task = supervised.add("limit 0.7", "limit 0.1", "limit 0.1", *work("in the end"), attempts=1)
    supervised.start()
    supervised.wait(task)
    assert supervised.endings(task) == ["rate_limited"] * 3 + ["succeeded"]
    first, second = supervised.run(task, 1), supervised.run(task, 2)
    assert second.claimed_at >= first.outcome.resume_at > first.started_at + 500_000
    assert supervised.task(task).tally.failures == 0


def test_a_run_that_takes_too_long_is_ended(supervised):
    task = supervised.add("say begun", "ignore-term", "sleep 60", attempts=1, time_limit=1)
    supervised.start(FLEET_RUN_GRACE="0.3")
    supervised.wait(task, state="failed")
    run = supervised.run(task)
    assert str(run.outcome.ending) == "timed_out"
    assert supervised.task(task).tally.why == "Its time limit ran out."
    assert 1_000_000 <= run.ended_at - run.started_at < 5_000_000
    assert supervised.strays() == []


FULL = """
nodes:
  box: {{endpoint: "{url}", kind: ollama}}
models:
  small: {{node: box, upstream: small, context: {context}}}
"""


def test_a_run_whose_context_is_full_ends_at_a_checkpoint_and_goes_on_afresh(supervised):
    node = NodeStandIn()
    (supervised.repo / "fleet.yaml").write_text(FULL.format(url=node.url, context=10_000))
    script = ["append log begun", "commit one", "usage 8000 10", "usage 9500 10", "sleep 60"]
    task = supervised.add(*script, model="small", attempts=1)
    supervised.start()
    until(
        lambda: supervised.endings(task)[:1] == ["context_full"], why=lambda: supervised.story(task)
    )
    supervised.running(task, 2)
    first = supervised.run(task, 1)
    assert first.outcome.detail == "Its context was full."
    assert first.outcome.checkpoint.commit != first.workspace.base
    assert supervised.run(task, 2).workspace == first.workspace
    prompt = (supervised.home / "runs" / f"{task}.2" / "input").read_text()
    assert "append log begun" in prompt
    assert "The last run filled its context" in prompt
    assert supervised.task(task).tally.failures == 0
    supervised.type("cancel", task)
    node.stop()


def test_settings_that_become_wrong_leave_the_last_good_ones_in_force(supervised):
    (supervised.repo / "fleet.yaml").write_text("workspace: {branch_prefix: good/}\n")
    supervised.start()
    first = supervised.add("say one")
    supervised.wait(first)
    (supervised.repo / "fleet.yaml").write_text("workspace: {branch_prefix: [not, a, name}\n")
    second = supervised.add("say two")
    supervised.wait(second)
    assert supervised.run(second).workspace.branch == f"good/{second}"
    (supervised.repo / "fleet.yaml").write_text("workspace: {branch_prefix: better/}\n")
    third = supervised.add("say three")
    supervised.wait(third)
    assert supervised.run(third).workspace.branch == f"better/{third}"


def test_a_project_that_is_gone_fails_with_its_reason_and_holds_up_nobody(supervised):
    gone = supervised.place / "moved away"
    gone.mkdir()
    lost = supervised.add("say hello", project=gone)
    gone.rmdir()
    fine = supervised.add("say hello", after=())
    supervised.start("--max", "1")
    supervised.wait(fine)
    until(lambda: supervised.task(lost).paused, why=lambda: supervised.story(lost))
    assert supervised.task(lost).tally.why == f"{gone} is not a directory. Was the project moved?"


def test_a_workspace_that_is_deleted_while_its_coder_works_still_lets_the_run_end(supervised):
    task = supervised.add("say begun", "sleep 0.5", attempts=1)
    supervised.start()
    supervised.heard(task, "begun")
    workspace = Path(supervised.run(task).workspace.root)
    workspace.rename(workspace.with_name("elsewhere"))
    until(lambda: supervised.state(task) in {"done", "failed"}, why=lambda: supervised.story(task))


def test_a_workspace_that_cannot_be_made_is_a_reason_not_a_hang(supervised):
    (supervised.home / "worktrees").write_text("a file where a directory should be")
    task = supervised.add("say hello")
    supervised.start()
    supervised.wait(task, state="failed")
    assert "worktrees" in supervised.task(task).tally.why


def test_a_supervisor_that_is_stopped_in_the_middle_of_a_set_up_ends_at_once(supervised):
    go = supervised.place / "go"
    setup = f"until [ -e {go} ]; do sleep 0.05; done; touch set-up"
    (supervised.home / "config.yaml").write_text(f'workspace:\n  setup: ["{setup}"]\n')
    task = supervised.add("run ls", "say begun")
    supervised.start()
    root = until(lambda: supervised.store.runs(task) and supervised.run(task).workspace).root
    until(lambda: Path(root, ".git").exists())
    assert supervised.end(15) == 0
    go.touch()
    supervised.start()
    supervised.wait(task)
    assert supervised.endings(task) == ["succeeded"]
    assert "set-up" in supervised.transcript(task)
