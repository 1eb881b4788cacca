"""The loop: what fails in it is said, once, and the queue goes on."""

from __future__ import annotations

import time

import pytest

from fleet.domain.errors import Unavailable
from fleet.domain.event import Event
from fleet.supervisor import loop
from fleet.testing.fakes import NoFiles
from fleet.testing.memory_store import MemoryStore


class Steps:
    """A supervisor of which each step is given: None, or what it raises."""

    def __init__(self, *steps) -> None:
        self.steps, self.done, self.trouble, self.attempts = list(steps), 0, {}, {}
        self.idle, self.stuck = False, {}

    def start(self) -> None: ...

    def left(self) -> dict[str, str]:
        return {}

    def step(self) -> bool:
        self.done += 1
        if self.steps and (error := self.steps.pop(0)):
            raise error
        return True


class Files(NoFiles):
    def __init__(self, *, broken: bool = False) -> None:
        self.noted, self._broken = [], broken

    def note(self, event) -> None:
        if self._broken:
            raise OSError(28, "No space left on device")
        self.noted.append((event.type, event.data.get("text", "")))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(loop, "IDLE", 0.001)


def run(supervisor, rounds: int, store=None, **given):
    warned: list[str] = []
    hooks = loop.LoopHooks(**{"tell": lambda _: None, "warn": warned.append} | given)
    loop.run(
        supervisor, store or MemoryStore(), once=False,
        stopping=lambda: supervisor.done >= rounds, hooks=hooks,
    )  # fmt: skip
    return warned


def test_a_store_that_is_away_is_said_once_and_waited_for():
    gone = [Unavailable("The store is locked.")] * 3
    supervisor = Steps(*gone, None, *gone[:1])
    warned = run(supervisor, 6)
    assert warned == ["The store is locked. Trying again."] * 2  # it was back in between


def test_a_bug_is_shown_whole_and_survived_but_not_for_ever():
    warned = run(Steps(KeyError("x"), None), 3)
    assert "KeyError: 'x'" in warned[0]
    assert "Traceback" in warned[0]
    with pytest.raises(KeyError):
        run(Steps(*[KeyError("x")] * 9), 9)


def test_every_event_is_noted_and_a_hook_that_fails_holds_up_none_of_the_others():
    store, files, stepped = MemoryStore(), Files(), []

    def broken(_event=None):
        raise ValueError("no")

    def act():
        store.commit([], [Event("task.added", "t-1", "ada", 1)])
        stepped.append(1)

    warned = run(Steps(), 3, store, tell=broken, files=files, also=[broken, act])
    assert len(stepped) == 3
    assert [kind for kind, _ in files.noted].count("task.added") == 2
    assert warned == [f"{broken.__qualname__}: ValueError: no", "tell: ValueError: no"]
    assert ("supervisor.warned", warned[0]) in files.noted


def test_in_a_crowd_events_wait_for_the_next_rounds_and_all_are_noted_after_it():
    store, files, noted = MemoryStore(), Files(), []
    crowd = iter([False, True, True, True, True])  # the last: before the wait of the second round

    def act():
        if not noted:
            store.commit([], [Event("task.added", f"t-{n}", "ada", 1) for n in range(100)])
        noted.append(len(files.noted))

    def crowded():
        return next(crowd, False)

    run(Steps(), 4, store, files=files, also=[act], crowded=crowded)
    assert noted[0] == 0
    assert 0 < noted[1] <= loop.CROWD
    assert noted[-1] == 100


