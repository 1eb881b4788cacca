"""What the machine says of itself."""

from __future__ import annotations

import errno
import subprocess
import sys

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


WITHOUT_FILES = """
import os, resource, sys
from fleet.app import open_store
from fleet.base.machine import is_out_of_files

place = sys.argv[1]
open_store(f"sqlite:///{place}/a.db").close()
os.mkdir(f"{place}/b.db")
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
used = max(int(file) for file in os.listdir("/dev/fd"))
for name, limit in (("a.db", used), ("b.db", used + 100)):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    try:
        open_store(f"sqlite:///{place}/{name}")
    except Exception as error:
        print(name, is_out_of_files(error))
"""


def test_a_database_that_cannot_be_opened_is_out_of_files_only_when_hardly_any_is_left(tmp_path):
    """SQLite says only that it cannot open it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FILES, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["a.db True", "b.db False"]
