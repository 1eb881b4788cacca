"""Every path of claude-fleet's clients is described, and the page says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fleet.domain.access import Actor, Role
from fleet.operations.tasks.show import ShowTask
from fleet.server.claude_fleet.described import described
from fleet.server.claude_fleet.mount import CLAUDE_FLEET
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.claude_fleet.routes import SeedCall
from fleet.server.http.docs_page import page
from fleet.server.http.openapi import document

SCRIPT = Path(__file__).parents[4] / "scripts" / "reference_http.py"


def test_every_path_is_described_and_no_other():
    told = [(path.method, path.path) for path in described()]
    assert len(told) == len(set(told))
    assert set(told) == {(path.method, path.path) for path in PATHS} | {("POST", "/auth")}


def test_one_task_is_shown_by_the_operation_that_shows_a_task_everywhere():
    (path,) = [p for p in PATHS if (p.method, p.path) == ("GET", "/tasks/{id}")]
    call = SeedCall(Actor("ann", Role.TEAM_LEAD, "red"), {"id": "t-1"}, {}, {})
    assert path.ask(call) == ShowTask("t-1", brief=True)


def test_the_document_has_them_with_what_they_take_and_reply():
    call = json.loads(document(CLAUDE_FLEET))
    for path in described():
        what = call["paths"][path.path.replace(":path", "")][path.method.lower()]
        assert what["summary"] == path.about
        assert what["responses"]["200"]["content"]["application/json"]["schema"]
        assert ("requestBody" in what) is (path.body is not None)
    assert call["paths"]["/auth"]["post"]["security"] == []
    pages = [p["name"] for p in call["paths"]["/mail/{handle}"]["get"]["parameters"]]
    assert pages == ["handle", "before", "limit"]


def test_the_page_for_people_has_every_path_that_the_document_has():
    shown = page(CLAUDE_FLEET)
    for path, methods in json.loads(document(CLAUDE_FLEET))["paths"].items():
        assert path in shown
        for method in methods:
            assert f"{method.upper()} {path}" in shown or f"GET, POST {path}" in shown
    assert "depthLevel" in shown


def test_the_page_of_paths_is_what_the_table_says():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
