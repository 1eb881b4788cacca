"""Whatever the OpenAPI document lets somebody ask is answered as that document says."""

from __future__ import annotations

import json
import os
import re
import uuid
from contextlib import suppress

import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
)

from fleet.domain.access import Role
from fleet.domain.limits import BLANK
from fleet.operations.catalogue import operations
from fleet.server.claude_fleet.mount import CLAUDE_FLEET
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.http import openapi
from tests.integration.hostile import HostileTeam
from tests.wait import LIMIT


def refused_or_too_large(ctx, response, case) -> bool | None:
    """413 is a refusal, too: a text over its limit can be longer than any request may be."""
    if response.status_code == 413:
        return None
    return negative_data_rejection(ctx, response, case)


DOCUMENT = json.loads(openapi.document(CLAUDE_FLEET))
ALWAYS = [not_a_server_error, response_schema_conformance, content_type_conformance]
CHECKS = {
    GenerationMode.POSITIVE: [*ALWAYS, positive_data_acceptance],
    GenerationMode.NEGATIVE: [*ALWAYS, refused_or_too_large],
}
SCHEMATHESIS_TRIES = 64 * 1024  # characters
ENDLESS = "/events"  # an answer that goes on for ever is looked at elsewhere
MANY = int(os.environ.get("FLEET_SCHEMA_EXAMPLES", "0"))  # 100 finds more, and takes ten minutes
EXAMPLES = {GenerationMode.POSITIVE: MANY or 6, GenerationMode.NEGATIVE: MANY or 4}
FEWER = {GenerationMode.POSITIVE: MANY or 1, GenerationMode.NEGATIVE: MANY or 1}
LESSER = [str(role) for role in Role if role is not Role.COORDINATOR]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = HostileTeam(tmp_path_factory.mktemp("schema"))
    yield made
    made.served.end()


@pytest.fixture(scope="module")
def asking(team):
    with requests.Session() as session:
        yield session


def open_to_all(document: dict) -> dict:
    """Nothing in it needs a token: one is sent always, and to leave it out is tried by itself."""
    bare = {name: part for name, part in document.items() if name != "security"}
    without = {
        name: kind for name, kind in document["components"].items() if "security" not in name
    }
    return bare | {"components": without}


def asked() -> dict:
    """By name; each is one operation of the document."""
    schema = schemathesis.openapi.from_dict(open_to_all(DOCUMENT))
    found = [one.ok() for one in schema.get_all_operations()]
    return {one.label: one for one in found if one.path != ENDLESS}


ASKED = asked()


def test_the_document_is_one_of_openapi_3_1_and_lists_every_path():
    document = DOCUMENT
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    for operation in operations():
        assert "post" in document["paths"][f"/v1/{operation.name.replace('.', '/')}"]
    for path in PATHS:
        assert path.method.lower() in document["paths"][path.path.replace(":path}", "}")]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    examples = [one for one in document["paths"].values() if "example" in str(one)]
    assert len(examples) > 20


