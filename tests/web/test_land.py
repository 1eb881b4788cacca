"""What is tested before it lands: its gate is read while it runs."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served

GATE = "sh -c 'echo 11 of 12 tests pass; while [ ! -e {go} ]; do sleep 0.1; done; echo 12 of 12'"


@pytest.fixture
def served(tmp_path):
    scratch = Scratch(tmp_path / "x")
    scratch("config", "set", "--project", f"land.gate={GATE.format(go=tmp_path / 'go')}")
    scratch.add("Read prices", script="write a.py\ncommit A")
    made = Served(scratch)
    scratch.wait_for("t-1", "done")
    yield made
    (tmp_path / "go").touch()
    made.close()


def test_what_a_gate_prints_is_seen_while_it_runs(served, tab, tmp_path):
    shown = tab(served, served.token())
    page = shown.open("/land")
    page.get_by_text("Nothing is to land").wait_for()
    served.scratch("land", "t-1")
    lines = page.get_by_role("log", name="What the gate of t-1 prints")
    lines.get_by_text("11 of 12 tests pass").wait_for()
    assert shown.faults() == []
    for width in (360, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert shown.overflow() <= 0
    (tmp_path / "go").touch()
    page.get_by_role("region", name="Landed").get_by_text("Read prices").first.wait_for()
    lines.wait_for(state="detached")
