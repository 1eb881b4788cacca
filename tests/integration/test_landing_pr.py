"""`fleet land --pr` and `fleet pr`: work comes to its branch by a pull request on a forge."""

from __future__ import annotations

import os
import signal

import pytest

from fleet.domain.forges.kinds import FORGES
from fleet.ports import LandingQuery
from tests.contract.checkouts import git
from tests.forges.fake_forge import TOKEN, FakeForge
from tests.integration.test_landing import done, land, landed, main_branch
from tests.wait import LIMIT, until


@pytest.fixture(params=FORGES)
def forge(request, supervised):
    """For the whole path. What each forge is asked is in tests/unit/adapters/forges/test_dialects.py."""
    made = made_forge(request.param, supervised)
    yield made
    made.close()


@pytest.fixture
def github(supervised):
    made = made_forge("github", supervised)
    yield made
    made.close()


def made_forge(kind, supervised) -> FakeForge:
    made = FakeForge(kind, supervised.place / "forge")
    made.adopt(supervised.repo)
    supervised.env |= {
        "FLEET_FORGE_HOSTS": f"{made.host}={kind}",
        "FLEET_FORGE_TOKEN": TOKEN,
        "FLEET_RUN_GATE": "test -e a.txt",
    }
    return made


def proposed(supervised, forge, *words: str) -> str:
    task = supervised.add("write a.txt x")
    done(supervised, task)
    land(supervised, task, "--pr", *words)
    until(lambda: forge.statuses, why=lambda: land(supervised, "list") + supervised.said())
    return task


def landing_of(supervised, task: str):
    return supervised.store.landings(LandingQuery(task=task))[0]


def pr(supervised, *words: str, status: int = 0) -> str:
    ended = supervised.type("pr", *words)
    assert ended.returncode == status, ended.stderr + ended.stdout
    return ended.stdout + ended.stderr


def test_tested_work_is_proposed_with_its_gate_as_status_and_lands_when_it_is_merged(
    supervised, forge
):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    said = land(supervised, task, "--pr", "--now")
    (pull,) = forge.pulls
    assert said == f"{task}: Pull request #1 is open: {forge.web_of(pull)}\n"
    assert (pull.title, pull.base) == ("write a.txt x", main_branch(supervised))
    assert task in pull.body
    head = forge.tip(pull.branch)
    assert git(forge.bare, "show", f"{head}:a.txt") == "x"
    ((status,),) = forge.statuses.values()
    assert status["state"] == "success"
    assert list(forge.statuses) == [head]
    assert supervised.task(task).tally.landed == ""
    commit = forge.merge(1)
    pr(supervised, "sync", task)
    assert supervised.task(task).tally.landed == commit
    assert supervised.task(task).tally.landing == ""
    assert f"landed {commit[:7]}" in land(supervised, "list", "--all")


def test_the_supervisor_sees_by_itself_that_it_was_merged(supervised, github):
    task = proposed(supervised, github)
    commit = github.merge(1, "squash")
    supervised.end()
    supervised.start()  # it looks at once
    landed(supervised, task)
    assert supervised.task(task).tally.landed == commit


def test_a_pull_request_that_is_closed_there_needs_you_and_can_be_opened_again(supervised, github):
    task = proposed(supervised, github)
    until(lambda: "open" in pr(supervised, "show", task))
    github.pulls[0].state = "closed"
    assert "closed without a merge" in pr(supervised, "sync", task)
    assert "held" in land(supervised, "list")
    land(supervised, "release", task)
    until(lambda: len(github.pulls) == 2)
    assert github.pulls[1].state == "open"


def test_fleet_merges_it_with_the_sha_of_its_head(supervised, forge):
    task = proposed(supervised, forge)
    pr(supervised, "merge", task)
    landed(supervised, task)
    (pull,) = forge.pulls
    assert supervised.task(task).tally.landed == pull.merged_as
    (call,) = [e for e in forge.exchanges if e.path.endswith("/merge")]
    assert pull.head in call.body.values()
    assert "does not have" not in supervised.said(), "what was fetched before the merge is old"


def test_it_is_not_merged_when_somebody_has_pushed_to_it(supervised, github):
    task = proposed(supervised, github)
    until(lambda: "open" in pr(supervised, "show", task))
    branch, rival = github.pulls[0].branch, supervised.place / "rival"
    git(supervised.place, "clone", "-q", "-b", branch, github.url, str(rival))
    who = ("-c", "user.name=b", "-c", "user.email=b@c")
    git(rival, *who, "commit", "-q", "--allow-empty", "-m", "More")
    git(rival, "push", "-q")
    assert "commits that Fleet did not push" in pr(supervised, "sync", task)
    pr(supervised, "merge", task)
    until(lambda: "did not push" in land(supervised, "list"))
    assert github.pulls[0].state == "open"
    assert not [e for e in github.exchanges if e.path.endswith("/merge")]


