"""The table of what each role may cause is true, and covers every operation that writes."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

from fleet.operations.catalogue import operations
from tests.docs.tree import TOP

# Whoever adds an operation that writes says here whether a run can begin because of it, and if so by
# which row of the table on the security page. `tests/integration/test_causes.py` walks the rows: add it there.
STARTS = {
    "task.add": "run", "task.add_all": "run", "agent.spawn": "run", "task.resume": "resume",
    "task.retry": "resume", "task.assign": "resume", "task.mark": "resume", "task.edit": "words",
    "task.depend": "resume", "task.independ": "resume", "message.send": "resume", "message.answer": "answer",
    "task.send_back": "send back", "review.submit": "send back", "review.ask": "review", "agent.fork": "fork",
    "land.undo": "run", "land.add": "land", "land.release": "land", "land.resume": "land", "run.permit": "permit",
    "run.attach": "permit",
    "model.warm": "warm", "race.start": "run", "race.pick": "race", "ticket.add": "run",
}  # fmt: skip
STARTS_NOTHING = {
    "task.cancel", "task.close", "task.pause", "message.comment", "message.unsend", "message.ask",
    "message.take", "run.interrupt", "run.stop_all", "token.create", "token.revoke", "member.seen",
    "swarm.create", "swarm.kill", "board.post", "board.mark_read", "board.archive", "mail.send",
    "mail.broadcast", "mail.read", "mail.take", "checkpoint.save", "checkpoint.accept",
    "checkpoint.reject", "memory.store", "file.claim", "file.release", "worktree.commit",
    "worktree.push", "worktree.merge", "worktree.pr", "land.hold", "land.give", "land.drop", "land.move",
    "land.pause", "host.drain", "host.resume", "host.token", "host.invite", "host.join", "host.forget", "enrolment.create", "enrolment.revoke", "enrolment.use", "session.code",
    "session.open", "session.renew", "chat.open", "chat.say", "chat.mark_read", "alert.raise",
    "alert.notice", "pull.open", "pull.sync", "pull.merge", "pull.close",
    "inbox.seen", "inbox.snooze", "view.save", "view.remove",
}  # fmt: skip


def test_of_every_operation_that_writes_it_is_known_whether_it_starts_a_run():
    writes = {operation.name for operation in operations() if not operation.is_read}
    assert writes == STARTS.keys() | STARTS_NOTHING
    assert set(STARTS.values()) <= {*table().ROWS, *table().ACTS, "permit"}


def table():
    spec = spec_from_file_location("reference_causes", TOP / "scripts" / "reference_causes.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_security_page_says_what_each_role_may_cause():
    """Every cell is asked of a server in `tests/integration/test_causes.py`."""
    argv = [sys.executable, "scripts/reference_causes.py", "--check"]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
