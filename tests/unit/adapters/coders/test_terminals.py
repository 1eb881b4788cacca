"""What each program's hooks wrote in a terminal, recorded, and what it is read as."""

from __future__ import annotations

import pytest

from fleet.adapters.coders.claude.coder import ClaudeCoder
from fleet.adapters.coders.codex.coder import CodexCoder
from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from tests.unit.adapters.coders.folds import assert_no_change_of_shape_is_fatal
from tests.unit.adapters.coders.recorded import cases
from tests.unit.adapters.coders.watched import Watched

CODERS = [Watched(ClaudeCoder()), Watched(CodexCoder()), Watched(OpenCodeCoder())]
RECORDED = [
    pytest.param(coder, case, id=f"{coder.name}/{case.folder.name}")
    for coder in CODERS
    for case in cases(coder)
]


def test_each_of_them_was_recorded():
    assert all(cases(coder) for coder in CODERS)


@pytest.mark.parametrize(("coder", "transcript"), RECORDED)
def test_what_was_recorded_reads_as_expected(coder, transcript):
    transcript.check(coder)


@pytest.mark.parametrize(("coder", "transcript"), RECORDED)
def test_every_turn_that_began_has_ended(coder, transcript):
    _, so_far = transcript.read(coder)
    assert so_far.at_rest
    assert so_far.turns == so_far.ended_turns
    assert not so_far.wants


@pytest.mark.parametrize("change", ["gone", None, 7, [], {}])
@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: coder.name)
def test_no_change_of_shape_is_fatal(coder, change):
    (asks,) = (case for case in cases(coder) if case.folder.name == "permission")
    assert_no_change_of_shape_is_fatal(coder, asks, change)
