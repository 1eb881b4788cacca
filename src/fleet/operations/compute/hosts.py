"""The machines with a supervisor: what each has and lacks, and whether it takes new runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet import __version__
from fleet.base.outside import Time
from fleet.domain.access import GRANTS, Permission, Revocation, name_key, sees
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Mismatch, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.findings import BAD, OK, WARNING
from fleet.domain.hosts.disk import LITTLE, bytes_in_words, disk_use
from fleet.domain.hosts.labels import SYSTEMS, UNTRUSTED, WITHOUT
from fleet.domain.hosts.state import UP, HostState, is_over, state_of
from fleet.domain.limits import Rows, TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import may_name
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.domain.run import Host, Run
    from fleet.operations.catalogue import Context

MOST_HOSTS = 1000  # whose disk is told
MOST_RUNS = 100  # of one host that are listed
HostName = Annotated[str, TextLimit(200, some=True, what="host")]


@dataclass(frozen=True, slots=True)
class TroubleRow:
    """A node that the host cannot reach, a program that it does not find, a project it cannot use."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class DiskRow:
    """The bytes that the home of a machine takes, at the time its supervisor measured that: `at`.

    `worktrees`: also those in which gates run; `pool`: what waits for the next tasks, finished
    set-ups too. `kept`: what only kept work holds in its repositories. `total`: of these and of `runs`. `free`: of the
    file system of the home, for its user.
    """

    at: Time
    total: int
    worktrees: int
    pool: int
    kept: int
    runs: int
    free: int


@dataclass(frozen=True, slots=True)
class HostRow:
    """`state`: awake, draining, silent, lost or stopped. `awake`: it is one of the first two.

    `seen_at`: when its supervisor renewed its lease, which holds until `lease_until`.
    `room`: runs at once; 0: as the settings say. `release`: of Fleet, that it runs.
    `without`: of the projects in which the caller may have work. `disk`: none until its supervisor
    has looked at all of its home for the first time.
    """

    id: str
    name: str
    awake: bool
    lease_until: Time
    runs: int
    room: int
    down: tuple[TroubleRow, ...]
    missing: tuple[TroubleRow, ...]
    state: str = ""
    seen_at: Time | None = None
    labels: tuple[str, ...] = ()
    release: str = ""
    without: tuple[TroubleRow, ...] = ()
    disk: DiskRow | None = None


@dataclass(frozen=True, slots=True)
class HostRun:
    """`elsewhere_from`: when another host may take its task; none while its host is awake."""

    run: str
    task: str
    title: str
    since: Time
    elsewhere_from: Time | None


