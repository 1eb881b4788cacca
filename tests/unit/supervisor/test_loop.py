"""The loop: what fails in it is said, once, and the queue goes on."""

from __future__ import annotations

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
    hooks = loop.Hooks(**{"tell": lambda _: None, "warn": warned.append} | given)
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


def test_a_full_disk_of_the_log_is_said_and_ends_nothing():
    warned = run(Steps(Unavailable("Away.")), 3, files=Files(broken=True))
    assert warned == ["Away. Trying again.", "files: OSError: [Errno 28] No space left on device"]


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