def test_what_the_forge_does_not_merge_yet_is_tried_again_and_said(supervised, github):
    github.not_mergeable = "Required status check is expected."
    task = proposed(supervised, github)
    pr(supervised, "merge", task)
    until(lambda: "Required status check" in land(supervised, "list", "--json"))
    assert github.pulls[0].state == "open"


def test_closing_it_leaves_the_task_done(supervised, github):
    task = proposed(supervised, github)
    until(lambda: "open" in pr(supervised, "show", task))
    assert "is closed" in pr(supervised, "close", task)
    assert github.pulls[0].state == "closed"
    assert supervised.state(task) == "done"
    assert supervised.task(task).tally.landing == ""


def test_new_words_change_the_pull_request_that_is_open(supervised, github):
    task = proposed(supervised, github)
    until(lambda: "open" in pr(supervised, "show", task))
    pr(supervised, "open", task, "--title", "List the prices", "--body", "All of them.")
    until(lambda: github.pulls[0].title == "List the prices")
    assert github.pulls[0].body == "All of them."
    assert len(github.pulls) == 1


def test_work_that_fails_on_the_merged_tree_is_not_proposed(supervised, github):
    task = supervised.add("write a.txt x")
    done(supervised, task, FLEET_LAND_GATE="! test -e a.txt", FLEET_LAND_TRIES="0")
    land(supervised, task, "--pr")
    until(lambda: "does not pass" in land(supervised, "list", "--json"))
    assert github.pulls == []


@pytest.mark.parametrize("step", ["PUSH", "GET .*/pulls", "POST .*/pulls$", "POST .*/statuses/"])
def test_a_supervisor_killed_between_any_two_effects_neither_doubles_nor_loses_it(
    supervised, github, step
):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    once: list[int] = []

    def kill() -> None:
        if not once:
            once.append(supervised.supervisor.pid)
            os.kill(once[0], signal.SIGKILL)

    github.after[step] = kill
    land(supervised, task, "--pr")
    assert supervised.supervisor.wait(LIMIT) == -signal.SIGKILL
    supervised.start()
    until(lambda: landing_of(supervised, task).pull)
    assert len(github.pulls) == 1
    assert github.tip(github.pulls[0].branch) == landing_of(supervised, task).pull.head


def test_one_that_was_merged_while_nobody_had_noted_it_is_not_opened_again(supervised, github):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    pid = supervised.supervisor.pid
    github.after["POST .*/pulls$"] = lambda: os.kill(pid, signal.SIGKILL)
    land(supervised, task, "--pr")
    assert supervised.supervisor.wait(LIMIT) == -signal.SIGKILL
    github.after.clear()
    commit = github.merge(1)
    supervised.start()
    landed(supervised, task)
    assert len(github.pulls) == 1
    assert supervised.task(task).tally.landed == commit


def test_the_token_is_in_no_file_and_in_no_environment_of_an_agent_or_a_gate(supervised, github):
    supervised.env["FLEET_RUN_GATE"] = "env > gate-env; test -e a.txt"
    task = supervised.add("write a.txt x", "run sh -c 'env > agent-env'")
    done(supervised, task)
    land(supervised, task, "--pr", "--now")
    assert github.statuses
    told = [
        p for p in supervised.place.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()
    ]
    assert told == []


def test_without_a_token_it_says_what_to_do_and_goes_on_when_there_is_one(supervised, github):
    del supervised.env["FLEET_FORGE_TOKEN"]
    task = supervised.add("write a.txt x")
    done(supervised, task)
    land(supervised, task, "--pr")
    until(lambda: "no token for" in land(supervised, "list", "--json"))
    assert github.pulls == []


def test_a_remote_that_is_no_forge_we_know_is_not_asked(supervised, github):
    supervised.env["FLEET_FORGE_HOSTS"] = "example.com=github"
    task = supervised.add("write a.txt x")
    done(supervised, task)
    said = land(supervised, task, "--pr", "--now", status=1)
    assert "Fleet does not know what kind of forge" in said
    assert github.exchanges == []


def test_with_land_pr_and_land_merge_work_is_proposed_and_merged_as_soon_as_it_is_done(
    supervised, github
):
    task = supervised.add("write a.txt x")
    env = {"FLEET_LAND_AUTO": "true", "FLEET_LAND_PR": "true", "FLEET_LAND_MERGE": "true"}
    done(supervised, task, **env)
    landed(supervised, task)
    assert supervised.task(task).tally.landed == github.tip(main_branch(supervised))


def test_worktree_pr_opens_one_at_once_and_land_finds_it(supervised, github):
    task = supervised.add("write a.txt x")
    done(supervised, task)
    said = supervised.type("worktree", "pr", task, "--title", "Prices").stdout
    assert said.strip() == github.web_of(github.pulls[0])
    land(supervised, task, "--pr", "--now")
    assert len(github.pulls) == 1
