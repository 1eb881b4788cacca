"""An alert is a mail to every lead: one sender cannot bury them."""

from __future__ import annotations

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused
from fleet.operations.messages.alerts import MOST_ALERTS, PERIOD, RaiseAlert

WATCH = Actor("watch", Role.MONITOR, "local")
OTHER = Actor("other", Role.MONITOR, "local")


def test_a_monitor_has_a_limit_of_its_own_until_time_has_passed(office):
    for number in range(MOST_ALERTS):
        office.call(RaiseAlert(f"Disk {number}"), WATCH)
    error = office.refused(RaiseAlert("Disk"), WATCH, kind=Refused)
    assert error.code == "too_many_alerts"
    assert office.call(RaiseAlert("Fire"), OTHER).text == "Fire"
    office.clock.advance(PERIOD / 1_000_000 + 1)
    assert office.call(RaiseAlert("Disk"), WATCH).text == "Disk"


def test_a_coordinator_has_none(office):
    for number in range(MOST_ALERTS + 1):
        office.call(RaiseAlert(f"Look {number}"))
