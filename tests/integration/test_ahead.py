"""The next run's workspace is made while the slot of its model is busy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fleet.domain.run import Ending
from tests.integration.nodes import NodeStandIn
from tests.integration.supervised_home import git
from tests.wait import until

SETTINGS = """
nodes: {{left: {{kind: ollama, endpoint: "{url}"}}}}
models: {{small: {{node: left, upstream: "llama:3b"}}}}
agents: {{lefty: {{coder: scripted, model: small}}}}
workspace: {{setup: ["echo $FLEET_WORKSPACE >> {setups}"]}}
"""


@pytest.fixture
def setups(supervised, tmp_path):
    """The file in which each set-up writes a line; one node of one slot."""
    node, file = NodeStandIn(), tmp_path / "setups"
    supervised.home.mkdir(exist_ok=True)
    (supervised.home / "config.yaml").write_text(SETTINGS.format(url=node.url, setups=file))
    yield file
    node.stop()


def prepared(supervised) -> dict[str, Path]:
    """By task: the workspaces that are recorded as made ahead."""
    file = supervised.home / "ahead.json"
    rows = json.loads(file.read_text()) if file.exists() else {}
    return {task: Path(row["workspace"]["root"]) for task, row in rows.items()}


def two_tasks(supervised, setups, *first: str) -> tuple[str, str, Path]:
    """One that holds the slot, the next, and the latter's workspace, which is whole."""
    busy = supervised.add(*(first or ("sleep 60",)), agent="lefty")
    supervised.start()
    supervised.running(busy)
    waiting = supervised.add("say Hi.", agent="lefty")
    until(lambda: prepared(supervised).get(waiting), why=supervised.log.read_text)
    root = prepared(supervised)[waiting]
    making = root.with_name(f"{root.name}.making")
    until(lambda: root.exists() and not making.exists())
    assert len(setups.read_text().splitlines()) == 2
    assert supervised.store.runs(waiting) == []
    return busy, waiting, root


def branches(supervised) -> list[str]:
    return git(supervised.repo, "branch", "--format=%(refname:short)").split()


def test_a_run_starts_in_the_workspace_that_was_made_while_it_waited(supervised, setups):
    _, waiting, root = two_tasks(supervised, setups, "sleep 5")
    supervised.wait(waiting)
    run = supervised.run(waiting)
    assert Path(run.workspace.root) == root
    assert run.workspace.branch == f"fleet/{waiting}"
    assert len(setups.read_text().splitlines()) == 2, "its set-up ran once"
    assert prepared(supervised) == {}


def test_a_workspace_that_somebody_removed_meanwhile_is_made_again(supervised, setups):
    _, waiting, root = two_tasks(supervised, setups, "sleep 5")
    shutil.rmtree(root)
    supervised.wait(waiting)
    endings = [run.outcome.ending for run in supervised.store.runs(waiting)]
    assert endings[-1] is Ending.SUCCEEDED
    assert set(endings[:-1]) <= {Ending.YIELDED}, "its branch is there: then the next takes another"


def test_the_workspace_of_a_task_that_is_cancelled_is_removed(supervised, setups):
    _, waiting, root = two_tasks(supervised, setups)
    assert supervised.type("cancel", waiting).returncode == 0
    until(lambda: not prepared(supervised))
    assert not root.exists()
    assert f"fleet/{waiting}" not in branches(supervised)


def test_after_the_death_of_the_supervisor_the_next_one_starts_the_task(supervised, setups):
    busy, waiting, _ = two_tasks(supervised, setups)
    supervised.end()
    supervised.start()
    supervised.type("cancel", busy)
    supervised.wait(waiting)
    assert supervised.run(waiting).workspace.branch == f"fleet/{waiting}"
    assert supervised.endings(waiting) == ["succeeded"]
    until(lambda: not prepared(supervised))


def test_what_a_dead_supervisor_made_for_a_task_that_is_gone_is_removed(supervised, setups):
    _, waiting, root = two_tasks(supervised, setups)
    supervised.end()
    supervised.type("cancel", waiting)
    supervised.start()
    until(lambda: not prepared(supervised))
    assert not root.exists()
    assert f"fleet/{waiting}" not in branches(supervised)


def test_a_run_starts_from_the_newest_commit_although_its_workspace_was_made_before(
    supervised, setups
):
    _, waiting, _ = two_tasks(supervised, setups, "sleep 6")
    (supervised.repo / "new.txt").write_text("new\n")
    git(supervised.repo, "add", "new.txt")
    git(supervised.repo, "commit", "-m", "new")
    supervised.wait(waiting)
    workspace = supervised.run(waiting).workspace
    assert workspace.base == git(supervised.repo, "rev-parse", "HEAD").strip()
    assert workspace.branch == f"fleet/{waiting}"
    assert (Path(workspace.root) / "new.txt").exists()


def test_a_workspace_that_was_made_ahead_is_no_orphan(supervised, setups):
    two_tasks(supervised, setups)
    report = supervised.type("gc", "--dry-run")
    assert report.returncode == 0, report.stderr
    assert "belongs to no task" not in report.stdout + report.stderr
    doctor = supervised.type("doctor", "--json").stdout
    assert "belongs to no task" not in doctor
