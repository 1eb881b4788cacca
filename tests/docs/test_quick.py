"""Which unit tests `make quick` runs."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from tests.docs.tree import TOP


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("changed_tests", TOP / "scripts" / "changed_tests.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("test", "changed"),
    [
        ("tests/unit/domain/test_schedule.py", "src/fleet/domain/schedule.py"),  # in its place
        ("tests/unit/config/test_bind_coders.py", "src/fleet/config/bind.py"),
        ("tests/unit/domain/test_histories.py", "src/fleet/domain/schedule.py"),  # imports it
        ("tests/unit/operations/test_reference_page.py", "tests/unit/operations/samples.py"),
        ("tests/unit/operations/test_worktrees.py", "tests/unit/operations/conftest.py"),
        ("tests/unit/domain/test_task.py", "tests/unit/domain/test_task.py"),
    ],
)
def test_a_unit_test_is_about_what_it_imports_and_what_it_mirrors(script, test, changed):
    assert script.is_about(TOP / test, TOP / changed)


@pytest.mark.parametrize("changed", ["src/fleet/server/run.py", "tests/unit/domain/test_task.py"])
def test_and_about_nothing_else(script, changed):
    assert not script.is_about(TOP / "tests/unit/domain/test_schedule.py", TOP / changed)
