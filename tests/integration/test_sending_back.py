"""`fleet comment --file` and `fleet send-back`: remarks reach the agent, in its own conversation."""

from __future__ import annotations

import signal

from tests.contract.checkouts import git
from tests.wait import until


def test_the_agent_gets_the_text_and_every_remark_once_and_goes_on(supervised):
    task = supervised.add("write a.py x", "commit A", "end", "write b.py y", "commit B")
    supervised.start()
    supervised.wait(task)
    first = supervised.run(task).workspace
    noted = supervised.type("comment", task, "Name it.", "--file", "a.py", "--line", "1")
    assert f"fleet send-back {task}" in noted.stderr
    supervised.type("comment", task, "And test it.", "--file", "a.py")
    sent = supervised.type("send-back", task, "Nearly there.")
    assert sent.returncode == 0, sent.stderr
    until(lambda: len(supervised.endings(task)) == 2 and supervised.state(task) == "done")
    (words,) = [m for m in supervised.store.messages(task) if m.kind == "words"]
    assert words.text == (
        "Nearly there.\n\nRemarks on your work:\n- a.py:1: Name it.\n- a.py: And test it."
    )
    assert words.state == "closed"
    again = supervised.run(task)
    assert again.workspace == first
    assert git(supervised.repo, "show", f"{first.branch}:b.py") == "y"
    empty = supervised.type("send-back", task)
    assert empty.returncode == 2
    assert "nothing to tell" in empty.stderr


def test_work_that_waits_to_land_waits_until_the_agent_is_done_again(supervised):
    task = supervised.add("write a.py x", "commit A", "end", "write b.py y", "commit B")
    supervised.start()
    supervised.wait(task)
    supervised.end(signal.SIGTERM)
    queued = supervised.type("land", task)
    assert queued.returncode == 0, queued.stderr
    assert supervised.type("send-back", task, "More.").returncode == 0
    supervised.start()
    until(lambda: supervised.task(task).tally.landed, why=lambda: supervised.story(task))
    assert git(supervised.repo, "show", "HEAD:b.py") == "y"
    late = supervised.type("send-back", task, "Too late.")
    assert "has landed already" in late.stderr
    assert late.returncode == 1


def test_a_remark_on_a_file_that_the_task_did_not_change_is_refused(supervised):
    task = supervised.add("write a.py x", "commit A")
    supervised.start()
    supervised.wait(task)
    refused = supervised.type("comment", task, "Why?", "--file", "b.py", "--line", "1")
    assert refused.returncode == 2
    assert f"{task} did not change 'b.py'." in refused.stderr
    assert "It changed a.py." in refused.stderr
    assert not supervised.store.messages(task)
