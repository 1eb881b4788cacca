"""Being the supervisor, until a signal ends it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from fleet.cli.terminal.log_lines import fact_line, words_of
from fleet.cli.terminal.render import say
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.app import App
    from fleet.domain.event import Event
    from fleet.supervisor.supervisor import Supervisor

ERRAND = 15.0  # seconds that we wait for a command that holds the lock to see to a run
MOST = 2000  # characters of the last error
MOST_TOLD = 100  # of what an event says
LAST_WORDS = 2.0  # seconds for notices that are under way


class Given(NamedTuple):
    """What `fleet run` was started with; a restart uses the same."""

    coder: str = ""
    most: int = 0
    config: str = ""
    cwd: str = ""
    once: bool = False
    detached: bool = False


def supervise(app: App, given: Given) -> int:
    from fleet.app import preload

    preload()
    _ = app.loaded  # what is relative is relative to where we were started
    if given.detached:
        os.chdir("/")  # else nobody could unmount or remove where we were started
    with _alone(app):
        stop = Stop(app)
        on_signals(stop.ask, stop.wake)
        supervise_until(app, given, stop)
    return 0


def supervise_until(
    app: App, given: Given, stop: Stop, heard: Callable[[], None] = lambda: None
) -> None:
    """With the host's lock held, in the thread that made the app. `heard`: after every event."""
    app.arrive()
    supervisor = app.supervisor(coder=given.coder, max_concurrent=given.most)
    _loop(app, given, supervisor, stop, heard)
    stop.complain()
    app.leave()
    if supervisor.attempts:
        count = len(supervisor.attempts)
        say(f"Stopped. {count} still run; the next `fleet run` takes them up.")


def _loop(
    app: App, given: Given, supervisor: Supervisor, stop: Stop, heard: Callable[[], None]
) -> None:
    from fleet.supervisor import loop

    record = Record(app, given)
    notices = app.notices(record.warn)
    beads = app.beads(record.warn)

    def trades() -> bool:
        return app.worlds("").settings.queue == "beads"

    def trade() -> None:
        if trades():
            beads.step(app.store.now())

    def told(event: Event) -> None:
        heard()
        tell(event)

    hooks = loop.Hooks(
        tell=told,
        warn=record.warn,
        over=record.over,
        began=record.began,
        files=app.files,
        complaints=lambda: app.worlds.complaints,
        also=(notices.step, record.step, stop.look, trade),
        idle=lambda: beads.idle or not trades(),
    )
    try:
        loop.run(supervisor, app.store, once=given.once, stopping=stop, hooks=hooks)
    finally:
        hooks.safely("notices", notices.close, LAST_WORDS)


@contextmanager
def _alone(app: App) -> Iterator[None]:
    """Be the supervisor of this home, or say who is."""
    from fleet.domain.errors import Refused

    until = time.monotonic() + ERRAND
    while True:
        with app.home.alone() as mine:
            if mine:
                yield
                return
        if app.daemon.running() or time.monotonic() > until:
            break
        time.sleep(0.01)
    raise Refused(
        f"A supervisor runs here already (pid {app.home.supervisor_pid()}).",
        fix="It takes new tasks by itself; `fleet tasks --watch` shows them.",
        code="already_running",
    )


class Stop:
    """True once somebody has asked for it, from any thread.

    A home that was removed or replaced is no longer ours: another may supervise the new one.
    """

    def __init__(self, app: App) -> None:
        self._asked = self._homeless = False
        self._lock = app.home.path / "supervisor.lock"
        self._ours = self._lock.stat().st_ino
        self._bell = app.bell

    def ask(self) -> None:
        self._asked = True
        self._bell.ring_self()

    def wake(self) -> None:
        self._bell.ring_self()

    def __call__(self) -> bool:
        return self._asked

    def look(self) -> None:
        try:
            there = self._lock.stat().st_ino == self._ours
        except FileNotFoundError:
            there = False
        self._homeless = self._homeless or not there
        self._asked = self._asked or self._homeless

    def complain(self) -> None:
        if self._homeless:
            from fleet.domain.errors import Unavailable

            raise Unavailable(f"{self._lock.parent} is gone, or another one is in its place.")


def on_signals(ask: Callable[[], None], wake: Callable[[], None]) -> None:
    """In the main thread: a signal asks to stop; a second one ends us at once, as it ends anything.

    A terminal that is closed asks too. Without one SIGHUP is a reason to look at the settings.
    """
    asking = [signal.SIGINT, signal.SIGTERM]

    def asked(_number: int, _frame: object) -> None:
        for number in asking:
            signal.signal(number, signal.SIG_DFL)
        ask()

    def woken(_number: int, _frame: object) -> None:
        wake()

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` leaves it
        if has_terminal():
            asking.append(signal.SIGHUP)
        else:
            signal.signal(signal.SIGHUP, woken)
    for number in asking:
        signal.signal(number, asked)


def has_terminal() -> bool:
    """Whether there is one whose end would be told to us."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class Record:
    """What `fleet run status` and `restart` need to know, written when it changes."""

    def __init__(self, app: App, given: Given) -> None:
        self._app = app
        self._written: object = None
        self._now = app.daemon.standing(
            detached=given.detached,
            coder=given.coder,
            most=given.most,
            config=given.config,
            cwd=given.cwd,
        )
        with suppress(OSError):  # a full disk: what runs already is to be looked after
            self.step()

    def began(self) -> None:
        app = self._app
        self._now = self._now._replace(supervising=True)
        self.step()
        say(f"Supervising {app.home.path} as {app.home.host_id()}. Ctrl-C stops; agents go on.")

    def step(self) -> None:
        from fleet.supervisor.loop import distinct

        self._now = self._now._replace(complaints=distinct(self._app.worlds.complaints))
        if self._now != self._written:
            self._app.daemon.note(self._now)
            self._written = self._now

    def warn(self, text: str) -> None:
        now = time.time_ns() // 1000
        self._now = self._now._replace(error=text[:MOST], error_at=now)
        clock = time.strftime("%H:%M:%S", time.localtime(now / 1_000_000))
        say(f"{clock} {text}", "yellow")

    def over(self, text: str) -> None:
        if self._now.error == text[:MOST]:
            self._now = self._now._replace(error="", error_at=0)


def tell(event: Event) -> None:
    words = words_of(event.data)[:MOST_TOLD]
    say(fact_line(event.at, event.run or event.task, event.type, words))