def patterns(schema: object) -> set[str]:
    """All in it."""
    if isinstance(schema, list):
        return {each for part in schema for each in patterns(part)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
    return own.union(*map(patterns, schema.values()))


@pytest.mark.parametrize("pattern", sorted(patterns(DOCUMENT["components"])))
def test_a_pattern_means_the_same_to_a_client_and_to_us(pattern):
    """Dialects differ in what is white space, a letter, a digit, the end of a line."""
    outside = jsonschema_rs.validator_for({"pattern": pattern}).is_valid
    inside = re.compile(pattern.removesuffix("$") + r"\Z").search
    for code in (*range(0x3100), *range(0xFE00, 0x10000)):
        for text in (chr(code), f"t-1{chr(code)}"):
            assert outside(text) == bool(inside(text)), text


def test_a_text_of_nothing_but_white_space_is_none():
    blank = re.compile(f"[{BLANK}]").fullmatch
    characters = [chr(code) for code in range(0x110000)]
    assert [c for c in characters if blank(c)] == [c for c in characters if c.isspace()]


def lesser_roles() -> dict[str, list[str]]:
    """By what is asked: the roles take turns, and with many examples each asks for all."""
    names = [name for name in ASKED if not name.startswith("GET /v1/")]  # asked by POST, too
    return {name: LESSER if MANY else [LESSER[n % len(LESSER)]] for n, name in enumerate(names)}


@pytest.mark.parametrize("name", ASKED)
def test_whatever_is_asked_is_answered_as_the_document_says(team, asking, name):
    for mode, most in EXAMPLES.items():
        drive(team, asking, ASKED[name], mode, most, root_of(team))
    answer = asking.request(
        ASKED[name].method, f"http://127.0.0.1:{team.served.port}{ASKED[name].path}"
    )
    if ASKED[name].definition.raw.get("security") != []:
        assert answer.status_code == 401


@pytest.mark.parametrize(("name", "roles"), lesser_roles().items())
def test_a_lesser_role_is_refused_for_its_permission_alone(team, asking, name, roles):
    """What the document allows is done, or is forbidden, or is about nothing that this role sees."""
    for role in roles:
        headers = header_of(team, role, role, "red")
        for mode, most in FEWER.items():
            drive(team, asking, ASKED[name], mode, most, headers)


def root_of(team) -> dict[str, str]:
    return header_of(team, "root", "coordinator", "local")


def header_of(team, who: str, role: str, of: str) -> dict[str, str]:
    """Of a token that counts: an example before may have revoked it."""
    if who not in team.tokens or team.ask(who, "POST", "/v1/me/show", {})[0] == 401:
        name = f"{who}-{uuid.uuid4().hex[:8]}"
        team.tokens[who] = team.served.token(name, "--role", role, "--team", of)
    assert team.ask(who, "POST", "/v1/me/show", {})[0] == 200
    return {"Authorization": f"Bearer {team.tokens[who]}"}


def drive(team, asking, operation, mode, most: int, headers: dict[str, str]) -> None:
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
            headers=headers,
            checks=CHECKS[mode],
            timeout=LIMIT,
        )

    with suppress(Unsatisfiable):  # nothing that could be wrong is asked with it
        ask()


def long_texts() -> list[tuple[str, str, int]]:
    """Path, field and limit of every text that may be longer than schemathesis tries."""
    found = []
    for path, methods in DOCUMENT["paths"].items():
        for name, schema in body_schema(methods).get("properties", {}).items():
            most = max(each.get("maxLength", 0) for each in (schema, *schema.get("anyOf", ())))
            if most > SCHEMATHESIS_TRIES:
                found.append((path, name, most))
    return found


def body_schema(methods: dict) -> dict:
    content = methods.get("post", {}).get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    return DOCUMENT["components"]["schemas"].get(reference.rpartition("/")[2], {})


def answer_to(team, asking, path: str, name: str, length: int) -> requests.Response:
    schema = body_schema(DOCUMENT["paths"][path])
    fields = {each: _example(schema["properties"][each]) for each in schema["required"]}
    return asking.post(
        f"http://127.0.0.1:{team.served.port}{path.replace('{', '').replace('}', '')}",
        json=fields | {name: "x" * length},
        headers=root_of(team),
        timeout=LIMIT,
    )


def _example(schema: dict) -> str | int:
    return schema["minimum"] if schema.get("type") == "integer" else schema.get("enum", ["x"])[0]


@pytest.mark.parametrize(("path", "name", "most"), long_texts())
def test_a_text_one_character_over_its_limit_is_refused(team, asking, path, name, most):
    over = answer_to(team, asking, path, name, most + 1)
    assert over.status_code == 422
    assert f"has {most + 1} characters; the limit is {most}" in over.json()["detail"]
    assert "characters" not in answer_to(team, asking, path, name, most).text
