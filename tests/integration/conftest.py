import pytest

from tests.integration.supervised_home import SupervisedHome


@pytest.fixture
def supervised(tmp_path):
    made = SupervisedHome(tmp_path)
    yield made
    made.close()
