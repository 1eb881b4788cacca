"""Recorded transcripts as tests: a module that says `CODER = …` gets one for each of its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.adapters.coders.recorded import cases

if TYPE_CHECKING:
    import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "transcript" in metafunc.fixturenames and hasattr(metafunc.module, "CODER"):
        recorded = cases(metafunc.module.CODER)
        metafunc.parametrize("transcript", recorded, ids=[case.folder.name for case in recorded])
