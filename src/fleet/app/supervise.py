"""Be the supervisor of this home: in this process (`fleet run`), or in a thread of the server."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from fleet.app.supervisor_parts import make_beads, make_lander, make_notices, make_ticket_reports
from fleet.base.machine import is_out_of_files, raise_file_limit
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.adapters.processes.keepers import Keepers
    from fleet.app.app import App
    from fleet.domain.task import Task
    from fleet.ports import Report, Store, TaskFiles
    from fleet.supervisor.supervisor import Supervisor

LOCK_SECONDS = 15.0  # to wait for a command that holds the supervisor's lock
RETRY_LOCK = 0.2  # seconds between tries to be the supervisor, while a command holds the lock
RETRY_FILES = 1.0  # seconds between tries to start while no file can be opened
LONGEST_ERROR = 2000  # characters of the last error
INDEX_SECONDS = 0.1  # of each round, to index old transcripts
FOLDERS_A_ROUND = 100
UNFINISHED = ("open", "running", "review")
LAST_NOTICES = 2.0  # seconds for notices that are being sent when the supervisor stops


class Options(NamedTuple):
    """What `fleet run` was started with; a restart uses the same."""

    coder: str = ""
    most: int = 0
    config: str = ""
    cwd: str = ""
    once: bool = False
    detached: bool = False


def supervise(app: App, options: Options, report: Report) -> None:
    """Supervise in the main thread until a signal. Raise `Refused` when another one runs."""
    from fleet.app import preload

    preload()
    raise_file_limit()
    _ = app.loaded  # relative paths are relative to this directory: read them before we leave it
    if options.detached:
        os.chdir("/")  # else the directory we were started in could not be unmounted
    with _lock_home(app):
        stop = Stop(app)
        on_signals(stop.ask, stop.wake)
        _supervise_until(stop, app, options, report)


class SupervisorThread:
    """The supervisor in a thread of another process of ours, with a store of its own.

    `make_app` is called in that thread, which alone uses the store that it opens.
    `failed` is called there when the supervisor ends by itself; `end` raises why.
    `crowded`: whether the process has requests to answer, which go first.
    """

    def __init__(
        self,
        make_app: Callable[[], App],
        options: Options,
        report: Report,
        failed: Callable[[], None],
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._make_app, self._options = make_app, options
        self._crowded = crowded
        self._report, self._failed = report, failed
        self._over = threading.Event()
        self._stop: Stop | None = None
        self.ended_by: int = signal.SIGTERM  # the signal that ends this process
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Start the next round at once, because the settings may have changed."""
        if self._stop is not None:
            self._stop.wake()

    def end(self) -> None:
        """End the supervisor; agents go on. Raise the error that ended it before."""
        with self._lock:
            self._over.set()
            if self._stop is not None:
                self._stop.ask(self.ended_by)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._start():
                self._over.wait(RETRY_FILES)
        except BaseException as error:  # noqa: BLE001  # `end` raises it again
            self._error = error
            self._failed()

    def _start(self) -> bool:
        """Supervise until the end; return False if there were too few file descriptors to begin."""
        from fleet.app import preload

        try:
            preload()
            self._supervise(self._make_app())
        except Exception as error:
            if self._over.is_set() or not is_out_of_files(error):
                raise
            if not self._warned:
                self._warned = True
                self._report.warning(
                    f"The supervisor cannot start: {error}. Trying again.", time.time_ns() // 1000
                )
            return False
        return True

    def _supervise(self, app: App) -> None:
        while not self._over.is_set():
            with app.home.alone() as locked:
                if locked:
                    self._supervise_locked(app)
                    return
            if other := app.daemon.running():
                self._report.line(
                    f"A supervisor is already running here (pid {other.pid}): this server only serves."
                )
                return
            self._over.wait(RETRY_LOCK)

    def _supervise_locked(self, app: App) -> None:
        with self._lock:
            self._stop = Stop(app)
            if self._over.is_set():
                return
        _supervise_until(self._stop, app, self._options, self._report, self._crowded)


def _supervise_until(
    stop: Stop,
    app: App,
    options: Options,
    report: Report,
    crowded: Callable[[], bool] = lambda: False,
) -> None:
    """Run the supervisor's loop; call it with the host's lock held, in the app's thread."""
    if news := app.arrive():
        report.line(news)
    supervisor = app.supervisor(coder=options.coder, max_concurrent=options.most)
    with _linked(app, report):
        _loop(stop, app, options, report, supervisor, crowded)
    stop.complain()
    report.ended()
    app.leave(by_person=stop.by_person)
    if supervisor.attempts:
        count, lease = len(supervisor.attempts), supervisor.here.lease
        late = f" After {lease} s without one, other machines do."
        more = late if app.shared and not stop.by_person else ""
        report.line(f"Stopped. {count} still running; the next `fleet run` takes over.{more}")


