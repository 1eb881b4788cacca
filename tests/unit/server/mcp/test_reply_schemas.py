"""Every tool says what it replies, and replies so."""

from __future__ import annotations

import copy
import json

import pytest
from jsonschema import Draft202012Validator

from fleet.server.http.codec import ENCODER, outside
from fleet.server.mcp.reply_schemas import output_schema
from fleet.server.mcp.tool_table import TOOLS
from tests.unit.operations.conftest import ADA, Office
from tests.unit.operations.samples import DECLARED, sample
from tests.unit.server.mcp.test_run_tool import has_nothing, run

REPLIED = [(tool, name) for tool in TOOLS for name in tool.operations]


def strict(tool):
    """With nothing but what the schema names."""
    schema = copy.deepcopy(output_schema(tool))
    for record in (schema, *schema.get("$defs", {}).values()):
        record["additionalProperties"] = False
    Draft202012Validator.check_schema(schema)
    return schema


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_stands_by_itself_and_refuses_what_is_no_reply(tool):
    schema = strict(tool)
    used = {name for name in schema.get("$defs", {}) if f"#/$defs/{name}" in json.dumps(schema)}
    assert used == schema.get("$defs", {}).keys()
    for wrong in ({}, {"data": 7}, {"data": {"what": 1}}, {"data": [{"what": 1}]}):
        assert not Draft202012Validator(schema).is_valid(wrong)


@pytest.mark.parametrize(("tool", "name"), REPLIED, ids=lambda it: getattr(it, "name", it))
def test_what_an_operation_replies_is_as_its_tool_says(tool, name):
    office = Office()
    request = sample(name, office)
    reply = outside(office.call(request, ADA), DECLARED[name].reply)
    data = json.loads(ENCODER.encode(reply))
    schema = strict(tool)
    if tool.keys:
        key = tool.keys[tool.operations.index(name)]
        schema["properties"]["data"]["required"] = [key]
        data = {key: data}
    Draft202012Validator(schema).validate({"data": data})


def test_a_tool_of_several_operations_names_their_keys_as_it_replies():
    for tool in TOOLS:
        if tool.keys:
            reply = json.loads(run(has_nothing, tool.name).text)
            Draft202012Validator(output_schema(tool)).validate({"data": reply})
            assert tuple(reply) == tool.keys


def test_a_list_of_tools_stays_short():
    """Programs read it whole, most of them at each start."""
    assert sum(len(ENCODER.encode(output_schema(tool))) for tool in TOOLS) < 165_000
