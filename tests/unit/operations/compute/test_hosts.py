from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Role
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.hosts.disk import DiskUse
from fleet.domain.run import Host, Slots
from fleet.operations.catalogue import perform
from fleet.operations.compute.hosts import (
    DrainHost,
    ExamineHost,
    ForgetHost,
    ListHosts,
    ListLimits,
    ResumeHost,
    ShowHost,
)
from fleet.operations.inbox import ListInbox
from fleet.ports import Put

SECOND = 1_000_000
GB = 10**9


def put(office, name="box", host="box-1", *, left: int = 80, lease: int = 90, **given):
    """A host whose lease is over in so many seconds."""
    until = office.clock.now() + left * SECOND
    row = Host(host, 0, name, given.pop("holder", "h"), "", until, lease=lease, **given)
    office.store.commit([Put(row)], [])


def test_a_drained_host_is_listed_as_that_until_it_is_resumed(office):
    put(office)
    assert office.call(DrainHost("box")).state == "draining"
    assert [row.state for row in office.call(ListHosts())] == ["draining"]
    assert office.call(DrainHost("box-1")).state == "draining"
    assert office.call(ResumeHost("box")).state == "awake"
    assert [e.type for e in office.store.events() if e.type.startswith("host.")] == [
        "host.drained",
        "host.resumed",
    ]


def measured(office, host="box-1", **sizes):
    now = office.clock.now()
    use = DiskUse(**{"free": 50 * GB, **sizes})
    row = Entry("e-1", 0, EntryKind.DISK, "", host, "", now, now + 60 * SECOND, body=use._asdict())
    office.store.commit([Put(row)], [])


def test_a_machine_says_how_much_of_its_disk_it_takes(office):
    put(office)
    put(office, "other", "box-2")
    assert office.call(ShowHost("box")).host.disk is None
    measured(office, worktrees=3 * GB, pool=GB, kept=5_000_000)
    disk = office.call(ShowHost("box")).host.disk
    assert (disk.total, disk.worktrees, disk.at) == (4_005_000_000, 3 * GB, office.clock.now())
    assert [row.disk for row in office.call(ListHosts())] == [disk, None]
    (check,) = [each for each in office.call(ExamineHost("box")) if each.check == "disk"]
    assert check.state == "ok"
    assert check.message == (
        "Its home takes 4.0 GB (worktrees 3.0 GB, pool 1.0 GB, kept work 5 MB); 50.0 GB are free."
    )
    office.clock.advance(61)
    assert office.call(ShowHost("box")).host.disk is None  # too long ago to be told


