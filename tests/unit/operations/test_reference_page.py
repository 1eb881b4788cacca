from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from fleet.cli import main as table
from fleet.cli.main import COMMANDS, LOCAL
from tests.unit.operations.samples import DECLARED

SCRIPT = Path(__file__).parents[3] / "scripts" / "reference_operations.py"
WITHOUT_A_COMMAND = {
    "run.stop_all",  # of `fleet run stop --agents`, which is local
    "task.mark",  # for programs: each word has a command of its own
    "member.show",  # for programs: `fleet teams` shows them all
    "enrolment.use",  # at /auth, by whom nobody knows yet
    "enrolment.show",  # likewise
    "task.counts",  # of the dashboard; `fleet status` counts the same
    "task.files",  # likewise; `fleet task NAME log` reads them itself
    "run.said",  # likewise; `fleet logs` folds the lines itself
    "run.attach",  # `fleet attach` becomes that command
    "node.list",  # `fleet nodes` asks the nodes itself, and shows the same rows
    "model.list",  # likewise
    "model.warm",  # likewise: `fleet warmup`
    "trace.list",  # likewise: `fleet trace`
    "gateway.show",  # likewise: `fleet gateway status`
    "gateway.log",  # likewise
    "setting.find",  # likewise: `fleet config find`
    "route.explain",  # of the dashboard
    "usage.report",  # likewise; `fleet stats` adds up the same runs
    "session.open",  # likewise
    "session.renew",  # likewise
    "host.join",  # `fleet host join` calls it before it has a token
    "host.token",  # `fleet host add` and the server make one for a machine
    "task.team",  # of a path of claude-fleet
    "run.screen",  # of `fleet top`, whose code is in classes, which are not followed here
    "worktree.diff",  # likewise
}

# What the dashboard asks for, of which a command shows the same in its own way.
SHOWN_BY = {
    "task.counts": "status",
    "task.files": "task",
    "run.said": "logs",
    "run.screen": "top",
    "usage.report": "stats",
    "model.list": "nodes",
    "model.warm": "warmup",
    "trace.list": "trace",
    "gateway.log": "gateway",
    "setting.find": "config",
}
OF_THE_PAGE = {"session.renew"}  # about its own sign-in
WEB = Path(table.__file__).parents[1] / "web"
CALLED = re.compile(r'"([a-z]+\.[a-z_]+)"')


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


def of_the_dashboard() -> set[str]:
    """Every operation that its modules name."""
    modules = [path for path in WEB.rglob("*.js") if "vendor" not in path.parts]
    return {name for path in modules for name in CALLED.findall(path.read_text())} & {*DECLARED}


def test_everything_that_the_dashboard_does_has_a_command(script):
    called, said = of_the_dashboard(), script.said_by()
    assert len(called) > 60
    bare = {name for name in called if DECLARED[name].request.__name__ not in said}
    assert bare == {*SHOWN_BY} | OF_THE_PAGE
    assert {*SHOWN_BY.values()} <= {*COMMANDS}


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
