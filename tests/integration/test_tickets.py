"""`fleet add --issue` and `fleet multi --issues`: tickets become tasks, and hear what became of them."""

from __future__ import annotations

import os
import signal

import pytest

from tests.contract.checkouts import git
from tests.forges.fake_forge import Issue
from tests.integration.test_landing import land
from tests.integration.test_landing_pr import made_forge
from tests.wait import LIMIT, until

ISSUE = {"github": "issues", "gitlab": "-/issues", "gitea": "issues"}


@pytest.fixture(params=list(ISSUE))
def forge(request, supervised):
    made = made_forge(request.param, supervised)
    del supervised.env["FLEET_RUN_GATE"]
    made.issues += [
        Issue(1, "Wrong prices", "write a.txt x", labels=("fleet",)),
        Issue(2, "Slow prices", "write b.txt x", labels=("fleet", "later")),
        Issue(3, "Closed", "write c.txt x", labels=("fleet",), state="closed"),
    ]
    yield made
    made.close()


def add(supervised, *words: str, status: int = 0):
    ended = supervised.type("add", *words)
    assert ended.returncode == status, ended.stderr + ended.stdout
    return ended.stdout + ended.stderr


def issue(forge, number: int = 1) -> str:
    return forge.web(ISSUE[forge.kind], number)


def test_a_ticket_becomes_a_task_and_hears_once_that_it_is_done_and_has_landed(supervised, forge):
    supervised.start()
    add(supervised, "--issue", issue(forge))
    task = supervised.task("t-1")
    assert task.title == "#1 Wrong prices"
    assert "mallory wrote" in task.prompt
    assert issue(forge) in task.prompt
    assert "write a.txt x" in task.prompt.splitlines()
    supervised.wait("t-1")
    until(lambda: forge.comments.get(1))
    land(supervised, "t-1", "--now")
    until(lambda: len(forge.comments[1]) == 2)
    commit = supervised.task("t-1").tally.landed
    assert [text.partition("\n")[0] for text in forge.comments[1]] == [
        "t-1 is done.",
        f"t-1 has landed ({commit[:12]}).",
    ]


def test_a_ticket_has_one_task_at_a_time(supervised, forge):
    assert "Added t-1" in add(supervised, "--issue", issue(forge))
    assert "Added t-1" in add(supervised, "--issue", issue(forge))
    said = supervised.type("multi", "--issues", "label:fleet")
    assert said.returncode == 0, said.stderr
    assert "t-2" in said.stdout
    assert "1 of 2 issues had a task already." in said.stdout + said.stderr
    assert supervised.task("t-2").title == "#2 Slow prices"


def test_the_words_of_a_ticket_run_with_no_more_than_is_declared(supervised, forge):
    said = add(supervised, "--issue", issue(forge), "--permissions", "full", status=1)
    assert "may not give" in said
    supervised.env["FLEET_CODER"] = "claude"
    said = add(supervised, "--issue", issue(forge), "--coder", "scripted", status=1)
    assert "executes its prompt as a program" in said
    assert "Added t-" in add(supervised, "--issue", issue(forge))
    tasks = [supervised.task(row.id) for row in supervised.store.tasks(query())]
    assert [(t.caused_by, t.role) for t in tasks] == [("team-lead", "worker")]


def query():
    from fleet.ports import TaskQuery  # one test needs it

    return TaskQuery()


def test_a_supervisor_killed_after_its_comment_does_not_write_it_twice(supervised, forge):
    supervised.start()
    pid = supervised.supervisor.pid
    forge.after[r"POST .*/(comments|notes)$"] = lambda: os.kill(pid, signal.SIGKILL)
    add(supervised, "--issue", issue(forge))
    assert supervised.supervisor.wait(LIMIT) == -signal.SIGKILL
    forge.after.clear()
    reads = len(forge.called("GET", "comments|notes"))
    supervised.start()
    until(lambda: len(forge.called("GET", "comments|notes")) > reads)
    supervised.type("run", "stop")
    assert len(forge.comments[1]) == 1


def test_a_forge_that_is_down_hears_it_later(supervised, forge):
    forge.refusals[r"POST .*/(comments|notes)$"] = (500, {}, {"message": "Down"})
    supervised.start()
    add(supervised, "--issue", issue(forge))
    until(lambda: forge.called("POST", "comments|notes"))
    supervised.end()
    forge.refusals.clear()
    supervised.start()
    until(lambda: forge.comments.get(1))


def test_what_is_no_ticket_is_said(supervised, forge):
    for url in ("https://example.com/a/b/issues/1", "nonsense", forge.url):
        assert "not the address of a ticket" in add(supervised, "--issue", url, status=2)
    assert "answers 404" in add(supervised, "--issue", issue(forge, 99), status=1)
    assert forge.pulls == []


def test_a_label_alone_lets_nobody_comment_anywhere(supervised, forge):
    task = supervised.add("write a.txt x", labels=(issue(forge), f"ticket:{issue(forge)}"))
    supervised.start()
    supervised.wait(task)
    git(supervised.repo, "status")
    supervised.end(signal.SIGTERM)
    assert forge.comments == {}
