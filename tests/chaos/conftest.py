from __future__ import annotations

import pytest

from tests.chaos.crashing_home import CrashingHome
from tests.chaos.forker import SupervisorForker


@pytest.fixture(scope="module")
def forker():
    made = SupervisorForker()
    yield made
    made.close()


@pytest.fixture
def crashing(tmp_path, forker):
    made = CrashingHome(tmp_path, forker, 0)
    yield made
    made.close()
