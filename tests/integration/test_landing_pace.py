"""A landing is as fast as its git and its gates: the supervisor is woken for each of its steps."""

from __future__ import annotations

from fleet.app import App, supervisor_parts
from tests.chaos.ready_work import ReadyWork
from tests.wait import LIMIT


def test_between_two_steps_of_a_landing_nobody_waits_for_the_clock(tmp_path):
    work = ReadyWork(tmp_path, 8, seed=1, flakes=0)
    app = App(work.repo, work.env, listening=True)
    lander = supervisor_parts.make_lander(app, app.supervisor())
    while "queued" in work.states().values():
        lander.step()
        assert app.bell.wait(LIMIT), "nothing wakes the supervisor"
    assert len(work.check()) == 6  # one of each two that do not go together
    app.leave()
    app.store.close()
    work.store.close()
