"""Whatever the OpenAPI document lets somebody ask is answered as that document says."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from fleet.operations.catalogue import operations
from fleet.server.claude_fleet.mount import CLAUDE_FLEET
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.http import openapi
from tests.integration.hostile import HostileTeam
from tests.wait import LIMIT

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance]
ENDLESS = "/events"  # an answer that goes on for ever is looked at elsewhere
EXAMPLES = {GenerationMode.POSITIVE: 6, GenerationMode.NEGATIVE: 3}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = HostileTeam(tmp_path_factory.mktemp("schema"))
    yield made
    made.served.end()


@pytest.fixture(scope="module")
def asking(team):
    with requests.Session() as session:
        yield session


def asked() -> dict:
    """By name; each is one operation of the document."""
    schema = schemathesis.openapi.from_dict(json.loads(openapi.document(CLAUDE_FLEET)))
    found = [one.ok() for one in schema.get_all_operations()]
    return {one.label: one for one in found if one.path != ENDLESS}


ASKED = asked()


def test_the_document_is_one_of_openapi_3_1_and_lists_every_path():
    document = json.loads(openapi.document(CLAUDE_FLEET))
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    for operation in operations():
        assert "post" in document["paths"][f"/v1/{operation.name.replace('.', '/')}"]
    for path in PATHS:
        assert path.method.lower() in document["paths"][path.path.replace(":path}", "}")]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    examples = [one for one in document["paths"].values() if "example" in str(one)]
    assert len(examples) > 20


@pytest.mark.parametrize("name", ASKED)
def test_whatever_is_asked_is_answered_as_the_document_says(team, asking, name):
    for mode, most in EXAMPLES.items():
        drive(team, asking, ASKED[name], mode, most)
    answer = asking.request(
        ASKED[name].method, f"http://127.0.0.1:{team.served.port}{ASKED[name].path}"
    )
    if ASKED[name].definition.raw.get("security") != []:
        assert answer.status_code == 401


def drive(team, asking, operation, mode, most: int) -> None:
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case) -> None:
        case.call_and_validate(
            base_url=f"http://127.0.0.1:{team.served.port}",
            session=asking,
            headers={"Authorization": f"Bearer {team.tokens['root']}"},
            checks=CHECKS,
            timeout=LIMIT,
        )

    with suppress(Unsatisfiable):  # nothing that could be wrong is asked with it
        ask()
