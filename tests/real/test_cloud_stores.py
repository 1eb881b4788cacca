"""Work queued, run and read on stores in S3, DynamoDB and Firestore, by the names of their variables."""

from __future__ import annotations

import pytest

from tests import clouds
from tests.e2e.scratch import Scratch

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """By kind of store, the variables that name it and let one in."""
    home = clouds.installed()
    (packages,) = home.glob("lib/python*/site-packages")
    with (
        clouds.aws(home, tmp_path_factory.mktemp("clouds")) as endpoint,
        clouds.firestore(home) as host,
    ):
        clouds.make_bucket(endpoint, "fleet")
        aws = clouds.AWS | {"AWS_ENDPOINT_URL": endpoint}
        yield (
            {
                "s3": aws | {"S3_BUCKET": "fleet", "S3_PREFIX": "data/"},
                "dynamodb": aws
                | {"DYNAMODB_TABLE_PREFIX": "fleet_", "DYNAMODB_ENDPOINT": endpoint},
                "firestore": {"GOOGLE_CLOUD_PROJECT": "shop", "FIRESTORE_EMULATOR_HOST": host},
            },
            {"PYTHONPATH": str(packages)},
        )


@pytest.mark.parametrize("kind", clouds.KINDS)
def test_a_queue_in_a_cloud_store_runs_here_and_is_read_on_another_machine(
    kind, services, tmp_path
):
    by_kind, drivers = services
    env = by_kind[kind] | drivers | {"STORAGE_BACKEND": kind}
    here, there = Scratch(tmp_path / "here"), Scratch(tmp_path / "there")
    here.env |= env
    there.env |= env
    here.add("List prices", script="write prices.py {}\ncommit Prices")
    here.add("Add up", "--after", "t-1", script="write bill.py {}\ncommit Bill")
    here.work()
    rows = there.data("tasks", "--all", "--everywhere")
    assert {row["id"]: row["status"] for row in rows} == {"t-1": "done", "t-2": "done"}
    assert there.add("Later") == "t-3"
    assert "t-3" in here("tasks", "--everywhere")
    assert f"{kind}://" in here("doctor")


def test_without_the_driver_the_extra_is_named(tmp_path):
    scratch = Scratch(tmp_path)
    refused = scratch.type("tasks", env={"FLEET_STORE_URL": "s3://fleet/data"})
    assert refused.returncode == 2
    assert "pip install 'agent-fleet[s3]'" in refused.stderr


def test_a_backend_without_its_variable_names_it(tmp_path):
    refused = Scratch(tmp_path).type("tasks", env={"STORAGE_BACKEND": "firestore"})
    assert refused.returncode == 2
    assert "GOOGLE_CLOUD_PROJECT" in refused.stderr