class SlowSteps(Steps):
    """Each step takes a while, as with thousands of tasks to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[tuple[float, float]] = []

    def step(self) -> bool:
        began = time.monotonic()
        while time.monotonic() - began < 0.02:
            pass
        self.spans.append((began, time.monotonic()))
        return super().step()


def test_in_a_crowd_a_slow_round_is_rested_from_for_several_times_as_long():
    supervisor = SlowSteps()
    run(supervisor, 3, crowded=lambda: True)
    for (began, ended), (following, _) in zip(supervisor.spans, supervisor.spans[1:], strict=False):
        assert following - ended >= loop.SHARE * (ended - began)


def test_many_events_wait_for_the_next_rounds_so_that_the_supervisor_can_step_and_stop(monkeypatch):
    monkeypatch.setattr(loop, "ROUND", 0.0)  # each event takes longer than that
    store, files, supervisor = MemoryStore(), Files(), Steps()
    store.commit([], [Event("task.added", "t-1", "ada", 1)])
    added = [Event("task.added", "t-1", "ada", n) for n in range(2, 52)]
    began = lambda: store.commit([], added)  # noqa: E731  # a rush, just as it starts
    run(supervisor, 20, store, files=files, began=began)
    assert len(files.noted) == 20  # one in each round, and it stopped when it was told to
    supervisor.idle = True
    hooks = loop.LoopHooks(tell=lambda _: None, warn=print, files=files, began=began)
    loop.run(supervisor, store, once=True, stopping=lambda: False, hooks=hooks)
    assert len(files.noted) == 20 + 50  # with `--once` it ends when all are noted


def test_a_full_disk_of_the_log_is_said_and_ends_nothing():
    warned = run(Steps(Unavailable("Away.")), 3, files=Files(broken=True))
    assert warned == ["Away. Trying again.", "files: OSError: [Errno 28] No space left on device"]


def test_where_the_store_is_stays_out_of_the_log_whatever_asked_it():
    gone = Unavailable("The store at db.internal cannot be reached.")
    gone.public = "The store cannot be reached."

    def ask() -> None:
        raise gone

    files = Files()
    warned = run(Steps(gone), 2, files=files, began=ask, also=(ask,))
    assert sum("db.internal" in text for text in warned) == 3  # who runs it is told
    noted = [text for _, text in files.noted]
    assert len(noted) == 3
    assert all("The store cannot be reached." in text for text in noted)


def test_wrong_settings_are_said_once_for_each_change_and_so_is_their_mending():
    rounds = iter([
        {"": "config.yaml:1: wrong", "/shop": "/home/config.yaml:1: wrong"},
        {"": "config.yaml:1: wrong", "/shop": "/home/config.yaml:1: wrong"},
        {"": "config.yaml:2: worse"},
        {},
        {"/shop": "fleet.yaml:1: bad"},
    ])  # fmt: skip
    over = []
    warned = run(Steps(), 5, complaints=lambda: next(rounds), over=over.append)
    still = "Still with the settings from before: "
    assert warned == [
        f"{still}config.yaml:1: wrong",
        f"{still}config.yaml:2: worse",
        "The settings of the home are read again.",
        f"{still}fleet.yaml:1: bad",
    ]
    assert over == warned[:3]


class Resting(Steps):
    """One that has nothing to do. It rests as often as `rests` says, then its next step ends the loop."""

    may_rest = True

    def __init__(self, rests: int, *, due_after: int = 1 << 30) -> None:
        super().__init__()
        self.rests, self.due_after, self.rounds = rests, due_after, []

    def step(self) -> bool:
        self.rounds.append("whole")
        return False

    def rest(self) -> bool:
        self.rounds.append("rest")
        self.done = self.rounds.count("rest")
        return self.done == self.due_after


def test_a_host_with_nothing_to_do_asks_for_events_alone_until_there_are_some():
    store, asked = MemoryStore(), []

    def act():
        if len(supervisor.rounds) == 4:
            store.commit([], [Event("task.added", "t-1", "ada", 1)])

    supervisor = Resting(5)
    run(supervisor, 5, store, also=[act], on_news=[lambda: asked.append(len(supervisor.rounds))])
    assert supervisor.rounds == ["whole", *["rest"] * 4, "whole", "rest"]
    assert asked == [1, 6]


def test_a_host_that_rests_works_again_when_the_time_of_a_task_has_come():
    supervisor = Resting(4, due_after=2)
    run(supervisor, 4)
    assert supervisor.rounds == ["whole", "rest", "rest", "whole", "rest", "rest"]


def test_a_host_where_something_is_under_way_does_not_rest():
    supervisor = Resting(1)
    busy = iter([False, False, True])
    run(supervisor, 1, idle=lambda: next(busy, True))
    assert supervisor.rounds == ["whole", "whole", "whole", "rest"]
