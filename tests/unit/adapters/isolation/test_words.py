"""What is put before an agent's command."""

from __future__ import annotations

import os

import pytest

from fleet.adapters.isolation.bubblewrap import NOBODY, Bubblewrap
from fleet.adapters.isolation.landlock import Landlock
from fleet.domain.errors import Refused
from fleet.ports import Launch
from tests.isolation import works


@pytest.fixture
def launch(tmp_path):
    return Launch(("/opt/bin/codex", "app-server"), str(tmp_path), sandboxes=True)


def test_landlock_refuses_a_program_that_makes_a_sandbox_of_its_own(tmp_path, launch):
    if not works("landlock"):
        pytest.skip("Landlock does not work here")
    isolation = Landlock(tmp_path / "home", [], {})
    with pytest.raises(Refused, match="codex makes a sandbox of its own"):
        isolation.before("t-1.1", launch)
    assert isolation.before("t-1.1", launch._replace(sandboxes=False))[-1] == "--"


def test_bubblewrap_does_not_let_such_a_program_be_root(tmp_path, launch):
    program = tmp_path / "bwrap"
    program.touch(mode=0o755)
    isolation = Bubblewrap(tmp_path / "home", [], {"PATH": str(tmp_path)})
    assert (NOBODY in isolation.before("t-1.1", launch)) == (os.geteuid() == 0)
    assert NOBODY not in isolation.before("t-1.1", launch._replace(sandboxes=False))