@contextmanager
def _linked(app: App, report: Report) -> Iterator[None]:
    """Connect to the server of `host.server`, which can then read what is on this host."""
    url = app.loaded.settings.host.server
    if not url or not app.shared:
        yield
        return
    from fleet.app.hosts.link import HostLink

    link = HostLink(app, url, report.line)
    link.begin()
    try:
        yield
    finally:
        link.end()


def _loop(
    stop: Stop,
    app: App,
    options: Options,
    report: Report,
    supervisor: Supervisor,
    crowded: Callable[[], bool],
) -> None:
    from fleet.app.compute.keep_alive import KeepAlive
    from fleet.app.telemetry import Telemetry
    from fleet.supervisor import loop

    record = Record(app, options, report)
    notices = make_notices(app, record.warn)
    beads = make_beads(app, record.warn)
    tickets = make_ticket_reports(app, record.warn)

    def uses_beads() -> bool:
        return app.worlds("").settings.queue == "beads"

    def step_beads() -> None:
        if uses_beads():
            beads.step(app.store.now())

    lander = make_lander(app, supervisor)

    def step_lander() -> None:
        lander.step()
        supervisor.gates = lander.gates
        hooks.say("landing", loop.joined(lander.trouble.items()))

    services = KeepAlive(app.home.path)
    telemetry = Telemetry(app, record.warn)

    def keep_services() -> None:
        services.step(hooks)

    words = WordIndexer(app)
    hooks = loop.LoopHooks(
        tell=telemetry.after(report.event),
        left=report.left,
        warn=record.warn,
        over=record.over,
        began=record.began,
        files=app.files,
        complaints=lambda: app.worlds.complaints,
        on_news=(notices.step, step_lander, tickets.step, words.step),
        also=(
            *(record.step, stop.look, step_beads, *_tidying(app)),
            *(keep_services, telemetry.step, report.step),
        ),
        idle=lambda: lander.idle and tickets.idle and (beads.idle or not uses_beads()),
        crowded=crowded,
    )
    try:
        loop.run(supervisor, app.store, once=options.once, stopping=stop, hooks=hooks)
    finally:
        services.close()
        hooks.safely("telemetry", telemetry.close)
        hooks.safely("notices", notices.close, LAST_NOTICES)


def _tidying(app: App) -> tuple[Callable[[], None], ...]:
    """Return the steps that tidy this home, a little in each round."""
    from fleet.app.disk import DiskLook
    from fleet.app.retention import old_history, old_kept, old_transcripts

    missing, old = MissingFolders(app.store, app.files), OldOrders(app.keepers, app.home.runs)
    history, kept = old_history(app), old_kept(app)
    disk = DiskLook(app.store, app.home, app.home.host_id(), kept)
    return missing.step, old.step, old_transcripts(app).step, history.step, kept.step, disk.step


class MissingFolders:
    """Write the folders of tasks whose writer crashed before it wrote them: a few in each round."""

    def __init__(self, store: Store, files: TaskFiles) -> None:
        self._store, self._files = store, files
        self._before = ""
        self._over = False

    def step(self) -> None:
        from fleet.ports import TaskQuery

        if self._over:
            return
        query = TaskQuery(UNFINISHED, before=self._before, limit=FOLDERS_A_ROUND)
        page = self._store.tasks(query)
        for task in page:
            if not self._files.is_there(task.id):
                self._files.refresh(task.id)
        self._over = len(page) < FOLDERS_A_ROUND
        self._before = page[-1].id if page else ""


class WordIndexer:
    """Index what can be searched: new tasks, and what agents said before there was an index.

    It takes `INDEX_SECONDS` of each round.
    """

    def __init__(self, app: App) -> None:
        self._store, self._index = app.store, app.transcript_index
        self._left = iter(()) if self._index.is_whole else self._index.build(self._ran())

    def _ran(self) -> Iterator[Task]:
        from fleet.operations.shared.pages import pages
        from fleet.ports import TaskQuery

        for page in pages(self._store.tasks, TaskQuery(limit=FOLDERS_A_ROUND)):
            yield from (task for task in page if task.tally.runs)

    def step(self) -> None:
        self._store.index_words()
        until = time.monotonic() + INDEX_SECONDS
        while time.monotonic() < until and next(self._left, self) is not self:
            pass


