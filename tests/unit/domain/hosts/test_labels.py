"""Labels are words that a task can need, and a drained host is said last of all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.errors import BadInput, Refused
from fleet.domain.hosts.labels import check_labels, unfit
from fleet.domain.run import Host
from fleet.domain.task import Limits, Spec, Task, TaskState
from fleet.operations.tasks.show import check_hosts

BOX = Host("box", 0, "box", "#1", "boot", 1 << 60, labels=("gpu",))


def task(*needs: str) -> Task:
    spec = Spec(limits=Limits(needs=needs))
    return Task("t-1", 0, TaskState.OPEN, "x", "", "/p", "me", 1, spec=spec)


@pytest.mark.parametrize(
    ("label", "fix"),
    [
        ("", "leave it out"),
        ("gpu,macos", "--label gpu --label macos"),
        ("a b", "--label a --label b"),
        ("x" * 101, "Shorten"),
    ],
)
def test_what_no_task_would_ask_for_is_no_label(label, fix):
    with pytest.raises(BadInput) as caught:
        check_labels(("gpu", label))
    assert fix in caught.value.fix
    check_labels(("gpu", "eu-west", "x" * 100))


def test_a_task_that_only_a_drained_host_can_do_says_how_that_host_takes_it():
    drained = replace(BOX, draining=True)
    with pytest.raises(Refused) as caught:
        check_hosts([drained, replace(BOX, id="other", labels=())], task("gpu"), "", 0)
    assert caught.value.fix == "fleet host resume box"
    assert "label" in unfit(drained, task("macos"), "")
