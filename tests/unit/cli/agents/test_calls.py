"""What `fleet kill` says of an agent is what became of that agent's own worktree."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fleet.app.workspaces.manage import Cleared
from fleet.cli.agents.calls import _killed
from fleet.domain.errors import Unavailable

CLIENT = SimpleNamespace(call=lambda _: SimpleNamespace(task=SimpleNamespace(status="cancelled")))
AGENT = SimpleNamespace(task="t-2", branch="same-a2", path="/w/t-2-b/app")


@pytest.mark.parametrize(
    ("paths", "gone"),
    [((), False), (("/w/t-2-a",), False), (("/w/t-2",), False), (("/w/t-2-a", "/w/t-2-b"), True)],
)
def test_removed_means_its_own_worktree_and_no_other_of_its_task(paths, gone):
    assert _killed(CLIENT, AGENT, Cleared("t-2", paths)).removed is gone


def test_what_went_wrong_is_said_with_its_fix_also_of_a_full_disk():
    error = Unavailable("Another fleet process is removing it.", fix="Try again.")
    assert _killed(CLIENT, AGENT, Cleared("t-2", error=error)).error == (
        "Another fleet process is removing it. Try again."
    )
    full = _killed(CLIENT, AGENT, Cleared("t-2", error=OSError(28, "No space left on device")))
    assert full.error.startswith("the disk: No space left on device.")
    assert len(full.error) > len("the disk: No space left on device. ")