class OldOrders:
    """Removes environments that an older version left in the runs' folders, a few each round."""

    def __init__(self, keepers: Keepers, runs: Path) -> None:
        self._keepers, self._left = keepers, iter(sorted(runs.glob("*/launch.json")))

    def step(self) -> None:
        for order in islice(self._left, FOLDERS_A_ROUND):
            self._keepers.forget_env(order.parent.name)


@contextmanager
def _lock_home(app: App) -> Iterator[None]:
    """Take the lock of this home, or raise which process is its supervisor."""
    from fleet.domain.errors import Refused

    until = time.monotonic() + LOCK_SECONDS
    while True:
        with app.home.alone() as locked:
            if locked:
                yield
                return
        if app.daemon.running() or time.monotonic() > until:
            break
        time.sleep(0.01)
    raise Refused(
        f"A supervisor is already running here (pid {app.home.supervisor_pid()}).",
        fix="It picks up new tasks by itself; `fleet tasks --watch` shows them.",
        code="already_running",
    )


class Stop:
    """Whether the supervisor has been asked to stop, from any thread.

    Also true when the home was removed or replaced, as another may supervise the new one.
    """

    def __init__(self, app: App) -> None:
        self._requested = self._home_lost = False
        self.by_person = False  # stopped with Ctrl-C; a shutdown of the machine sends SIGTERM
        self._lock = app.home.path / "supervisor.lock"
        self._inode = self._lock.stat().st_ino
        self._bell = app.bell

    def ask(self, number: int = signal.SIGTERM) -> None:
        self.by_person = number == signal.SIGINT
        self._requested = True
        self._bell.ring_self()

    def wake(self) -> None:
        self._bell.ring_self()

    def __call__(self) -> bool:
        return self._requested

    def look(self) -> None:
        try:
            ours = self._lock.stat().st_ino == self._inode
        except FileNotFoundError:
            ours = False
        self._home_lost = self._home_lost or not ours
        self._requested = self._requested or self._home_lost

    def complain(self) -> None:
        if self._home_lost:
            from fleet.domain.errors import Unavailable

            raise Unavailable(
                f"{self._lock.parent} was removed or replaced while the supervisor was running."
            )


def on_signals(ask: Callable[[int], None], wake: Callable[[], None]) -> None:
    """Handle signals in the main thread: the first asks us to stop, the second ends us at once.

    Closing our terminal asks too. Without a terminal, SIGHUP makes us look at the settings. Signals
    that the parent ignores stay ignored: SIGINT behind a script's `&`, SIGHUP behind `nohup`.
    """
    stop_signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        stop_signals.append(signal.SIGINT)

    def on_stop(number: int, _frame: object) -> None:
        for each in stop_signals:
            signal.signal(each, signal.SIG_DFL)
        ask(number)

    def on_hangup(_number: int, _frame: object) -> None:
        wake()

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        if has_terminal():
            stop_signals.append(signal.SIGHUP)
        else:
            signal.signal(signal.SIGHUP, on_hangup)
    for number in stop_signals:
        signal.signal(number, on_stop)


def has_terminal() -> bool:
    """Whether we have a terminal, whose end the kernel would signal to us."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class Record:
    """The file for `fleet run status` and `restart`, written when it changes."""

    def __init__(self, app: App, options: Options, report: Report) -> None:
        self._app, self._report = app, report
        self._written: object = None
        self._record = app.daemon.record(
            detached=options.detached,
            coder=options.coder,
            most=options.most,
            config=options.config,
            cwd=options.cwd,
        )
        with suppress(OSError):  # a full disk must not keep us from supervising runs
            self.step()

    def began(self) -> None:
        home = self._app.home
        self._record = self._record._replace(supervising=True)
        self._report.began(self._app.store)
        self.step()
        self._report.line(
            f"Supervising {home.path} as {home.host_id()}. Ctrl-C stops it; agents keep running."
        )

    def step(self) -> None:
        from fleet.supervisor.loop import distinct

        self._record = self._record._replace(complaints=distinct(self._app.worlds.complaints))
        if self._record != self._written:
            self._app.daemon.note(self._record)
            self._written = self._record

    def warn(self, text: str) -> None:
        at = time.time_ns() // 1000
        self._record = self._record._replace(error=text[:LONGEST_ERROR], error_at=at)
        self._report.warning(text, at)

    def over(self, text: str) -> None:
        if self._record.error == text[:LONGEST_ERROR]:
            self._record = self._record._replace(error="", error_at=0)
