"""What the machine says of itself."""

from __future__ import annotations

import errno

import pytest

from fleet.base.machine import is_out_of_files


def test_too_many_files_are_seen_behind_other_errors():
    error = RuntimeError("no")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    assert is_out_of_files(error)
    assert not is_out_of_files(OSError(errno.ENOSPC, "No space left on device"))


@pytest.mark.timeout(10)
def test_an_error_that_is_its_own_cause_is_looked_at_once():
    """A store that is damaged raises one error again and again."""
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_out_of_files(first)