def test_a_disk_that_is_nearly_full_is_a_warning_with_what_to_do(office):
    put(office)
    measured(office, worktrees=GB, free=GB // 2)
    (check,) = [each for each in office.call(ExamineHost("box")) if each.check == "disk"]
    assert (check.state, check.fix) == ("warning", "On box-1: fleet gc --all")


def test_a_name_that_two_hosts_have_is_refused_with_their_ids(office):
    put(office)
    put(office, host="box-2")
    with pytest.raises(BadInput, match="box-1, box-2"):
        office.call(DrainHost("box"))
    assert office.call(DrainHost("box-2")).id == "box-2"
    with pytest.raises(NotFound, match="no host 'bux'"):
        office.call(ShowHost("bux"))


def test_the_runs_of_a_silent_host_are_shown_with_when_others_may_take_them(office):
    task = office.add("Work", team="red")
    office.start(task)  # on box-1
    put(office, left=200, lease=300)
    (held,) = office.call(ShowHost("box")).at_work
    assert (held.task, held.title) == (task, "Work")
    assert held.elsewhere_from == office.clock.now() + 200 * SECOND
    blue = office.person(Role.WORKER, team="blue")
    assert office.call(ShowHost("box"), blue).at_work == ()
    assert office.call(ShowHost("box"), blue).host.runs == 1


def test_a_silent_host_needs_somebody_before_its_lease_is_over(office):
    office.start(office.add("Work"))
    put(office, left=200, lease=300)
    put(office, "other", "box-2")
    (item,) = office.call(ListInbox())
    assert item.words.startswith(
        "box-1 is silent, with 1 run: t-1. Other hosts may take over from "
    )
    assert [action.operation for action in item.actions] == ["host.show", "host.forget"]


def test_a_host_that_vanished_is_lost_also_once_its_runs_are_elsewhere(office):
    put(office, left=-1)
    assert office.call(ShowHost("box")).host.state == "lost"
    (check, *_) = office.call(ExamineHost("box"))
    assert (check.state, "was not stopped" in check.message) == ("bad", True)
    put(office, "away", "box-2", holder="", left=-1)
    assert office.call(ShowHost("away")).host.state == "stopped"


def test_a_host_is_forgotten_once_it_can_have_no_runs(office):
    office.start(office.add("Work"))
    put(office)
    with pytest.raises(Refused, match="A supervisor is running on box-1"):
        office.call(ForgetHost("box"))
    office.clock.advance(30)
    put_row = office.store.hosts()["box-1"]
    stopped = Host(
        "box-1", put_row.version, "box", "", "", office.clock.now() + 50 * SECOND, lease=90
    )
    office.store.commit([Put(stopped)], [])
    with pytest.raises(Refused, match="may still be at work on t-1, for another 51 s"):
        office.call(ForgetHost("box"))
    (row,) = office.store.hosts().values()
    away = replace(row, lease_until=office.clock.now() + 86400 * SECOND)
    (away,) = office.store.commit([Put(away)], [])
    with pytest.raises(Refused, match="for another 24 h"):
        office.call(ForgetHost("box"))
    office.store.commit([Put(replace(away, lease_until=stopped.lease_until))], [])
    office.clock.advance(60)
    assert office.call(ForgetHost("box")).runs == 1
    assert office.call(ListHosts()) == ()
    assert office.call(ListInbox()) == ()


def test_only_coordinators_change_hosts(office):
    put(office)
    lead = office.person(Role.TEAM_LEAD)
    for request in (DrainHost("box"), ResumeHost("box"), ForgetHost("box")):
        with pytest.raises(Forbidden):
            office.call(request, lead)
    assert office.call(ShowHost("box"), lead).host.id == "box-1"


def test_who_knows_that_a_machine_is_off_need_not_wait_for_its_lease(office):
    office.start(office.add("Work"))
    put(office, holder="", left=86000, lease=86400)
    with pytest.raises(Refused) as refused:
        office.call(ForgetHost("box"))
    assert refused.value.fix == "If that machine is off: fleet host forget box-1 --off"
    office.call(ForgetHost("box", off=True))
    assert office.call(ListHosts()) == ()


def test_what_keeps_a_host_from_work_is_said_with_the_next_step(office):
    put(
        office, draining=True, release="0.0.9", missing=("codex codex",),
        down=("http://big:1 refused",), without=("untrusted /shop", "absent /site"),
    )  # fmt: skip
    checks = office.call(ExamineHost("box"))
    assert [(each.check, each.state, each.fix) for each in checks] == [
        ("supervisor", "warning", "fleet host resume box-1"),
        ("release", "warning", "Install this release there: fleet host add box"),
        ("programs", "warning", "Install it on box-1, and restart its supervisor."),
        ("nodes", "warning", "fleet nodes"),
        ("projects", "warning", "On box-1, in /shop: fleet trust"),
        ("projects", "warning", "On box-1, in /site: git clone URL ."),
        ("room", "ok", ""),
    ]


def test_the_projects_that_a_host_lacks_are_shown_to_those_who_may_have_work_there(office):
    put(office, without=("untrusted /red/shop", "untrusted /blue/shop"))
    red = replace(office.person(Role.MONITOR, team="red"), remote=True)
    context = office.context(red)._replace(offers=lambda c, path: path == f"/{c.actor.team}/shop")
    for host in (*perform(context, ListHosts()), perform(context, ShowHost("box")).host):
        assert [each.what for each in host.without] == ["/red/shop"]
    assert "blue" not in str(perform(context, ExamineHost("box")))
    assert len(office.call(ShowHost("box")).host.without) == 2


def test_why_a_credential_waits_is_for_coordinators(office):
    """It is what a program said, perhaps in another team's run."""
    until = office.clock.now() + 60 * SECOND
    office.store.commit([Put(Slots("claude@box", 0, parked_until=until, why="You asked …"))], [])
    assert [row.why for row in office.call(ListLimits())] == ["You asked …"]
    assert [row.why for row in office.call(ListLimits(), office.person(Role.TEAM_LEAD))] == [""]
