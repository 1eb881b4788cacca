from __future__ import annotations

from fleet.adapters.relay.recent import MOST_REMEMBERED, Recent


def test_names_that_are_always_new_take_no_memory_for_ever():
    recent = Recent[str, int]()
    for number in range(3 * MOST_REMEMBERED):
        recent.note("stays", number)
        recent.note(f"agent-{number}", number)
    assert len(recent) == MOST_REMEMBERED
    assert recent["stays"] == 3 * MOST_REMEMBERED - 1
