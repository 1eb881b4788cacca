from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from fleet.cli.main import COMMANDS, LOCAL
from tests.unit.operations.samples import DECLARED

SCRIPT = Path(__file__).parents[3] / "scripts" / "reference_operations.py"
WITHOUT_A_COMMAND = {
    "run.stop_all",  # of `fleet run stop --agents`, which is local
    "task.mark",  # for programs: each word has a command of its own
    "member.show",  # for programs: `fleet teams` shows them all
    "enrolment.use",  # at /auth, by whom nobody knows yet
    "enrolment.show",  # likewise
    "task.counts",  # of the dashboard
    "task.events",  # likewise
    "task.gates",  # likewise
    "task.files",  # likewise; `fleet task NAME log` reads them itself
    "task.preview",  # likewise
    "run.said",  # likewise; `fleet logs` folds the lines itself
    "run.attach",  # `fleet attach` becomes that command
    "run.interrupt",  # of the dashboard: at the terminal itself it is one key
    "node.list",  # `fleet nodes` asks the nodes itself, and shows the same rows
    "model.list",  # likewise
    "model.warm",  # likewise: `fleet warmup`
    "trace.list",  # likewise: `fleet trace`
    "gateway.show",  # likewise: `fleet gateway status`
    "gateway.log",  # likewise
    "route.explain",  # of the dashboard
    "race.list",  # likewise
    "limit.list",  # likewise
    "usage.report",  # likewise
    "budget.list",  # likewise
    "session.open",  # likewise
    "session.renew",  # likewise
    "me.show",  # likewise
    "inbox.seen",  # likewise
    "inbox.snooze",  # likewise
    "view.list",  # likewise
    "view.remove",  # likewise
    "view.save",  # likewise
    "task.team",  # of a path of claude-fleet
    "run.screen",  # of `fleet top`, whose code is in classes, which are not followed here
    "worktree.diff",  # likewise
}


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("reference_operations", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(script):
    return script.reference()


def test_the_reference_of_operations_is_what_the_code_says(script, page):
    assert page == script.PAGE.read_text(), "run `python scripts/reference_operations.py`"


def test_every_operation_is_said_by_a_command_or_known_to_have_none(script):
    said = script.said_by()
    unsaid = {name for name, o in DECLARED.items() if o.request.__name__ not in said}
    assert unsaid == WITHOUT_A_COMMAND


def test_every_command_that_is_not_local_says_an_operation(script):
    requests = {o.request.__name__ for o in DECLARED.values()}
    said = script.said_by()
    saying = {name.split()[0] for request in requests for name in said.get(request, ())}
    assert saying == COMMANDS.keys() - LOCAL - {"top"}


def test_the_page_names_every_field_of_every_record(page):
    assert "## task.add" in page
    assert "| `priority` | whole number, 0 to 4 | `2` |" in page
    assert "| `run` | [RunNow](#runnow), or null |  |" in page
    assert "replies with a list of [TaskRow](#taskrow), said by `fleet " in page