@dataclass(frozen=True, slots=True)
class HostDetail:
    """`at_work`: the runs of the caller's teams that it has."""

    host: HostRow
    at_work: tuple[HostRun, ...]


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A credential or other capacity that no run may use until then. `why`: for coordinators."""

    name: str
    until: Time
    why: str
    holders: int


@dataclass(frozen=True, slots=True)
class ListHosts(Request[tuple[HostRow, ...]]):
    pass


@dataclass(frozen=True, slots=True)
class ShowHost(Request[HostDetail]):
    """`host`: its id, or a name or label that only one has; so in the other requests."""

    host: HostName


@dataclass(frozen=True, slots=True)
class HostCheck:
    """`state`: ok, warning or bad. `fix`: the next step."""

    check: str
    state: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class ExamineHost(Request[tuple[HostCheck, ...]]):
    """What keeps runs from starting on a host, by what its supervisor wrote about it."""

    host: HostName


@dataclass(frozen=True, slots=True)
class DrainHost(Request[HostRow]):
    """Start no new runs there. The runs that it has go on to their ends."""

    host: HostName


@dataclass(frozen=True, slots=True)
class ResumeHost(Request[HostRow]):
    host: HostName


@dataclass(frozen=True, slots=True)
class ForgetHost(Request[HostRow]):
    """List it no more. Refused while it may still have runs; those of a lost host go elsewhere.

    `off`: the caller knows that the machine is off, so that none of its agents can be at work.
    """

    host: HostName
    off: bool = False


@dataclass(frozen=True, slots=True)
class ListLimits(Request[tuple[LimitRow, ...]]):
    """What is parked now, such as a credential whose rate limit was reached; the soonest first."""

    limit: Rows = 100


def list_hosts(context: Context, _request: ListHosts) -> tuple[HostRow, ...]:
    store = context.store
    now, runs = store.now(), Counter(run.host for run in store.live_runs())
    hosts = [host for host in store.hosts().values() if not host.forgotten]
    disks = {
        entry.key: entry for entry in store.entries(EntryQuery(EntryKind.DISK, limit=MOST_HOSTS))
    }
    rows = [_row(context, host, now, runs[host.id], disks.get(host.id)) for host in hosts]
    return tuple(sorted(rows, key=lambda row: (not row.awake, row.name, row.id)))


def show(context: Context, request: ShowHost) -> HostDetail:
    host = _the_host(context, request.host)
    store, now = context.store, context.store.now()
    runs = store.live_runs(host=host.id)
    tasks = store.tasks_by_id([run.task for run in runs])
    seen = [run for run in runs if run.task in tasks and sees(context.actor, tasks[run.task].team)]
    free_at = None if state_of(host, now=now) in UP else host.lease_until
    at_work = (
        HostRun(run.id, run.task, tasks[run.task].title, run.claimed_at, free_at)
        for run in seen[:MOST_RUNS]
    )
    return HostDetail(_measured(context, host, len(runs)), tuple(at_work))


def examine(context: Context, request: ExamineHost) -> tuple[HostCheck, ...]:
    host = _the_host(context, request.host)
    row = _counted(context, host)
    supervisor = _supervised_by(row)
    release = HostCheck("release", OK, f"Fleet {row.release or 'of an unknown release'}")
    if row.release not in {"", __version__}:
        fix = f"Install this release there: fleet host add {row.name}"
        words = f"It runs Fleet {row.release}, and this is {__version__}."
        release = HostCheck("release", WARNING, words, fix)
    programs = [
        HostCheck("programs", WARNING, f"{each.why or each.what} is not on its PATH.",
                  f"Install it on {row.id}, and restart its supervisor.")
        for each in row.missing
    ]  # fmt: skip
    nodes = [
        HostCheck("nodes", WARNING, f"It cannot use {each.what}: {each.why}.", "fleet nodes")
        for each in row.down
    ]
    projects = [
        HostCheck("projects", WARNING, f"{each.what}: {each.why}.", _project_fix(row.id, each))
        for each in row.without
    ]
    room = HostCheck("room", OK, f"{row.runs} runs of {row.room or 'as many as the settings say'}")
    disk = [_disk_check(row.id, row.disk)] if row.disk else []
    return (supervisor, release, *programs, *nodes, *projects, room, *disk)


def _disk_check(host: str, disk: DiskRow) -> HostCheck:
    parts = (
        ("worktrees", disk.worktrees),
        ("pool", disk.pool),
        ("kept work", disk.kept),
        ("runs", disk.runs),
    )
    each = ", ".join(f"{name} {bytes_in_words(count)}" for name, count in parts if count)
    words = f"Its home takes {bytes_in_words(disk.total)}{f' ({each})' if each else ''}; {bytes_in_words(disk.free)} are free."
    if disk.free < LITTLE:
        return HostCheck("disk", WARNING, words, f"On {host}: fleet gc --all")
    return HostCheck("disk", OK, words)


def _supervised_by(row: HostRow) -> HostCheck:
    match row.state:
        case HostState.AWAKE:
            return HostCheck("supervisor", OK, "Its supervisor is awake.")
        case HostState.DRAINING:
            words = "It is drained: it starts nothing new."
            return HostCheck("supervisor", WARNING, words, f"fleet host resume {row.id}")
        case HostState.STOPPED:
            words = "Its supervisor was stopped."
            return HostCheck("supervisor", BAD, words, f"On {row.id}: fleet run start")
        case HostState.LOST:
            words = (
                "Its supervisor sent no sign of life until its lease ended, and was not stopped."
            )
            return HostCheck("supervisor", BAD, words, f"On {row.id}, if it is on: fleet run start")
    words = f"Its supervisor is {row.state}."
    return HostCheck("supervisor", BAD, words, f"On {row.id}: fleet run status")


def _project_fix(host: str, trouble: TroubleRow) -> str:
    what = "fleet trust" if trouble.why == WITHOUT[UNTRUSTED] else "git clone URL ."
    return f"On {host}, in {trouble.what}: {what}"


def drain(context: Context, request: DrainHost) -> HostRow:
    return _turn(context, request.host, draining=True)


def resume(context: Context, request: ResumeHost) -> HostRow:
    return _turn(context, request.host, draining=False)


def _turn(context: Context, name: str, *, draining: bool) -> HostRow:
    host = _the_host(context, name)
    if host.draining != draining:
        kind = Kind.HOST_DRAINED if draining else Kind.HOST_RESUMED
        host = replace(host, draining=draining)
        context.commit([Put(host)], context.event(kind, "", host=host.id))
    return _counted(context, host)


def forget(context: Context, request: ForgetHost) -> HostRow:
    from fleet.operations.compute.joining import end_joining  # noqa: PLC0415  # start-up time
    from fleet.operations.team import revocations  # noqa: PLC0415  # likewise

    host = _the_host(context, request.host, forgotten=True)
    runs, now = context.store.live_runs(host=host.id), context.store.now()
    if host.forgotten:
        return _row(context, host, now, len(runs))
    if state_of(host, now=now) in UP:
        raise Refused(
            f"A supervisor is running on {host.id}.",
            fix="Stop it there first: fleet run stop",
            code="host_awake",
        )
    if runs and not is_over(host, now=now) and not request.off:
        raise Refused(
            f"{host.id} may still be at work on {_tasks(runs)}, for another "
            f"{_time((host.lease_until - now) // 1_000_000 + 1)}.",
            fix=f"If that machine is off: fleet host forget {host.id} --off",
            code="host_has_runs",
        )
    forgotten = replace(host, forgotten=True, draining=False, holder="", lease_until=0)
    context.commit([Put(forgotten)], context.event(Kind.HOST_FORGOTTEN, "", host=host.id))
    revocations.revoke(context, Revocation(name_key(host.id), now))  # it cannot connect any more
    end_joining(context, host.id)
    return _row(context, host, now, len(runs))


def _time(seconds: int) -> str:
    if seconds <= 120:
        return f"{seconds} s"
    return f"{seconds / 60:.0f} min" if seconds <= 7200 else f"{seconds / 3600:.0f} h"


def _tasks(runs: list[Run]) -> str:
    few = ", ".join(run.task for run in runs[:5])
    return few if len(runs) <= 5 else f"{few} and {len(runs) - 5} more"


def _the_host(context: Context, name: str, *, forgotten: bool = False) -> Host:
    """`forgotten`: also one of those."""
    hosts = {h.id: h for h in context.store.hosts().values() if forgotten or not h.forgotten}
    host_name = name.strip()
    if host_name in hosts:
        return hosts[host_name]
    same = [host for host in hosts.values() if host.name == host_name]
    if not same and host_name not in SYSTEMS:  # it was added by another name than its own
        same = [host for host in hosts.values() if host_name in host.labels]
    if len(same) > 1:
        ids = ", ".join(sorted(host.id for host in same))
        words = f"{len(same)} hosts have the name or label {host_name}: {ids}."
        raise Mismatch(words, fix="Give the id of one.")
    if not same:
        raise NotFound(f"There is no host '{host_name[:60]}'.", fix="`fleet host list` lists them.")
    return same[0]


def _counted(context: Context, host: Host) -> HostRow:
    return _measured(context, host, len(context.store.live_runs(host=host.id)))


def _measured(context: Context, host: Host, runs: int) -> HostRow:
    disk = context.store.entry(EntryKind.DISK, "", host.id)
    return _row(context, host, context.store.now(), runs, disk)


def _row(context: Context, host: Host, now: int, runs: int, disk: Entry | None = None) -> HostRow:
    state = state_of(host, now=now)
    without = tuple(row for row in map(_project, host.without) if may_name(context, row.what))
    return HostRow(
        id=host.id,
        name=host.name,
        awake=state in UP,
        lease_until=host.lease_until,
        runs=runs,
        room=host.room,
        down=tuple(TroubleRow(*_two(each)) for each in host.down),
        missing=tuple(TroubleRow(*_two(each)) for each in host.missing),
        state=str(state),
        seen_at=host.renewed_at,
        labels=host.labels,
        release=host.release,
        without=without,
        disk=_disk(disk) if disk and disk.counts(now) else None,
    )


def _disk(entry: Entry) -> DiskRow:
    use = disk_use(entry.body)
    return DiskRow(entry.at, use.total, *use)


def _project(text: str) -> TroubleRow:
    why, project = _two(text)
    return TroubleRow(project, WITHOUT.get(why, why))


def _two(text: str) -> tuple[str, str]:
    what, _, why = text.partition(" ")
    return what, why


def list_limits(context: Context, request: ListLimits) -> tuple[LimitRow, ...]:
    now, is_admin = context.store.now(), Permission.ADMIN in GRANTS[context.actor.role]
    parked = [row for row in context.store.slots().values() if row.parked_until > now]
    parked.sort(key=lambda row: row.parked_until)
    return tuple(
        LimitRow(row.id, row.parked_until, row.why if is_admin else "", len(row.holders))
        for row in parked[: request.limit]
    )


_READ, _ADMIN = Permission.READ, Permission.ADMIN
OPERATIONS = (
    Operation("host.list", ListHosts, _READ, list_hosts, "List the machines with a supervisor."),
    Operation("host.show", ShowHost, _READ, show, "Show a machine, its runs and what it lacks."),
    Operation("host.doctor", ExamineHost, _READ, examine, "Check what keeps a machine from work."),
    Operation("host.drain", DrainHost, _ADMIN, drain, "Start no new runs on a machine."),
    Operation("host.resume", ResumeHost, _ADMIN, resume, "Let a machine start runs again."),
    Operation(
        "host.forget", ForgetHost, _ADMIN, forget, "Remove a machine from the list.", outside=True
    ),
    Operation(
        "limit.list", ListLimits, _READ, list_limits, "List what waits for a rate limit to pass."
    ),
)
